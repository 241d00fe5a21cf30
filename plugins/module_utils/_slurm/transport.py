# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""slurmrestd at a URL of its own: one connection, kept open as long as the server keeps it."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError


class Answer(NamedTuple):
    """What came back: status, headers (any case) and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    """How a request reaches slurmrestd. Raises OperationError when there is no answer."""

    @property
    def where(self) -> str:
        """Where slurmrestd is, for messages."""

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Answer:
        """Make one attempt; ``path`` begins with a slash and holds the query."""


class DirectTransport:
    """slurmrestd at http://host:port or https://host:port. Not to be shared between threads."""

    def __init__(self, url: str, *, ca_file: str | None = None, verify: bool = True) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OperationError(
                f"{url!r} is not a URL of slurmrestd.", reason="InvalidUrl", hint="Write http://host:6820."
            )
        self._prefix = parts.path.rstrip("/")
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 6820)
        self._context: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._context = ssl.create_default_context(cafile=ca_file)
            if not verify:
                self._context.check_hostname = False
                self._context.verify_mode = ssl.CERT_NONE
        self._connection: http.client.HTTPConnection | None = None

    @property
    def where(self) -> str:
        """The URL, without anything secret."""
        return f"{'https' if self._context else 'http'}://{self._host}:{self._port}{self._prefix}"

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Answer:
        """Make one attempt; an idle connection that the server has closed meanwhile is opened again for a read."""
        reused = self._connection is not None
        try:
            return self._attempt(method, path, headers, body, timeout)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            stale = isinstance(error, (ConnectionError, http.client.BadStatusLine))
            if reused and stale and method == "GET":
                try:
                    return self._attempt(method, path, headers, body, timeout)
                except (OSError, http.client.HTTPException) as second:
                    self.close()
                    error = second
            text = str(error) or type(error).__name__
            raise OperationError(
                f"slurmrestd at {self.where} cannot be reached: {text}.",
                reason="SlurmUnreachable",
                hint="Check that it runs and that the address is right.",
            ) from error

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _attempt(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Answer:
        if self._connection is None:
            if self._context is not None:
                self._connection = http.client.HTTPSConnection(self._host, self._port, context=self._context)
            else:
                self._connection = http.client.HTTPConnection(self._host, self._port)
        connection = self._connection
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        connection.request(method, self._prefix + path, body=body, headers=dict(headers))
        response = connection.getresponse()
        answer = Answer(response.status, dict(response.headers.items()), response.read())
        # slurmrestd closes after every 4xx and 5xx without saying so beforehand.
        if answer.status >= 400 or response.will_close:
            self.close()
        return answer
