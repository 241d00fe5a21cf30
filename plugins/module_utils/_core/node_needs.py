# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What a slurm.conf wants of nodes that slurmctld does not look for: programs, and plugins that it does not load."""

from __future__ import annotations

import re
from collections.abc import Collection

from . import slurm_conf

# Keys by which slurmd, slurmstepd and the commands load plugins, with the kind of these; from slurm.conf(5).
_KINDS = {
    "acctgatherenergytype": "acct_gather_energy",
    "acctgatherfilesystemtype": "acct_gather_filesystem",
    "acctgatherinterconnecttype": "acct_gather_interconnect",
    "acctgatherprofiletype": "acct_gather_profile",
    "clifilterplugins": "cli_filter",
    "jobacctgathertype": "jobacct_gather",
    "jobcontainertype": "job_container",
    "mpidefault": "mpi",
    "namespacetype": "namespace",
    "proctracktype": "proctrack",
    "switchtype": "switch",
    "taskplugin": "task",
}
_NO_PLUGIN = ("", "none", "openmpi")


def programs(conf: str) -> set[str]:
    """Prologs and epilogs of nodes that a slurm.conf names; patterns are not among them."""
    lines = slurm_conf.parse(conf)
    paths = {path for line in lines if line.key.lower() in ("prolog", "epilog") for path in line.value.split(",")}
    return {path for path in paths if path and not re.search(r"[*?\[]", path)}


def plugins(conf: str) -> set[str]:
    """Plugins that a slurm.conf wants nodes to load, as ``task/cgroup``."""
    found = set()
    for line in slurm_conf.parse(conf):
        kind = _KINDS.get(line.key.lower())
        for word in line.value.split(",") if kind else ():
            name = word.strip().removeprefix(f"{kind}/")
            if name.lower() not in _NO_PLUGIN:
                found.add(f"{kind}/{name}")
    return found


def has_plugin(files: Collection[str], plugin: str) -> bool:
    """Whether a plugin is among the files of the directory of plugins."""
    kind, _slash, name = plugin.partition("/")
    # 26.05 renamed these, and goes on to take the old name.
    kinds = (kind, "namespace") if kind == "job_container" else (kind,)
    return any(f"{kind}_{name}.so" in files for kind in kinds)
