# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Commands that change this machine, each failing loudly."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

# Joins the control groups whose files come before "--", and becomes the command after it.
_JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1"; shift; done; shift; exec "$@"'
_LOG_LIMIT = 10 * 1024 * 1024


def run(command: Sequence[str], text: str = "") -> str:
    """Run a command to its end and return its output. Raises OperationError with what it said."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd="/", check=False)
    if done.returncode:
        raise OperationError(
            f"{' '.join(command)[:300]}: {done.stderr.strip()[-2000:] or f'exit status {done.returncode}'}",
            reason="CommandFailed",
        )
    return done.stdout


def ip_batch(prefix: Sequence[str], lines: Sequence[str]) -> None:
    """Several ``ip`` commands at once, in the network that ``prefix`` enters."""
    run([*prefix, "ip", "-batch", "-"], "".join(f"{line}\n" for line in lines))


def set_sysctls(prefix: Sequence[str], values: Mapping[str, str]) -> None:
    script = "\n".join(f"echo {value} > /proc/sys/{name}" for name, value in values.items())
    run([*prefix, "sh", "-ec", script])


def open_log(path: Path) -> int:
    """A descriptor to append to; a log that has become long is put aside first."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _LOG_LIMIT:
        os.replace(path, path.with_name(path.name + ".1"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def launch(command: Sequence[str], groups: Sequence[Path], log: Path) -> subprocess.Popen[bytes]:
    """Start a command in control groups, away from our terminal and session."""
    descriptor = open_log(log)
    try:
        return subprocess.Popen(
            ["sh", "-c", _JOIN, "sh", *map(str, groups), "--", *command],
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            cwd="/",
            start_new_session=True,
        )
    finally:
        os.close(descriptor)


def tail(path: Path, lines: int = 5) -> list[str]:
    """The end of a log, for error messages."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 8192))
            return file.read().decode(errors="replace").splitlines()[-lines:]
    except FileNotFoundError:
        return []
