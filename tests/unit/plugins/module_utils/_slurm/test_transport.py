# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The direct connection to slurmrestd, against a small server that closes as slurmrestd does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.transport import DirectTransport


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    connections = 0
    paths: list[str] = []

    def setup(self) -> None:
        Handler.connections += 1
        super().setup()

    def do_GET(self) -> None:
        Handler.paths.append(self.path)
        body = self.headers["X-SLURM-USER-TOKEN"].encode()
        bad = "bad" in self.path
        self.send_response(500 if bad else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        # slurmrestd does not announce that it closes.
        if bad or "close" in self.path:
            self.close_connection = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    Handler.connections = 0
    Handler.paths = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


HEADERS = {"X-SLURM-USER-TOKEN": "t"}


def get(transport: DirectTransport, path: str) -> int:
    return transport.request("GET", path, HEADERS, None, 5).status


def test_one_connection_is_kept(url: str) -> None:
    transport = DirectTransport(url + "/prefix/")
    assert [get(transport, f"/{number}") for number in range(5)] == [200] * 5
    assert Handler.connections == 1
    assert Handler.paths[0] == "/prefix/0"
    assert transport.where == f"{url}/prefix"


def test_after_an_error_a_new_one_is_opened(url: str) -> None:
    transport = DirectTransport(url)
    assert [get(transport, path) for path in ("/a", "/bad", "/b")] == [200, 500, 200]
    assert Handler.connections == 2


def test_an_idle_connection_that_was_closed_is_opened_again_for_a_read(url: str) -> None:
    transport = DirectTransport(url)
    assert [get(transport, path) for path in ("/close", "/b")] == [200, 200]
    assert Handler.connections == 2


def test_but_a_change_is_not_sent_twice(url: str) -> None:
    transport = DirectTransport(url)
    get(transport, "/close")
    with pytest.raises(OperationError) as caught:
        transport.request("POST", "/x", HEADERS, b"{}", 5)
    assert caught.value.reason == "SlurmUnreachable"
    assert transport.request("POST", "/x", HEADERS, b"{}", 5).status == 200


def test_nobody_there() -> None:
    with pytest.raises(OperationError) as caught:
        get(DirectTransport("http://127.0.0.1:9"), "/")
    assert caught.value.reason == "SlurmUnreachable"
    assert "127.0.0.1:9" in caught.value.msg


@pytest.mark.parametrize("bad", ["", "slurmrestd:6820", "ftp://x", "http://"])
def test_bad_urls(bad: str) -> None:
    with pytest.raises(OperationError) as caught:
        DirectTransport(bad)
    assert caught.value.reason == "InvalidUrl"
