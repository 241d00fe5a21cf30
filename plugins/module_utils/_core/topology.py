# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Topologies as Slurm has them (tree, block, flat), and their two files: topology.yaml (25.05) and topology.conf.

A tree names switches; a leaf switch has nodes, any other has child switches. What slurmctld takes without a word and
is wrong all the same is told by ``_core/topology_check.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import hostlist, slurm_conf
from .errors import OperationError

TREE, BLOCK, FLAT = "tree", "block", "flat"
YAML, CONF = "topology.yaml", "topology.conf"

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./\[\],-]*", re.ASCII)
_WORDS_OF_YAML = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch of a tree: nodes below it, or other switches."""

    name: str
    nodes: tuple[str, ...] = ()
    children: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A block: nodes that are equally near to each other."""

    name: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Topology:
    """One named topology. ``switches`` are a tree's, ``blocks`` and ``block_sizes`` a block topology's."""

    name: str
    kind: str
    default: bool = False
    switches: tuple[Switch, ...] = ()
    blocks: tuple[Block, ...] = ()
    block_sizes: tuple[int, ...] = ()

    def leaves(self) -> Iterator[Switch | Block]:
        """The units that nodes are in."""
        yield from self.blocks
        yield from (switch for switch in self.switches if not switch.children)

    def members(self) -> Iterator[Switch | Block]:
        """All switches or blocks."""
        yield from self.switches
        yield from self.blocks

    def units(self) -> set[str]:
        """The names of all switches or blocks."""
        return {item.name for item in self.members()}

    def leaf_of(self) -> dict[str, str]:
        """{node: the leaf switch or block that it is in}."""
        return {node: leaf.name for leaf in self.leaves() for node in leaf.nodes}


def file_name(*, yaml: bool) -> str:
    """The file that a Slurm reads: topology.yaml since 25.05."""
    return YAML if yaml else CONF


def render(topologies: Sequence[Topology], *, yaml: bool) -> str:
    """The text of the file; the same for the same topologies, with host lists as Slurm writes them."""
    if not topologies:
        # slurmctld 26.05 crashes on an empty list.
        raise OperationError("There is no topology to write.", reason="InvalidTopology")
    if yaml:
        return "".join(f"{line}\n" for topology in topologies for line in _yaml_lines(topology))
    if len(topologies) > 1 or topologies[0].kind == FLAT:
        raise OperationError(
            f"topology.conf holds one tree or one set of blocks, not {', '.join(item.name for item in topologies)}.",
            reason="InvalidTopology",
            hint="Several topologies, and flat ones, need Slurm 25.05 or later.",
        )
    return "".join(f"{line}\n" for line in _conf_lines(topologies[0]))


def _yaml_lines(topology: Topology) -> Iterator[str]:
    yield f"- topology: {_scalar(topology.name)}"
    yield f"  cluster_default: {'true' if topology.default else 'false'}"
    if topology.kind == FLAT:
        yield "  flat: true"
    elif topology.kind == BLOCK:
        yield "  block:"
        if topology.block_sizes:
            yield f"    block_sizes: [{', '.join(map(str, topology.block_sizes))}]"
        yield "    blocks:"
        for block in topology.blocks:
            yield f"      - block: {_scalar(block.name)}"
            if block.nodes:
                yield f"        nodes: {_scalar(compress(block.nodes))}"
    else:
        yield "  tree:"
        yield "    switches:"
        for switch in topology.switches:
            yield f"      - switch: {_scalar(switch.name)}"
            if switch.children:
                yield f"        children: {_scalar(compress(switch.children))}"
            if switch.nodes:
                yield f"        nodes: {_scalar(compress(switch.nodes))}"


def _conf_lines(topology: Topology) -> Iterator[str]:
    for block in topology.blocks:
        yield f"BlockName={block.name} Nodes={compress(block.nodes)}"
    if topology.block_sizes:
        yield f"BlockSizes={','.join(map(str, topology.block_sizes))}"
    for switch in topology.switches:
        line = f"SwitchName={switch.name}"
        line += f" Switches={compress(switch.children)}" if switch.children else ""
        yield line + (f" Nodes={compress(switch.nodes)}" if switch.nodes else "")


def compress(names: Iterable[str]) -> str:
    """A host list that does not depend on the order of the names."""
    return hostlist.compress(names, sort=True, unique=True)


