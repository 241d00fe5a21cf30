# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As much of an API server as applyset and secret need: objects in memory, server-side apply, dry runs, defaults."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from .fake_api import Answer, Asked, status

Object = dict[str, Any]

KINDS = {
    "configmaps": ("v1", "ConfigMap"),
    "secrets": ("v1", "Secret"),
    "services": ("v1", "Service"),
    "namespaces": ("v1", "Namespace"),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim"),
    "statefulsets": ("apps/v1", "StatefulSet"),
    "deployments": ("apps/v1", "Deployment"),
}


class FakeCluster:
    """Call it with what was asked; ``before`` may answer instead."""

    def __init__(self, namespaces: tuple[str, ...] = ("demo",)) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}  # plural, namespace, name
        self.applied: dict[tuple[str, str, str], Object] = {}  # what our manager applied last
        self.asked: list[tuple[str, str]] = []
        self.before: Callable[[Asked], Answer | None] = lambda _asked: None
        self._count = itertools.count(1)
        for name in namespaces:
            self.put("namespaces", "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    # --- for tests ------------------------------------------------------------------------------------------------

    def put(self, plural: str, namespace: str, item: Object, **metadata: Any) -> Object:
        """Put an object there as somebody else."""
        stored = copy.deepcopy(item)
        stored["metadata"] = {
            **stored["metadata"],
            "uid": f"uid-{next(self._count)}",
            "resourceVersion": str(next(self._count)),
            "generation": 1,
            "managedFields": [{"manager": "somebody"}],
            **metadata,
        }
        if namespace:
            stored["metadata"]["namespace"] = namespace
        self.objects[plural, namespace, item["metadata"]["name"]] = stored
        return stored

    def get(self, plural: str, name: str, namespace: str = "demo") -> Object | None:
        return self.objects.get((plural, namespace, name))

    def versions(self) -> dict[tuple[str, str, str], str]:
        """Every object's resourceVersion: equal dictionaries mean that nothing was written."""
        return {key: item["metadata"]["resourceVersion"] for key, item in self.objects.items()}

    # --- the API --------------------------------------------------------------------------------------------------

    def __call__(self, asked: Asked) -> Answer:
        self.asked.append((asked.method, asked.path))
        early = self.before(asked)
        if early is not None:
            return early
        parts = asked.path.strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        if not parts:
            return status(404, "NotFound", "the server could not find the requested resource")
        namespace = ""
        if parts[0] == "namespaces" and len(parts) > 2:
            namespace, parts = parts[1], parts[2:]
        plural, name = parts[0], parts[1] if len(parts) > 1 else ""
        if plural not in KINDS:
            return status(404, "NotFound", f"the server does not know {plural}")
        dry_run = asked.query.get("dryRun") == "All" or bool((asked.body or {}).get("dryRun"))
        if asked.method == "GET":
            return self._list(plural, namespace, asked) if not name else self._get(plural, namespace, name)
        if namespace and ("namespaces", "", namespace) not in self.objects:
            message = f'namespaces "{namespace}" not found'
            return status(404, "NotFound", message, kind="namespaces", name=namespace)
        if asked.method == "PATCH" and "apply-patch" in asked.headers["Content-Type"]:
            return self._apply(plural, namespace, name, asked.body, dry_run)
        if asked.method == "PATCH":
            return self._merge(plural, namespace, name, asked.body, dry_run)
        if asked.method == "POST":
            return self._create(plural, namespace, asked.body, dry_run)
        return self._delete(plural, namespace, name, asked.body or {}, dry_run)

    def _get(self, plural: str, namespace: str, name: str) -> Answer:
        item = self.objects.get((plural, namespace, name))
        return Answer(200, item) if item else status(404, "NotFound", f'{plural} "{name}" not found', name=name)

    def _list(self, plural: str, namespace: str, asked: Asked) -> Answer:
        selector = asked.query.get("labelSelector", "")
        key, value = selector.partition("=")[::2]
        items = [
            {part: content for part, content in item.items() if part not in ("apiVersion", "kind")}
            for (of, where, _name), item in sorted(self.objects.items())
            if of == plural
            and (not namespace or where == namespace)
            and (not selector or (item["metadata"].get("labels") or {}).get(key) == value)
        ]
        return Answer(200, {"metadata": {"resourceVersion": "1"}, "items": items})

    def _store(self, place: tuple[str, str, str], item: Object, dry_run: bool, fresh: bool) -> Answer:
        old = self.objects.get(place)
        metadata = item["metadata"]
        metadata.setdefault("uid", f"uid-{next(self._count)}")
        if old is None or {**old, "metadata": None} != {**item, "metadata": None} or _meta(old) != _meta(item):
            metadata["resourceVersion"] = str(next(self._count))
        if not dry_run:
            self.objects[place] = copy.deepcopy(item)
        return Answer(201 if fresh else 200, item)

    def _apply(self, plural: str, namespace: str, name: str, manifest: Object, dry_run: bool) -> Answer:
        place = (plural, namespace, name)
        old = self.objects.get(place)
        merged = applied(copy.deepcopy(old) if old else {}, self.applied.get(place) or {}, manifest)
        api_version, kind = KINDS[plural]
        merged |= {"apiVersion": api_version, "kind": kind}
        merged["metadata"]["managedFields"] = [{"manager": "slurm_ops.kubernetes"}]
        if kind == "StatefulSet" and old and old["spec"].get("serviceName") != merged["spec"].get("serviceName"):
            message = (
                f'StatefulSet.apps "{name}" is invalid: spec: Forbidden: updates to statefulset spec for fields other'
            )
            causes = [{"field": "spec", "message": "Forbidden: updates to statefulset spec for fields other than ..."}]
            return status(422, "Invalid", message, causes=causes)
        defaults(merged)
        answer = self._store(place, merged, dry_run, old is None)
        if not dry_run:
            self.applied[place] = copy.deepcopy(manifest)
        return answer

    def _merge(self, plural: str, namespace: str, name: str, change: Object, dry_run: bool) -> Answer:
        old = self.objects.get((plural, namespace, name))
        if old is None:
            return status(404, "NotFound", "not found")
        wanted = (change.get("metadata") or {}).get("resourceVersion")
        if wanted and wanted != old["metadata"]["resourceVersion"]:
            return status(409, "Conflict", "the object has been modified")
        return self._store((plural, namespace, name), merge(copy.deepcopy(old), change), dry_run, False)

    def _create(self, plural: str, namespace: str, item: Object, dry_run: bool) -> Answer:
        place = (plural, namespace, item["metadata"]["name"])
        if place in self.objects:
            return status(409, "AlreadyExists", f'{plural} "{place[2]}" already exists')
        return self._store(place, copy.deepcopy(item), dry_run, True)

    def _delete(self, plural: str, namespace: str, name: str, options: Object, dry_run: bool) -> Answer:
        item = self.objects.get((plural, namespace, name))
        if item is None:
            return status(404, "NotFound", "not found")
        uid = (options.get("preconditions") or {}).get("uid")
        if uid and uid != item["metadata"]["uid"]:
            return status(409, "Conflict", "the UID in the precondition does not match")
        if not dry_run:
            del self.objects[plural, namespace, name]
            self.applied.pop((plural, namespace, name), None)
        return Answer(200, {"status": "Success"})


def _meta(item: Object) -> Object:
    return {key: value for key, value in item["metadata"].items() if key not in ("resourceVersion", "managedFields")}


def merge(target: Any, change: Any) -> Any:
    """A merge patch."""
    if not isinstance(change, Mapping):
        return change
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def applied(live: Any, before: Any, manifest: Any) -> Any:
    """Server-side apply in small: what was applied before and is not now goes; lists are taken whole."""
    if not isinstance(manifest, Mapping):
        return manifest
    result = dict(live) if isinstance(live, Mapping) else {}
    for key in set(before if isinstance(before, Mapping) else ()) - set(manifest):
        result.pop(key, None)
    for key, value in manifest.items():
        old = before.get(key) if isinstance(before, Mapping) else None
        result[key] = applied(result.get(key), old, value)
    return result


def defaults(item: Object) -> None:
    """What the server adds by itself."""
    item["metadata"].setdefault("generation", 1)
    item["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
    if item["kind"] == "Secret":
        item.setdefault("type", "Opaque")
    if item["kind"] == "Service":
        item.setdefault("spec", {}).setdefault("type", "ClusterIP")
    if item["kind"] in ("Deployment", "StatefulSet"):
        item["spec"].setdefault("replicas", 1)
        count = item["spec"]["replicas"]
        item["status"] = {
            "observedGeneration": 9999,
            "replicas": count,
            "readyReplicas": count,
            "updatedReplicas": count,
            "availableReplicas": count,
        }
