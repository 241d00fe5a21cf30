# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was declared against what registered."""

from __future__ import annotations

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import parse
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.verify import (
    Declared,
    Registered,
    findings,
    gres_counts,
)

GPU = Declared("w", 1, cpus=8, memory_mib=16000, gres="gpu:h100:8")


def node(
    state: str = "IDLE", reason: str = "", cpus: int = 8, memory: int = 16000, gres: str = "gpu:h100:8"
) -> Registered:
    return Registered("w-0", parse(state), reason, cpus, memory, gres)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("", {}),
        ("(null)", {}),
        ("gpu:8", {"gpu": 8}),
        ("gpu:h100:8(S:0-1)", {"gpu:h100": 8}),
        ("gpu:h100:4(S:0),gpu:h100:4(S:1),shard:16", {"gpu:h100": 8, "shard": 16}),
        ("bandwidth:lustre:4K", {"bandwidth:lustre": 4096}),
        ("gpu", {"gpu": 1}),
    ],
)
def test_gres_counts(text: str, counts: dict[str, int]) -> None:
    assert gres_counts(text) == counts


@pytest.mark.parametrize(
    ("registered", "pods", "texts"),
    [
        ([node()], {"w-0": ""}, []),
        ([node("ALLOCATED")], {"w-0": ""}, []),
        ([node("IDLE+DRAIN", "disk, Ann")], {"w-0": ""}, []),
        ([], {}, ["0 of 1 Pods are there"]),
        ([], {"w-0": "ContainerCreating"}, ["its Pod is not ready: ContainerCreating"]),
        ([], {"w-0": ""}, ["its Pod is ready but Slurm does not know it"]),
        (
            [node("DOWN+NOT_RESPONDING", "Not responding")],
            {"w-0": ""},
            ["its slurmd has not registered (DOWN+NOT_RESPONDING) Not responding"],
        ),
        ([node(gres="gpu:h100:7")], {"w-0": ""}, ["registered 7 of 8 declared gpu:h100"]),
        ([node(gres="")], {"w-0": ""}, ["registered 0 of 8 declared gpu:h100"]),
        ([node(cpus=4)], {"w-0": ""}, ["registered 4 CPUs, declared 8"]),
        ([node(memory=1)], {"w-0": ""}, ["registered 1 MiB, declared 16000"]),
        (
            [node("UNKNOWN+DRAIN+INVALID_REG", "gres/gpu count reported lower than configured (0 < 8)")],
            {"w-0": ""},
            ["slurmd's registration was refused: gres/gpu count reported lower than configured (0 < 8)"],
        ),
    ],
)
def test_findings(registered: list[Registered], pods: dict[str, str], texts: list[str]) -> None:
    assert [finding.text for finding in findings(GPU, registered, pods)] == texts
