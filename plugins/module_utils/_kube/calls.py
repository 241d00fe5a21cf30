# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""One call to the API server, with everything that may happen to it on the way.

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
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.connection import Connection
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import (
    Unreachable,
    explain,
    is_unfit,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.transport import (
    ConnectionFailed,
    Reply,
    Transport,
)

TIMEOUT = 30.0  # seconds for one attempt
DEADLINE = 60.0  # seconds for one call with all its attempts
FIRST_DEADLINE = 12.0  # the same while nothing has ever answered: a wrong address should not take a minute to tell
RETRIED = frozenset({429, 500, 502, 503, 504})
ATTEMPTS_500 = 3  # a 500 is sometimes a passing fault of etcd, more often an admission webhook that will not heal
READS = frozenset({"get", "list", "watch", "discover"})

_WARNING = re.compile(r'299 [^ ]+ "((?:[^"\\]|\\.)*)"')


class ApiCalls:
    """Single calls to one API server, counted, repeated where that is safe, with credentials that may expire.

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

    # --- accounting -----------------------------------------------------------------------------------------------

    @property
    def writes(self) -> int:
        """How many calls could change something; dry runs cannot."""
        return sum(count for verb, count in self.calls.items() if verb not in READS and verb != "dry-run")


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
