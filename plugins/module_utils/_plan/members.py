# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The nodes that reconciliation answers for: each Slurm node with its worker Pod and the Node under it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .._core.drains import OWNER
from .._core.kubernetes_objects import WORKER, KubernetesNode, Pod
from .._core.names import NODE_NAME_ANNOTATION
from .._core.snapshot import SlurmNode, Snapshot


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for, and the time (seconds since 1970, the API server's clock).

    ``cluster`` is "namespace/name". ``grace`` is how many seconds a new worker Pod may take until it is ready and known
    to Slurm. ``nodesets`` empty means all.
    """

    cluster: str
    now: int
    conditions: tuple[str, ...] = ()
    grace: int = 60
    cordon: bool = False
    nodesets: frozenset[str] = frozenset()
    ignored_nodesets: frozenset[str] = frozenset()

    def includes(self, nodeset: str) -> bool:
        """Whether a NodeSet is to be reconciled."""
        return nodeset not in self.ignored_nodesets and (not self.nodesets or nodeset in self.nodesets)


@dataclass(frozen=True, slots=True)
class Member:
    """One Slurm node; ``wanted`` is False when its NodeSet or its Node is no longer there for it."""

    node: SlurmNode
    nodeset: str
    pod: Pod | None
    host: KubernetesNode | None
    wanted: bool = True

    @property
    def held_by_others(self) -> bool:
        """Out of service for a reason that did not come from the Kubernetes side: a person's, or Slurm's own."""
        state = self.node.state
        return (state.drain or state.down or "FAIL" in state.flags) and not self.node.reason.startswith(OWNER)


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that the rules look at. ``strangers`` are worker Pods that Slurm does not know."""

    options: Options
    members: Sequence[Member]
    strangers: Sequence[Pod]
    hosts: Mapping[str, KubernetesNode]
    sizes: Mapping[str, int] = field(default_factory=dict)  # StatefulSets only
    pods_by_nodeset: Mapping[str, int] = field(default_factory=dict)

    def starting(self, pod: Pod) -> bool:
        """Whether a worker Pod has only just come to be: no reason yet to do anything about it."""
        return not pod.ready and self.options.now - pod.created < self.options.grace


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be and that reconciliation only reports."""

    target: str
    text: str


def picture(snapshot: Snapshot, options: Options) -> Picture:
    """Join both sides. Records that no Pod of a NodeSet of this cluster can have made are not there at all."""
    hosts = {item.name: item for item in snapshot.kubernetes_nodes}
    sizes = {item.nodeset: item.desired for item in snapshot.workloads if item.nodeset and item.kind == "StatefulSet"}
    workers = [pod for pod in snapshot.pods if pod.component == WORKER and pod.nodeset]
    names = sorted({pod.nodeset for pod in workers} | set(sizes))
    counts = dict.fromkeys(names, 0)
    for pod in workers:
        counts[pod.nodeset] += not pod.deleting
    kinds = {pod.nodeset: pod.owner_kind for pod in workers}
    return Picture(
        options=options,
        members=sorted(_members(snapshot, options, hosts, sizes, kinds), key=lambda member: natural(member.node.name)),
        strangers=sorted(_strangers(snapshot, options), key=lambda pod: natural(pod.name)),
        hosts=hosts,
        sizes={name: size for name, size in sizes.items() if options.includes(name)},
        pods_by_nodeset=counts,
    )


def _members(
    snapshot: Snapshot,
    options: Options,
    hosts: Mapping[str, KubernetesNode],
    sizes: Mapping[str, int],
    kinds: Mapping[str, str],
) -> Iterator[Member]:
    shorts = {name.partition(".")[0] for name in hosts}
    overrides = {item.annotations.get(NODE_NAME_ANNOTATION) for item in hosts.values()}
    for node in snapshot.slurm_nodes.values():
        pod = snapshot.pod_of.get(node.name)
        if pod is not None:
            if options.includes(pod.nodeset):
                yield Member(node, pod.nodeset, pod, hosts.get(pod.node))
            continue
        if not node.dynamic:
            continue
        for nodeset in node.features:
            ordinal = _ordinal(nodeset, node.name)
            if nodeset in sizes and ordinal is not None and options.includes(nodeset):
                yield Member(node, nodeset, None, None, wanted=ordinal < sizes[nodeset])
                break
            # The host name of a DaemonSet's Pod: a slurmd outside Kubernetes with the same feature has another one.
            made = kinds.get(nodeset) == "DaemonSet" and re.fullmatch(rf"{re.escape(nodeset)}-\w{{5}}", node.hostname)
            if made and options.includes(nodeset):
                there = node.name in overrides or any(node.name[at:] in shorts for at in range(len(node.name)))
                yield Member(node, nodeset, None, None, wanted=there)
                break


def _strangers(snapshot: Snapshot, options: Options) -> Iterator[Pod]:
    """Twice unknown: not paired, and no record has the Pod's address (a name that was not understood is no proof)."""
    addresses = {node.address for node in snapshot.slurm_nodes.values()}
    for pod in snapshot.pods_unknown_to_slurm():
        known = pod.address and pod.address in addresses
        if pod.nodeset and not known and not pod.deleting and options.includes(pod.nodeset):
            yield pod


def _ordinal(nodeset: str, node: str) -> int | None:
    stem, _dash, number = node.rpartition("-")
    return int(number) if stem == nodeset and number.isdigit() else None


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts cpu-9 before cpu-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part]
