# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What a NodeSet has: its nodes on both sides, and the Nodes that it has or could have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import drains, jobs, names
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.feasible import (
    chosen_by_label,
    why_infeasible,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.jobs import Job
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.members import members
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import NODESET, Snapshot
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.membership import ENDLESS, Place
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.scale import REPLICA, SCALE_IN, Worker
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.verify import Registered

# Whom Kubernetes would take first, as ReplicaSets have it.
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

Raw = Mapping[str, Any]


def is_wanted(wanted: Raw) -> bool:
    """Whether anything is said about which Nodes a NodeSet of kind node has."""
    return any(wanted.get(key) is not None for key in ("replicas", "include", "exclude"))


def places_of(workload: Raw, seen: Snapshot, holding: Sequence[Job]) -> list[Place]:
    """Every Node as the NodeSet sees it. Raises OperationError (NotScalable) if labels do not choose its Nodes."""
    name, pod_spec = workload["metadata"]["name"], workload["spec"]["template"]["spec"]
    if not chosen_by_label(pod_spec, name):
        raise OperationError(
            f"The Nodes of NodeSet {name} are not chosen by the label {NODESET}={name}, which gives and takes Nodes.",
            reason="NotScalable",
            hint="Label its Nodes, then add the label to its node_selector and apply it.",
        )
    node_of = {pod.name: node for node, pod in seen.pod_of.items()}
    on = {pod.node: pod for pod in seen.pods if pod.nodeset == name and pod.node and not pod.deleting}
    busy = jobs.by_node(holding)
    places = []
    for node in seen.kubernetes_nodes:
        member = node.labels.get(NODESET) == name
        why_not = why_infeasible(node, pod_spec, name)
        pod = on.get(node.name)
        if pod is None:
            places.append(Place(node.name, member, why_not))
            continue
        slurm_name = node_of.get(pod.name, pod.name)
        record = seen.slurm_nodes.get(slurm_name)
        places.append(
            Place(
                node.name,
                member,
                why_not,
                ready=pod.ready,
                state=record.state if record else None,
                leaving=bool(record and record.state.drain and record.reason.startswith(f"{drains.OWNER} {SCALE_IN}:")),
                deletion_cost=_cost(pod.annotations),
                free_at=free_at(busy.get(slurm_name, ())),
                created=pod.created,
            )
        )
    return places


def _cost(annotations: Mapping[str, str]) -> int:
    text = str(annotations.get(DELETION_COST, "0"))
    return int(text) if re.fullmatch(r"-?\d{1,10}", text) else 0


def free_at(on_node: Iterable[Job]) -> float:
    """When the last job on a node ends, in seconds since 1970; 0 without a job."""
    return max((ENDLESS if job.time_limit is None else float(job.ends or 0) for job in on_node), default=0.0)


def workers_of(name: str, kind: str, size: int, seen: Snapshot, places: Sequence[Place] | None) -> list[Worker]:
    """Nodes of a NodeSet: its Pods, and the records that are left of Pods that are gone."""
    pods = {pod.name: pod for pod in seen.pods}
    # A Node that is to have a Pod and has none: a record without a Pod may be that one's.
    have = {pod.node for pod in seen.pods if pod.nodeset == name}
    incomplete = places is None or any(place.member and place.name not in have for place in places)
    found = []
    for node, pod in members(seen, name).items():
        record = seen.slurm_nodes.get(node)
        number = names.ordinal(name, node) if kind == REPLICA else None
        is_expected = incomplete if kind != REPLICA else number is None or number < size
        found.append(
            Worker(
                node=node,
                ordinal=number,
                pod=pod or None,
                state=record.state if record else None,
                reason=record.reason if record else "",
                dynamic=record.dynamic if record else True,
                kubernetes_node=pods[pod].node if pod else "",
                expected=bool(pod) or is_expected,
            )
        )
    return found


def present_of(name: str, seen: Snapshot) -> tuple[list[Registered], dict[str, str]]:
    """The nodes of a NodeSet that have registered, and {node: what its Pod lacks, empty when it is ready}."""
    node_of = {pod.name: node for node, pod in seen.pod_of.items()}
    pods: dict[str, str] = {}
    nodes: list[Registered] = []
    for pod in seen.pods:
        if pod.nodeset != name or pod.deleting:
            continue
        node = node_of.get(pod.name, pod.name)
        pods[node] = "" if pod.ready else pod.problem or "not ready"
        record = seen.slurm_nodes.get(node)
        if record is not None:
            nodes.append(Registered(node, record.state, record.reason, record.cpus, record.memory_mib, record.gres))
    return nodes, pods
