# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a command said and how it ended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Completed:
    """An ended command, wherever it ran."""

    command: str
    rc: int
    stdout: str
    stderr: str

    def check(self) -> Completed:
        """Itself, or a test failure that shows both streams."""
        __tracebackhide__ = True
        if self.rc:
            raise AssertionError(f"{self}\nstdout:\n{self.stdout}\nstderr:\n{self.stderr}")
        return self

    def __str__(self) -> str:
        return f"{self.command}: exit status {self.rc}"
