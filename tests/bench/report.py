# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/benchmarks.md: the part between its two marks is written by `make bench`."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from datetime import date
from pathlib import Path

from .measure import Row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- written by make bench: begin -->", "<!-- written by make bench: end -->"


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


def write(rows: Iterable[Row]) -> None:
    """Put the table and the machine into the page."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{os.cpu_count()} cores, {memory:.0f} GiB, Linux, Python {platform.python_version()}"
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    middle = f"\nMeasured on {date.today().isoformat()}: {machine}.\n\n{table(rows)}\n"
    PAGE.write_text(f"{before}{BEGIN}\n{middle}\n{END}{after}", encoding="utf-8")
