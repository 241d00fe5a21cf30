# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What slurmds say of new files, and what is made of it."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import slurm_config_nodes as under_test

STAMP = "[2026-11-21T23:10:26.557] "
BEGUN = f"{STAMP}Caught SIGHUP. Triggering reconfigure.\n{STAMP}error: System GPU detection failed\n"
TOOK = f"{BEGUN}{STAMP}Relinquishing control to new slurmd process (848)\n"
REFUSED = f"{BEGUN}{STAMP}error: no such plugin\n{STAMP}Resuming operation, reconfigure failed.\n"


class World:
    """Worker Pods, each with its log and the hashes of its files."""

    def __init__(self, logs: dict[str, str]) -> None:
        self.logs = logs
        self.files = dict.fromkeys(logs, "new")
        self.warned: list[str] = []
        self.params = {"namespace": "ns", "name": "slurm"}
        self.progress = None
        self.kubernetes = self

    def list(self, *_args: Any, **_more: Any) -> list[dict[str, Any]]:
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        return [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, **ready} for name in self.logs]

    def log_tail(self, _namespace: str, pod: str, container: str, **_more: Any) -> str:
        assert container == "log"
        if self.logs[pod] == "unreadable":
            raise OperationError("may not", reason="Forbidden")
        return self.logs[pod]

    def warn(self, text: str) -> None:
        self.warned.append(text)


def check(monkeypatch: pytest.MonkeyPatch, logs: dict[str, str], **files: str) -> World:
    world = World(logs)
    world.files |= files
    monkeypatch.setattr(under_test, "PUSHED_WITHIN", 0.3)
    monkeypatch.setattr(under_test, "ANSWERED_WITHIN", 0.05)
    monkeypatch.setattr(
        under_test,
        "exec_in_pod",
        lambda _client, _namespace, pod, *_more, **_options: SimpleNamespace(stdout=f"{world.files[pod]}  slurm.conf"),
    )
    nodes = under_test.Nodes(world)  # type: ignore[arg-type]
    nodes.require_taken({"slurm.conf": "new"}, time.monotonic())
    return world


@pytest.mark.parametrize("log", ["", TOOK, REFUSED + TOOK, "unreadable"])
def test_nodes_that_took_them_or_say_nothing(monkeypatch: pytest.MonkeyPatch, log: str) -> None:
    assert check(monkeypatch, {"a": log, "b": TOOK}).warned == []


def test_nodes_that_all_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OperationError, match=r"\(a: error: no such plugin; b: error: no such plugin\)") as caught:
        check(monkeypatch, {"a": TOOK + REFUSED, "b": REFUSED})
    assert caught.value.reason == "Refused"


def test_one_node_of_several_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    world = check(monkeypatch, {"a": REFUSED, "b": TOOK, "c": "", "d": TOOK})
    assert world.warned == [
        "slurmd does not take the new files (a: error: no such plugin). There it would not start again."
    ]


def test_nodes_that_are_behind_or_do_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    behind, undecided = check(monkeypatch, {"a": BEGUN}, a="old").warned
    assert "old files: a (slurm.conf)" in behind
    assert "slurmd in Pod a tries them" in undecided


def test_programs_that_nodes_have_not(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World({"a": "", "b": ""})
    monkeypatch.setattr(
        under_test, "exec_in_pod", lambda *args, **_options: SimpleNamespace(stdout="/none\n" if args[2] == "b" else "")
    )
    nodes = under_test.Nodes(world)  # type: ignore[arg-type]
    assert nodes.lacking(["/none"]) == {"b": ["/none"]}
    assert nodes.lacking([]) == {}


def test_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(monkeypatch, {}).warned == []
