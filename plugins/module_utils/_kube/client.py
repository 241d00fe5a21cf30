# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The Kubernetes API as raw JSON over one pool: retries, pagination, server-side apply, counted calls.

Everything that can be done again safely is done again (429, 5xx and broken connections) until a total deadline;
a 401 makes the credentials be read once more, which renews tokens that expire during a long wait.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import paths
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.config import Connection
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import (
    ApiError,
    Unreachable,
    explain,
    is_unfit,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.transport import (
    POOL_SIZE,
    ConnectionFailed,
    Reply,
    Transport,
)

FIELD_MANAGER = "slurm_ops.kubernetes"
PAGE = 500  # objects in one page of a list
TIMEOUT = 30.0  # seconds for one attempt
DEADLINE = 60.0  # seconds for one call with all its attempts
FIRST_DEADLINE = 12.0  # the same while nothing has ever answered: a wrong address should not take a minute to tell
RETRIED = frozenset({429, 500, 502, 503, 504})
ATTEMPTS_500 = 3  # a 500 is sometimes a passing fault of etcd, more often an admission webhook that will not heal
READS = frozenset({"get", "list", "watch", "discover"})

_WARNING = re.compile(r'299 [^ ]+ "((?:[^"\\]|\\.)*)"')

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class KubernetesClient:
    """Calls to one API server.

    ``load`` returns the connection; it is called again when the credentials have expired. ``clock`` and ``pause``
    are there for tests.
    """

    def __init__(
        self,
        load: Callable[[], Connection],
        *,
        deadline: float = DEADLINE,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._load = load
        self._deadline = deadline
        self._clock = clock
        self._pause = pause
        self._lock = threading.Lock()
        self._transport: Transport | None = None
        self._answered = False
        self._discovered: dict[str, dict[str, paths.Resource]] = {}
        self.calls: Counter[str] = Counter()
        self.server_date = ""  # of the last answer: the clock by which ages of objects are told
        self.warnings: dict[str, None] = {}

    # --- the connection -------------------------------------------------------------------------------------------

    @property
    def transport(self) -> Transport:
        """The pool, opened on first use."""
        with self._lock:
            if self._transport is None:
                self._transport = Transport(self._load())
            return self._transport

    @property
    def connection(self) -> Connection:
        """The resolved connection; its ``source`` is fit for people and logs."""
        return self.transport.connection

    def renew(self, old: Transport) -> bool:
        """Read the credentials again after a 401; False when they are the same, so that trying again is no use."""
        with self._lock:
            if self._transport is old:
                connection = self._load()
                if connection == old.connection:
                    return False
                self._transport = Transport(connection)
            return True  # if it was not the old one any more, another thread has just done it

    def close(self) -> None:
        """Close the pool."""
        if self._transport is not None:
            self._transport.close()

    # --- one call -------------------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        *,
        verb: str = "",
        doing: str = "",
        target: str = "",
        query: Mapping[str, str | int] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
        idempotent: bool | None = None,
    ) -> Any:
        """Make one call and return the parsed answer; text that is not JSON comes back as str.

        The call is counted under ``verb``; errors say what could not be done with ``doing`` (the verb, unless given)
        and ``target``. Calls that are not idempotent (a POST) are tried again only if the server cannot have seen
        them. Raises ApiError, Unreachable.
        """
        reply = self.exchange(
            method,
            path,
            verb=verb,
            doing=doing,
            target=target,
            query=query,
            body=body,
            content_type=content_type,
            headers=headers,
            timeout=timeout,
            idempotent=idempotent,
        )
        if 200 <= reply.status < 300:
            return _parsed(reply)
        raise explain(reply.status, _status(reply), doing or verb or method, target or path, self.connection.source)

    def exchange(
        self,
        method: str,
        path: str,
        *,
        verb: str = "",
        doing: str = "",
        target: str = "",
        query: Mapping[str, str | int] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
        idempotent: bool | None = None,
    ) -> Reply:
        """Make one call with retries and return the answer as it came, whatever its status: for proxied services."""
        verb = verb or method.lower()
        repeatable = method in ("GET", "HEAD", "PUT", "DELETE") if idempotent is None else idempotent
        url = f"{path}?{urlencode(query)}" if query else path
        all_headers = dict(headers or {})
        data: bytes | None = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
            all_headers.setdefault("Content-Type", content_type)
        begun = self._clock()
        attempt = 0
        renewed = False
        while True:
            attempt += 1
            transport = self.transport
            with self._lock:
                self.calls[verb] += 1
            left = begun + (self._deadline if self._answered else min(FIRST_DEADLINE, self._deadline)) - self._clock()
            try:
                reply = transport.send(method, url, data, all_headers, max(1.0, min(timeout, left)))
            except ConnectionFailed as failure:
                if failure.fatal:
                    raise failure.fatal from failure
                delay = min(0.2 * 2**attempt, 5.0)
                if (failure.sent and not repeatable) or delay > left:
                    raise self._unreachable(failure, verb, doing or verb, target or path, begun) from failure
                self._pause(delay * random.uniform(0.7, 1.0))
                continue
            self._answered = True
            self.server_date = reply.headers.get("Date", self.server_date)
            self._note_warnings(reply)
            if reply.status == 401 and not renewed:
                renewed = True
                if self.renew(transport):
                    continue
            if reply.status in RETRIED and (repeatable or reply.status == 429):
                delay = _retry_after(reply) or min(0.2 * 2**attempt, 10.0)
                # A 429 without Retry-After is a PodDisruptionBudget's answer to an eviction: for the caller.
                pointless = (
                    reply.status == 500
                    and (attempt >= ATTEMPTS_500 or is_unfit(str(_status(reply).get("message", ""))))
                ) or (reply.status == 429 and _retry_after(reply) is None and not repeatable)
                if not pointless and delay <= left:
                    self._pause(delay)
                    continue
            return reply

    def _unreachable(self, failure: ConnectionFailed, verb: str, doing: str, target: str, begun: float) -> Unreachable:
        seconds = self._clock() - begun
        host = self.connection.host
        if failure.sent:
            return Unreachable(
                f"No answer from the API server {host} to {doing} {target}: {failure} (tried for {seconds:.0f} s).",
                reason="Unreachable",
                hint="Run again." if verb in READS or verb == "dry-run" else "It may have been done or not: run again.",
            )
        source = self.connection.source
        return Unreachable(
            f"The API server {host} cannot be reached: {failure} (tried for {seconds:.0f} s; {source}).",
            reason="Unreachable",
            hint="Check the address, the network and that the API server runs, then run again.",
        )

    def _note_warnings(self, reply: Reply) -> None:
        """Keep the Warning headers: deprecations, Pod Security, unknown fields."""
        for text in _WARNING.findall(reply.headers.get("Warning", "")):
            self.warnings.setdefault(text.replace('\\"', '"').replace("\\\\", "\\"))

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

    def log_tail(self, namespace: str, pod: str, container: str, *, lines: int = 5, previous: bool = False) -> str:
        """Return the last lines of a container's log."""
        query: dict[str, str | int] = {"container": container, "tailLines": lines, "limitBytes": 4096}
        if previous:
            query["previous"] = "true"
        path = paths.Resource("v1", "Pod", "pods", True).path(namespace, pod, "log")
        return str(self.request("GET", path, verb="get", target=f"log of Pod {namespace}/{pod}", query=query) or "")

    # --- accounting -----------------------------------------------------------------------------------------------

    @property
    def writes(self) -> int:
        """How many calls could change something; dry runs cannot."""
        return sum(count for verb, count in self.calls.items() if verb not in READS and verb != "dry-run")


def label(resource: paths.Resource, namespace: str | None, name: str) -> str:
    """Return "Kind namespace/name", as messages name an object."""
    return f"{resource.kind} {namespace}/{name}" if resource.namespaced and namespace else f"{resource.kind} {name}"


def _parsed(reply: Reply) -> Any:
    if not reply.body:
        return {}
    if "json" in reply.headers.get("Content-Type", ""):
        try:
            return json.loads(reply.body)
        except ValueError:
            return {"raw": reply.body[:500].decode("utf-8", "replace")}
    return reply.body.decode("utf-8", "replace")


def _status(reply: Reply) -> dict[str, Any]:
    """Return the Status object of an unsuccessful answer, or what there is in its place."""
    content = _parsed(reply)
    return content if isinstance(content, dict) else {"raw": str(content)[:500]}


def _retry_after(reply: Reply) -> float | None:
    try:
        return max(0.0, float(reply.headers.get("Retry-After", "")))
    except ValueError:
        return None
