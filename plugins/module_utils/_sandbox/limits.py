# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The one setting of the machine that a sandbox may have to change: how many file watchers a user may have.

A kubelet that gets none ends with "inotify_init: too many open files". The usual limit of 128 is enough for one small
sandbox on a machine that does little else. It is a limit only, so raising it harms nobody; it is not lowered again, as
others may have come to rely on it.
"""

from __future__ import annotations

import os
from pathlib import Path

_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
_ENOUGH = 8192
# Counted on a running sandbox: 13 for the control plane; 6 for a kubelet, 1 for its containerd, 1 for its kube-proxy.
_CONTROL_PLANE = 13
_NODE = 8
# Pods have watchers too.
_RESERVE = 40


def watchers_needed(nodes: int, in_use: int) -> int:
    """Watchers that there will be when so many nodes have been started."""
    return in_use + _CONTROL_PLANE + _NODE * nodes + _RESERVE


def watchers_in_use() -> int:
    """Watchers of root's processes."""
    count = 0
    for process in os.scandir("/proc"):
        if not process.name.isdecimal():
            continue
        try:
            if process.stat().st_uid == 0:
                links = (os.readlink(entry.path) for entry in os.scandir(f"{process.path}/fd"))
                count += sum(link == "anon_inode:inotify" for link in links)
        except OSError:
            continue  # has ended meanwhile
    return count


def raise_watchers(nodes: int) -> str:
    """Raise the limit if it is too low for so many more nodes. Returns what was done, empty if nothing."""
    limit = int(_LIMIT.read_text())
    needed = watchers_needed(nodes, watchers_in_use())
    if needed <= limit:
        return ""
    wanted = max(_ENOUGH, needed)
    _LIMIT.write_text(str(wanted))
    return f"from {limit} to {wanted}, as {needed} watchers may be needed"
