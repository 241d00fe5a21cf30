# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An HTTP server on loopback that answers as a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    connection: int  # which TCP connection it came over


@dataclass(frozen=True)
class Answer:
    """What to answer; an instruction instead of a status breaks the connection."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    breaks: bool = False  # close without any answer
    closes: bool = False  # answer, then close although keep-alive was announced
    chunks: tuple[bytes, ...] = ()  # a stream


def status(code: int, reason: str = "", message: str = "", **details: Any) -> Answer:
    """A Status object, as the API server says what is wrong."""
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return Answer(code, body | ({"details": details} if details else {}))


class FakeApi:
    """Asks ``respond`` for each answer."""

    def __init__(self, respond: Callable[[Asked], Answer]) -> None:
        self.asked: list[Asked] = []
        self._respond = respond
        self._lock = threading.Lock()
        self._connections = 0
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Headers and body in two packets, the second delayed by 40 ms, would be slow without this.
            wbufsize = -1
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                with api._lock:
                    api._connections += 1
                    self.number = api._connections

            def handle_any(self) -> None:
                api._handle(self)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any

            def log_message(self, *_args: Any) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_args: Any) -> None:
                """A connection that a test breaks is no error."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def _handle(self, handler: Any) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        raw = handler.rfile.read(length)
        parts = urlsplit(handler.path)
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = raw
        asked = Asked(
            handler.command, parts.path, dict(parse_qsl(parts.query)), dict(handler.headers), body, handler.number
        )
        with self._lock:
            self.asked.append(asked)
            answer = self._respond(asked)
        if answer.breaks:
            handler.close_connection = True
            return
        content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        handler.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            handler.send_header(name, value)
        if answer.chunks:
            handler.send_header("Connection", "close")
            handler.end_headers()
            handler.close_connection = True
            for chunk in answer.chunks:
                handler.wfile.write(chunk)
                handler.wfile.flush()
            return
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
        handler.close_connection = handler.close_connection or answer.closes

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def connections(self) -> int:
        """How many TCP connections were opened."""
        return self._connections


@contextmanager
def serving(*answers: Answer, respond: Callable[[Asked], Answer] | None = None) -> Iterator[FakeApi]:
    """Serve these answers one after the other (the last one for ever), or what ``respond`` says."""
    queue = list(answers)

    def next_answer(_asked: Asked) -> Answer:
        return queue.pop(0) if len(queue) > 1 else queue[0]

    api = FakeApi(respond or next_answer)
    api.start()
    try:
        yield api
    finally:
        api.stop()
