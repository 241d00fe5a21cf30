# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Manifests as given by people, made fit for server-side apply; and live objects, made fit for people to read."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

DOMAIN = "slurm-ops.kubernetes"
APPLIED = f"{DOMAIN}/applied"  # on each object: hash of the manifest that was applied last
RESTART_ON = f"{DOMAIN}/restart-on"  # on a Pod template: objects whose content shall make the Pods roll
CONTENT_HASH = f"{DOMAIN}/content-hash"  # on a Pod template: hash of that content
PART_OF = "applyset.kubernetes.io/part-of"

HIDDEN = "(hidden)"
HIDDEN_CHANGED = "(hidden, changed)"

_SERVER_METADATA = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink")
_NOISE_ANNOTATIONS = (
    APPLIED,
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
)


def flatten(given: Iterable[Any], parse: Callable[[str, str], list[Any]]) -> list[dict[str, Any]]:
    """Return the manifests one by one: text is parsed (by ``parse``), lists and objects of List kinds are opened."""
    found: list[dict[str, Any]] = []
    for number, item in enumerate(given, start=1):
        if item is None:
            continue  # an empty YAML document, as a template leaves after its last "---"
        if isinstance(item, str):
            documents = parse(item, f"Manifest {number}")
            if any(isinstance(document, str) for document in documents):
                raise _malformed(f"Manifest {number} is text, but not of a manifest")
            found += flatten(documents, parse)
        elif isinstance(item, (list, tuple)):
            found += flatten(item, parse)
        elif not isinstance(item, Mapping):
            raise _malformed(f"Manifest {number} is a {type(item).__name__}, not a mapping")
        elif not item:
            continue
        elif isinstance(item.get("items"), list) and str(item.get("kind", "")).endswith("List"):
            found += flatten(item["items"], parse)
        else:
            found.append(dict(item))
    return found


def _malformed(what: str, hint: str = "Correct the manifest; nothing was sent.") -> OperationError:
    return OperationError(f"{what}.", reason="Malformed", hint=hint)


def describe(manifest: Mapping[str, Any]) -> str:
    """Return "Kind namespace/name" as messages name an object."""
    metadata = manifest.get("metadata") or {}
    name = metadata.get("name", "?")
    return (
        f"{manifest.get('kind', '?')} {metadata['namespace']}/{name}"
        if metadata.get("namespace")
        else f"{manifest.get('kind', '?')} {name}"
    )


def checked(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest without nulls and server-made fields. Raises OperationError for what cannot be an object."""
    for key in ("apiVersion", "kind"):
        if not isinstance(manifest.get(key), str) or not manifest[key]:
            raise _malformed(f"A manifest has no {key}: {describe(manifest)}")
    metadata = manifest.get("metadata")
    if not isinstance(metadata, Mapping):
        raise _malformed(f"{manifest['kind']} has no metadata")
    if metadata.get("generateName") and not metadata.get("name"):
        raise _malformed(f"{manifest['kind']} has generateName, which cannot be applied twice", "Give it a name.")
    if not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise _malformed(f"{manifest['kind']} has no name")
    result: dict[str, Any] = without_nulls({key: value for key, value in manifest.items() if key != "status"})
    result["metadata"] = {key: value for key, value in result["metadata"].items() if key not in _SERVER_METADATA}
    for key in ("labels", "annotations"):
        values = result["metadata"].get(key) or {}
        if not isinstance(values, Mapping):
            raise _malformed(f"{describe(result)}: metadata.{key} is not a mapping")
        for name, value in values.items():
            if not isinstance(value, str):
                raise _malformed(f"{describe(result)}: metadata.{key}.{name} is not a string", "Put it in quotes.")
    if result["kind"] == "Secret" and result["apiVersion"] == "v1":
        _secret_data(result)
    return result


def without_nulls(value: Any) -> Any:
    """Return the value without keys whose value is null: for an apply, null means nothing."""
    if isinstance(value, Mapping):
        return {str(key): without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [without_nulls(item) for item in value]
    return value


def _secret_data(manifest: dict[str, Any]) -> None:
    """Turn stringData into data (what the server does, so that it can be compared) and check it here: the server's
    own message about a wrong value would quote the value."""
    data: dict[str, str] = {}
    for part in ("data", "stringData"):
        if not isinstance(manifest.get(part) or {}, Mapping):
            raise _malformed(f"{describe(manifest)}: {part} is not a mapping")
    for key, value in (manifest.get("data") or {}).items():
        try:
            data[key] = base64.b64encode(base64.b64decode(value.encode(), validate=False)).decode()
        except (AttributeError, binascii.Error, ValueError):
            raise _malformed(
                f"{describe(manifest)}: data.{key} is not base64 text", "Use stringData for plain text."
            ) from None
    for key, value in (manifest.pop("stringData", None) or {}).items():
        if not isinstance(value, str):
            raise _malformed(f"{describe(manifest)}: stringData.{key} is not a string", "Put it in quotes.")
        data[key] = base64.b64encode(value.encode()).decode()
    if data:
        manifest["data"] = data


def digest(value: Any, length: int = 16) -> str:
    """Return a short hash of JSON-like data that does not depend on the order of keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def content(live: Mapping[str, Any] | None, key: str = "") -> Any:
    """Return what a ConfigMap or Secret holds, all of it or one key, for a content hash; None if it is not there."""
    if live is None:
        return None
    parts = {part: live.get(part) or {} for part in ("data", "binaryData")}
    if key:
        return {part: values[key] for part, values in parts.items() if key in values}
    return parts


def restart_references(manifest: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return (Kind, name, key) of each object that the Pod template's restart-on annotation names.

    Its form is ``configmap/NAME,secret/NAME,configmap/NAME/KEY``.
    """
    template = (manifest.get("spec") or {}).get("template") if isinstance(manifest.get("spec"), Mapping) else None
    if not isinstance(template, Mapping):
        return []
    text = ((template.get("metadata") or {}).get("annotations") or {}).get(RESTART_ON, "")
    kinds = {"configmap": "ConfigMap", "secret": "Secret"}
    found = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        kind, _slash, rest = entry.partition("/")
        name, _slash, key = rest.partition("/")
        if kind.lower() not in kinds or not name:
            raise _malformed(
                f"{describe(manifest)}: {RESTART_ON} names {entry!r}",
                "Write configmap/NAME, secret/NAME or configmap/NAME/KEY.",
            )
        found.append((kinds[kind.lower()], name, key))
    return found


def readable(live: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return an object without what only the server cares for: fit for a comparison or a diff, secrets still inside."""
    if live is None:
        return None
    result = {key: value for key, value in live.items() if key != "status"}
    metadata = {key: value for key, value in (live.get("metadata") or {}).items() if key not in _SERVER_METADATA}
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if key not in _NOISE_ANNOTATIONS
    }
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations
    result["metadata"] = metadata
    return result


def masked(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> tuple[Any, Any]:
    """Return both without the values of a Secret; a value that changes is seen to change."""
    if (before or after or {}).get("kind") != "Secret":
        return before, after
    old = (before or {}).get("data") or {}
    new = (after or {}).get("data") or {}

    def hide(values: Mapping[str, Any], other: Mapping[str, Any], word: str) -> dict[str, str]:
        return {key: word if key in other and other[key] != value else HIDDEN for key, value in values.items()}

    hidden_before = {**before, "data": hide(old, new, HIDDEN)} if before is not None else None
    hidden_after = {**after, "data": hide(new, old, HIDDEN_CHANGED)} if after is not None else None
    for item in (hidden_before, hidden_after):
        if item is not None and not item["data"]:
            del item["data"]
    return hidden_before, hidden_after
