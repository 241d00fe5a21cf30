# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/benchmarks.md: the parts between marks are written by `make bench`."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from datetime import date
from pathlib import Path

from .measure import Row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
BENCH, RECOVERY = "make bench", "make bench, recovery"  # the parts


def table(rows: Iterable[Row]) -> str:
    lines = ["| what | ours | against | ratio | wanted | met |", "|---|---|---|---|---|---|"]
    for row in rows:
        other = f"{row.other_is}: {_seconds(row.other)}" if row.other is not None else ""
        cells = [row.what, _seconds(row.ours), other, _ratio(row), row.target, "yes" if row.met else "no"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _seconds(value: float) -> str:
    return f"{value:.3f} s" if value < 10 else f"{value:.1f} s"


def _ratio(row: Row) -> str:
    if row.ratio is None:
        return ""
    return f"{row.ratio:.2f}" if row.ratio > 0.5 else f"1/{1 / row.ratio:.0f}"


def write(part: str, table_of_it: str) -> None:
    """Put a table and the machine into a part of the page."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{os.cpu_count()} cores, {memory:.0f} GiB, Linux, Python {platform.python_version()}"
    text = PAGE.read_text(encoding="utf-8")
    begin, end = (f"<!-- written by {part}: {word} -->" for word in ("begin", "end"))
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    middle = f"\nMeasured on {date.today().isoformat()}: {machine}.\n\n{table_of_it}\n"
    PAGE.write_text(f"{before}{begin}\n{middle}\n{end}{after}", encoding="utf-8")
