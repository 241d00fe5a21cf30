# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Whether NodeSets are what was declared: every node registered, with the CPUs, memory and GRES it should have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.kubernetes_objects import Pod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import SlurmNode
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import NodeState

GRES_COUNT = re.compile(
    r"(?P<name>[^:(,]+)(?::(?P<type>[^:(,]*[A-Za-z_-][^:(,]*))?(?::(?P<count>\d+)(?P<unit>[KMG]?))?"
)
UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


@dataclass(frozen=True, slots=True)
class Declared:
    """What a NodeSet promises of each node; None leaves it to what slurmd finds. Memory in MiB."""

    name: str
    nodes: int | None
    cpus: int | None = None
    memory_mib: int | None = None
    gres: str = ""


@dataclass(frozen=True, slots=True)
class Registered:
    """One node as Slurm has it."""

    node: str
    state: NodeState
    reason: str
    cpus: int
    memory_mib: int
    gres: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as declared. ``final``: waiting will not change it."""

    subject: str
    text: str
    hint: str = ""
    final: bool = False


def is_refused(state: NodeState) -> bool:
    """Whether slurmctld did not accept what slurmd registered: fewer GRES, less memory, fewer CPUs than configured."""
    return not state.flags.isdisjoint(("INVALID_REG", "INVALID"))


def gres_counts(gres: str) -> dict[str, int]:
    """Counts by ``name`` or ``name:type`` of a GRES text such as ``gpu:h100:8(S:0-1),shard:4``."""
    counts: dict[str, int] = {}
    for part in re.split(r",(?![^(]*\))", gres):
        match = GRES_COUNT.match(part.strip())
        if match and match["name"] and match["name"] != "null" and match["name"] != "N/A":
            key = f"{match['name']}:{match['type']}" if match["type"] else match["name"]
            counts[key] = counts.get(key, 0) + int(match["count"] or 1) * UNITS[match["unit"] or ""]
    return counts


def findings(declared: Declared, present: Sequence[Registered], pods: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what keeps a NodeSet from being as declared.

    ``pods``: node name -> what its Pod lacks, empty when it is ready. A node that is busy, drained or reserved is fine:
    this is about what is there, not about who uses it.
    """
    known = {node.node: node for node in present}
    if declared.nodes is not None and len(pods) < declared.nodes:
        yield Finding(declared.name, f"{len(pods)} of {declared.nodes} Pods are there")
    for name in sorted(pods):
        node = known.get(name)
        if pods[name]:
            yield Finding(name, f"its Pod is not ready: {pods[name]}")
        elif node is None:
            yield Finding(name, "its Pod is ready but Slurm does not know it", "See the log of its slurmd.")
        elif is_refused(node.state):
            yield Finding(
                name, f"slurmd's registration was refused: {node.reason or 'INVALID_REG'}", _EXPLAIN_INVALID, True
            )
        elif not node.state.registered:
            yield Finding(name, f"its slurmd has not registered ({'+'.join(node.state.words)}) {node.reason}".strip())
        else:
            yield from _differences(declared, node)


_EXPLAIN_INVALID = "Check the devices and limits of the Pod against what the NodeSet declares; then delete the Pod."


def _differences(declared: Declared, node: Registered) -> Iterable[Finding]:
    hint = "Slurm keeps the first record of a dynamic node: drain it, delete the record (scontrol delete) and its Pod."
    if declared.cpus is not None and node.cpus != declared.cpus:
        yield Finding(node.node, f"registered {node.cpus} CPUs, declared {declared.cpus}", hint, True)
    if declared.memory_mib is not None and node.memory_mib != declared.memory_mib:
        yield Finding(node.node, f"registered {node.memory_mib} MiB, declared {declared.memory_mib}", hint, True)
    found = gres_counts(node.gres)
    for key, count in gres_counts(declared.gres).items():
        if found.get(key, 0) < count:
            yield Finding(node.node, f"registered {found.get(key, 0)} of {count} declared {key}", hint, True)


def misfits(conf: str, node: SlurmNode) -> list[str]:
    """How a record differs from what a slurmd was told to register (the text of its --conf).

    Slurm keeps the first record of a dynamic node, whatever slurmd says later.
    """
    declared = dict(word.partition("=")[::2] for word in conf.split())
    texts = []
    for key, found in (("CPUs", node.cpus), ("RealMemory", node.memory_mib)):
        if declared.get(key, "").isdigit() and int(declared[key]) != found:
            texts.append(f"{key}={found} in its record, {declared[key]} declared")
    there = gres_counts(node.gres)
    gres = ",".join(part for part in declared.get("Gres", "").split(",") if "no_consume" not in part)
    for key, count in gres_counts(gres).items():
        # Declared without a type, it may have been registered with one.
        found = there.get(key, sum(number for name, number in there.items() if name.startswith(f"{key}:")))
        if found != count:
            texts.append(f"{found} {key} in its record, {count} declared")
    return texts


def unregistered(pod: Pod, node: SlurmNode | None) -> str:
    """Why the slurmd of a Pod is not at work, or empty text.

    A record is the Pod's own once slurmd has registered since its container began; both times are of the Node's clock.
    Then NOT_RESPONDING only means that slurmctld has not asked again, as for half a minute after each undrain.
    """
    if not pod.ready:
        return f"its Pod is not ready: {pod.problem or pod.phase or 'no status'}"
    if node is None:
        return "its Pod is ready but Slurm does not know it"
    if is_refused(node.state):
        return f"slurmd's registration was refused: {node.reason or 'INVALID_REG'}"
    if node.slurmd_started < pod.slurmd_since or node.state.down or node.state.base in ("", "UNKNOWN", "FUTURE"):
        return f"its slurmd has not registered ({'+'.join(node.state.words)})"
    return ""


def not_as_declared(pod: Pod, node: SlurmNode) -> list[str]:
    """How a node differs from what its Pod declares. Features may be more: people add some while Slurm runs."""
    declared = dict(word.partition("=")[::2] for word in pod.slurmd_conf.split())
    lost = sorted(set(filter(None, declared.get("Feature", "").split(","))) - set(node.features))
    return misfits(pod.slurmd_conf, node) + [f"feature {name} is missing" for name in lost]
