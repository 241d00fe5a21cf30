# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What is wrong with topologies: what slurmctld refuses, and above all what it accepts without a word.

Every rule names the switch, block or node. Each was tried on slurmctld 26.05.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from .problems import Problems
from .topology import BLOCK, FLAT, TREE, Topology, compress

MAX_NAME = 64
# Sizes of blocks are base * 2^k; slurmctld takes k up to 15.
MAX_DOUBLINGS = 15
# At every start and reconfigure: 1,291 switches took 1.9 s, and the time grows with the third power.
MANY_SWITCHES = 1000

_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_./-]*[A-Za-z0-9_])?", re.ASCII)


def name_problem(name: str) -> str:
    """Why a switch, block or topology cannot be called so, or empty text."""
    if not _NAME.fullmatch(name):
        return f"{name!r} must be letters, digits, '_', '-', '.' and '/' (Slurm gives a meaning to ':' and ',')"
    return f"{name!r} has {len(name)} characters, at most {MAX_NAME} fit" if len(name) > MAX_NAME else ""


def check(topologies: Sequence[Topology], nodes: Collection[str] | None, problems: Problems) -> list[str]:
    """Note what is wrong in ``problems`` and return what is no mistake but worth knowing.

    ``nodes`` are all that Slurm knows; None if that cannot be told.
    """
    known = None if nodes is None else set(nodes)
    seen: set[str] = set()
    notes: list[str] = []
    for topology in topologies:
        at = f"topology {topology.name}"
        if name_problem(topology.name):
            problems.add(at, name_problem(topology.name))
        elif topology.name.lower() == "default" and len(topologies) > 1:
            problems.add(at, "a node cannot be put into a topology of the name default; choose another")
        if topology.name in seen:
            problems.add(at, "is there twice")
        seen.add(topology.name)
        if topology.kind == TREE:
            _check_tree(topology, at, problems)
        elif topology.kind == BLOCK:
            notes += _check_blocks(topology, at, problems)
        if topology.kind != FLAT:
            _check_nodes(topology, at, known, problems)
        if len(topology.switches) > MANY_SWITCHES:
            notes.append(f"{at}: {len(topology.switches)} switches; each reconfigure of slurmctld takes seconds longer")
    defaults = [topology.name for topology in topologies if topology.default]
    if len(defaults) > 1:
        problems.add("cluster_default", f"is set for {', '.join(defaults)}; slurmctld would take the first")
    elif topologies and not defaults:
        problems.add("cluster_default", "is set for no topology; slurmctld would take the first")
    return notes


def _check_names(names: Iterable[str], what: str, at: str, problems: Problems) -> set[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            problems.add(f"{at}, {what} {name}", "is there twice")
        elif name_problem(name):
            problems.add(f"{at}, {what} {name}", name_problem(name))
        seen.add(name)
    return seen


def _check_tree(topology: Topology, at: str, problems: Problems) -> None:
    names = _check_names((switch.name for switch in topology.switches), "switch", at, problems)
    if not names:
        problems.add(at, "has no switch")
        return
    parent: dict[str, str] = {}
    for switch in topology.switches:
        here = f"{at}, switch {switch.name}"
        if switch.nodes and switch.children:
            problems.add(here, "has both nodes and child switches; slurmctld would ignore the switches")
        elif not switch.nodes and not switch.children:
            problems.add(here, "has neither nodes nor child switches")
        for child in switch.children:
            if child == switch.name:
                problems.add(here, "is its own child")
            elif child not in names:
                problems.add(here, f"its child {child} does not exist")
            elif child in parent and parent[child] != switch.name:
                problems.add(f"{at}, switch {child}", f"is below both {parent[child]} and {switch.name}")
            else:
                parent[child] = switch.name
    roots = [switch.name for switch in topology.switches if switch.name not in parent]
    if len(roots) > 1:
        problems.add(at, f"has {len(roots)} islands, with the tops {_short(roots)}: no job could span them")
    reached = _below(topology, roots)
    cycle = sorted(names - reached)
    if cycle:
        problems.add(at, f"switches {_short(cycle)} are below each other in a circle")


def _below(topology: Topology, roots: Iterable[str]) -> set[str]:
    children = {switch.name: switch.children for switch in topology.switches}
    reached: set[str] = set()
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending.extend(children.get(name, ()))
    return reached


def _check_blocks(topology: Topology, at: str, problems: Problems) -> list[str]:
    _check_names((block.name for block in topology.blocks), "block", at, problems)
    if not topology.blocks:
        problems.add(at, "has no block")
        return []
    for block in topology.blocks:
        if not block.nodes:
            problems.add(f"{at}, block {block.name}", "has no node")
    sizes = topology.block_sizes
    wrong = sizes_problem(sizes)
    if wrong:
        problems.add(f"{at}, block_sizes", wrong)
        return []
    if not sizes:
        return []
    base = sizes[0]
    largest = max(len(block.nodes) for block in topology.blocks)
    total = sum(len(block.nodes) for block in topology.blocks)
    if base > largest:
        problems.add(f"{at}, block_sizes", f"{base} is more than the largest block has ({largest} nodes)")
    elif sizes[-1] > max(total, base):
        problems.add(f"{at}, block_sizes", f"{sizes[-1]} is more than all blocks together have ({total} nodes)")
    small = [block.name for block in topology.blocks if 0 < len(block.nodes) < base]
    spare = [block.name for block in topology.blocks if len(block.nodes) > base]
    notes = []
    if small:
        notes.append(f"{at}: blocks {_short(small)} have fewer nodes than the block size {base}")
    if spare:
        notes.append(f"{at}: blocks {_short(spare)} have more nodes than the block size {base}")
    return notes


def sizes_problem(sizes: Sequence[int]) -> str:
    """Why these cannot be sizes of blocks, or empty text."""
    if not sizes:
        return ""
    base = sizes[0]
    if base < 1:
        return f"{base} is not a number of nodes"
    allowed = {base << power for power in range(MAX_DOUBLINGS + 1)}
    for before, size in zip((0, *sizes), sizes, strict=False):
        if size not in allowed:
            return f"{size} is not {base} doubled some times ({base}, {2 * base}, {4 * base}, ...)"
        if size <= before:
            return f"{size} comes after {before}; sizes must grow"
    return ""


def _check_nodes(topology: Topology, at: str, known: set[str] | None, problems: Problems) -> None:
    kind = "switch" if topology.kind == TREE else "block"
    home: dict[str, str] = {}
    doubled: dict[tuple[str, str], list[str]] = {}
    for leaf in topology.members():
        for node in leaf.nodes:
            if node in home:
                doubled.setdefault((home[node], leaf.name), []).append(node)
            else:
                home[node] = leaf.name
        if known is not None:
            unknown = [node for node in leaf.nodes if node not in known]
            if unknown:
                problems.add(f"{at}, {kind} {leaf.name}", f"Slurm does not know {_short(unknown)}")
    for (first, second), nodes in doubled.items():
        where = f"in {kind} {first} and in {kind} {second}" if first != second else f"twice in {kind} {first}"
        problems.add(at, f"{_short(nodes)} {'is' if len(nodes) == 1 else 'are'} {where}")


def _short(names: Iterable[str], limit: int = 200) -> str:
    text = compress(names)
    return text if len(text) <= limit else text[: limit - 3] + "..."
