# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep one Slurm daemon running, also across `scontrol reconfigure`.

Started with --systemd, slurmctld and slurmd answer a reconfigure by starting a successor. If the new configuration is
good, the successor tells the service manager its process number and the old process leaves; if it is bad, the successor
dies and the old process serves on. So the daemon's process number changes while nothing is wrong. This program is the
service manager that they expect: it listens where NOTIFY_SOCKET says, follows MAINPID, and holds a pidfd of whichever
process serves at the moment, so that it notices at once, without polling, when that one really dies.

A daemon that dies is started again at once. One that does not get anywhere for --patience seconds is given up: the
exit is what shows a wrong configuration to Kubernetes (CrashLoopBackOff) instead of hiding it. With --hold a daemon
that has served once is never given up, because the end of the container would be the end of the jobs in it.

SIGTERM and SIGINT stop the daemon cleanly; SIGHUP, SIGUSR1 and SIGUSR2 are passed on.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

# A daemon that served this long was not stopped by its configuration (seconds).
HEALTHY_AFTER = 5.0
# Pauses between attempts (seconds): quick at first, because what is missing (DNS, database) often comes in a moment.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0
PASSED_ON = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
STOPS = (signal.SIGTERM, signal.SIGINT)


def say(text: str) -> None:
    print(f"slurm-supervise: {text}", file=sys.stderr, flush=True)


class Supervisor:
    def __init__(self, command: Sequence[str], patience: float, hold: bool, directory: Path | None = None) -> None:
        self.command = list(command)
        self.patience = patience
        self.hold = hold
        self.stopping = False
        self.served_once = False
        self.pid = 0
        self.pidfd = -1
        self.ready = False
        self.directory = directory or state_directory(os.path.basename(command[0]))
        self.notifications = socket.socket(
            socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        )
        address = self.directory / "notify"
        address.unlink(missing_ok=True)
        self.notifications.bind(str(address))
        os.environ["NOTIFY_SOCKET"] = str(address)
        self.signals, wakeup = socket.socketpair()
        self.signals.setblocking(False)
        wakeup.setblocking(False)
        self.wakeup = wakeup
        signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
        for number in (*STOPS, *PASSED_ON, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)

    def run(self) -> int:
        """Supervise until the daemon is stopped or given up; the exit status for the container."""
        troubled_since = time.monotonic()
        pause = FIRST_PAUSE
        while True:
            started = time.monotonic()
            status = self.serve()
            now = time.monotonic()
            if self.stopping:
                return 0 if status in (None, 0, -signal.SIGTERM) else exit_code(status)
            if self.ready and now - started >= HEALTHY_AFTER:
                self.served_once = True
                troubled_since, pause = now, FIRST_PAUSE
            elif now - troubled_since >= self.patience and not (self.hold and self.served_once):
                say(
                    f"{self.command[0]} {describe(status)}; given up after {now - troubled_since:.0f} s without success"
                )
                return exit_code(status) or 1
            pause = min(pause * 2, LONGEST_PAUSE) if now - started < HEALTHY_AFTER else FIRST_PAUSE
            wait = 0.0 if troubled_since == now else pause / 2
            say(f"{self.command[0]} {describe(status)}; starting it again{f' in {wait:.1f} s' if wait else ''}")
            if self.is_stopped_within(wait):
                return 0

    def serve(self) -> int | None:
        """Start the daemon and stay until it, or the last of its successors, is gone.

        Returns the exit status as of subprocess (negative: killed by that signal), None when the last process was not
        our child, so that its status is not ours to know.
        """
        self.ready = False
        child: subprocess.Popen[bytes] | None = None
        if not self.adopt():
            child = subprocess.Popen(self.command)
            self.follow(child.pid)
        while True:
            watched = select.poll()
            for descriptor in (self.notifications, self.signals, self.pidfd):
                watched.register(descriptor, select.POLLIN)
            fired = {descriptor for descriptor, _event in watched.poll()}
            if self.signals.fileno() in fired:
                self.handle_signals()
            if child:
                child.poll()  # Not to leave a zombie of the one that handed over.
            # Always before the verdict on a dead process: it names its successor first, then leaves.
            self.read_notifications()
            if gone(self.pidfd):
                os.close(self.pidfd)
                self.pidfd = -1
                return child.wait() if child and child.pid == self.pid else None

    def adopt(self) -> bool:
        """Follow the daemon that an earlier life of this program left behind when it was killed itself."""
        try:
            pid = int((self.directory / "pid").read_text())
            name = Path(f"/proc/{pid}/comm").read_text()
        except (FileNotFoundError, ValueError):
            return False
        # After a reconfigure slurmd is called slurmd-wlm: the name of the file that the link leads to.
        if not name.startswith(os.path.basename(self.command[0])):
            return False
        self.follow(pid)
        say(f"process {pid} is still there")
        self.ready = True
        return True

    def follow(self, pid: int) -> None:
        descriptor = os.pidfd_open(pid)
        if self.pidfd >= 0:
            os.close(self.pidfd)
        self.pid, self.pidfd = pid, descriptor
        (self.directory / "pid").write_text(f"{pid}\n")
        if self.stopping:
            os.kill(pid, signal.SIGTERM)

    def read_notifications(self) -> None:
        while True:
            try:
                message = self.notifications.recv(4096)
            except BlockingIOError:
                return
            fields = dict(line.split("=", 1) for line in message.decode(errors="replace").splitlines() if "=" in line)
            if fields.get("READY") == "1":
                self.ready = True
            successor = fields.get("MAINPID", "")
            if successor.isdecimal() and int(successor) != self.pid:
                try:
                    self.follow(int(successor))
                except ProcessLookupError:
                    say(f"process {successor} took over and died at once")
                else:
                    say(f"process {successor} took over")

    def handle_signals(self) -> None:
        try:
            numbers = self.signals.recv(4096)
        except BlockingIOError:
            return
        for number in numbers:
            if number in STOPS:
                self.stopping = True
                self.send(signal.SIGTERM)
            elif number in PASSED_ON:
                self.send(number)

    def send(self, number: int) -> None:
        if self.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):  # It has just gone; serve() sees that next.
                signal.pidfd_send_signal(self.pidfd, number)

    def is_stopped_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not self.stopping and (left := deadline - time.monotonic()) > 0:
            if select.select([self.signals], [], [], left)[0]:
                self.handle_signals()
        return self.stopping


