# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""From places of nodes to a topology, and from the topology that is there to the one that is wanted.

The order of changes matters: slurmctld does not start again with a dynamic node whose saved place names a switch that
the file no longer has. So a node leaves such a place first, then the file changes and is read, and only then do nodes
go to places that are new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .._core.problems import Problems
from .._core.topology import BLOCK, FLAT, TREE, Block, Switch, Topology, compress, node_strings, parts
from .action import Action

# Kinds of actions.
LEAVE, WRITE, REMOVE, RECONFIGURE, PLACE = "leave", "write", "remove", "reconfigure", "place"

# How a switch is called: by its value alone, or by the values from the top down to it.
VALUE, PATH = "value", "path"


@dataclass(frozen=True, slots=True)
class Shape:
    """What is wanted of one topology, apart from the places of nodes."""

    name: str
    kind: str
    default: bool = False
    block_sizes: tuple[int, ...] = ()
    root: str = "root"
    unplaced: str = "unplaced"
    names: str = VALUE


Placements = Mapping[str, Sequence[str]]


def build(shape: Shape, placements: Placements, problems: Problems) -> tuple[Topology, list[str]]:
    """A topology of {node: values from the top down to the leaf}, and the nodes that miss a value.

    Those go under the switch (or block) ``shape.unplaced``. Equal placements give an equal topology in any order.
    """
    if shape.kind == FLAT:
        return Topology(shape.name, FLAT, shape.default), []
    missing = sorted(node for node, values in placements.items() if not values or not all(values))
    left_out = frozenset(missing)
    paths = {node: _named(shape, values) for node, values in placements.items() if node not in left_out}
    _check_places(shape, paths, problems)
    leaves: dict[str, list[str]] = {}
    for node, path in paths.items():
        leaves.setdefault(path[-1], []).append(node)
    if missing:
        if shape.unplaced in leaves or any(shape.unplaced in path for path in paths.values()):
            problems.add(
                f"topology {shape.name}", f"{shape.unplaced} is for nodes without labels, and is a label's value too"
            )
        leaves.setdefault(shape.unplaced, []).extend(missing)
    if shape.kind == BLOCK:
        blocks = tuple(Block(name, tuple(sorted(leaves[name]))) for name in sorted(leaves))
        return Topology(shape.name, BLOCK, shape.default, blocks=blocks, block_sizes=shape.block_sizes), missing
    return Topology(shape.name, TREE, shape.default, switches=_switches(shape, paths, leaves)), missing


def _named(shape: Shape, values: Sequence[str]) -> tuple[str, ...]:
    if shape.names == VALUE:
        return tuple(values)
    return tuple("/".join(values[: depth + 1]) for depth in range(len(values)))


def _switches(shape: Shape, paths: Mapping[str, Sequence[str]], leaves: Mapping[str, list[str]]) -> tuple[Switch, ...]:
    """Switches from the top down, by name within a level; there is always a root, so that there are no islands."""
    levels: list[dict[str, set[str]]] = []
    tops: set[str] = {shape.unplaced} & leaves.keys()
    for path in set(map(tuple, paths.values())):
        tops.add(path[0])
        for depth, name in enumerate(path[:-1]):
            while len(levels) <= depth:
                levels.append({})
            levels[depth].setdefault(name, set()).add(path[depth + 1])
    found = [Switch(shape.root, children=tuple(sorted(tops)))]
    for level in levels:
        found += [Switch(name, children=tuple(sorted(level[name]))) for name in sorted(level)]
    found += [Switch(name, nodes=tuple(sorted(leaves[name]))) for name in sorted(leaves)]
    return tuple(found)


def _check_places(shape: Shape, paths: Mapping[str, Sequence[str]], problems: Problems) -> None:
    """Note values that stand for two switches: in two places of the tree, or in two levels."""
    at = f"topology {shape.name}"
    seen: dict[str, tuple[tuple[str, ...], str]] = {}
    for path, node in sorted({tuple(path): node for node, path in sorted(paths.items(), reverse=True)}.items()):
        for depth, name in enumerate(path):
            above = path[:depth]
            first, first_node = seen.setdefault(name, (above, node))
            if first != above:
                problems.add(
                    f"{at}, switch {name}",
                    f"is below {_place(first)} for {first_node} and below {_place(above)} for {node};"
                    " choose labels of other values, or names: path",
                )
        if shape.root in path and shape.kind == TREE:
            problems.add(at, f"{shape.root} is the name of the root, and a label's value (of {node}); set another root")


