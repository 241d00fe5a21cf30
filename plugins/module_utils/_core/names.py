# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Names: what Kubernetes and Slurm accept, those of our own objects, and how that of a Node becomes a Slurm node's.

The rule for ``kind: node``: prefix plus the Node's name up to its first dot (as a host's short name), so that
``gpu-17.rack3.example.org`` with the prefix ``w-`` is ``w-gpu-17``. The annotation slurm-ops.kubernetes/node-name of a
Node replaces the whole name. Two Nodes that come to the same name are refused before anything is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .problems import Problems

DOMAIN = "slurm-ops.kubernetes"
NODE_NAME_ANNOTATION = f"{DOMAIN}/node-name"
MAX_CONTROLLERS = 2
RESTARTED = f"{DOMAIN}/restarted-for"  # on Pod templates: for what their Pods were last replaced

_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)
# Features, partitions, GRES and Slurm's other words. Slurm gives a meaning to , & | * [ ] ( ) : = and blanks.
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)
_CLUSTER = re.compile(r"[a-z0-9][a-z0-9_-]*", re.ASCII)
_LABEL_KEY = re.compile(r"(?:(?P<prefix>[a-z0-9.-]{1,253})/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_FILE = re.compile(r"[A-Za-z0-9_][-A-Za-z0-9_.]*", re.ASCII)

# Words that mean something else to Slurm where a NodeSet or partition is named.
RESERVED_WORDS = frozenset({"all", "default", "none", "empty", "unknown"})


def dns_label(name: str, *, maximum: int = 63) -> str:
    """Why a name is no DNS-1123 label, or empty text."""
    if not _LABEL.fullmatch(name):
        return f"{name!r} must be lower case letters, digits and '-', beginning and ending with a letter or digit"
    if len(name) > maximum:
        return f"{name!r} has {len(name)} characters, at most {maximum} fit"
    return ""


def dns_subdomain(name: str) -> str:
    """Why a name is no DNS-1123 subdomain, or empty text."""
    if not _SUBDOMAIN.fullmatch(name):
        return f"{name!r} must be labels of lower case letters, digits and '-', joined by dots"
    return f"{name!r} has {len(name)} characters, at most 253 fit" if len(name) > 253 else ""


def slurm_word(name: str, *, maximum: int = 64) -> str:
    """Why a name is not usable as a feature, partition, GRES name or type, or empty text."""
    if not _WORD.fullmatch(name):
        return f"{name!r} must be letters, digits, '_', '-' and '.', beginning with a letter, digit or '_'"
    return f"{name!r} has {len(name)} characters, at most {maximum} fit" if len(name) > maximum else ""


def cluster_name(name: str) -> str:
    """Why a name is no ClusterName, or empty text. Slurm lowers its case and makes a database table of it."""
    if not _CLUSTER.fullmatch(name):
        return f"{name!r} must be lower case letters, digits, '_' and '-', beginning with a letter or digit"
    return f"{name!r} has {len(name)} characters, at most 40 fit" if len(name) > 40 else ""


def label_key(key: str) -> str:
    """Why a text is no label or annotation key, or empty text."""
    match = _LABEL_KEY.fullmatch(key)
    if not match or (match["prefix"] and dns_subdomain(match["prefix"])):
        return f"{key!r} is not a label key such as example.org/rack"
    return ""


def file_name(name: str) -> str:
    """Why a text cannot be a key of a ConfigMap and a file name, or empty text."""
    if not _FILE.fullmatch(name) or len(name) > 200:
        return f"{name!r} must be letters, digits, '-', '_' and '.', at most 200, and not begin with '.' or '-'"
    return ""


def node_name(kubernetes_name: str, prefix: str = "", override: str | None = None) -> str:
    """The Slurm node name of a Node of a ``kind: node`` NodeSet (not checked: see node_name_problem)."""
    return override if override else prefix + kubernetes_name.partition(".")[0]


def node_name_problem(name: str) -> str:
    """Why a name cannot be a Slurm node's, or empty text: a host name of at most 63 characters."""
    return dns_label(name)


def override_of(node: Mapping[str, Any]) -> str | None:
    """The name that a Node's annotation asks for; takes a raw Node or {name, annotations}."""
    annotations = (node.get("metadata") or node).get("annotations") or {}
    value = annotations.get(NODE_NAME_ANNOTATION)
    return str(value) if value else None


def name_of(node: Mapping[str, Any]) -> str:
    """The name of a Node; takes a raw Node or {name, annotations}."""
    return str((node.get("metadata") or node).get("name", ""))


def map_node_names(
    nodes: Iterable[Mapping[str, Any]], prefix: str, problems: Problems, path: str, taken: dict[str, str] | None = None
) -> dict[str, str]:
    """{Node name: Slurm node name}; names that Slurm cannot take and collisions go to ``problems``.

    ``taken`` ({Slurm node name: who has it}) carries names over from one NodeSet to the next.
    """
    owners = {} if taken is None else taken
    names: dict[str, str] = {}
    for node in nodes:
        kubernetes_name = name_of(node)
        override = override_of(node)
        name = node_name(kubernetes_name, prefix, override)
        why = node_name_problem(name)
        if why:
            source = f"annotation {NODE_NAME_ANNOTATION}" if override else "the name"
            problems.add(path, f"Node {kubernetes_name}: {source} gives a Slurm node name that cannot be: {why};"
                               f" set the annotation {NODE_NAME_ANNOTATION} on the Node")  # fmt: skip
        elif name in owners:
            problems.add(path, f"Node {kubernetes_name}: its Slurm node name {name} is also that of {owners[name]};"
                               f" set the annotation {NODE_NAME_ANNOTATION} on one of them")  # fmt: skip
        else:
            owners[name] = f"Node {kubernetes_name}"
            names[kubernetes_name] = name
    return names


def auth_secret(cluster: str, given: str | None = None) -> str:
    """The Secret with a cluster's keys; ``given`` is what the option or variable of that name says."""
    return given or f"{cluster}-auth"


def controller_pods(cluster: str) -> tuple[str, ...]:
    """The Pods that slurmctld of a cluster may have, in the order in which they serve."""
    return tuple(f"{cluster}-controller-{number}" for number in range(MAX_CONTROLLERS))


def state_claim(cluster: str) -> str:
    """The PersistentVolumeClaim of StateSaveLocation."""
    return f"{cluster}-state"


def natural(name: str) -> tuple[str, int, str]:
    """A key that sorts w-2 before w-10."""
    prefix = name.rstrip("0123456789")
    return prefix, len(name) - len(prefix), name


def ordinal(nodeset: str, node: str) -> int | None:
    """The number of a node of a NodeSet of kind replica; None for a name that is not made so."""
    stem, _dash, digits = node.rpartition("-")
    return int(digits) if stem == nodeset and digits.isdecimal() else None
