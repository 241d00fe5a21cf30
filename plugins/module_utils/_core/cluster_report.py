# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What cluster_info returns: a Snapshot as plain values, in a fixed order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from . import hostlist
from .kubernetes_objects import Condition
from .names import natural
from .snapshot import WORKER, Pod, SlurmNode, Snapshot, Workload


def plain(
    snapshot: Snapshot,
    *,
    slurm_read: bool,
    labels: Sequence[str] = (),
    annotations: Sequence[str] = (),
    conditions: Sequence[str] = (),
) -> dict[str, Any]:
    """nodesets, nodes, kubernetes_nodes, daemons, partitions, jobs.

    ``labels`` and ``annotations`` of Nodes to show, ``conditions`` of Nodes and worker Pods. Without ``slurm_read`` the
    nodes are the worker Pods alone, of which Slurm's side is not known.
    """
    return {
        "nodesets": nodesets(snapshot),
        "nodes": nodes(snapshot, slurm_read=slurm_read, conditions=conditions),
        "kubernetes_nodes": [
            {
                "name": node.name,
                "ready": node.ready,
                "cordoned": node.cordoned,
                "taints": list(node.taints),
                "labels": _only(labels, node.labels),
                "annotations": _only(annotations, node.annotations),
                "conditions": _conditions(conditions, node.conditions),
            }
            for node in sorted(snapshot.kubernetes_nodes, key=lambda node: node.name)
        ],
        "daemons": daemons(snapshot),
        "partitions": [
            {
                "name": item.name,
                "state": item.state,
                "default": item.default,
                "nodes": item.nodes,
                "total_nodes": item.total_nodes,
                "max_time": item.max_time,
            }
            for item in snapshot.partitions
        ],
        "jobs": {"total": sum(snapshot.jobs_by_state.values()), "by_state": dict(snapshot.jobs_by_state)},
    }


def nodesets(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Each NodeSet with its size and its Slurm nodes (as a host list), and how many are in which state."""
    members: dict[str, list[SlurmNode]] = {}
    for name, pod in snapshot.pod_of.items():
        members.setdefault(pod.nodeset, []).append(snapshot.slurm_nodes[name])
    found = []
    for item in sorted(snapshot.workloads, key=lambda item: item.name):
        if not item.nodeset:
            continue
        known = members.get(item.nodeset, [])
        found.append(
            {
                "name": item.nodeset,
                "kind": "node" if item.kind == "DaemonSet" else "replica",
                "desired": item.desired,
                "current": item.current,
                "ready": item.ready,
                "image": item.image,
                "registered": sum(node.state.registered for node in known),
                "usable": sum(node.state.usable for node in known),
                "states": dict(sorted(Counter(node.state.word for node in known).items())),
                "nodes": hostlist.compress((node.name for node in known), sort=True),
            }
        )
    return found


def nodes(snapshot: Snapshot, *, slurm_read: bool, conditions: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Slurm's nodes with the Pods behind them, then worker Pods that Slurm does not know."""
    found = [
        {**_node(snapshot.slurm_nodes[name]), **_pod(snapshot.pod_of.get(name), conditions)}
        for name in sorted(snapshot.slurm_nodes, key=natural)
    ]
    for pod in sorted(snapshot.pods_unknown_to_slurm(), key=lambda pod: natural(pod.name)):
        found.append({**_stranger(pod, slurm_read), **_pod(pod, conditions)})
    return found


def daemons(snapshot: Snapshot) -> list[dict[str, Any]]:
    """The daemons that are no workers, with their Pods."""
    found = []
    for item in sorted(snapshot.workloads, key=lambda item: item.name):
        if item.nodeset or item.component == WORKER:
            continue
        pods = _pods_of(item, snapshot)
        found.append(
            {
                "name": item.name,
                "component": item.component,
                "desired": item.desired,
                "ready": item.ready,
                "image": item.image,
                "restarts": sum(pod.restarts for pod in pods),
                "pods": [
                    {
                        "name": pod.name,
                        "ready": pod.ready,
                        "phase": pod.phase,
                        "kubernetes_node": pod.node or None,
                        "restarts": pod.restarts,
                        "problem": pod.problem or None,
                    }
                    for pod in pods
                ],
            }
        )
    return found


def versions(snapshot: Snapshot) -> dict[str, int]:
    """{version of slurmd: number of nodes}."""
    return dict(sorted(Counter(node.version for node in snapshot.slurm_nodes.values() if node.version).items()))


def _pods_of(item: Workload, snapshot: Snapshot) -> list[Pod]:
    return sorted(
        (pod for pod in snapshot.pods if pod.component == item.component and pod.name.startswith(f"{item.name}-")),
        key=lambda pod: pod.name,
    )


def _node(node: SlurmNode) -> dict[str, Any]:
    return {
        "name": node.name,
        "known_to_slurm": True,
        "state": list(node.state.words),
        "word": node.state.word,
        "drained": node.state.drained,
        "draining": node.state.draining,
        "responding": node.state.responding,
        "usable": node.state.usable,
        "reason": node.reason,
        "reason_user": node.reason_user,
        "reason_at": node.reason_at,
        "cpus": node.cpus,
        "allocated_cpus": node.allocated_cpus,
        "memory_mib": node.memory_mib,
        "gres": node.gres,
        "gres_used": node.gres_used,
        "features": list(node.features),
        "partitions": list(node.partitions),
        "address": node.address,
        "hostname": node.hostname,
        "version": node.version,
        "topology": node.topology,
        "dynamic": node.dynamic,
    }


def _stranger(pod: Pod, slurm_read: bool) -> dict[str, Any]:
    return {
        "name": pod.slurm_node or pod.name,
        "known_to_slurm": False if slurm_read else None,
        "state": [],
        "word": "unknown",
        "drained": False,
        "draining": False,
        "responding": False,
        "usable": False,
        "reason": "",
        "reason_user": "",
        "reason_at": 0,
        "cpus": None,
        "allocated_cpus": None,
        "memory_mib": None,
        "gres": "",
        "gres_used": "",
        "features": [],
        "partitions": [],
        "address": pod.address,
        "hostname": "",
        "version": "",
        "topology": "",
        "dynamic": None,
    }


def _pod(pod: Pod | None, conditions: Sequence[str]) -> dict[str, Any]:
    return {
        "nodeset": (pod.nodeset or None) if pod else None,
        "pod": pod.name if pod else None,
        "pod_ready": pod.ready if pod else None,
        "pod_problem": (pod.problem or None) if pod else None,
        "pod_conditions": _conditions(conditions, pod.conditions) if pod else {},
        "kubernetes_node": (pod.node or None) if pod else None,
    }


def _only(keys: Sequence[str], there: Mapping[str, str]) -> dict[str, str]:
    return {key: there[key] for key in keys if key in there}


def _conditions(types: Sequence[str], there: Mapping[str, Condition]) -> dict[str, dict[str, Any]]:
    return {key: asdict(there[key]) for key in types if key in there}
