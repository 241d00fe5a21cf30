# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""A topology for people: each switch with how many of its nodes are free, busy and away, as data and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .states import NodeState
from .topology import Topology, compress


@dataclass(frozen=True, slots=True)
class Unit:
    """A switch or block, ``depth`` levels below the top, with all nodes below it.

    ``free``: jobs can start there and none runs; ``busy``: jobs run there; ``away``: neither.
    """

    name: str
    depth: int
    parent: str
    leaf: bool
    nodes: tuple[str, ...]
    free: int
    busy: int
    away: int

    def plain(self) -> dict[str, Any]:
        """As modules return it."""
        return {
            "name": self.name,
            "depth": self.depth,
            "parent": self.parent or None,
            "leaf": self.leaf,
            "nodes": compress(self.nodes),
            "total": len(self.nodes),
            "free": self.free,
            "busy": self.busy,
            "away": self.away,
        }


def units(topology: Topology, states: Mapping[str, NodeState]) -> list[Unit]:
    """Every switch, each followed by what is below it; names in order."""
    children = {switch.name: sorted(switch.children) for switch in topology.switches}
    own = {leaf.name: leaf.nodes for leaf in topology.leaves()}
    below = {child for names in children.values() for child in names}
    found: list[Unit] = []

    def walk(name: str, depth: int, parent: str) -> tuple[str, ...]:
        place = len(found)
        nodes = tuple(own.get(name, ()))
        inner = [walk(child, depth + 1, name) for child in children.get(name, ())]
        nodes += tuple(node for part in inner for node in part)
        found.insert(place, _unit(name, depth, parent, not children.get(name), nodes, states))
        return nodes

    for name in sorted((children.keys() | own.keys()) - below):
        walk(name, 0, "")
    return found


def _unit(
    name: str, depth: int, parent: str, leaf: bool, nodes: tuple[str, ...], states: Mapping[str, NodeState]
) -> Unit:
    there = [states[node] for node in nodes if node in states]
    busy = sum(state.busy for state in there)
    free = sum(state.usable and not state.busy for state in there)
    return Unit(name, depth, parent, leaf, nodes, free, busy, len(nodes) - busy - free)


def lines(topology: Topology, found: Sequence[Unit]) -> Iterator[str]:
    """The tree as indented text, a switch a line."""
    default = ", default" if topology.default else ""
    sizes = f", block sizes {', '.join(map(str, topology.block_sizes))}" if topology.block_sizes else ""
    yield f"{topology.name} ({topology.kind}{default}{sizes})"
    width = max((2 * unit.depth + len(unit.name) for unit in found), default=0)
    digits = max((len(str(len(unit.nodes))) for unit in found), default=1)
    for unit in found:
        name = f"{'  ' * unit.depth}{unit.name}".ljust(width)
        counts = (
            f"{len(unit.nodes):>{digits}} nodes  {unit.free:>{digits}} free  {unit.busy:>{digits}} busy"
            f"  {unit.away:>{digits}} away"
        )
        yield f"  {name}  {counts}" + (f"  {compress(unit.nodes)}" if unit.leaf and unit.nodes else "")
