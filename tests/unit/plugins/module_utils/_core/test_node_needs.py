# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a slurm.conf wants of nodes."""

from __future__ import annotations

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.node_needs import (
    has_plugin,
    plugins,
    programs,
)


@pytest.mark.parametrize(
    ("conf", "wanted"),
    [
        ("Prolog=/a,/b\nepilog=c\n", {"/a", "/b", "c"}),
        ("Prolog=/etc/prolog.d/*\nEpilog=/e[12]\n", set()),
        ("PrologFlags=X\nPrologSlurmctld=/a\nTaskProlog=/t\n", set()),
    ],
)
def test_programs(conf: str, wanted: set[str]) -> None:
    assert programs(conf) == wanted


@pytest.mark.parametrize(
    ("conf", "wanted"),
    [
        ("TaskPlugin=task/affinity,task/cgroup\n", {"task/affinity", "task/cgroup"}),
        ("TASKPLUGIN=cgroup\n", {"task/cgroup"}),
        ("MpiDefault=pmix\n", {"mpi/pmix"}),
        ("MpiDefault=none\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=openmpi\n", set()),
        ("CliFilterPlugins=lua,cli_filter/syslog\n", {"cli_filter/lua", "cli_filter/syslog"}),
        ("JobContainerType=job_container/tmpfs\n", {"job_container/tmpfs"}),
        ("NamespaceType=namespace/linux\n", {"namespace/linux"}),
        ("TaskPluginParam=Cores\nSelectType=select/cons_tres\nJobSubmitPlugins=lua\n", set()),
    ],
)
def test_plugins(conf: str, wanted: set[str]) -> None:
    assert plugins(conf) == wanted


@pytest.mark.parametrize(
    ("plugin", "there"),
    [
        ("task/cgroup", True),
        ("task/affinity", False),
        ("namespace/tmpfs", True),
        ("job_container/tmpfs", True),
        ("job_container/linux", True),
        ("namespace/linux", False),
    ],
)
def test_files_of_plugins(plugin: str, there: bool) -> None:
    assert has_plugin({"task_cgroup.so", "namespace_tmpfs.so", "job_container_linux.so"}, plugin) is there
