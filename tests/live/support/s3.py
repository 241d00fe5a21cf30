# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server that speaks the protocol of S3, on this machine's loopback."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from minio import Minio

REQUIREMENTS = Path(__file__).with_name("s3-requirements.txt")
BUCKET = "site-backup"
KEYS = ("the-access-key", "the-secret-of-the-test")


@contextmanager
def serving() -> Iterator[tuple[str, Minio]]:
    """Yield its URL, and a client of ours, until the block ends. It has one bucket, and nothing in it."""
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [str(_environment() / "bin" / "moto_server"), "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(server, port)
        client = Minio(endpoint=f"127.0.0.1:{port}", access_key=KEYS[0], secret_key=KEYS[1], secure=False)
        client.make_bucket(bucket_name=BUCKET)
        yield f"http://127.0.0.1:{port}", client
    finally:
        server.terminate()
        server.wait(10)


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"moto_server does not answer; exit status {server.poll()}")


def _environment() -> Path:
    """Its Python environment in the cache, made at first use."""
    mark = hashlib.sha256(f"{sys.version}\n{REQUIREMENTS.read_text(encoding='utf-8')}".encode()).hexdigest()[:12]
    path = Path(os.environ["SLURM_OPS_CACHE"]) / f"venv-s3-{mark}"
    if not (path / ".complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(path)], check=True)
        pip = [str(path / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", str(REQUIREMENTS)], check=True)
        (path / ".complete").touch()
    return path
