# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Processes of a sandbox: found by what they are, never by a number that was written down some time ago.

Process 1 of a sandbox's process namespace is our own ``pause`` with the sandbox's name and directory as arguments. Its
children with our mark in their environment are the components. A signal goes through a descriptor of the process whose
identity was checked after the descriptor was opened, so that it can never reach another one.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

INIT_MARK = "slurm-ops-sandbox"
NODE_MARK = "slurm-ops-node"
COMPONENT_VARIABLE = "SLURM_OPS_COMPONENT"
PLACE_VARIABLE = "SLURM_OPS_PLACE"
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process as seen once. ``started`` (clock ticks since boot) tells it from a later one of the same number."""

    pid: int
    parent: int
    started: int
    argv: tuple[str, ...]


def _read(pid: int, name: str) -> bytes:
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""


def parse_stat(text: bytes) -> tuple[str, int, int] | None:
    """State, parent and start time. The name before them is in brackets and may hold anything, brackets too."""
    fields = text[text.rfind(b")") + 1 :].split()
    if len(fields) < 20:
        return None
    return fields[0].decode(), int(fields[1]), int(fields[19])


def inspect(pid: int) -> Process | None:
    """A living process; None for one that has ended, reaped or not."""
    stat = parse_stat(_read(pid, "stat"))
    if stat is None or stat[0] in "ZX":
        return None
    argv = tuple(part.decode(errors="replace") for part in _read(pid, "cmdline").split(b"\0")[:-1])
    return Process(pid, stat[1], stat[2], argv)


def _pids() -> Iterator[int]:
    for entry in os.scandir(_PROC):
        if entry.name.isdecimal():
            yield int(entry.name)


def everything() -> list[Process]:
    return [process for process in map(inspect, _pids()) if process is not None]


def environment(pid: int) -> dict[str, str]:
    """The environment that a process was started with."""
    pairs = (part.decode(errors="replace").partition("=") for part in _read(pid, "environ").split(b"\0") if part)
    return {name: value for name, _equals, value in pairs}


def namespace(pid: int, kind: str) -> str:
    """Identity of a namespace of a process, empty if it has ended."""
    try:
        return os.readlink(_PROC / str(pid) / "ns" / kind)
    except OSError:
        return ""


def find_init(processes: Iterable[Process], name: str) -> Process | None:
    """Process 1 of the sandbox of that name."""
    for process in processes:
        if process.argv[1:3] == (INIT_MARK, name) and Path(process.argv[0]).name == "pause":
            numbers = _namespace_pids(process.pid)
            if len(numbers) == 2 and numbers[-1] == 1:
                return process
    return None


def _namespace_pids(pid: int) -> list[int]:
    """Numbers of a process from our namespace inwards."""
    for line in _read(pid, "status").splitlines():
        if line.startswith(b"NSpid:"):
            return [int(number) for number in line.split()[1:]]
    return []


def inhabitants(processes: Iterable[Process], init: Process) -> list[Process]:
    """Every process inside a sandbox, Pods included."""
    inside = namespace(init.pid, "pid")
    # A Pod has a namespace of its own, below ours: the ancestors tell.
    known = {init.pid}
    result = []
    for process in sorted(processes, key=lambda p: p.started):
        if process.pid in known or process.parent in known or namespace(process.pid, "pid") == inside:
            known.add(process.pid)
            result.append(process)
    return result


def container_inits(processes: Iterable[Process], init: Process) -> list[Process]:
    """Process 1 of each container but the pause ones."""
    result = []
    for process in inhabitants(processes, init):
        numbers = _namespace_pids(process.pid)
        if len(numbers) > 2 and numbers[-1] == 1 and process.argv[:1] != ("/pause",):
            result.append(process)
    return result


class Handle:
    """A living process that signals can be sent to without a race."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def open(cls, process: Process) -> Handle | None:
        """None if the process has ended, or its number belongs to another one by now."""
        try:
            descriptor = os.pidfd_open(process.pid)
        except ProcessLookupError:
            return None
        now = inspect(process.pid)
        if now is None or now.started != process.started:
            os.close(descriptor)
            return None
        return cls(descriptor)

    def send(self, number: signal.Signals) -> None:
        try:
            signal.pidfd_send_signal(self._descriptor, number)
        except ProcessLookupError:
            return  # has ended, which is what signals here are for

    def wait(self, timeout: float) -> bool:
        """Whether it has ended in time."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(max(0.0, timeout) * 1000))

    def close(self) -> None:
        os.close(self._descriptor)


def stop(processes: Sequence[Process], grace: float) -> bool:
    """Ask processes to end, and end those that have not after ``grace`` seconds. Returns whether asking was enough."""
    handles = [handle for handle in map(Handle.open, processes) if handle is not None]
    try:
        if grace > 0:
            for handle in handles:
                handle.send(signal.SIGTERM)
        deadline = time.monotonic() + grace
        late = [handle for handle in handles if not handle.wait(deadline - time.monotonic())]
        for handle in late:
            handle.send(signal.SIGKILL)
        for handle in late:
            handle.wait(10)
        return not late
    finally:
        for handle in handles:
            handle.close()
