# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Whether NodeSets are what was declared: every node registered, with the CPUs, memory and GRES it should have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
        elif "INVALID_REG" in node.state.flags or "INVALID" in node.state.flags:
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
