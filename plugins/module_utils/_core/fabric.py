# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""An InfiniBand fabric as ``ibnetdiscover`` prints it, and the place of each host in it as a path of a tree.

A fabric is no tree: a leaf switch has many spines above it, a host may be on many leaves. What is joined by links of
one level counts as one switch of the tree, called after the first of them by name. So eight leaf switches that share
their hosts (one for each rail) are one leaf, and the spines of one pod are one switch above its leaves.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from .errors import OperationError

_UNIT = re.compile(r'^(?P<kind>Switch|Ca|Rt)\s+\d+\s+"(?P<id>[^"]+)"\s*#\s*"(?P<text>[^"]*)"')
_LINK = re.compile(r'^\[\d+\](?:\([0-9a-fA-F]+\))?\s+"(?P<id>[^"]+)"\[\d+\]')
# How managed switches describe themselves: MF0;name:MODEL/U1
_MANAGED = re.compile(r"^MF\d+;(?P<name>[^:]+):")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Fabric:
    """Switches by name with what they are linked to: other switches, and hosts (the first word of their adapters)."""

    neighbours: Mapping[str, frozenset[str]]
    hosts: Mapping[str, frozenset[str]]


def parse(text: str) -> Fabric:
    """The fabric of an output of ibnetdiscover; raises OperationError (InvalidFabric)."""
    descriptions: dict[str, tuple[str, str]] = {}
    links: dict[str, set[str]] = {}
    current = ""
    for line in text.splitlines():
        unit = _UNIT.match(line)
        if unit:
            current = unit["id"]
            descriptions[current] = (unit["kind"], unit["text"])
            links.setdefault(current, set())
        elif (link := _LINK.match(line)) and current:
            links[current].add(link["id"])
            links.setdefault(link["id"], set()).add(current)
    switches = _switch_names({key: text for key, (kind, text) in descriptions.items() if kind == "Switch"})
    adapters = {key: _host(text) for key, (kind, text) in descriptions.items() if kind == "Ca"}
    if not switches:
        raise OperationError(
            "No switch was found in the output of ibnetdiscover.",
            reason="InvalidFabric",
            hint='Lines such as Switch 41 "S-..." # "MF0;leaf1:MQM9700/U1" are looked for.',
        )
    neighbours = {
        name: frozenset(switches[other] for other in links[key] if other in switches and other != key)
        for key, name in switches.items()
    }
    hosts: dict[str, set[str]] = {}
    for key, host in adapters.items():
        found = {switches[other] for other in links[key] if other in switches}
        if host and found:
            hosts.setdefault(host, set()).update(found)
    return Fabric(neighbours, {host: frozenset(found) for host, found in hosts.items()})


def _switch_names(descriptions: Mapping[str, str]) -> dict[str, str]:
    """{id: name}: what a switch calls itself, or its id where that is no name or not its alone."""
    own = {}
    for key, text in descriptions.items():
        managed = _MANAGED.match(text)
        name = managed["name"] if managed else text
        own[key] = name if _NAME.fullmatch(name) else key
    times = Counter(own.values())
    return {key: name if times[name] == 1 else key for key, name in own.items()}


def _host(text: str) -> str:
    first = text.split()[0].strip("'\"") if text.split() else ""
    return first.partition(".")[0]


def paths(fabric: Fabric, wanted: Collection[str]) -> dict[str, tuple[str, ...]]:
    """{host: names from the top of its part of the fabric down to its leaf} of the wanted hosts that are there.

    Only wanted hosts count: a storage server on a spine does not make it a leaf.
    """
    hosts = {host: found for host, found in fabric.hosts.items() if host in set(wanted)}
    level = set().union(*hosts.values()) if hosts else set()
    done = set(level)
    # What a host, then a switch of the level before, hangs on.
    groups = _components(hosts.values(), level)
    path = {host: [groups[next(iter(found))]] for host, found in hosts.items()}
    member = dict(groups)  # switch of the level at hand -> name of its group
    while True:
        above = {other for name in level for other in fabric.neighbours[name]} - done
        if not above:
            break
        joined: dict[str, set[str]] = {}
        for name in level:
            joined.setdefault(member[name], set()).update(fabric.neighbours[name] & above)
        groups = _components(joined.values(), above)
        for steps in path.values():
            ups = joined.get(steps[-1])
            # A part of the fabric that ends below the others repeats no switch: it hangs on the root.
            if ups:
                steps.append(groups[min(ups)])
        level, done, member = above, done | above, groups
    return {host: tuple(reversed(steps)) for host, steps in path.items()}


def _components(links: Iterable[Collection[str]], members: Collection[str]) -> dict[str, str]:
    """{member: name of its group}: members of one link are of one group, called after the first by name."""
    parent = {name: name for name in members}

    def top(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for link in links:
        names = sorted(link)
        for name in names[1:]:
            first, second = sorted((top(names[0]), top(name)))
            parent[second] = first
    return {name: top(name) for name in members}
