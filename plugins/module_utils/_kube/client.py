# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The Kubernetes API as raw JSON: objects by kind and name, lists in pages, server-side apply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import paths
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.calls import ApiCalls
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import POD
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.transport import POOL_SIZE

FIELD_MANAGER = "slurm_ops.kubernetes"
PAGE = 500  # objects in one page of a list

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class KubernetesClient(ApiCalls):
    """Calls to one API server: see ApiCalls for how it is made."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._discovered: dict[str, dict[str, paths.Resource]] = {}

    # --- where things are -----------------------------------------------------------------------------------------

    def resource(self, api_version: str, kind: str) -> paths.Resource:
        """Return where a kind lives; asks the API server (one call a group-version) only for kinds we do not know."""
        found = paths.known(api_version, kind)
        if found:
            return found
        if api_version not in self._discovered:
            try:
                answer = self.request("GET", paths.version_path(api_version), verb="discover", target=api_version)
            except ApiError as error:
                if error.status != 404:
                    raise
                answer = {}
            self._discovered[api_version] = {
                item["kind"]: paths.Resource(api_version, item["kind"], item["name"], bool(item.get("namespaced")))
                for item in answer.get("resources", ())
                if "/" not in item["name"]
            }
        try:
            return self._discovered[api_version][kind]
        except KeyError:
            raise OperationError(
                f"The cluster has no kind {kind} in {api_version}.",
                reason="UnknownKind",
                hint="Check apiVersion and kind; for a custom resource, install its CustomResourceDefinition first.",
            ) from None

    # --- reading --------------------------------------------------------------------------------------------------

    def get(self, resource: paths.Resource, namespace: str | None, name: str) -> dict[str, Any] | None:
        """Return one object, or None if there is none."""
        try:
            answer = self.request(
                "GET", resource.path(namespace, name), verb="get", target=label(resource, namespace, name)
            )
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return dict(answer)

    def list(
        self,
        resource: paths.Resource,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        cached: bool = False,
    ) -> Sequence[dict[str, Any]]:
        """Return all objects that match, in pages; ``cached`` allows an answer from the API server's cache (quicker,
        perhaps a moment old)."""
        return self.list_with_version(resource, namespace, labels=labels, fields=fields, cached=cached)[0]

    def list_with_version(
        self,
        resource: paths.Resource,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        cached: bool = False,
    ) -> tuple[Sequence[dict[str, Any]], str]:
        """Return objects and the list's resourceVersion, from which a watch can go on."""
        query: dict[str, str | int] = {"limit": PAGE}
        if labels:
            query["labelSelector"] = labels
        if fields:
            query["fieldSelector"] = fields
        if cached:
            query["resourceVersion"] = "0"
        items: list[dict[str, Any]] = []
        target = f"{resource.group_resource}{f' in {namespace}' if namespace else ''}"
        restarted = False
        while True:
            try:
                answer = self.request("GET", resource.path(namespace), verb="list", target=target, query=query)
            except ApiError as error:
                if error.status != 410 or restarted:
                    raise
                # The snapshot that `continue` names was compacted away: begin again, in one piece.
                restarted = True
                items.clear()
                query.pop("continue", None)
                query.pop("limit", None)
                continue
            # Items of a list carry neither apiVersion nor kind.
            items += [
                {"apiVersion": resource.api_version, "kind": resource.kind, **item} for item in answer["items"] or ()
            ]
            token = answer["metadata"].get("continue")
            if not token:
                return items, str(answer["metadata"].get("resourceVersion", ""))
            query["continue"] = token
            query.pop("resourceVersion", None)

    # --- writing --------------------------------------------------------------------------------------------------

    def apply(
        self,
        manifest: Mapping[str, Any],
        namespace: str | None,
        *,
        force: bool = False,
        dry_run: bool = False,
        manager: str = FIELD_MANAGER,
        resource: paths.Resource | None = None,
    ) -> dict[str, Any]:
        """Server-side apply one manifest and return the object as it is (or, in a dry run, would be)."""
        resource = resource or self.resource(manifest["apiVersion"], manifest["kind"])
        name = manifest["metadata"]["name"]
        query: dict[str, str | int] = {"fieldManager": manager, "fieldValidation": "Strict"}
        if force:
            query["force"] = "true"
        if dry_run:
            query["dryRun"] = "All"
        answer = self.request(
            "PATCH",
            resource.path(namespace, name),
            verb="dry-run" if dry_run else "apply",
            doing="apply",
            target=label(resource, namespace, name),
            query=query,
            body=manifest,
            content_type="application/apply-patch+yaml",
            idempotent=True,
        )
        return dict(answer)

    def create(
        self,
        manifest: Mapping[str, Any],
        namespace: str | None,
        *,
        dry_run: bool = False,
        manager: str = FIELD_MANAGER,
    ) -> dict[str, Any]:
        """Create one object; fails if it exists. Not tried again once the server may have seen it."""
        resource = self.resource(manifest["apiVersion"], manifest["kind"])
        query: dict[str, str | int] = {"fieldManager": manager}
        if dry_run:
            query["dryRun"] = "All"
        answer = self.request(
            "POST",
            resource.path(namespace),
            verb="dry-run" if dry_run else "create",
            doing="create",
            target=label(resource, namespace, manifest["metadata"].get("name", "")),
            query=query,
            body=manifest,
        )
        return dict(answer)

    def patch(
        self,
        resource: paths.Resource,
        namespace: str | None,
        name: str,
        change: Any,
        *,
        content_type: str = "application/merge-patch+json",
        subresource: str | None = None,
        dry_run: bool = False,
        manager: str = FIELD_MANAGER,
    ) -> dict[str, Any]:
        """Change some fields of one object (a merge patch unless told otherwise)."""
        query: dict[str, str | int] = {"fieldManager": manager}
        if dry_run:
            query["dryRun"] = "All"
        answer = self.request(
            "PATCH",
            resource.path(namespace, name, subresource),
            verb="dry-run" if dry_run else "patch",
            doing="patch",
            target=label(resource, namespace, name),
            query=query,
            body=change,
            content_type=content_type,
            # The same merge patch twice is the same; a JSON patch is not (add to a list).
            idempotent=content_type != "application/json-patch+json",
        )
        return dict(answer)

    def delete(
        self,
        resource: paths.Resource,
        namespace: str | None,
        name: str,
        *,
        propagation: str = "Background",
        uid: str | None = None,
        grace: int | None = None,
        dry_run: bool = False,
    ) -> bool:
        """Delete one object and return whether it was there.

        ``propagation`` is Background, Foreground or Orphan; ``uid`` makes sure that it is the object that was looked
        at, not a newer one of the same name.
        """
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if dry_run:
            options["dryRun"] = ["All"]
        try:
            self.request(
                "DELETE",
                resource.path(namespace, name),
                verb="dry-run" if dry_run else "delete",
                doing="delete",
                target=label(resource, namespace, name),
                body=options,
            )
        except ApiError as error:
            if error.status == 404 or (error.status == 409 and uid):
                return False
            raise
        return True

    # --- many at once ---------------------------------------------------------------------------------------------

    def map_concurrent(
        self, work: Callable[[Item], Outcome], items: Iterable[Item], workers: int = POOL_SIZE
    ) -> Iterator[tuple[Item, Outcome | OperationError]]:
        """Do ``work`` for each item over several connections and yield item and result, or the error, in order.

        After an error no new item is begun; those already under way are finished, the rest are not yielded.
        """
        from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.spread import spread

        return spread(work, items, workers)

    def log_tail(
        self, namespace: str, pod: str, container: str, *, lines: int = 5, previous: bool = False, seconds: int = 0
    ) -> str:
        """Return the last lines of a container's log, of the last ``seconds`` if given."""
        query: dict[str, str | int] = {"container": container, "tailLines": lines, "limitBytes": 4096}
        if previous:
            query["previous"] = "true"
        if seconds:
            query["sinceSeconds"] = seconds
        path = POD.path(namespace, pod, "log")
        return str(self.request("GET", path, verb="get", target=f"log of Pod {namespace}/{pod}", query=query) or "")


def label(resource: paths.Resource, namespace: str | None, name: str) -> str:
    """Return "Kind namespace/name", as messages name an object."""
    return f"{resource.kind} {namespace}/{name}" if resource.namespaced and namespace else f"{resource.kind} {name}"
