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

from . import names, states
from .states import NodeState

Raw = Mapping[str, Any]

COMPONENT = "app.kubernetes.io/component"
CLUSTER = f"{names.DOMAIN}/cluster"
NODESET = f"{names.DOMAIN}/nodeset"
SLURM_NODE = f"{names.DOMAIN}/node"
WORKER = "worker"


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

    @property
    def dynamic(self) -> bool:
        """Made by a slurmd that registered itself (slurmd -Z), so its record can be deleted."""
        return not self.state.flags.isdisjoint(("DYNAMIC_NORM", "DYNAMIC_FUTURE"))


@dataclass(frozen=True, slots=True)
class Pod:
    """One Pod of the cluster; ``problem`` is why it is not ready, in Kubernetes' word."""

    name: str
    component: str
    nodeset: str
    phase: str
    ready: bool
    deleting: bool
    node: str
    address: str
    image: str
    restarts: int
    problem: str
    slurm_node: str
    host_network: bool


@dataclass(frozen=True, slots=True)
class Workload:
    """A StatefulSet, DaemonSet or Deployment of the cluster; ``nodeset`` is empty for the other daemons."""

    name: str
    kind: str
    component: str
    nodeset: str
    desired: int
    current: int
    ready: int
    image: str


@dataclass(frozen=True, slots=True)
class KubernetesNode:
    """One Node."""

    name: str
    ready: bool
    cordoned: bool
    labels: Mapping[str, str]
    taints: tuple[str, ...]
    annotations: Mapping[str, str] = field(default_factory=dict)


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
    for item in sorted((pod for pod in pods if pod.component == WORKER), key=lambda pod: not pod.deleting):
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


def pod(raw: Raw) -> Pod:
    """A Pod object."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels = metadata.get("labels") or {}
    annotations = metadata.get("annotations") or {}
    containers = status.get("containerStatuses") or []
    conditions = {item.get("type"): item for item in status.get("conditions") or ()}
    ready = conditions.get("Ready", {}).get("status") == "True"
    return Pod(
        name=metadata["name"],
        component=labels.get(COMPONENT, ""),
        nodeset=labels.get(NODESET, ""),
        phase=str(status.get("phase", "")),
        ready=ready,
        deleting=bool(metadata.get("deletionTimestamp")),
        node=str(spec.get("nodeName") or ""),
        address=str(status.get("podIP") or ""),
        image=str((spec.get("containers") or [{}])[0].get("image", "")),
        restarts=sum(int(item.get("restartCount") or 0) for item in containers),
        problem="" if ready else _problem(status, containers, conditions),
        slurm_node=str(labels.get(SLURM_NODE) or annotations.get(SLURM_NODE) or ""),
        host_network=bool(spec.get("hostNetwork")),
    )


def workload(raw: Raw) -> Workload:
    """A StatefulSet, DaemonSet or Deployment object."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels = metadata.get("labels") or {}
    kind = str(raw.get("kind", ""))
    containers = spec.get("template", {}).get("spec", {}).get("containers") or [{}]
    if kind == "DaemonSet":
        desired, current, ready = (
            int(status.get(key) or 0) for key in ("desiredNumberScheduled", "currentNumberScheduled", "numberReady")
        )
    else:
        desired = 1 if spec.get("replicas") is None else int(spec["replicas"])
        current, ready = int(status.get("replicas") or 0), int(status.get("readyReplicas") or 0)
    return Workload(
        name=metadata["name"],
        kind=kind,
        component=labels.get(COMPONENT, ""),
        nodeset=labels.get(NODESET, ""),
        desired=desired,
        current=current,
        ready=ready,
        image=str(containers[0].get("image", "")),
    )


def kubernetes_node(raw: Raw) -> KubernetesNode:
    """A Node object."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    ready = any(item.get("type") == "Ready" and item.get("status") == "True" for item in status.get("conditions") or ())
    return KubernetesNode(
        name=metadata["name"],
        ready=ready,
        cordoned=bool(spec.get("unschedulable")),
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        taints=tuple(
            f"{item.get('key', '')}{'=' + item['value'] if item.get('value') else ''}:{item.get('effect', '')}"
            for item in spec.get("taints") or ()
        ),
    )


def _problem(status: Raw, containers: Sequence[Raw], conditions: Mapping[str, Raw]) -> str:
    for item in [*(status.get("initContainerStatuses") or ()), *containers]:
        waiting = (item.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") and waiting["reason"] not in ("PodInitializing", "ContainerCreating"):
            return str(waiting["reason"])
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return f"{scheduled.get('reason', 'Unschedulable')}: {scheduled.get('message', '')}".rstrip(": ")
    return str(status.get("reason") or ("NotReady" if status.get("phase") == "Running" else status.get("phase", "")))


def _number(value: Any) -> int:
    if isinstance(value, int):
        return value
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) else 0
    return int(value) if isinstance(value, (int, float)) else 0


def _words(value: Any) -> tuple[str, ...]:
    if not value:
        return ()
    if isinstance(value, str):
        return tuple(word for word in value.split(",") if word)
    return tuple(str(word) for word in value)
