# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The small cluster of these tests, and the Node whose troubles it follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ..support.kube import Json, Kube
from ..support.minislurm import NAME, MiniSlurm
from .scene import CORDON_REASON, Reconcile, deploy


@pytest.fixture(scope="package")
def mini(kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    made = deploy("26.05", kube, kubeconfig, _namespaces("reconcile"))
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")


@pytest.fixture
def reconcile(mini: MiniSlurm, run_module: Callable[..., Json]) -> Reconcile:
    def run(args: Json | None = None, **more: Any) -> Json:
        return run_module("reconcile", {"namespace": mini.namespace, "name": NAME, **(args or {})}, **more)

    return run


@pytest.fixture
def node2(kube: Kube) -> Iterator[str]:
    """Path of the second Node, which is as it was afterwards."""
    path = "/api/v1/nodes/node2"
    yield path
    notes = dict.fromkeys((CORDON_REASON, "slurm-ops.kubernetes/drain", "slurm-ops.kubernetes/cordoned-for"))
    kube.patch(path, {"metadata": {"annotations": notes}, "spec": {"unschedulable": None}})
    gone = [{"$patch": "delete", "type": name} for name in ("GpuUnhealthy", "SlurmDrain")]
    kube.patch(f"{path}/status", {"status": {"conditions": gone}}, kind="strategic")
