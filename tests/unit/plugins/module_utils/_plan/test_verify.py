# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was declared against what registered."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.kubernetes_objects import Pod, pod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import SlurmNode, slurm_node
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import parse
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.verify import (
    Declared,
    Registered,
    findings,
    gres_counts,
    not_as_declared,
    unregistered,
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


STARTED = 1_795_258_652  # 2026-11-21T10:57:32Z


def worker(**status: Any) -> Pod:
    args = ["-Z", "--conf", "'CPUs=4 Feature=w,fast Gres=gpu:h100:2 RealMemory=1000'"]
    running = {"name": "slurmd", "state": {"running": {"startedAt": "2026-11-21T10:57:32Z"}}}
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [running]}
    spec = {"containers": [{"name": "slurmd", "args": args}]}
    return pod({"metadata": {"name": "w-0"}, "spec": spec, "status": ready | status})


def record(state: str = "IDLE", started: int = STARTED, **more: Any) -> SlurmNode:
    known = {"cpus": 4, "real_memory": 1000, "gres": "gpu:h100:2", "features": ["w", "fast"], "reason": "why"}
    return slurm_node({"name": "w-0", "state": state.split("+"), "slurmd_start_time": started, **known, **more})


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (record(), ""),
        (record("IDLE+DRAIN"), ""),
        # slurmctld has not asked again since the node was given back.
        (record("IDLE+NOT_RESPONDING"), ""),
        # The record is still that of the slurmd before.
        (record(started=STARTED - 1), "its slurmd has not registered (IDLE)"),
        (record("DOWN+NOT_RESPONDING"), "its slurmd has not registered (DOWN+NOT_RESPONDING)"),
        (record("UNKNOWN"), "its slurmd has not registered (UNKNOWN)"),
        (record("UNKNOWN+DRAIN+INVALID_REG"), "slurmd's registration was refused: why"),
        (None, "its Pod is ready but Slurm does not know it"),
    ],
)
def test_whether_the_slurmd_of_a_pod_is_at_work(node: SlurmNode | None, text: str) -> None:
    assert unregistered(worker(), node) == text


def test_a_pod_that_is_not_ready() -> None:
    waiting = worker(phase="Pending", conditions=[], containerStatuses=[])
    assert unregistered(waiting, record()) == "its Pod is not ready: Pending"


@pytest.mark.parametrize(
    ("node", "texts"),
    [
        (record(), []),
        (record(features=["w", "fast", "added"]), []),
        (record(features=["w"]), ["feature fast is missing"]),
        (
            record(cpus=2, real_memory=999),
            ["CPUs=2 in its record, 4 declared", "RealMemory=999 in its record, 1000 declared"],
        ),
        (record(gres=""), ["0 gpu:h100 in its record, 2 declared"]),
    ],
)
def test_what_is_not_as_the_pod_declares(node: SlurmNode, texts: list[str]) -> None:
    assert not_as_declared(worker(), node) == texts
