# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""One bulk read of both sides of a cluster, for modules that look before they act or only look."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import cluster_report
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import CLUSTER, Snapshot, snapshot
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import (
    DAEMON_SET,
    DEPLOYMENT,
    KUBERNETES_NODE,
    POD,
    STATEFUL_SET,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient

Raw = Mapping[str, Any]

WORKLOADS = (STATEFUL_SET, DAEMON_SET, DEPLOYMENT)

KUBERNETES, KUBERNETES_NODES, SLURM = "kubernetes", "kubernetes_nodes", "slurm"


@dataclass(slots=True)
class Sides:
    """What was read, and what could not be, with the reason."""

    workloads: Sequence[Raw] = ()
    pods: Sequence[Raw] = ()
    nodes: Sequence[Raw] = ()
    slurm_nodes: Sequence[Raw] = ()
    partitions: Sequence[Raw] = ()
    job_states: Sequence[Raw] = ()
    pings: Sequence[Raw] = ()
    release: str = ""
    parser: str = ""
    errors: dict[str, OperationError] = field(default_factory=dict)

    @property
    def readable(self) -> dict[str, bool]:
        """Whether each side could be read."""
        return {side: side not in self.errors for side in (KUBERNETES, KUBERNETES_NODES, SLURM)}

    def snapshot(self) -> Snapshot:
        """Both sides together."""
        return snapshot(
            workloads=self.workloads,
            pods=self.pods,
            nodes=self.nodes,
            slurm_nodes=self.slurm_nodes,
            partitions=self.partitions,
            job_states=self.job_states,
        )


def read_sides(
    kubernetes: KubernetesClient,
    slurm: Callable[[], SlurmClient],
    namespace: str,
    name: str,
    *,
    kubernetes_nodes: bool = True,
) -> Sides:
    """Read both sides with a fixed number of calls (lists only), whatever the size of the cluster.

    A side that cannot be read is noted in ``errors``; the other one is read all the same.
    """
    sides = Sides()
    labels = f"{CLUSTER}={name}"
    try:
        sides.workloads = [
            item for resource in WORKLOADS for item in kubernetes.list(resource, namespace, labels=labels, cached=True)
        ]
        sides.pods = kubernetes.list(POD, namespace, labels=labels)
    except OperationError as error:
        sides.errors[KUBERNETES] = error
    if kubernetes_nodes and KUBERNETES not in sides.errors:
        try:
            sides.nodes = kubernetes.list(KUBERNETES_NODE, cached=True)
        except ApiError as error:
            # Nodes belong to the whole cluster: an account with a Role in one namespace cannot see them.
            sides.errors[KUBERNETES_NODES] = error
    try:
        client = slurm()
        sides.pings = client.require_controller()
        sides.slurm_nodes = client.nodes().items
        sides.partitions = client.partitions().items
        sides.job_states = client.job_states()
        sides.release, sides.parser = client.release, client.parser
    except OperationError as error:
        sides.errors[SLURM] = error
    return sides


def result(sides: Sides, **shown: Sequence[str]) -> dict[str, Any]:
    """What cluster_info returns; ``shown`` are the labels, annotations and conditions to show."""
    both = sides.snapshot()
    readable = sides.readable
    return {
        **cluster_report.plain(both, slurm_read=readable[SLURM], **shown),
        "versions": {
            "slurmrestd": sides.release or None,
            "data_parser": sides.parser or None,
            "slurmd": cluster_report.versions(both),
        },
        "controllers": [
            {
                "hostname": str(item.get("hostname") or ""),
                "primary": bool(item.get("primary")),
                "responding": bool(item.get("responding")),
            }
            for item in sides.pings
        ],
        "readable": readable,
        "unreadable": [
            {"side": side, "reason": error.reason, "msg": str(error)} for side, error in sides.errors.items()
        ],
    }


def first_failure(sides: Sides) -> OperationError | None:
    """The error that makes a whole side unreadable; Nodes that may not be seen are no such thing."""
    return next((sides.errors[side] for side in (KUBERNETES, SLURM) if side in sides.errors), None)
