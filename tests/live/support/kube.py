# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Kubernetes API as the live tests see it: raw JSON, through the kubernetes library.

The collection has a client of its own, which is one of the things under test, so it is not used here.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import time
from collections.abc import Callable, Sequence
from typing import Any

from kubernetes import client as library
from kubernetes import config, stream
from kubernetes.client.exceptions import ApiException

from .process import Completed

Json = dict[str, Any]

_PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Refused(AssertionError):
    """The API server answered with an error that the test did not ask for."""

    def __init__(self, method: str, path: str, status: int, message: str) -> None:
        super().__init__(f"{method} {path}: {status} {message}")
        self.status = status


class Missing(Refused):
    """404."""


NEVER_BEGUN = 125  # exit status of a command that could not be begun, as container tools have it


class Kube:
    """One connection pool to one cluster; paths are those of the API."""

    def __init__(self, kubeconfig: str) -> None:
        configuration = library.Configuration()
        config.load_kube_config(kubeconfig, client_configuration=configuration)
        self._configuration = configuration
        self._client = library.ApiClient(configuration)

    def get(self, path: str, **query: Any) -> Json:
        return self._call("GET", path, query)

    def find(self, path: str, **query: Any) -> Json | None:
        try:
            return self.get(path, **query)
        except Missing:
            return None

    def items(self, path: str, **query: Any) -> list[Json]:
        found: list[Json] = []
        token = ""
        while True:
            page = self.get(path, **query, limit=500, **({"continue": token} if token else {}))
            found += page["items"] or []
            token = page["metadata"].get("continue", "")
            if not token:
                return found

    def create(self, path: str, body: Json) -> Json:
        return self._call("POST", path, {}, body)

    def apply(self, path: str, body: Json, manager: str = "live-test", force: bool = True) -> Json:
        query = {"fieldManager": manager, "force": str(force).lower()}
        return self._call("PATCH", path, query, body, _PATCHES["apply"])

    def patch(self, path: str, body: Any, kind: str = "merge") -> Json:
        return self._call("PATCH", path, {}, body, _PATCHES[kind])

    def delete(self, path: str, body: Json | None = None, **query: Any) -> Json:
        return self._call("DELETE", path, query, body)

    def logs(self, namespace: str, pod: str, container: str | None = None, **query: Any) -> str:
        if container:
            query["container"] = container
        return self._raw("GET", f"/api/v1/namespaces/{namespace}/pods/{pod}/log", query)

    def exec(
        self, namespace: str, pod: str, command: Sequence[str], container: str | None = None, timeout: float = 60
    ) -> Completed:
        """Run a command in a container; ended by ``timeout`` seconds it fails the test."""
        # The library replaces the transport of the client that it is given, so it gets one of its own.
        api = library.CoreV1Api(library.ApiClient(self._configuration))
        session = stream.stream(
            api.connect_get_namespaced_pod_exec,
            pod,
            namespace,
            command=list(command),
            stdout=True,
            stderr=True,
            stdin=False,
            tty=False,
            _preload_content=False,
            **({"container": container} if container else {}),
        )
        title = f"{pod}: {shlex.join(command)}"
        try:
            session.run_forever(timeout=timeout)
            if session.is_open():
                raise AssertionError(f"{title}: still running after {timeout} s\n{session.read_all()}")
            output, errors = session.read_stdout(timeout=0), session.read_stderr(timeout=0)
            try:
                return Completed(title, session.returncode, output, errors)
            except ValueError as error:
                # The command was never begun: its container has just gone, say. The library expects an exit status.
                return Completed(title, NEVER_BEGUN, output, f"{errors}{error}")
        finally:
            session.close()

    def wait(
        self,
        source: str | Callable[[], Any],
        predicate: Callable[[Any], Any],
        timeout: float = 60,
        what: str = "",
    ) -> Any:
        """Poll a path or a function until the predicate likes what it gives; a missing object is None."""
        __tracebackhide__ = True
        deadline = time.monotonic() + timeout
        while True:
            try:
                value = self.get(source) if isinstance(source, str) else source()
            except Missing:
                value = None
            if predicate(value):
                return value
            if time.monotonic() > deadline:
                shown = json.dumps(value, indent=1, default=str)
                raise AssertionError(f"{what or source}: not seen within {timeout} s; last value:\n{shown[-4000:]}")
            time.sleep(0.5)

    def _call(self, method: str, path: str, query: Json, body: Any = None, content_type: str = "") -> Json:
        return json.loads(self._raw(method, path, query, body, content_type))

    def _raw(self, method: str, path: str, query: Json, body: Any = None, content_type: str = "") -> str:
        headers = {"Accept": "application/json, */*"}
        if body is not None:
            headers["Content-Type"] = content_type or "application/json"
        try:
            response = self._client.call_api(
                *self._client.param_serialize(
                    method,
                    path,
                    query_params=list(query.items()),
                    header_params=headers,
                    body=body,
                    auth_settings=["BearerToken"],
                ),
                _request_timeout=(10, 60),
            )
            text = response.read()
        except ApiException as error:
            raise _refusal(method, path, error.status, error.body) from error
        if response.status >= 300:
            raise _refusal(method, path, response.status, text)
        return text.decode() if isinstance(text, bytes) else text


def _refusal(method: str, path: str, status: int, body: Any) -> Refused:
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body)
    # What is not a Status object is shown as it is.
    with contextlib.suppress(ValueError, KeyError, TypeError):
        text = json.loads(text)["message"]
    return (Missing if status == 404 else Refused)(method, path, status, text)
