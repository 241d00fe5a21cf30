# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""A small client of the sandbox's own API server: raw JSON over one kept connection, standard library only.

The collection's general client reads whatever kubeconfig a person has; this one knows exactly whom it speaks to, and it
must work in a Python that has no library for Kubernetes.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

FIELD_MANAGER = "slurm_ops.kubernetes"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


class ApiError(OperationError):
    """An answer that is not a success."""

    def __init__(self, method: str, path: str, status: int, message: str) -> None:
        super().__init__(f"{method} {path}: HTTP {status}: {message}", reason="ApiError")
        self.status = status


class Api:
    """Calls to one API server, as the sandbox's administrator. Not for several threads at once."""

    def __init__(self, host: str, pki: Path, timeout: float = 15.0) -> None:
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self._connection = http.client.HTTPSConnection(host, 6443, timeout=timeout, context=context)

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, content: str = "application/json"
    ) -> dict[str, Any]:
        """The decoded answer. Raises ApiError, or OSError when nobody answers."""
        text = json.dumps(body) if body is not None else None
        headers = {"Content-Type": content} if text is not None else {}
        try:
            response = self._send(method, path, text, headers)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # The server may close a connection that has been idle; a second failure is a real one.
            self._connection.close()
            response = self._send(method, path, text, headers)
        raw = response.read()
        answer: dict[str, Any] = json.loads(raw) if raw[:1] == b"{" else {}
        if response.status >= 300:
            raise ApiError(method, path, response.status, str(answer.get("message") or raw[:300]))
        return answer

    def _send(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        try:
            self._connection.request(method, path, body, dict(headers))
            return self._connection.getresponse()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise

    def find(self, path: str) -> dict[str, Any] | None:
        """An object, or None if there is none."""
        try:
            return self.call("GET", path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def items(self, path: str) -> list[dict[str, Any]]:
        """All objects of a list, read in pages."""
        result: list[dict[str, Any]] = []
        separator = "&" if "?" in path else "?"
        token = ""
        while True:
            suffix = f"&continue={token}" if token else ""
            page = self.call("GET", f"{path}{separator}limit=1000{suffix}")
            result += page.get("items") or []
            token = str(page.get("metadata", {}).get("continue") or "")
            if not token:
                return result

    def apply(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Server-side apply of one object, whose path includes its name."""
        return self.call("PATCH", f"{path}?fieldManager={FIELD_MANAGER}&force=true", document, APPLY)

    def close(self) -> None:
        self._connection.close()