def _place(above: Sequence[str]) -> str:
    return " / ".join(above) if above else "the root"


# --- changes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Live:
    """What is there: the text of the file and what it says, and the places of dynamic nodes (node -> string).

    ``shown`` is what slurmctld works with, by name; empty if it has none.
    """

    text: str | None
    topologies: Sequence[Topology]
    strings: Mapping[str, str]
    shown: Mapping[str, Topology]


def plan_changes(live: Live, wanted: Sequence[Topology], text: str | None, target: str) -> list[Action]:
    """What makes slurmctld work with the wanted topologies; ``text`` is the file for them, None to have none.

    ``live.strings`` is empty where dynamic nodes have no place of their own (before Slurm 25.05).
    """
    places = node_strings(wanted)
    leave: dict[tuple[str, str], list[str]] = {}
    place: dict[tuple[str, str], list[str]] = {}
    there, later = _known_parts(live.topologies), _known_parts(wanted)
    for node, string in live.strings.items():
        goal = places.get(node, "")
        if string == goal:
            continue
        if string and not _fits(string, later):
            # Where it goes may not be there yet.
            first = goal if goal and _fits(goal, there) else ""
            leave.setdefault((string, first), []).append(node)
            string = first
        if string != goal:
            place.setdefault((string, goal), []).append(node)
    actions = [
        _move(LEAVE, nodes, *key, "its place is not in the new topology") for key, nodes in sorted(leave.items())
    ]
    changes_file = text != live.text
    if changes_file:
        kind = WRITE if text is not None else REMOVE
        why = "as asked" if live.text is None or text is None else "the nodes' places or the options have changed"
        actions.append(Action(kind, target, why, diff=(live.text or "", text or "")))
    moved = {node for nodes in place.values() for node in nodes}
    if changes_file:
        actions.append(Action(RECONFIGURE, "slurmctld", "to read the new file"))
    elif reason := difference(live.shown, wanted, live.strings.keys() & moved):
        actions.append(Action(RECONFIGURE, "slurmctld", f"it does not work with the file that is there: {reason}"))
    return actions + [_move(PLACE, nodes, *key, "its place in the topology") for key, nodes in sorted(place.items())]


def _move(kind: str, nodes: Sequence[str], before: str, after: str, why: str) -> Action:
    """One call to Slurm: nodes of one place that go to one place."""
    names = sorted(nodes)
    return Action(kind, compress(names), why, before=before, after=after, stage=kind, subject=tuple(names))


def _known_parts(topologies: Iterable[Topology]) -> dict[str, tuple[set[str], set[str]]]:
    """{topology: (all switches, leaves)}."""
    return {item.name: (item.units(), {leaf.name for leaf in item.leaves()}) for item in topologies}


def _fits(string: str, known: Mapping[str, tuple[set[str], set[str]]]) -> bool:
    """Whether everything that a node's place names is there."""
    for name, path in parts(string):
        units, leaves = known.get(name, (set(), set()))
        if not path or not units.issuperset(path) or path[-1] not in leaves:
            return False
    return True


def difference(shown: Mapping[str, Topology], wanted: Iterable[Topology], moved: Iterable[str] = ()) -> str:
    """How what slurmctld shows differs from what is wanted, apart from nodes that are to move; empty if it does not."""
    aside = frozenset(moved)
    for topology in wanted:
        if topology.kind == FLAT:
            continue
        if topology.name not in shown:
            return f"it has no topology {topology.name}"
        # REST hides some nodes (FUTURE) that slurmctld shows here; of those that are not ours nothing is expected.
        expected = topology.leaf_of().keys()
        there = {leaf.name: expected & frozenset(leaf.nodes) for leaf in shown[topology.name].leaves()}
        for leaf in topology.leaves():
            nodes = frozenset(leaf.nodes) - aside
            found = there.get(leaf.name)
            if found is None:
                return f"topology {topology.name} has no {leaf.name}"
            if found - aside != nodes:
                extra, lacking = found - aside - nodes, nodes - found
                words = [f"lacks {compress(lacking)}"] * bool(lacking) + [f"has {compress(extra)} too"] * bool(extra)
                return f"{leaf.name} of topology {topology.name} {' and '.join(words)}"
    return ""