def _scalar(text: str) -> str:
    """A string in YAML: quoted where a bare one would be read as a number or another thing."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# --- reading --------------------------------------------------------------------------------------------------------


def parse_conf(text: str, name: str = "default") -> tuple[Topology, ...]:
    """The topology of a topology.conf; it has no name of its own."""
    switches: list[Switch] = []
    blocks: list[Block] = []
    sizes: tuple[int, ...] = ()
    for line in slurm_conf.parse(text):
        values = {key.lower(): value for key, value in line.pairs}
        kind = line.key.lower()
        if kind == "switchname":
            switches.append(
                Switch(line.value, _names(values, "nodes", line.value), _names(values, "switches", line.value))
            )
        elif kind == "blockname":
            blocks.append(Block(line.value, _names(values, "nodes", line.value)))
        elif kind == "blocksizes":
            try:
                sizes = tuple(int(size) for size in line.value.split(","))
            except ValueError:
                raise _malformed(f"BlockSizes={line.value} is not a list of numbers") from None
        else:
            raise _malformed(f"{line.key} is not a key of topology.conf")
    if not switches and not blocks:
        return ()
    if switches and blocks:
        raise _malformed("it has both SwitchName and BlockName lines")
    kind = TREE if switches else BLOCK
    return (Topology(name, kind, True, tuple(switches), tuple(blocks), sizes),)


def parse_shown(text: str, name: str) -> Topology | None:
    """What ``scontrol show topology NAME`` prints; None for anything else."""
    switches: list[Switch] = []
    blocks: list[Block] = []
    for line in text.splitlines():
        values = dict(word.partition("=")[::2] for word in line.split())
        # A switch that has others below it shows all their nodes as well.
        children = _names(values, "Switches", line)
        nodes = () if children else _names(values, "Nodes", line)
        if "SwitchName" in values:
            switches.append(Switch(values["SwitchName"], nodes, children))
        elif "BlockName" in values and "," not in values["BlockName"]:
            # Several names at once are blocks that fit together, not one.
            blocks.append(Block(values["BlockName"], nodes))
    if not switches and not blocks:
        return None
    return Topology(name, TREE if switches else BLOCK, switches=tuple(switches), blocks=tuple(blocks))


def from_data(data: Any) -> tuple[Topology, ...]:
    """The topologies of a topology.yaml that was read as YAML."""
    if data is None:
        return ()
    if not isinstance(data, (list, tuple)):
        raise _malformed("it is not a list of topologies")
    return tuple(_topology(item, index) for index, item in enumerate(data))


def _topology(item: Any, index: int) -> Topology:
    if not isinstance(item, Mapping) or not isinstance(item.get("topology"), (str, int)):
        raise _malformed(f"entry {index + 1} has no name (topology: NAME)")
    name = str(item["topology"])
    kinds = [key for key in item if key not in ("topology", "cluster_default")]
    if len(kinds) != 1 or kinds[0] not in (TREE, BLOCK, FLAT):
        raise _malformed(
            f"topology {name} must have one of tree, block and flat, and has {', '.join(map(str, kinds)) or 'none'}"
        )
    kind = kinds[0]
    body = item[kind]
    default = bool(item.get("cluster_default", False))
    if kind == FLAT:
        return Topology(name, FLAT, default)
    if not isinstance(body, Mapping):
        raise _malformed(f"{kind} of topology {name} is not a mapping")
    if kind == TREE:
        _only(body, ("switches",), f"tree of topology {name}")
        switches = [
            Switch(unit, _names(entry, "nodes", unit), _names(entry, "children", unit))
            for unit, entry in _entries(body.get("switches"), "switch", ("nodes", "children"), name)
        ]
        return Topology(name, TREE, default, switches=tuple(switches))
    _only(body, ("blocks", "block_sizes"), f"block of topology {name}")
    sizes = body.get("block_sizes") or ()
    if not isinstance(sizes, (list, tuple)) or not all(isinstance(size, int) for size in sizes):
        raise _malformed(f"block_sizes of topology {name} must be a list of numbers")
    blocks = [
        Block(unit, _names(entry, "nodes", unit))
        for unit, entry in _entries(body.get("blocks"), "block", ("nodes",), name)
    ]
    return Topology(name, BLOCK, default, blocks=tuple(blocks), block_sizes=tuple(sizes))


def _entries(found: Any, key: str, others: Sequence[str], topology: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(found, (list, tuple)):
        raise _malformed(f"topology {topology} has no list of {key} entries")
    for entry in found:
        if not isinstance(entry, Mapping) or not isinstance(entry.get(key), (str, int)):
            raise _malformed(f"topology {topology} has a {key} without a name")
        _only(entry, (key, *others), f"{key} {entry[key]} of topology {topology}")
        yield str(entry[key]), entry


def _only(entry: Mapping[Any, Any], known: Sequence[str], where: str) -> None:
    unknown = [str(key) for key in entry if key not in known]
    if unknown:
        raise _malformed(f"{where} has {', '.join(unknown)}, which Slurm would ignore; known: {', '.join(known)}")


def _names(entry: Mapping[str, Any], key: str, unit: str) -> tuple[str, ...]:
    value = entry.get(key)
    if value in (None, "", "(null)"):
        return ()
    if not isinstance(value, (str, int)):
        raise _malformed(f"{key} of {unit} must be a host list such as node[1-4], not a YAML list")
    return tuple(hostlist.expand(str(value)))


def _malformed(text: str) -> OperationError:
    return OperationError(f"The topology cannot be read: {text}.", reason="InvalidTopology")


# --- nodes ----------------------------------------------------------------------------------------------------------


def node_strings(topologies: Iterable[Topology]) -> dict[str, str]:
    """{node: its place as Slurm writes it}, such as ``tree:leaf1,nvlink:block3``."""
    places: dict[str, list[str]] = {}
    for topology in topologies:
        for leaf in topology.leaves():
            place = f"{topology.name}:{leaf.name}"
            for node in leaf.nodes:
                places.setdefault(node, []).append(place)
    return {node: ",".join(found) for node, found in places.items()}


def paths(topology: Topology) -> dict[str, tuple[str, ...]]:
    """{node: names of the switches above it, from the top down to its leaf}."""
    parent = {child: switch.name for switch in topology.switches for child in switch.children}
    found: dict[str, tuple[str, ...]] = {}
    for leaf in topology.leaves():
        path = [leaf.name]
        while path[-1] in parent and len(path) <= len(parent):
            path.append(parent[path[-1]])
        found |= dict.fromkeys(leaf.nodes, tuple(reversed(path)))
    return found


def parts(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """[(topology, path of switches down to the leaf)] of a node's topology string."""
    found = []
    for part in text.split(","):
        name, *path = part.split(":")
        if name:
            found.append((name, tuple(path)))
    return found
