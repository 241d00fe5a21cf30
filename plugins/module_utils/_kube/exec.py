# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Run a command in a container: over a WebSocket, as kubectl exec does."""

from __future__ import annotations

import json
import select
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import library
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.connection import Connection
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import Unreachable, explain
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import POD
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.transport import (
    authentication_headers,
    proxy_for,
    ssl_context,
)

# Each message begins with one byte that says which stream it is of. Version 5 can also close stdin; API servers before
# 1.30 or so speak 4 only.
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, ERROR, CLOSE = 0, 1, 2, 3, 255
CHUNK = 32768  # bytes of stdin in one message
AFTER_END = 0.3  # seconds to wait for the rest of the output, and the closing, once it is told how the command ended


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
    """Run ``command`` (no shell) in a container; stream_in_pod for input and output that are small."""
    source = None if stdin is None else [stdin.encode()]
    return stream_in_pod(
        client, namespace, pod, command, container=container, source=source, timeout=timeout, reads=reads
    )


def stream_in_pod(
    client: KubernetesClient,
    namespace: str,
    pod: str,
    command: Sequence[str],
    *,
    container: str | None = None,
    source: Iterable[bytes] | None = None,
    sink: Callable[[bytes], object] | None = None,
    timeout: float = 60.0,
    reads: bool = False,
) -> Finished:
    """Run ``command`` (no shell) in a container; its stdin is ``source``, its stdout goes to ``sink`` as it comes.

    Without a ``sink`` stdout is in the result. ``reads``: the command changes nothing that lasts, and counts as a read.
    ``timeout`` is in seconds for the whole of it; the command may go on running in the Pod when it is over. A server
    that speaks version 4 cannot be told that stdin has ended, so a command should know how much it is to read. Raises
    OperationError if it cannot be started or does not end; an exit code other than 0 is no error here.
    """
    target = f"Pod {namespace}/{pod}"
    query: list[tuple[str, str]] = [("command", part) for part in command]
    query += [("stdout", "true"), ("stderr", "true")]
    query += [("stdin", "true")] if source is not None else []
    query += [("container", container)] if container else []
    path = f"{POD.path(namespace, pod, 'exec')}?{urlencode(query)}"
    begun = time.monotonic()
    # A plain read first: it renews expired credentials, and its errors (no such Pod, no right) are well explained.
    if client.get(POD, namespace, pod) is None:
        raise OperationError(f"There is no {target} to run {command[0]} in.", reason="NotFound")
    client.calls["get" if reads else "exec"] += 1
    socket = _open(client.connection, path, min(timeout, 30.0), f"run {command[0]} in", target)
    try:
        talk = _Talk(socket, begun + timeout, sink, command[0], target)
        if source is not None:
            talk.send(source)
        talk.receive()
        return talk.finished()
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


class _Talk:
    """What goes to and fro once the command runs."""

    def __init__(
        self, socket: Any, deadline: float, sink: Callable[[bytes], object] | None, command: str, target: str
    ) -> None:
        self._socket = socket
        self._deadline = deadline
        self._command = command
        self._target = target
        self._output = {STDOUT: bytearray(), STDERR: bytearray(), ERROR: bytearray()}
        self._sinks: dict[int, Callable[[bytes], object]] = {
            stream: buffer.extend for stream, buffer in self._output.items()
        }
        if sink is not None:
            self._sinks[STDOUT] = sink

    def send(self, source: Iterable[bytes]) -> None:
        """Send stdin, until it ends or the command does."""
        websocket = library.websocket_client()
        try:
            for data in source:
                for start in range(0, len(data), CHUNK):
                    # A command that has ended says so, and does not read any more.
                    while select.select([self._socket.sock], [], [], 0)[0]:
                        if not self._frame() or self._output[ERROR]:
                            return
                    self._socket.settimeout(self._left())
                    self._socket.send_binary(bytes([STDIN]) + data[start : start + CHUNK])
            if self._socket.subprotocol == PROTOCOLS[0]:
                self._socket.send_binary(bytes([CLOSE, STDIN]))
        except (websocket.WebSocketException, ConnectionError):
            return  # why is in what is still to be received

    def receive(self) -> None:
        """Take what comes until the command has ended."""
        while self._frame():
            pass

    def finished(self) -> Finished:
        """How it ended."""
        return Finished(
            _exit_code(bytes(self._output[ERROR]), self._command, self._target),
            self._output[STDOUT].decode("utf-8", "replace"),
            self._output[STDERR].decode("utf-8", "replace"),
        )

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left > 0:
            return left
        raise OperationError(
            f"{self._command} in {self._target} did not end in time.",
            reason="Timeout",
            hint="It may still be running there.",
        )

    def _frame(self) -> bool:
        """Take one message; False when there is nothing more to come."""
        websocket = library.websocket_client()
        ended = bool(self._output[ERROR])
        try:
            self._socket.settimeout(AFTER_END if ended else self._left())
            opcode, frame = self._socket.recv_data()
        except websocket.WebSocketTimeoutException:
            return not ended
        except (websocket.WebSocketException, OSError) as error:
            if ended:
                return False
            raise Unreachable(
                f"The connection to {self._command} in {self._target} broke: {error}.",
                reason="Unreachable",
                hint="It may have been done or not.",
            ) from error
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            return False
        if frame and frame[0] in self._sinks:
            self._sinks[frame[0]](frame[1:])
        return True


def _exit_code(message: bytes, command: str, target: str) -> int:
    status = _status(message, message.decode("utf-8", "replace") or "the connection was closed")
    if status.get("status") == "Success":
        return 0
    for cause in (status.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    text = status.get("message") or status.get("raw")
    raise OperationError(
        f"Cannot run {command} in {target}: {text}.",
        reason="ExecFailed",
        hint="Check that the container runs and has this program.",
    )
