# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Follow a kind of objects as they change, across timeouts, broken connections and forgotten versions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import paths
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError, Unreachable, explain
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.transport import ConnectionFailed

Object = Mapping[str, Any]
SERVER_TIMEOUT = 240  # seconds after which the API server ends one watch call; the next goes on from there
SILENCE = 30.0  # seconds beyond that without a byte after which the connection is taken to be dead

# What is yielded: SYNC with all objects after each (first or new) list, then ADDED, MODIFIED and DELETED with one.
SYNC = "SYNC"


class Watch:
    """Yields (type, object or objects) until ``duration`` seconds are over.

    A broken connection is taken up again where it broke; when the API server no longer knows that point (410 Gone),
    everything is listed anew and yielded as SYNC, so that a consumer that replaces its picture on SYNC misses nothing.
    """

    def __init__(
        self,
        client: KubernetesClient,
        resource: paths.Resource,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        duration: float = 3600.0,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._clock = clock
        self._pause = pause
        self._end = clock() + duration
        self._version = ""
        self._failures = 0

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yield what happens, in order."""
        while self._clock() < self._end:
            if not self._version:
                items, self._version = self._client.list_with_version(
                    self._resource, self._namespace, labels=self._labels, fields=self._fields
                )
                yield SYNC, items
            try:
                yield from self._once()
                self._failures = 0
            except ConnectionFailed as failure:
                self._again_after(failure)
            except ApiError as error:
                if error.status == 410:
                    self._version = ""
                elif error.status in (429, 500, 502, 503, 504):
                    self._again_after(error)
                else:
                    raise

    def _again_after(self, error: Exception) -> None:
        """Pause before the next attempt; the list or watch that follows fails for good if the server stays away."""
        self._failures += 1
        if self._failures > 8:
            raise Unreachable(
                f"The watch of {self._resource.group_resource} breaks again and again: {error}.",
                reason="Unreachable",
                hint="Check the API server and what is between.",
            ) from error
        self._pause(min(0.5 * 2**self._failures, 15.0, max(0.0, self._end - self._clock())))

    def _once(self) -> Iterator[tuple[str, Any]]:
        seconds = max(1, int(min(SERVER_TIMEOUT, self._end - self._clock())))
        query: dict[str, str | int] = {
            "watch": "true",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": seconds,
        }
        if self._labels:
            query["labelSelector"] = self._labels
        if self._fields:
            query["fieldSelector"] = self._fields
        path = f"{self._resource.path(self._namespace)}?{urlencode(query)}"
        client = self._client
        client.calls["watch"] += 1
        transport = client.transport
        with transport.stream(path, {}, seconds + SILENCE) as (status, pieces):
            if status != 200:
                body = b"".join(pieces)
                if status == 401 and client.renew(transport):
                    return  # with new credentials, from the same version
                raise explain(status, _parsed(body), "watch", self._resource.group_resource, client.connection.source)
            for line in _lines(pieces):
                event = json.loads(line)
                kind, item = event["type"], event["object"]
                if kind == "ERROR":
                    code = int(item.get("code") or 500)
                    raise explain(code, item, "watch", self._resource.group_resource, client.connection.source)
                self._version = item["metadata"]["resourceVersion"]
                self._failures = 0
                if kind != "BOOKMARK":
                    yield kind, item
                if self._clock() >= self._end:
                    return


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Put the pieces together and yield whole lines; half a line at the end (a broken connection) is dropped."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line for line in whole if line.strip())


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {"raw": body[:500].decode("utf-8", "replace")}
    return parsed if isinstance(parsed, dict) else {"raw": str(parsed)}
