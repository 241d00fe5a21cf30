# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The private namespaces of a sandbox: one for all processes, and a network, a host name and mounts for each node.

The scripts are text made by pure functions; they run inside the new namespaces before anything else does.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from .processes import INIT_MARK, NODE_MARK
from .render import KERNEL_TUNABLES
from .settings import Settings

# containerd, its shims and the CNI library use these places whatever one configures. Each node gets its own there, so
# that neither nodes nor the machine's own container runtime ever meet.
PRIVATE_DIRECTORIES = (Path("/run/containerd"), Path("/run/netns"), Path("/var/lib/cni"))


def _lines(commands: Sequence[Sequence[str | Path]]) -> str:
    return "\n".join(shlex.join(map(str, command)) for command in commands)


def init_script(settings: Settings) -> str:
    """Becomes process 1 of the sandbox."""
    return "\n".join(
        [
            "set -eu",
            "cd /",
            _lines([["mount", "-t", "proc", "proc", "/proc"]]),
            "exec " + shlex.join([str(settings.binaries / "pause"), INIT_MARK, settings.name, str(settings.directory)]),
        ]
    )


def init_command(settings: Settings) -> list[str]:
    return [
        *("unshare", "--pid", "--fork", "--mount", "--net", "--ipc", "--propagation", "private"),
        *("sh", "-c", init_script(settings)),
    ]


def node_script(settings: Settings, node: str) -> str:
    """Becomes the process that holds a node's namespaces."""
    run, state = settings.node_run(node), settings.node_directory(node)
    commands: list[Sequence[str | Path]] = [
        # What a node mounts for a Pod must reach the Pod, and nobody else.
        ["mount", "--make-rshared", "/"],
        ["mount", "--bind", state / "kubelet", run / "kubelet"],
        ["mount", "--bind", state / "var-log", "/var/log"],
    ]
    commands += [["mount", "-t", "tmpfs", "-o", "mode=0755", "sandbox", place] for place in PRIVATE_DIRECTORIES]
    commands += [
        ["mount", "--bind", settings.run / "tunables" / name.replace("/", "."), Path("/proc/sys") / name]
        for name in sorted(KERNEL_TUNABLES)
    ]
    return "\n".join(
        [
            "set -eu",
            "cd /",
            f"echo {shlex.quote(node)} > /proc/sys/kernel/hostname",
            _lines(commands),
            "exec " + shlex.join([str(settings.binaries / "pause"), NODE_MARK, settings.name, node]),
        ]
    )


def node_command(settings: Settings, init: int, node: str) -> list[str]:
    return [
        *enter(init, hub=True),
        *("setsid", "--fork", "unshare", "--mount", "--net", "--uts", "--ipc", "--propagation", "private"),
        *("sh", "-c", node_script(settings, node)),
    ]


def enter(pid: int, *, hub: bool) -> list[str]:
    """Prefix of a command that shall run where a process does. Nodes have more namespaces of their own than the hub."""
    command = ["nsenter", f"--target={pid}", "--mount", "--net", "--ipc", "--pid"]
    return [*command, *([] if hub else ["--uts"]), "--"]


def enter_network(pid: int) -> list[str]:
    """Prefix of a command that shall see the network of a process and everything else of the machine."""
    return ["nsenter", f"--target={pid}", "--net", "--"]
