# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods and workloads in all kinds of states, as the API server returns them."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def container(reason: str = "", message: str = "", **more: Any) -> Object:
    state = {"waiting": {"reason": reason, "message": message}} if reason else {"running": {}}
    return {"name": "c", "restartCount": 0, "state": state, **more}


def pod(*statuses: Object, node: str = "n1", **more: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "demo", "uid": "u1", **more.pop("metadata", {})},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "img:1"}], **more.pop("spec", {})},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "Ready", "status": "False"}],
            "containerStatuses": list(statuses),
            **more,
        },
    }


def ended(at: str, code: int = 3) -> Object:
    return {"terminated": {"exitCode": code, "finishedAt": at, "reason": "Error"}}


def workload(kind: str, conditions: list[Object] | None = None, **status: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "w", "namespace": "demo", "uid": "u1"},
        "spec": {},
        "status": {"conditions": conditions or [], **status},
    }
