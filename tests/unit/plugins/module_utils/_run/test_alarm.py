# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What wakes a resident reconciliation, and what does not."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import alarm as under_test
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.alarm import Alarm

from .._plan.reconcile_model import host


class Events:
    """What the watch of Nodes is going to yield, and the Alarm that follows it."""

    alarm: Alarm

    def __init__(self, *events: tuple[str, Any]) -> None:
        self._events = list(events)

    def put(self, *events: tuple[str, Any]) -> None:
        self._events += events

    def watch(self, _client: Any, resource: Any, _namespace: Any = None, **_more: Any) -> Iterator[tuple[str, Any]]:
        """Stands for Watch."""
        while True:
            while resource.kind == "Node" and self._events:
                event = self._events.pop(0)
                if event[0] == "BREAK":
                    raise OperationError("broken", reason="Unreachable")
                yield event
            threading.Event().wait(0.02)


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Events:
    # Threads of an earlier test may still run: each test has events of its own.
    made = Events(("SYNC", [host()]))
    monkeypatch.setattr(under_test, "Watch", made.watch)
    monkeypatch.setattr(under_test, "AGAIN", 0.01)
    made.alarm = Alarm(None, "hpc", "x", 60.0)  # type: ignore[arg-type]
    waited(made.alarm)  # the first list rings
    return made


def waited(alarm: Alarm, changed: Callable[[], bool] = lambda: False, poll: float = 5, interval: float = 5) -> float:
    begun = time.monotonic()
    alarm.wait(changed, poll, interval)
    return time.monotonic() - begun


def test_a_change_rings_and_a_heartbeat_does_not(nodes: Events) -> None:
    beat = copy.deepcopy(host())
    beat["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:00:00Z"
    nodes.put(("MODIFIED", beat))
    assert waited(nodes.alarm, interval=0.3) >= 0.3
    nodes.put(("MODIFIED", host(cordoned=True)))
    assert waited(nodes.alarm) < 4
    nodes.put(("DELETED", host(cordoned=True)))
    assert waited(nodes.alarm) < 4
    nodes.put(("SYNC", []))
    assert waited(nodes.alarm, interval=0.3) >= 0.3


def test_a_watch_that_breaks_is_begun_anew(nodes: Events) -> None:
    nodes.put(("BREAK", None), ("ADDED", host("n2")))
    assert waited(nodes.alarm) < 4


def test_slurm_is_polled_until_something_changed(nodes: Events) -> None:
    polls: list[bool] = []

    def changed() -> bool:
        polls.append(len(polls) >= 6)
        return polls[-1]

    assert waited(nodes.alarm, changed, poll=0.1, interval=0.35) >= 0.35
    assert 1 <= len(polls) <= 4
    assert waited(nodes.alarm, changed, poll=0.1) < 4
