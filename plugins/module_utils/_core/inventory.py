# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Slurm's nodes as hosts of an Ansible inventory: which variables each has, and which groups it is in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import cluster_report
from .snapshot import Snapshot

ALL = "slurm_nodes"


@dataclass(frozen=True, slots=True)
class Host:
    """One node. ``node`` is its entry as cluster_info returns it."""

    name: str
    node: Mapping[str, Any]
    groups: tuple[str, ...]


def hosts(snapshot: Snapshot) -> list[Host]:
    """Every node that Slurm knows, and every worker Pod that it does not, in their natural order."""
    nodes = cluster_report.nodes(snapshot, slurm_read=True)
    return [Host(node["name"], node, tuple(dict.fromkeys(_groups(node)))) for node in nodes]


def _groups(node: Mapping[str, Any]) -> Iterator[str]:
    """Slurm writes a node's places as ``topology:switch:...:leaf``, separated by commas."""
    yield ALL
    yield f"state_{group_name(node['word'])}"
    if node["nodeset"]:
        yield f"nodeset_{group_name(node['nodeset'])}"
    for partition in node["partitions"]:
        yield f"partition_{group_name(partition)}"
    for place in filter(None, node["topology"].split(",")):
        for switch in place.split(":")[1:]:
            yield f"topology_{group_name(switch)}"


def group_name(text: str) -> str:
    """A name that Ansible takes for a group without a warning."""
    return re.sub(r"\W", "_", text, flags=re.ASCII)
