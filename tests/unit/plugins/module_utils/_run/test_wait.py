# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop that waits, with a clock that only pauses move."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.trouble import INFORMATION, Seen, Trouble
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.progress import Progress
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.wait import wait_until

from ..clock import Clock


def wait(look: Callable[[], Seen], clock: Clock, timeout: float = 60, progress: Progress | None = None) -> None:
    wait_until(look, "The thing", timeout=timeout, interval=2, progress=progress, clock=clock, pause=clock.pause)


def looks(*seen: Seen) -> Callable[[], Seen]:
    """These one after the other, the last one for ever."""
    queue = list(seen)
    return lambda: queue.pop(0) if len(queue) > 1 else queue[0]


def trouble(grace: float, key: str = "k", text: str = "it is broken") -> Trouble:
    return Trouble(key, text, grace, "Broken", "Mend it.")


def waiting(*troubles: Trouble) -> Seen:
    return Seen(["a: not ready"], troubles)


def test_what_is_done_already_needs_no_pause() -> None:
    clock = Clock(100.0)
    wait(looks(Seen()), clock)
    assert clock.pauses == []


def test_the_first_looks_follow_each_other_faster() -> None:
    clock = Clock(100.0)
    wait(looks(*[waiting()] * 8, Seen()), clock)
    assert clock.pauses[0] == 0.2
    assert sorted(clock.pauses) == clock.pauses
    assert clock.pauses[-1] == 2


def test_it_ends_when_the_time_is_over() -> None:
    clock = Clock(100.0)
    with pytest.raises(OperationError) as caught:
        wait(looks(waiting(trouble(INFORMATION, text="the probe fails"))), clock, 30)
    assert 130 <= clock.now < 131
    assert caught.value.reason == "Timeout"
    assert caught.value.remaining == ("a: not ready",)
    assert "did not end in 30 s" in caught.value.msg
    assert "a: not ready" in caught.value.msg
    assert "the probe fails" in caught.value.msg


def test_what_can_never_heal_ends_it_at_once() -> None:
    clock = Clock(100.0)
    with pytest.raises(OperationError) as caught:
        wait(looks(waiting(trouble(0))), clock)
    assert clock.now == 100
    assert caught.value.reason == "Broken"
    assert str(caught.value) == "The thing failed after 0 s: it is broken. Mend it."
    assert caught.value.remaining == ("a: not ready",)


def test_what_may_heal_ends_it_when_it_lasts() -> None:
    clock = Clock(100.0)
    with pytest.raises(OperationError):
        wait(looks(waiting(trouble(10))), clock)
    assert 110 <= clock.now <= 112


def test_what_heals_does_not_end_it() -> None:
    clock = Clock(100.0)
    wait(looks(*[waiting(trouble(10))] * 4, *[waiting()] * 20, waiting(trouble(10)), Seen()), clock)


def test_a_trouble_that_comes_and_goes_is_the_same_one() -> None:
    clock = Clock(100.0)
    flapping: Iterable[Seen] = [waiting(trouble(10)), waiting()] * 20
    with pytest.raises(OperationError):
        wait(looks(*flapping), clock)
    assert clock.now < 115


def test_several_troubles_are_told_together() -> None:
    with pytest.raises(OperationError) as caught:
        wait(looks(waiting(trouble(0, "1", "one"), trouble(0, "2", "two"), trouble(0, "3", "two"))), Clock(100.0))
    assert caught.value.msg.splitlines() == ["The thing failed after 0 s:", "  one; Mend it.", "  two; Mend it."]


def test_it_says_now_and_then_what_it_waits_for(tmp_path: Path) -> None:
    path, clock = tmp_path / "progress", Clock(100.0)
    path.touch()
    progress = Progress("web", environ={"SLURM_OPS_PROGRESS": str(path)}, clock=clock)
    with pytest.raises(OperationError):
        wait(looks(Seen(["a: not ready", "b: not ready", "c: not there", "d: x"])), clock, 35, progress)
    lines = path.read_text().splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("web: The thing, 1")
    assert lines[0].endswith("s: a: not ready; b: not ready; c: not there; and 1 more")
