# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Run a command in a container: over a WebSocket, as kubectl exec does."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import library, paths
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.connection import Connection
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import Unreachable, explain
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.transport import (
    authentication_headers,
    proxy_for,
    ssl_context,
)

# Each message begins with one byte that says which stream it is of. Version 5 can also close stdin; API servers before
# 1.30 or so speak 4 only.
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, ERROR, CLOSE = 0, 1, 2, 3, 255
AFTER_END = 0.3  # seconds to wait for the rest of the output, and the closing, once it is told how the command ended
POD = paths.Resource("v1", "Pod", "pods", True)


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended."""

    rc: int
    stdout: str
    stderr: str


def exec_in_pod(
    client: KubernetesClient,
    namespace: str,
    pod: str,
    command: Sequence[str],
    *,
    container: str | None = None,
    stdin: str | None = None,
    timeout: float = 60.0,
    reads: bool = False,
) -> Finished:
    """Run ``command`` (no shell) in a container and return exit code and output.

    ``reads``: the command changes nothing that lasts, and counts as a read. ``timeout`` is in seconds for the whole of
    it; the command may go on running in the Pod when it is over. Raises OperationError if it cannot be started or does
    not end; an exit code other than 0 is no error here.
    """
    target = f"Pod {namespace}/{pod}"
    query: list[tuple[str, str]] = [("command", part) for part in command]
    query += [("stdout", "true"), ("stderr", "true")]
    query += [("stdin", "true")] if stdin is not None else []
    query += [("container", container)] if container else []
    path = f"{POD.path(namespace, pod, 'exec')}?{urlencode(query)}"
    begun = time.monotonic()
    # A plain read first: it renews expired credentials, and its errors (no such Pod, no right) are well explained.
    if client.get(POD, namespace, pod) is None:
        raise OperationError(f"There is no {target} to run {command[0]} in.", reason="NotFound")
    client.calls["get" if reads else "exec"] += 1
    socket = _open(client.connection, path, min(timeout, 30.0), f"run {command[0]} in", target)
    try:
        return _talk(socket, stdin, begun + timeout, command, target)
    finally:
        socket.close()


def _open(connection: Connection, path: str, timeout: float, verb: str, target: str) -> Any:
    websocket = library.websocket_client()
    url = connection.host.replace("http", "ws", 1) + path
    options: dict[str, Any] = {}
    if url.startswith("wss:"):
        options["context"] = ssl_context(connection)
        options["check_hostname"] = connection.verify
        if connection.server_name:
            options["server_hostname"] = connection.server_name
    options_proxy: dict[str, Any] = {"http_no_proxy": ["*"]}
    if proxy_for(connection):
        parts = urlsplit(connection.proxy or "")
        options_proxy = {
            "http_proxy_host": parts.hostname,
            "http_proxy_port": parts.port or 80,
            "proxy_type": "http",
            "http_proxy_auth": (parts.username, parts.password) if parts.username else None,
        }
    headers = [f"{name}: {value}" for name, value in authentication_headers(connection).items()]
    socket = websocket.WebSocket(sslopt=options, skip_utf8_validation=True)
    try:
        socket.connect(
            url, header=headers, subprotocols=list(PROTOCOLS), timeout=timeout, suppress_origin=True, **options_proxy
        )
    except websocket.WebSocketBadStatusException as error:
        body = getattr(error, "resp_body", None) or b""
        raise explain(error.status_code, _status(body, str(error)), verb, target, connection.source) from error
    except (websocket.WebSocketException, ssl.SSLError, OSError) as error:
        raise Unreachable(
            f"Cannot {verb} {target}: {error}.",
            reason="Unreachable",
            hint="Check that the API server reaches the kubelet of its Node, and that a proxy lets WebSockets through.",
        ) from error
    return socket


def _status(body: bytes | str, otherwise: str) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {"raw": otherwise}
    return parsed if isinstance(parsed, dict) else {"raw": otherwise}


def _talk(socket: Any, stdin: str | None, deadline: float, command: Sequence[str], target: str) -> Finished:
    websocket = library.websocket_client()
    streams: dict[int, bytearray] = {STDOUT: bytearray(), STDERR: bytearray(), ERROR: bytearray()}
    if stdin is not None:
        data = stdin.encode()
        for start in range(0, len(data), 32768):
            socket.send_binary(bytes([STDIN]) + data[start : start + 32768])
        if socket.subprotocol == PROTOCOLS[0]:
            socket.send_binary(bytes([CLOSE, STDIN]))
    while True:
        left = deadline - time.monotonic()
        if left <= 0 and streams[ERROR]:
            break
        if left <= 0:
            raise OperationError(
                f"{command[0]} in {target} did not end in time.",
                reason="Timeout",
                hint="It may still be running there.",
            )
        socket.settimeout(left)
        try:
            opcode, frame = socket.recv_data()
        except websocket.WebSocketTimeoutException:
            if streams[ERROR]:
                break
            continue
        except (websocket.WebSocketException, OSError) as error:
            if streams[ERROR]:
                break
            raise Unreachable(
                f"The connection to {command[0]} in {target} broke: {error}.",
                reason="Unreachable",
                hint="It may have been done or not.",
            ) from error
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            break
        if frame and frame[0] in streams:
            streams[frame[0]] += frame[1:]
        if streams[ERROR]:
            deadline = min(deadline, time.monotonic() + AFTER_END)
    return Finished(
        _exit_code(bytes(streams[ERROR]), command, target),
        streams[STDOUT].decode("utf-8", "replace"),
        streams[STDERR].decode("utf-8", "replace"),
    )


def _exit_code(message: bytes, command: Sequence[str], target: str) -> int:
    status = _status(message, message.decode("utf-8", "replace") or "the connection was closed")
    if status.get("status") == "Success":
        return 0
    for cause in (status.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    text = status.get("message") or status.get("raw")
    raise OperationError(
        f"Cannot run {command[0]} in {target}: {text}.",
        reason="ExecFailed",
        hint="Check that the container runs and has this program.",
    )
