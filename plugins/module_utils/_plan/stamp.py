# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Manifests as they are sent: with the label of the set, the hash of themselves and of what their Pods depend on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.manifests import (
    APPLIED,
    CONTENT_HASH,
    PART_OF,
    digest,
)

Object = Mapping[str, Any]


def stamp(manifest: Object, set_id: str, content_hash: str | None = None, live: Object | None = None) -> dict[str, Any]:
    """Return the manifest as it is sent: with the member label, the content hash and the hash of itself."""
    result = dict(manifest)
    spec = result.get("spec")
    if content_hash and isinstance(spec, Mapping):
        template = _with_metadata(spec["template"], "annotations", {CONTENT_HASH: content_hash})
        spec = result["spec"] = {**spec, "template": template}
    if result["kind"] == "StatefulSet" and isinstance(spec, Mapping) and spec.get("volumeClaimTemplates"):
        # So that the volumes can be found, and deleted when that is asked for, after the StatefulSet is gone.
        claims = [_with_metadata(claim, "labels", {PART_OF: set_id}) for claim in spec["volumeClaimTemplates"]]
        result["spec"] = {**spec, "volumeClaimTemplates": claims}
    if result["kind"] != "Namespace":  # shared by many, owned by none
        result = _with_metadata(result, "labels", {PART_OF: set_id})
    return _reset_account(_with_metadata(result, "annotations", {APPLIED: digest(result)}), live)


def _with_metadata(item: Any, part: str, values: Mapping[str, str]) -> Any:
    if not isinstance(item, Mapping):
        return item  # no object at all: the API server will say so
    metadata = item.get("metadata") or {}
    return {**item, "metadata": {**metadata, part: {**(metadata.get(part) or {}), **values}}}


def _reset_account(manifest: dict[str, Any], live: Object | None) -> dict[str, Any]:
    """Name the default ServiceAccount where the manifest has none any more.

    Leaving serviceAccountName out does not unset it: the API server takes it over again from serviceAccount, the old
    name of the same field, which it had filled in itself.
    """
    new, old = (_pod_spec(item) for item in (manifest, live))
    if new is None or old is None or "serviceAccountName" in new or "serviceAccount" in new:
        return manifest
    if old.get("serviceAccountName", "default") == "default":
        return manifest
    template = manifest["spec"]["template"]
    pod_spec = {**new, "serviceAccountName": "default"}
    return {**manifest, "spec": {**manifest["spec"], "template": {**template, "spec": pod_spec}}}


def _pod_spec(item: Object | None) -> Object | None:
    value: Any = item
    for step in ("spec", "template", "spec"):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else None
