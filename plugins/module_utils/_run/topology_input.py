# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""From the options of module topology to the topologies that are wanted: labels of Nodes, mappings, fabrics, files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import fabric, hostlist
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.problems import Problems
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import Snapshot
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.topology import (
    BLOCK,
    FLAT,
    TREE,
    Topology,
    compress,
    paths,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.topology_check import check
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.topology import PATH, Shape, build
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import topology_live
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.yaml_text import documents

Options = Mapping[str, Any]


@dataclass(slots=True)
class Wanted:
    """The topologies, the nodes of each that miss a label, those that keep their place, and what is worth knowing."""

    topologies: Sequence[Topology] = ()
    unplaced: dict[str, list[str]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def wanted(params: Options, seen: Snapshot, present: Sequence[Topology], *, yaml: bool) -> Wanted:
    """What the options ask for; raises OperationError (InvalidVariables) with everything that is wrong.

    ``present`` is what the cluster has: a node whose Kubernetes Node cannot be told now keeps its place.
    """
    result = Wanted()
    if params["state"] == "absent":
        return result
    problems = Problems()
    if params["content"] is not None:
        result.topologies = topology_live.read(params["content"], yaml=yaml)
        if not result.topologies:
            problems.add("content", "has no topology")
    else:
        result.topologies = _described(params, seen, present, result, problems)
    result.notes += check(result.topologies, seen.slurm_nodes.keys(), problems)
    problems.raise_if_any("This topology cannot be")
    result.notes += _left_out(result.topologies, seen)
    return result


def _described(
    params: Options, seen: Snapshot, present: Sequence[Topology], result: Wanted, problems: Problems
) -> list[Topology]:
    described = params["topologies"] or ()
    if not described:
        problems.add("topologies", "is empty; say which, or state: absent")
    chosen = any(item["default"] for item in described)
    old = {item.name: item for item in present}
    found = []
    for index, options in enumerate(described):
        shape = Shape(
            name=options["name"],
            kind=options["type"],
            # slurmctld takes the first if none is named.
            default=bool(options["default"]) if chosen else index == 0,
            block_sizes=tuple(options["block_sizes"] or ()),
            root=options["root"],
            unplaced=options["unplaced"],
            names=options["names"],
        )
        places = _places(options, shape, seen, old.get(shape.name), params["ignore_unknown"], result, problems)
        made, unplaced = build(shape, places, problems)
        if unplaced:
            result.unplaced[shape.name] = unplaced
        found.append(made)
    return found


def _places(
    options: Options,
    shape: Shape,
    seen: Snapshot,
    old: Topology | None,
    ignore_unknown: bool,
    result: Wanted,
    problems: Problems,
) -> dict[str, Sequence[str]]:
    """{node: values from the top down} for every node of the topology; empty where nothing is known."""
    at = f"topology {shape.name}"
    sources = [key for key in ("labels", "mapping", "mapping_file", "ibnetdiscover") if options[key]]
    if shape.kind == FLAT:
        if sources or options["nodesets"] or shape.block_sizes:
            problems.add(at, "is flat: it takes no labels, mapping, nodesets or block_sizes")
        return {}
    if len(sources) != 1:
        problems.add(
            at, f"needs one of labels, mapping, mapping_file, ibnetdiscover; has {', '.join(sources) or 'none'}"
        )
        return {}
    if shape.block_sizes and shape.kind == TREE:
        problems.add(at, "has block_sizes, which only a topology of type block takes")
    nodes = [name for name in seen.slurm_nodes if _in_scope(name, options["nodesets"], seen)]
    if not nodes:
        problems.add(at, "has no node: Slurm knows none" + (" of these nodesets" if options["nodesets"] else ""))
    if options["labels"]:
        labels = options["labels"]
        places = _from_labels(labels, nodes, seen, _present_values(old, shape, len(labels)), result)
    elif options["ibnetdiscover"]:
        places = _from_fabric(options["ibnetdiscover"], nodes, seen)
    else:
        mapping = options["mapping"] or _mapping_of(options["mapping_file"])
        places = _from_mapping(mapping, nodes, seen, f"{at}, {sources[0]}", ignore_unknown, problems)
    if shape.kind == BLOCK:
        # A block topology has one level: the last value.
        places = {node: _last(values, shape.names) for node, values in places.items()}
    return places


def _last(values: Sequence[str], names: str) -> Sequence[str]:
    if not values or not all(values):
        return ()
    return ("/".join(values),) if names == PATH else values[-1:]


def _in_scope(name: str, nodesets: Sequence[str] | None, seen: Snapshot) -> bool:
    if not nodesets:
        return True
    pod = seen.pod_of.get(name)
    return not {pod.nodeset if pod else "", *seen.slurm_nodes[name].features}.isdisjoint(nodesets)


def _from_labels(
    labels: Sequence[str],
    nodes: Iterable[str],
    seen: Snapshot,
    present: Mapping[str, Sequence[str]],
    result: Wanted,
) -> dict[str, Sequence[str]]:
    labels_of = {node.name: node.labels for node in seen.kubernetes_nodes}
    places: dict[str, Sequence[str]] = {}
    for name in nodes:
        pod = seen.pod_of.get(name)
        found = labels_of.get(pod.node) if pod else None
        if found is not None:
            places[name] = tuple(found.get(label, "") for label in labels)
        else:
            # Its Pod is being made anew, say: no reason to move it to and fro.
            places[name] = present.get(name, ())
            if name in present:
                result.kept.add(name)
    return places


def _present_values(old: Topology | None, shape: Shape, depth: int) -> dict[str, Sequence[str]]:
    """The values that put each node where it is now; only those of as many levels as there are labels."""
    if old is None or old.kind != shape.kind:
        return {}
    found: dict[str, Sequence[str]] = {}
    for node, path in paths(old).items():
        names = path[1:] if path[0] == shape.root else path
        # With names: path the leaf's name has all values; a block has only the last one, which is all it needs.
        values = tuple(names[-1].split("/")) if shape.names == PATH else names
        if shape.kind == BLOCK and shape.names != PATH:
            values = ("-",) * (depth - 1) + values
        if len(values) == depth and names[-1] != shape.unplaced:
            found[node] = values
    return found


def _from_fabric(path: str, nodes: Iterable[str], seen: Snapshot) -> dict[str, Sequence[str]]:
    host_of = {name: _host(name, seen) for name in nodes}
    found = fabric.paths(fabric.parse(_text(path)), {host for hosts in host_of.values() for host in hosts})
    return {name: next((found[host] for host in hosts if host in found), ()) for name, hosts in host_of.items()}


def _host(name: str, seen: Snapshot) -> tuple[str, ...]:
    """What a node may be called outside Slurm: its own name, or that of the Node under it."""
    pod = seen.pod_of.get(name)
    return (name, pod.node.partition(".")[0]) if pod and pod.node else (name,)


def _from_mapping(
    mapping: Mapping[str, Any],
    nodes: Iterable[str],
    seen: Snapshot,
    at: str,
    ignore_unknown: bool,
    problems: Problems,
) -> dict[str, Sequence[str]]:
    """A mapping of host lists to values; the names are those of Slurm's nodes or of Kubernetes Nodes."""
    wanted_nodes = list(nodes)
    by_host: dict[str, list[str]] = {}
    for node in wanted_nodes:
        for host in _host(node, seen)[1:]:
            by_host.setdefault(host, []).append(node)
    places: dict[str, Sequence[str]] = dict.fromkeys(wanted_nodes, ())
    unknown: list[str] = []
    for key, values in mapping.items():
        if isinstance(values, str):
            values = [values]
        if not isinstance(values, (list, tuple)) or not all(isinstance(value, (str, int)) for value in values):
            problems.add(f"{at}.{key}", "must be a list of names from the top down, such as [zone1, spine1, leaf1]")
            continue
        for name in hostlist.expand(str(key)):
            found = [name] if name in places else by_host.get(name.partition(".")[0], [])
            if not found and name not in seen.slurm_nodes:
                unknown.append(name)
            for node in found:
                if places[node]:
                    problems.add(f"{at}.{key}", f"{name} is in the mapping twice")
                places[node] = tuple(map(str, values))
    if unknown and not ignore_unknown:
        problems.add(at, f"Slurm does not know {compress(unknown)}; correct it, or set ignore_unknown")
    return places


def _mapping_of(path: str) -> Mapping[str, Any]:
    found = documents(_text(path), path)
    if len(found) != 1 or not isinstance(found[0], Mapping):
        raise OperationError(
            f"{path} must be one YAML mapping of host lists to lists of names.",
            reason="Malformed",
            hint='A line of it: "gpu-[0-7]": [zone1, spine1, leaf1]',
        )
    return found[0]


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OperationError(f"{path} cannot be read: {error}.", reason="Unreadable", hint="Check the path.") from error


def _left_out(topologies: Iterable[Topology], seen: Snapshot) -> list[str]:
    """Nodes outside the default topology: slurmctld gives them only to partitions with another."""
    notes = []
    for topology in topologies:
        if topology.default and topology.kind != FLAT:
            missing = seen.slurm_nodes.keys() - topology.leaf_of().keys()
            if missing:
                notes.append(
                    f"{compress(missing)}: not in the default topology {topology.name}, so jobs get these nodes only"
                    " through a partition with another Topology"
                )
    return notes
