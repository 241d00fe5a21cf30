# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Ends a sandbox, or a node of it, and leaves nothing behind."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

from . import machine, namespaces, processes
from .cgroups import Cgroups
from .observe import Observed, observe
from .processes import Process
from .settings import Settings, cgroup_name, interface_name, run_directory

_CGROUP_TIMEOUT = 10.0
_ETCD_GRACE = 3.0


def stop_sandbox(name: str, seen: Observed, grace: float) -> None:
    """Stop all processes, Pods with ``grace`` seconds to end by themselves, and remove what they needed."""
    if seen.init is not None:
        everything = processes.everything()
        # First those who would start Pods again, then the Pods, then the rest at once.
        kubelets = [process for component, process in seen.running.items() if component.startswith("kubelet-")]
        processes.stop(kubelets, 0)
        processes.stop(processes.container_inits(everything, seen.init), grace)
        # etcd ends in an orderly way only when nobody is connected to it any more.
        processes.stop([seen.running[name] for name in ("kube-apiserver",) if name in seen.running], 0)
        processes.stop([seen.running[name] for name in ("etcd",) if name in seen.running], _ETCD_GRACE)
        launcher = [process for process in everything if process.pid == seen.init.parent and _is_launcher(process)]
        processes.stop([seen.init], 0)
        processes.stop(launcher, 1)  # ends by itself when its child has
    clean_leftovers(name)


def _is_launcher(process: Process) -> bool:
    return Path(process.argv[0]).name == "unshare" if process.argv else False


def clean_leftovers(name: str) -> None:
    """Interface (and with it the route), control groups and run directory of a sandbox without processes."""
    if observe(name).init is not None:
        raise OperationError(f"Sandbox {name} still has processes.", reason="StillRunning")
    run = run_directory(name)
    _delete_interface(interface_name(name))
    Cgroups(cgroup_name(name)).remove(_CGROUP_TIMEOUT)
    made = run / "created"
    if made.exists():
        for line in made.read_text().splitlines():
            place = Path(line)
            # Only what we made, and only if nobody has put anything there since.
            if place.is_dir() and place in namespaces.PRIVATE_DIRECTORIES and not any(place.iterdir()):
                place.rmdir()
    if run.exists():
        shutil.rmtree(run)


def _delete_interface(name: str) -> None:
    """The kernel removes it together with the network at its other end, in its own time, and perhaps just now."""
    path = Path(f"/sys/class/net/{name}")
    if path.exists():
        try:
            machine.run(["ip", "link", "delete", name])
        except OperationError:
            if path.exists():
                raise


def kill_node(settings: Settings, init: Process, node: str, grace: float = 0) -> None:
    """End the components and Pods of one node; those of a node whose holder is gone are of no use to anybody."""
    everything = processes.everything()
    own = [
        process
        for process in processes.inhabitants(everything, init)
        if processes.environment(process.pid).get(processes.PLACE_VARIABLE) == node
    ]
    kubelets = [process for process in own if process.argv and Path(process.argv[0]).name == "kubelet"]
    processes.stop(kubelets, 0)
    cgroups = Cgroups(settings.cgroup)
    if grace:
        members = cgroups.pids(node)
        processes.stop([p for p in processes.container_inits(everything, init) if p.pid in members], grace)
    processes.stop(own, 0)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        members = cgroups.pids(node)
        rest: Sequence[Process] = [p for p in processes.everything() if p.pid in members]
        if not rest:
            return
        processes.stop(rest, 0)
    raise OperationError(f"Processes of {node} do not end.", reason="StillRunning", remaining=[str(p) for p in rest])
