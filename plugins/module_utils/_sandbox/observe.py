# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What is there of a sandbox at this moment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import processes
from .cgroups import Cgroups
from .processes import Process
from .settings import cgroup_name, interface_name, run_directory


@dataclass(frozen=True, slots=True)
class Observed:
    """Processes and leftovers. ``silent`` holds the components that live but do not answer, and why not."""

    init: Process | None = None
    directory: str = ""
    holders: Mapping[str, Process] = field(default_factory=dict)
    running: Mapping[str, Process] = field(default_factory=dict)
    interface: bool = False
    cgroups: bool = False
    run_directory: bool = False
    silent: Mapping[str, str] = field(default_factory=dict)

    @property
    def leftovers(self) -> list[str]:
        """What a sandbox without processes has left behind."""
        if self.init is not None:
            return []
        found = {"interface": self.interface, "cgroups": self.cgroups, "run directory": self.run_directory}
        return [name for name, there in found.items() if there]


def observe(name: str) -> Observed:
    """Look, without asking any component anything."""
    everything = processes.everything()
    init = processes.find_init(everything, name)
    holders: dict[str, Process] = {}
    running: dict[str, Process] = {}
    for process in everything:
        if init is None or process.parent != init.pid:
            continue
        if process.argv[1:3] == (processes.NODE_MARK, name) and len(process.argv) > 3:
            holders[process.argv[3]] = process
            continue
        component = processes.environment(process.pid).get(processes.COMPONENT_VARIABLE, "")
        # What a component leaves behind (containerd its shims) has its environment, but is another program.
        if component and process.argv and component.startswith(Path(process.argv[0]).name):
            running[component] = process
    return Observed(
        init=init,
        directory=init.argv[3] if init is not None and len(init.argv) > 3 else "",
        holders=holders,
        running=running,
        interface=os.path.exists(f"/sys/class/net/{interface_name(name)}"),
        cgroups=Cgroups(cgroup_name(name)).exist(),
        run_directory=run_directory(name).exists(),
    )


def running_processes(name: str) -> dict[str, int]:
    """Component and process number of all that runs."""
    return {component: process.pid for component, process in sorted(observe(name).running.items())}
