# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Both sides as read at one moment: Slurm's nodes, partitions and jobs, and the Pods, workloads and Nodes behind them.

Made from raw answers by pure functions, so that everything above can be tried on a made-up cluster of any size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import states
from .kubernetes_objects import (
    CLUSTER,
    COMPONENT,
    NODESET,
    SLURM_NODE,
    WORKER,
    KubernetesNode,
    Pod,
    Workload,
    kubernetes_node,
    pod,
    workload,
)
from .states import NodeState
from .values import number, words

__all__ = [
    "CLUSTER", "COMPONENT", "NODESET", "SLURM_NODE", "WORKER", "KubernetesNode", "Partition", "Pod", "SlurmNode",
    "Snapshot", "Workload", "pair", "snapshot",
]  # fmt: skip

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """One node as Slurm knows it. Memory is in MiB."""

    name: str
    state: NodeState
    reason: str
    reason_user: str
    reason_at: int
    cpus: int
    allocated_cpus: int
    memory_mib: int
    gres: str
    gres_used: str
    features: tuple[str, ...]
    partitions: tuple[str, ...]
    address: str
    hostname: str
    version: str
    topology: str
    slurmd_started: int = 0

    @property
    def dynamic(self) -> bool:
        """Made by a slurmd that registered itself (slurmd -Z), so its record can be deleted."""
        return not self.state.flags.isdisjoint(("DYNAMIC_NORM", "DYNAMIC_FUTURE"))


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as Slurm knows it; ``nodes`` is a host list, ``max_time`` minutes or None for no end."""

    name: str
    state: str
    default: bool
    nodes: str
    total_nodes: int
    max_time: int | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything together. ``pod_of`` gives the worker Pod behind a Slurm node."""

    workloads: Sequence[Workload] = ()
    pods: Sequence[Pod] = ()
    kubernetes_nodes: Sequence[KubernetesNode] = ()
    slurm_nodes: Mapping[str, SlurmNode] = field(default_factory=dict)
    partitions: Sequence[Partition] = ()
    jobs_by_state: Mapping[str, int] = field(default_factory=dict)
    pod_of: Mapping[str, Pod] = field(default_factory=dict)

    def pods_unknown_to_slurm(self) -> list[Pod]:
        """Worker Pods that no Slurm node belongs to."""
        paired = {pod.name for pod in self.pod_of.values()}
        return [pod for pod in self.pods if pod.component == WORKER and pod.name not in paired]


def snapshot(
    *,
    workloads: Iterable[Raw] = (),
    pods: Iterable[Raw] = (),
    nodes: Iterable[Raw] = (),
    slurm_nodes: Iterable[Raw] = (),
    partitions: Iterable[Raw] = (),
    job_states: Iterable[Raw] = (),
) -> Snapshot:
    """The Snapshot of raw answers (Kubernetes objects with kind, and lists of Slurm's REST API)."""
    all_pods = [pod(item) for item in pods]
    known = {item.name: item for item in map(slurm_node, slurm_nodes)}
    return Snapshot(
        workloads=[workload(item) for item in workloads],
        pods=all_pods,
        kubernetes_nodes=[kubernetes_node(item) for item in nodes],
        slurm_nodes=known,
        partitions=[partition(item) for item in partitions],
        jobs_by_state=count_jobs(job_states),
        pod_of=pair(known.values(), all_pods),
    )


def pair(slurm_nodes: Iterable[SlurmNode], pods: Iterable[Pod]) -> dict[str, Pod]:
    """{Slurm node: its worker Pod}.

    A Pod says its Slurm node in a label or annotation, or is called like it (kind replica), or slurmd registered with
    the Pod's host name (kind node), or, with the host's network, with the Node's. A Pod that is going away gives way
    to the one that takes its place.
    """
    by_name: dict[str, Pod] = {}
    by_host: dict[str, Pod] = {}
    claimed: dict[str, Pod] = {}
    for item in sorted((item for item in pods if item.component == WORKER), key=lambda item: not item.deleting):
        by_name[item.name] = item
        if item.host_network:
            by_host[item.node] = item
        if item.slurm_node:
            claimed[item.slurm_node] = item
    found: dict[str, Pod] = {}
    for node in slurm_nodes:
        match = claimed.get(node.name) or by_name.get(node.name) or by_name.get(node.hostname)
        match = match or by_host.get(node.hostname)
        if match is not None:
            found[node.name] = match
    return found


def slurm_node(raw: Raw) -> SlurmNode:
    """One entry of GET nodes/."""
    return SlurmNode(
        name=str(raw.get("name", "")),
        state=states.parse(raw.get("state")),
        reason=str(raw.get("reason") or ""),
        reason_user=str(raw.get("reason_set_by_user") or ""),
        reason_at=_number(raw.get("reason_changed_at")),
        cpus=_number(raw.get("cpus")),
        allocated_cpus=_number(raw.get("alloc_cpus")),
        memory_mib=_number(raw.get("real_memory")),
        gres=str(raw.get("gres") or ""),
        gres_used=str(raw.get("gres_used") or ""),
        features=_words(raw.get("features")),
        partitions=_words(raw.get("partitions")),
        address=str(raw.get("address") or ""),
        hostname=str(raw.get("hostname") or ""),
        version=str(raw.get("version") or ""),
        topology=str(raw.get("topology") or ""),
        slurmd_started=_number(raw.get("slurmd_start_time")),
    )


def partition(raw: Raw) -> Partition:
    """One entry of GET partitions/."""
    limit = (raw.get("maximums") or {}).get("time") or {}
    endless = not isinstance(limit, Mapping) or limit.get("infinite") or not limit.get("set")
    return Partition(
        name=str(raw.get("name", "")),
        state=",".join(_words((raw.get("partition") or {}).get("state"))),
        default="DEFAULT" in _words(raw.get("flags")),
        nodes=str((raw.get("nodes") or {}).get("configured") or ""),
        total_nodes=_number((raw.get("nodes") or {}).get("total")),
        max_time=None if endless else _number(limit),
    )


def count_jobs(job_states: Iterable[Raw]) -> dict[str, int]:
    """{state: number of jobs}; a job counts once, under its base state (flags such as COMPLETING follow it)."""
    counts: Counter[str] = Counter()
    for job in job_states:
        state = _words(job.get("state") or job.get("job_state"))
        counts[state[0] if state else "UNKNOWN"] += 1
    return dict(sorted(counts.items()))


def _number(value: Any) -> int:
    return number(value) or 0


def _words(value: Any) -> tuple[str, ...]:
    return tuple(words(value))
