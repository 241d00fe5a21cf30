# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Control groups: one tree for a sandbox in each hierarchy that the machine has (version 1) or in the only one (2).

The tree is named ``slurm-ops-<name>``. Its group ``components`` holds the programs themselves, and one for each node
that node's Pods; what is below is its kubelet's business.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable
from pathlib import Path

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

COMPONENTS = "components"
_CPUSET = ("cpuset.cpus", "cpuset.mems")
# What a kubelet asks for on version 2. Each is switched on by itself: one that the kernel lacks must not stop others.
_CONTROLLERS = ("cpu", "cpuset", "hugetlb", "io", "memory", "pids")


def parse_mounts(text: str) -> tuple[list[Path], Path | None]:
    """Mount points of version 1 hierarchies, and that of version 2, from /proc/self/mounts."""
    first, second = [], None
    for line in text.splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[2] == "cgroup":
            first.append(Path(fields[1]))
        elif len(fields) > 3 and fields[2] == "cgroup2":
            second = Path(fields[1])
    return first, second


class Cgroups:
    """The trees of one sandbox."""

    def __init__(self, name: str) -> None:
        self._name = name
        first, second = parse_mounts(Path("/proc/self/mounts").read_text())
        # With both mounted, version 2 has no controllers and all happens in version 1; but runc leaves groups there.
        self._unified = not first
        self._roots = first or ([second] if second else [])
        self._besides = [second] if first and second else []
        if not self._roots:
            raise OperationError("No cgroup hierarchy is mounted on this machine.", reason="NoCgroups")

    @property
    def trees(self) -> list[Path]:
        return [root / self._name for root in self._roots]

    @property
    def _all_trees(self) -> list[Path]:
        return [*self.trees, *(root / self._name for root in self._besides)]

    def exist(self) -> bool:
        return any(tree.exists() for tree in self._all_trees)

    def create(self, groups: Iterable[str]) -> None:
        """Make the tree and the named groups in it; those that exist are left alone."""
        for tree in self.trees:
            self._make(tree)
            for group in groups:
                self._make(tree / group)

    def _make(self, path: Path) -> None:
        if self._unified:
            self._delegate(path.parent)
        path.mkdir(exist_ok=True)
        for name in _CPUSET:
            # Version 1 makes a group without any processor; nothing can run in it until it has some.
            file = path / name
            if not self._unified and file.exists() and not file.read_text().strip():
                file.write_text((path.parent / name).read_text())

    @staticmethod
    def _delegate(path: Path) -> None:
        control = path / "cgroup.subtree_control"
        available = (path / "cgroup.controllers").read_text().split()
        enabled = control.read_text().split()
        for controller in _CONTROLLERS:
            if controller in available and controller not in enabled:
                try:
                    control.write_text(f"+{controller}")
                except OSError as error:
                    raise OperationError(
                        f"The controller {controller} could not be enabled in {path}: {error.strerror}.",
                        reason="CgroupsNotDelegated",
                        hint="In a container, run in the cgroup namespace of the machine or in an empty cgroup.",
                    ) from error

    def membership_files(self, group: str) -> list[Path]:
        """Files that a process writes its number to in order to join a group."""
        return [tree / group / "cgroup.procs" for tree in self.trees]

    def pids(self, group: str) -> set[int]:
        """Processes in a group and below it."""
        found: set[int] = set()
        for tree in self.trees:
            for directory, _below, files in os.walk(tree / group):
                if "cgroup.procs" in files:
                    found.update(int(line) for line in (Path(directory) / "cgroup.procs").read_text().split())
        return found

    def remove(self, timeout: float, group: str | None = None) -> None:
        """Remove the tree, or one group of it, whose processes have been killed: they may take a moment to be gone."""
        deadline = time.monotonic() + timeout
        for tree in self._all_trees:
            top = tree / group if group else tree
            for directory, _below, _files in os.walk(top, topdown=False):
                self._remove_one(Path(directory), deadline)

    @staticmethod
    def _remove_one(path: Path, deadline: float) -> None:
        while True:
            try:
                path.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                if time.monotonic() > deadline:
                    members = (path / "cgroup.procs").read_text().split()
                    raise OperationError(
                        f"cgroup {path} could not be removed: it is in use.", reason="CgroupBusy", remaining=members
                    ) from error
            time.sleep(0.02)
