# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Asks components whether they work: a process that lives but does not answer is not working."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

from .components import Component, Probe, ProbeKind

# Client preface of HTTP/2 and an empty SETTINGS frame; every gRPC server answers with a SETTINGS frame (type 4).
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_FRAME_HEADER = 9
_SETTINGS = 4


def answers(probe: Probe, authority: str, timeout: float = 1.0) -> str:
    """Empty if it works, else what is wrong."""
    try:
        if probe.kind is ProbeKind.GRPC:
            return _grpc(probe.where, timeout)
        return _http(probe, authority, timeout)
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__


def _grpc(path: str, timeout: float) -> str:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout)
        connection.connect(path)
        connection.sendall(_PREFACE)
        header = connection.recv(_FRAME_HEADER)
    if len(header) == _FRAME_HEADER and header[3] == _SETTINGS:
        return ""
    return "does not speak gRPC"


def _http(probe: Probe, authority: str, timeout: float) -> str:
    connection: http.client.HTTPConnection
    if probe.kind is ProbeKind.HTTPS:
        context = ssl.create_default_context(cafile=authority)
        connection = http.client.HTTPSConnection(probe.where, timeout=timeout, context=context)
    else:
        connection = http.client.HTTPConnection(probe.where, timeout=timeout)
    try:
        connection.request("GET", probe.path)
        response = connection.getresponse()
        body = response.read(2000).decode(errors="replace")
    finally:
        connection.close()
    return "" if response.status == 200 else f"HTTP {response.status}: {body.strip()[:300]}"


def silent(components: Iterable[Component], authority: str, patience: float) -> dict[str, str]:
    """Components that do not answer within ``patience`` seconds, and why not."""
    waiting = {component.name: component for component in components}
    deadline = time.monotonic() + patience
    problems: dict[str, str] = {}
    with ThreadPoolExecutor(max_workers=8) as pool:
        while waiting:
            probes = [component.probe for component in waiting.values()]
            results = pool.map(answers, probes, repeat(authority))
            problems = {name: problem for name, problem in zip(waiting, results, strict=True) if problem}
            waiting = {name: waiting[name] for name in problems}
            if not waiting or time.monotonic() >= deadline:
                break
            time.sleep(0.1)
    return problems
