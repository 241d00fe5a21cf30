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


class Watched:
    """Stands for Watch: yields for Nodes what the test puts there."""

    events: list[tuple[str, Any]]
    more: threading.Event

    def __init__(self, _client: Any, resource: Any, _namespace: Any = None, **_more: Any) -> None:
        self.mine = resource.kind == "Node"

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        while True:
            while self.mine and Watched.events:
                event = Watched.events.pop(0)
                if event[0] == "BREAK":
                    raise OperationError("broken", reason="Unreachable")
                yield event
            Watched.more.wait(0.02)


@pytest.fixture
def alarm(monkeypatch: pytest.MonkeyPatch) -> Alarm:
    monkeypatch.setattr(under_test, "Watch", Watched)
    monkeypatch.setattr(under_test, "AGAIN", 0.01)
    Watched.events, Watched.more = [("SYNC", [host()])], threading.Event()
    made = Alarm(None, "hpc", "x", 60.0)  # type: ignore[arg-type]
    waited(made)  # the first list rings
    return made


def waited(alarm: Alarm, changed: Callable[[], bool] = lambda: False, poll: float = 5, interval: float = 5) -> float:
    begun = time.monotonic()
    alarm.wait(changed, poll, interval)
    return time.monotonic() - begun


def test_a_change_rings_and_a_heartbeat_does_not(alarm: Alarm) -> None:
    beat = copy.deepcopy(host())
    beat["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:00:00Z"
    Watched.events.append(("MODIFIED", beat))
    assert waited(alarm, interval=0.3) >= 0.3
    Watched.events.append(("MODIFIED", host(cordoned=True)))
    assert waited(alarm) < 2
    Watched.events.append(("DELETED", host(cordoned=True)))
    assert waited(alarm) < 2
    Watched.events.append(("SYNC", []))
    assert waited(alarm, interval=0.3) >= 0.3


def test_a_watch_that_breaks_is_begun_anew(alarm: Alarm) -> None:
    Watched.events += [("BREAK", None), ("ADDED", host("n2"))]
    assert waited(alarm) < 2


def test_slurm_is_polled_until_something_changed(alarm: Alarm) -> None:
    polls: list[bool] = []

    def changed() -> bool:
        polls.append(len(polls) >= 6)
        return polls[-1]

    assert waited(alarm, changed, poll=0.1, interval=0.35) >= 0.35
    assert 2 <= len(polls) <= 4
    assert waited(alarm, changed, poll=0.1) < 3
