# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The supervisor of our images, against a daemon that behaves at a reconfigure as slurmctld and slurmd do."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

SUPERVISE = Path(__file__).parents[3] / "roles/images/files/rootfs/slurm/usr/local/lib/slurm-ops/supervise.py"

# SIGHUP: a successor of double fork takes over, the old process leaves. SIGUSR1: the successor dies, the old one stays.
# SIGTERM: the end, with status 0. Its process numbers are lines in the file `lives`.
DAEMON = """#!{python}
import os, signal, socket, sys, time

directory = os.path.dirname(os.path.abspath(__file__))

def notify(pid):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        to.connect(os.environ["NOTIFY_SOCKET"])
        to.send(f"READY=1\\nMAINPID={{pid}}".encode())

def serve():
    with open(f"{{directory}}/lives", "a") as lives:
        print(os.getpid(), file=lives)
    while True:
        signal.pause()

def hand_over(*_):
    read, write = os.pipe()
    if not os.fork():
        if not os.fork():
            os.write(write, b"%d" % os.getpid())
            time.sleep(0.1)
            serve()
        os._exit(0)
    os.wait()
    notify(int(os.read(read, 20)))
    os._exit(0)

def fail_to_hand_over(*_):
    if not os.fork():
        os._exit(1)
    os.wait()

signal.signal(signal.SIGHUP, hand_over)
signal.signal(signal.SIGUSR1, fail_to_hand_over)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
if "fails" in sys.argv:
    sys.exit(3)
notify(os.getpid())
serve()
"""


class Run:
    """One supervisor and the fake daemon in its charge."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.daemon = directory / "fakectld"
        self.daemon.write_text(DAEMON.format(python=sys.executable))
        self.daemon.chmod(0o755)
        self.supervisors: list[subprocess.Popen[str]] = []

    def start(self, *options: str, daemon_options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        command = [sys.executable, str(SUPERVISE), "--directory", str(self.directory), *options]
        started = subprocess.Popen(
            [*command, "--", str(self.daemon), *daemon_options], stderr=subprocess.PIPE, text=True
        )
        self.supervisors.append(started)
        return started

    def lives(self) -> list[int]:
        with suppress(FileNotFoundError):
            return [int(line) for line in (self.directory / "lives").read_text().split("\n")[:-1]]
        return []

    def wait_for_life(self, number: int) -> int:
        wait_until(lambda: len(self.lives()) >= number)
        return self.lives()[number - 1]

    def end(self) -> None:
        for supervisor in self.supervisors:
            with suppress(ProcessLookupError):
                supervisor.kill()
            supervisor.wait()
            if supervisor.stderr:
                supervisor.stderr.close()
        for life in self.lives():
            if is_alive(life):
                os.kill(life, signal.SIGKILL)


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Also a zombie is dead: its parent, init, may be slow."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def run() -> Iterator[Run]:
    # Not tmp_path: addresses of sockets are short.
    directory = Path(tempfile.mkdtemp(prefix="sv"))
    run = Run(directory)
    yield run
    run.end()
    shutil.rmtree(directory)


def test_follows_a_successor(run: Run) -> None:
    supervisor = run.start()
    first = run.wait_for_life(1)
    os.kill(first, signal.SIGHUP)
    second = run.wait_for_life(2)
    wait_until(lambda: not is_alive(first))
    assert supervisor.poll() is None
    assert is_alive(second)
    # Also the successor's death is seen, though it is nobody's child here.
    os.kill(second, signal.SIGKILL)
    third = run.wait_for_life(3)
    assert third not in (first, second)
    assert supervisor.poll() is None


def test_failed_hand_over_changes_nothing(run: Run) -> None:
    supervisor = run.start()
    first = run.wait_for_life(1)
    os.kill(first, signal.SIGUSR1)
    time.sleep(0.3)
    assert run.lives() == [first]
    assert is_alive(first)
    assert supervisor.poll() is None


@pytest.mark.parametrize("handed_over", [False, True])
def test_stop_is_passed_on(run: Run, handed_over: bool) -> None:
    supervisor = run.start()
    serving = run.wait_for_life(1)
    if handed_over:
        os.kill(serving, signal.SIGHUP)
        serving = run.wait_for_life(2)
        wait_until(lambda: (run.directory / "pid").read_text().strip() == str(serving))
    supervisor.terminate()
    assert supervisor.wait(20) == 0
    wait_until(lambda: not is_alive(serving))


def test_signals_reach_the_daemon(run: Run) -> None:
    supervisor = run.start()
    run.wait_for_life(1)
    supervisor.send_signal(signal.SIGHUP)
    run.wait_for_life(2)
    assert supervisor.poll() is None


def test_what_cannot_start_is_given_up_with_its_status(run: Run) -> None:
    started = time.monotonic()
    supervisor = run.start("--patience", "1", daemon_options=("fails",))
    assert supervisor.wait(30) == 3
    assert time.monotonic() - started >= 1
    assert supervisor.stderr
    assert "given up after" in supervisor.stderr.read()


def test_stop_between_two_attempts(run: Run) -> None:
    supervisor = run.start("--patience", "60", daemon_options=("fails",))
    assert supervisor.stderr
    assert "starting it again" in supervisor.stderr.readline()
    supervisor.terminate()
    assert supervisor.wait(20) == 0


def test_next_supervisor_adopts_what_a_killed_one_left(run: Run) -> None:
    first = run.start()
    life = run.wait_for_life(1)
    first.kill()
    first.wait()
    second = run.start()
    assert second.stderr
    assert f"process {life} is still there" in second.stderr.readline()
    assert run.lives() == [life]
    os.kill(life, signal.SIGKILL)
    run.wait_for_life(2)
    assert second.poll() is None