def state_directory(name: str) -> Path:
    """Where only this user may connect or write, so that a job cannot pose as the daemon."""
    for parent in ("/run", "/tmp"):
        if os.access(parent, os.W_OK | os.X_OK):
            directory = Path(parent, f"slurm-supervise.{name}")
            directory.mkdir(mode=0o700, exist_ok=True)
            if directory.stat().st_uid != os.getuid():
                raise SystemExit(f"slurm-supervise: {directory} belongs to somebody else")
            return directory
    raise SystemExit("slurm-supervise: neither /run nor /tmp is writable; mount an emptyDir")


def gone(pidfd: int) -> bool:
    return bool(select.select([pidfd], [], [], 0)[0])


def exit_code(status: int | None) -> int:
    if status is None:
        return 1
    return 128 - status if status < 0 else status


def describe(status: int | None) -> str:
    if status is None:
        return "ended"
    return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Keep one Slurm daemon running, also across scontrol reconfigure.")
    parser.add_argument("--patience", type=float, default=10.0, help="seconds without success before giving up")
    parser.add_argument("--hold", action="store_true", help="never give up once the daemon has served")
    parser.add_argument("--directory", type=Path, help="where the socket is made (default: one in /run or /tmp)")
    parser.add_argument("command", nargs="+", help="-- daemon and its arguments, with --systemd")
    arguments = parser.parse_args()
    return Supervisor(arguments.command, arguments.patience, arguments.hold, arguments.directory).run()


if __name__ == "__main__":
    sys.exit(main())
