# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.inventory import group_name, hosts
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import snapshot


def node(name: str, state: str = "IDLE", **more: Any) -> dict[str, Any]:
    return {"name": name, "state": [state], **more}


def worker(name: str, nodeset: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/component": "worker", "slurm-ops.kubernetes/nodeset": nodeset}
    return {"metadata": {"name": name, "labels": labels}}


def test_groups_of_a_node() -> None:
    both = snapshot(
        slurm_nodes=[node("cpu-0", partitions=["big-mem", "cpu"], topology="net:spine-1:leaf.2,racks:b01")],
        pods=[worker("cpu-0", "cpu")],
    )
    (host,) = hosts(both)
    assert host.name == "cpu-0"
    assert host.groups == (
        "slurm_nodes",
        "state_idle",
        "nodeset_cpu",
        "partition_big_mem",
        "partition_cpu",
        "topology_spine_1",
        "topology_leaf_2",
        "topology_b01",
    )
    assert host.node["pod"] == "cpu-0"


def test_a_pod_that_slurm_does_not_know_is_a_host_too() -> None:
    both = snapshot(slurm_nodes=[node("cpu-10"), node("cpu-9")], pods=[worker("cpu-11", "cpu")])
    assert [host.name for host in hosts(both)] == ["cpu-9", "cpu-10", "cpu-11"]
    assert hosts(both)[-1].groups == ("slurm_nodes", "state_unknown", "nodeset_cpu")


def test_names_of_groups_are_what_ansible_takes() -> None:
    assert group_name("a-b.c/d:é") == "a_b_c_d__"
