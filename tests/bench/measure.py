# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times in pairs: ours and the other one in turn, so that both meet the same machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One line of the table. Seconds are medians; ``target`` says of the ratio or of our seconds what is wanted."""

    what: str
    ours: float
    other: float | None
    other_is: str
    target: str
    met: bool

    @property
    def ratio(self) -> float | None:
        return self.ours / self.other if self.other else None


def seconds(work: Work) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def computing(work: Work, runs: int = 5) -> float:
    """The median of some runs of what only computes, in CPU seconds, after one that does not count."""
    work()
    return statistics.median(_cpu_seconds(work) for _run in range(runs))


def _cpu_seconds(work: Work) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def in_turn(ours: Work, other: Work, runs: int = 5) -> tuple[float, float]:
    """Medians of both, run A B A B, after one of each that does not count."""
    ours()
    other()
    pairs = [(seconds(ours), seconds(other)) for _run in range(runs)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)
