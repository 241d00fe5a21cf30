# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E402 (Ansible wants the documentation before the imports)

"""Callback plugin progress."""

from __future__ import annotations

DOCUMENTATION = r"""
name: progress
type: notification
short_description: Show what long steps are doing while they run
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Ansible shows nothing of a task before it ends. With this callback enabled, modules and scripts of this collection
    tell what they wait for, and how far they are, while they run.
  - The plugin makes a private file, names it in E(SLURM_OPS_PROGRESS) for all tasks, and prints each line that is
    appended to it. When the play ends the file is removed.
  - It sees what runs on the machine of C(ansible-playbook) as the same user, which is where this collection's modules
    run. With privilege escalation the variable does not reach the module, and nothing is shown.
  - If E(SLURM_OPS_PROGRESS) is set already, whoever set it shows the lines, and this plugin does nothing.
requirements:
  - Enable it with C(callbacks_enabled=slurm_ops.kubernetes.progress) in C(ansible.cfg), or with
    E(ANSIBLE_CALLBACKS_ENABLED).
options:
  pause:
    description:
      - Seconds between two looks at the file.
    type: float
    default: 0.3
    env:
      - name: SLURM_OPS_PROGRESS_PAUSE
    ini:
      - section: callback_slurm_ops_progress
        key: pause
"""


import atexit
import contextlib
import os
import tempfile
import threading
from typing import Any

from ansible.plugins.callback import CallbackBase

VARIABLE = "SLURM_OPS_PROGRESS"
LONGEST = 65536  # bytes without an end of line after which they are shown as they are


class CallbackModule(CallbackBase):
    """Shows lines that running tasks append to a file."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "slurm_ops.kubernetes.progress"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, display: Any = None, options: Any = None) -> None:
        super().__init__(display=display, options=options)
        self._path = ""
        self._thread: threading.Thread | None = None
        self._done = threading.Event()

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Make the file and begin to show what is appended to it."""
        if os.environ.get(VARIABLE):
            return
        descriptor, self._path = tempfile.mkstemp(prefix="slurm-ops-progress-")
        os.close(descriptor)
        os.environ[VARIABLE] = self._path
        # A run that is interrupted has no last event, but its interpreter still ends.
        atexit.register(self.stop)
        self._thread = threading.Thread(target=self._show, name="slurm-ops-progress", daemon=True)
        self._thread.start()

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Show what is left and remove the file."""
        self.stop()

    def stop(self) -> None:
        """End the thread and remove the file; safe to call again."""
        if not self._path:
            return
        self._done.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        os.environ.pop(VARIABLE, None)
        with contextlib.suppress(FileNotFoundError):  # somebody may clean up the directory for temporary files
            os.unlink(self._path)
        self._path = ""

    def _show(self) -> None:
        pause = self.get_option("pause")
        rest = b""
        with open(self._path, "rb", buffering=0) as stream:
            last = False
            while not last:
                last = self._done.wait(pause)
                rest += stream.read() or b""
                *lines, rest = rest.split(b"\n")
                if rest and (last or len(rest) > LONGEST):
                    lines, rest = [*lines, rest], b""
                for line in lines:
                    self._display.display(f"  ... {line.decode('utf-8', 'replace')}", color="bright gray")
