# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which of two slurmctld is asked, and what is brought to the one that waits."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.exec import Finished
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import live_files
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.controllers import (
    can_be_asked,
    command_pod,
    controller_pods,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm_config_live import ConfigPod

FIRST, SECOND = "hpc-controller-0", "hpc-controller-1"


def pod(name: str, *, runs: bool = True, ready: bool = True, deleted: bool = False) -> dict[str, Any]:
    state = {"running": {}} if runs else {"waiting": {}}
    return {
        "metadata": {"name": name} | ({"deletionTimestamp": "now"} if deleted else {}),
        "status": {
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "containerStatuses": [{"name": "slurmctld", "state": state}],
        },
    }


class Kubernetes:
    """An API server with Pods."""

    def __init__(self, *pods: dict[str, Any]) -> None:
        self.pods = {item["metadata"]["name"]: item for item in pods}
        self.patched: list[str] = []

    def get(self, _resource: Any, _namespace: str, name: str) -> Any:
        return self.pods.get(name)

    def patch(self, _resource: Any, _namespace: str, name: str, _change: Any) -> None:
        self.patched.append(name)


def names(*pods: dict[str, Any]) -> list[str]:
    found = controller_pods(Kubernetes(*pods), "ns", "hpc")  # type: ignore[arg-type]
    return [item["metadata"]["name"] for item in found]


@pytest.mark.parametrize(
    ("first", "order"),
    [
        ({}, [FIRST, SECOND]),
        ({"ready": False}, [SECOND, FIRST]),
        ({"runs": False}, [SECOND, FIRST]),
        ({"deleted": True}, [SECOND, FIRST]),
    ],
)
def test_the_second_is_asked_when_the_first_cannot_be(first: dict[str, bool], order: list[str]) -> None:
    assert names(pod(FIRST, **first), pod(SECOND)) == order
    assert can_be_asked(pod(FIRST, **first)) == (not first)


def test_of_two_that_cannot_be_asked_the_one_that_runs() -> None:
    assert names(pod(FIRST, runs=False), pod(SECOND, ready=False)) == [SECOND, FIRST]
    assert names(pod(FIRST, ready=False), pod(SECOND, ready=False)) == [FIRST, SECOND]


def test_without_any_errors_name_the_first() -> None:
    assert names() == []
    assert command_pod(Kubernetes(), "ns", "hpc") == FIRST  # type: ignore[arg-type]


def test_files_are_brought_to_both(monkeypatch: pytest.MonkeyPatch) -> None:
    new, old = (hashlib.sha256(text.encode()).hexdigest() for text in ("new", "old"))
    shown = {FIRST: new, SECOND: old}

    def run(_kubernetes: Any, _namespace: str, name: str, _command: Any, **_more: Any) -> Finished:
        return Finished(0, f"{shown[name]}  slurm.conf\n{old}  prolog-x\n", "")

    monkeypatch.setattr(live_files, "exec_in_pod", run)
    kubernetes = Kubernetes(pod(FIRST), pod(SECOND))
    both = ConfigPod(kubernetes, "ns", "hpc")  # type: ignore[arg-type]
    both.bring({"slurm.conf": "new"})
    assert kubernetes.patched == [FIRST, SECOND]
    wanted = both.wanted({"slurm.conf": "new"}, {"prolog-x": "old"})
    assert both.standby_lacks(wanted) == f"prolog-x, slurm.conf in Pod {SECOND} not as in Pod {FIRST}"
    shown[SECOND] = new
    assert both.standby_lacks({"slurm.conf": new}) == ""


def test_one_that_cannot_be_asked_holds_nothing_up() -> None:
    kubernetes = Kubernetes(pod(FIRST), pod(SECOND, ready=False))
    one = ConfigPod(kubernetes, "ns", "hpc")  # type: ignore[arg-type]
    one.bring({"slurm.conf": "new"})
    assert kubernetes.patched == [FIRST]
    assert one.standby_lacks({"slurm.conf": "x"}) == ""
