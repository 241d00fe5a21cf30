# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The states in which a sandbox does not run: stopped and absent."""

from __future__ import annotations

import shutil
from pathlib import Path

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

from .node_images import prune_stores
from .observe import observe
from .records import RECORD, lock_file, locked, refuse_stranger
from .report import Report
from .stop import stop_sandbox


def stopped(name: str, directory: Path, grace: float, check: bool) -> Report:
    """End the sandbox and keep its data."""
    report = Report()
    with locked(directory, check or not directory.parent.exists()):
        seen = observe(name)
        refuse_stranger(name, directory, seen)
        report.before = {"state": "running" if seen.init else "stopped"}
        report.after = {"state": "stopped"}
        if seen.init is not None:
            report.add("stop", "sandbox", "running")
        for what in seen.leftovers:
            report.add("clean", what, "left behind")
        if report.changed and not check:
            stop_sandbox(name, seen, grace)
    return report


def absent(name: str, directory: Path, kubeconfig: Path, cache: Path, check: bool) -> Report:
    """End the sandbox and remove its data."""
    report = stopped(name, directory, 0, check)
    exists = directory.exists()
    report.before = report.before if exists or report.changed else {"state": "absent"}
    report.after = {"state": "absent"}
    if exists:
        # Nothing is removed that is not known to be a sandbox's.
        if not (directory / RECORD).exists():
            raise OperationError(f"{directory} does not look like a sandbox: it has no {RECORD}.", reason="NotASandbox")
        _refuse_mounts(directory)
        report.add("remove", str(directory), "data of the sandbox")
        if not check:
            with locked(directory, check):
                shutil.rmtree(directory)
    if kubeconfig.exists() and not kubeconfig.is_relative_to(directory):
        report.add("remove", str(kubeconfig), "kubeconfig of the sandbox")
        if not check:
            kubeconfig.unlink()
    if not check:
        prune_stores(cache)
        lock_file(directory).unlink(missing_ok=True)
    return report


def _refuse_mounts(directory: Path) -> None:
    """Removing a directory would reach into what somebody has mounted there."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    inside = [mount for mount in mounts if Path(mount).is_relative_to(directory)]
    if inside:
        raise OperationError(f"Something is mounted in {directory}.", reason="Mounted", remaining=inside)
