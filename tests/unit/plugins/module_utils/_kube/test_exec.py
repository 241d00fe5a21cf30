# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes to and fro while a command runs in a Pod: streams, their end, and connections that break."""

from __future__ import annotations

import json
import socket
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import websocket

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import exec as exec_module
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.exec import (
    CHUNK,
    CLOSE,
    ERROR,
    PROTOCOLS,
    STDERR,
    STDIN,
    STDOUT,
    Finished,
    stream_in_pod,
)

BINARY, CLOSED = websocket.ABNF.OPCODE_BINARY, websocket.ABNF.OPCODE_CLOSE
SUCCESS = json.dumps({"status": "Success"}).encode()


def exit_code(code: int) -> bytes:
    cause = {"reason": "ExitCode", "message": str(code)}
    return json.dumps({"status": "Failure", "details": {"causes": [cause]}}).encode()


class Server:
    """A WebSocket whose other end has these messages to say, each as soon as it is listened to."""

    def __init__(self, messages: Sequence[bytes | Exception], subprotocol: str = PROTOCOLS[0]) -> None:
        self._messages = deque(messages)
        self._other, self.sock = socket.socketpair()
        self.subprotocol = subprotocol
        self.sent: list[bytes] = []
        self.closed = False

    def speak(self) -> None:
        """Let the client see that there is something to be received."""
        self._other.send(b"x")

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0

    def recv_data(self) -> tuple[int, bytes]:
        if not self._messages:
            return CLOSED, b""
        message = self._messages.popleft()
        if isinstance(message, Exception):
            raise message
        return BINARY, message

    def send_binary(self, data: bytes) -> None:
        self.sent.append(data)

    def close(self) -> None:
        self.closed = True
        self._other.close()
        self.sock.close()


class Client:
    """As much of a KubernetesClient as is needed."""

    connection = None

    def __init__(self) -> None:
        self.calls: dict[str, int] = {"get": 0, "exec": 0}

    def get(self, *_place: Any) -> dict[str, str]:
        return {"kind": "Pod"}


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(server: Server, **options: Any) -> Finished:
        monkeypatch.setattr(exec_module, "_open", lambda *_arguments: server)
        client: Any = Client()
        try:
            return stream_in_pod(client, "ns", "pod", ["cat"], **options)
        finally:
            assert server.closed

    return run


def test_output_goes_to_the_sink_as_it_comes(talk: Any) -> None:
    taken: list[bytes] = []
    messages = [bytes([STDOUT]) + b"one", bytes([STDERR]) + b"careful", bytes([STDOUT]) + b"\xff"]
    ended = talk(Server([*messages, bytes([ERROR]) + SUCCESS]), sink=taken.append)
    assert taken == [b"one", b"\xff"]
    assert ended == Finished(0, "", "careful")


def test_an_exit_code_is_no_error(talk: Any) -> None:
    assert talk(Server([bytes([STDOUT]) + b"x", bytes([ERROR]) + exit_code(65)])) == Finished(65, "x", "")


def test_input_goes_in_pieces_and_its_end_is_told(talk: Any) -> None:
    server = Server([bytes([ERROR]) + SUCCESS])
    talk(server, source=[b"a" * (CHUNK + 1), b"b"])
    assert [message[0] for message in server.sent] == [STDIN, STDIN, STDIN, CLOSE]
    assert [len(message) - 1 for message in server.sent[:3]] == [CHUNK, 1, 1]
    assert server.sent[-1] == bytes([CLOSE, STDIN])


def test_an_older_server_is_not_told_what_it_does_not_know(talk: Any) -> None:
    server = Server([bytes([ERROR]) + SUCCESS], subprotocol=PROTOCOLS[1])
    talk(server, source=[b"a"])
    assert server.sent == [bytes([STDIN]) + b"a"]


def test_a_command_that_has_ended_is_not_fed(talk: Any) -> None:
    server = Server([bytes([STDERR]) + b"full", bytes([ERROR]) + exit_code(1)])

    def source() -> Iterator[bytes]:
        yield b"first"
        server.speak()
        while True:
            yield b"never read"

    assert talk(server, source=source()) == Finished(1, "", "full")
    assert server.sent == [bytes([STDIN]) + b"first"]


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([bytes([STDOUT]) + b"half"], "ExecFailed"),
        ([bytes([STDOUT]) + b"half", ConnectionResetError("gone")], "Unreachable"),
        ([websocket.WebSocketConnectionClosedException("gone")], "Unreachable"),
    ],
)
def test_a_connection_that_ends_without_an_exit_code_is_an_error(
    talk: Any, messages: Sequence[bytes | Exception], reason: str
) -> None:
    with pytest.raises(OperationError, match="cat") as caught:
        talk(Server(messages), sink=lambda _data: None)
    assert caught.value.reason == reason


def test_what_the_sink_raises_ends_it(talk: Any) -> None:
    def full(_data: bytes) -> None:
        raise OperationError("The disk is full.", reason="Unwritable")

    with pytest.raises(OperationError, match="full"):
        talk(Server([bytes([STDOUT]) + b"x"] * 9), sink=full)


def test_it_ends_in_time(talk: Any) -> None:
    with pytest.raises(OperationError) as caught:
        talk(Server([]), timeout=0)
    assert caught.value.reason == "Timeout"
