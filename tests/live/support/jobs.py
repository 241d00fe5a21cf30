# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Slurm's commands say, in words that tests can wait for."""

from __future__ import annotations

from collections.abc import Callable

from .process import Completed

Slurm = Callable[..., Completed]


def job_state(slurm: Slurm, job: str | int) -> str:
    """State of a job that slurmctld knows, empty when it does not."""
    return slurm(f"squeue -h -j {job} -o %T", check=False).stdout.strip()


def accounted_state(slurm: Slurm, job: str) -> str:
    """State of the newest record of a job in accounting, empty when there is none."""
    return " ".join(slurm(f"sacct -n -X -P -j {job} -o State", check=False).stdout.split("\n")[-2:-1])


def node_states(slurm: Slurm, partition: str) -> list[str]:
    """States of a partition's nodes as sinfo says them, with its marks (* does not answer)."""
    return slurm(f"sinfo -h -N -p {partition} -o %T", check=False).stdout.split()
