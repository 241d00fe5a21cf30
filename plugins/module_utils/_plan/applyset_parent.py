# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The parent of an ApplySet (KEP-3659): the ConfigMap that says which set it is and what kinds it has members of."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.compare import contains

ID_LABEL = "applyset.kubernetes.io/id"
TOOLING = "applyset.kubernetes.io/tooling"
GROUP_KINDS = "applyset.kubernetes.io/contains-group-kinds"
NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
TOOL = "slurm_ops.kubernetes/v1.0.0"

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Options:
    """How the set is to be treated."""

    name: str
    namespace: str
    prune: bool = True
    adopt: bool = False
    recreate: bool = False
    delete_volumes: bool = False

    @property
    def set_id(self) -> str:
        """The ApplySet's ID."""
        return applyset_id(self.name, self.namespace)


def applyset_id(name: str, namespace: str) -> str:
    """Return the ID of an ApplySet whose parent is a ConfigMap, as KEP-3659 computes it."""
    raw = hashlib.sha256(f"{name}.{namespace}.ConfigMap.".encode()).digest()
    return f"applyset-{base64.urlsafe_b64encode(raw).decode().rstrip('=')}-v1"


def group_kind(manifest: Object) -> str:
    """Return ``Secret`` or ``StatefulSet.apps``."""
    group = str(manifest["apiVersion"]).rpartition("/")[0]
    return f"{manifest['kind']}.{group}" if group else str(manifest["kind"])


def remembered(parent: Object | None) -> tuple[set[str], set[str]]:
    """Return the kinds and the further namespaces that the parent says the set has members of."""
    annotations = ((parent or {}).get("metadata") or {}).get("annotations") or {}
    kinds = {kind for kind in annotations.get(GROUP_KINDS, "").split(",") if kind}
    namespaces = {name for name in annotations.get(NAMESPACES, "").split(",") if name}
    return kinds, namespaces


def check_parent(parent: Object | None, options: Options) -> None:
    """Raise OperationError if what bears the set's name is not a set of ours."""
    if parent is None:
        return
    labels = parent["metadata"].get("labels") or {}
    tool = (parent["metadata"].get("annotations") or {}).get(TOOLING, "")
    where = f"ConfigMap {options.namespace}/{options.name}"
    if labels.get(ID_LABEL) != options.set_id:
        raise OperationError(
            f"{where} exists and is not the parent of a set of manifests.",
            reason="NameClash",
            hint="Give the set another name, or remove that ConfigMap if nobody needs it.",
        )
    if tool.partition("/")[0] != TOOL.partition("/")[0]:
        raise OperationError(
            f"The ApplySet {where} is managed by {tool or 'another tool'}.",
            reason="NameClash",
            hint="Give the set another name: two tools on one set would prune each other's objects.",
        )


def parent_manifest(options: Options, kinds: Iterable[str], namespaces: Iterable[str]) -> dict[str, Any]:
    """Return the ConfigMap that remembers what the set has members of."""
    annotations = {TOOLING: TOOL, GROUP_KINDS: ",".join(sorted(kinds))}
    others = ",".join(sorted(set(namespaces) - {options.namespace, ""}))
    if others:
        annotations[NAMESPACES] = others
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": options.name,
            "namespace": options.namespace,
            "labels": {ID_LABEL: options.set_id, "app.kubernetes.io/managed-by": "slurm_ops.kubernetes"},
            "annotations": annotations,
        },
    }


def parent_is(live: Object | None, manifest: Object) -> bool:
    """Whether the parent says just what it shall say."""
    return live is not None and contains(live, manifest) and remembered(live) == remembered(manifest)
