# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes every task result as one line of JSON into the file that SLURM_OPS_RECORD names."""

from __future__ import annotations

import json
import os
import time

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = r"""
name: record
type: aggregate
short_description: Record task results for the live tests
description:
  - Writes one line of JSON for each task result and one for the totals into the file that E(SLURM_OPS_RECORD) names.
"""


class CallbackModule(CallbackBase):
    """What each task did, as the live tests read it: see tests/live/support/playbook.py."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "record"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._path = os.environ.get("SLURM_OPS_RECORD", "")
        self.disabled = not self._path
        self._play = ""
        self._started = {}

    def v2_playbook_on_play_start(self, play):
        self._play = play.get_name()

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._started[task._uuid] = time.monotonic()

    def v2_playbook_on_handler_task_start(self, task):
        self._started[task._uuid] = time.monotonic()

    def v2_runner_on_ok(self, result):
        self._record(result, "changed" if result._result.get("changed") else "ok")

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._record(result, "ignored" if ignore_errors else "failed")

    def v2_runner_on_skipped(self, result):
        self._record(result, "skipped")

    def v2_runner_on_unreachable(self, result):
        self._record(result, "unreachable")

    def v2_runner_item_on_ok(self, result):
        self._record(result, "changed" if result._result.get("changed") else "ok", item=True)

    def v2_runner_item_on_failed(self, result):
        self._record(result, "failed", item=True)

    def v2_runner_item_on_skipped(self, result):
        self._record(result, "skipped", item=True)

    def v2_playbook_on_stats(self, stats):
        self._write({"stats": {host: stats.summarize(host) for host in stats.processed}})

    def _record(self, result, status, item=False):
        task = result._task
        answer = dict(result._result)
        # The items of a loop have been recorded one by one.
        if "results" in answer and task.loop is not None:
            answer["results"] = len(answer["results"])
        self._write(
            {
                "play": self._play,
                "role": task._role.get_name() if task._role else None,
                "name": task.name,
                "action": task.action,
                "host": result._host.get_name(),
                "is_item": item,
                "item": answer.get(answer.get("ansible_loop_var", "item")) if item else None,
                "status": status,
                "result": answer,
                "seconds": time.monotonic() - self._started.get(task._uuid, time.monotonic()),
                "path": task.get_path(),
            }
        )

    def _write(self, record):
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record, default=str) + "\n")
