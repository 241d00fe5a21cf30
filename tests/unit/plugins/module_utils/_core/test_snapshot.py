# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots: raw answers of both sides put together, and what cluster_info tells of them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import cluster_report
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.kubernetes_objects import Condition
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import Snapshot, count_jobs, snapshot


def slurm_node(name: str, *state: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "hostname": name,
        "state": list(state or ("IDLE", "DYNAMIC_NORM")),
        "version": "26.05.5",
        **more,
    }


def pod(name: str, nodeset: str = "cpu", **more: Any) -> dict[str, Any]:
    labels = {
        "app.kubernetes.io/component": "worker",
        "slurm-ops.kubernetes/nodeset": nodeset,
        **more.pop("labels", {}),
    }
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], **more.pop("status", {})}
    spec = {"nodeName": "node1", "containers": [{"name": "slurmd", "image": "slurmd:1"}], **more.pop("spec", {})}
    return {"metadata": {"name": name, "labels": labels, **more}, "spec": spec, "status": status}


def workload(
    name: str, kind: str = "StatefulSet", component: str = "worker", nodeset: str = "", **parts: Any
) -> dict[str, Any]:
    labels = {"app.kubernetes.io/component": component}
    if nodeset:
        labels["slurm-ops.kubernetes/nodeset"] = nodeset
    template = {"spec": {"containers": [{"image": f"{component}:1"}]}}
    return {
        "kind": kind,
        "metadata": {"name": name, "labels": labels},
        "spec": {"template": template, **parts.get("spec", {})},
        "status": parts.get("status", {}),
    }


def paired(slurm: list[dict[str, Any]], pods: list[dict[str, Any]]) -> dict[str, str]:
    return {name: item.name for name, item in snapshot(slurm_nodes=slurm, pods=pods).pod_of.items()}


def test_a_replicas_pod_is_called_as_its_node() -> None:
    assert paired([slurm_node("cpu-0"), slurm_node("cpu-1")], [pod("cpu-0")]) == {"cpu-0": "cpu-0"}


def test_a_daemonsets_pod_is_known_by_its_host_name() -> None:
    assert paired([slurm_node("g-node1", hostname="gpu-x7k2p")], [pod("gpu-x7k2p", "gpu")]) == {"g-node1": "gpu-x7k2p"}


def test_with_the_hosts_network_the_host_name_is_the_nodes() -> None:
    there = pod("gpu-x7k2p", "gpu", spec={"nodeName": "node7", "hostNetwork": True})
    assert paired([slurm_node("g-node7", hostname="node7")], [there]) == {"g-node7": "gpu-x7k2p"}


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_what_the_pod_says_itself_comes_first(where: str) -> None:
    there = [pod("a", **{where: {"slurm-ops.kubernetes/node": "n"}}), pod("n", "other")]
    assert paired([slurm_node("n")], there) == {"n": "a"}


def test_a_pod_that_goes_gives_way_to_its_successor() -> None:
    old = pod("gpu-1", spec={"nodeName": "n1", "hostNetwork": True}, deletionTimestamp="2026-01-01T00:00:00Z")
    new = pod("gpu-2", spec={"nodeName": "n1", "hostNetwork": True})
    assert paired([slurm_node("n1")], [new, old]) == paired([slurm_node("n1")], [old, new]) == {"n1": "gpu-2"}


def test_other_pods_are_no_workers() -> None:
    login = pod("cpu-0", labels={"app.kubernetes.io/component": "login"})
    assert paired([slurm_node("cpu-0")], [login]) == {}


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({}, ""),
        ({"conditions": []}, "NotReady"),
        (
            {"conditions": [], "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
            "CrashLoopBackOff",
        ),
        (
            {"conditions": [], "initContainerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]},
            "ErrImagePull",
        ),
        ({"conditions": [], "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}]}, "NotReady"),
        (
            {
                "phase": "Pending",
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
                ],
            },
            "Unschedulable: 0/2 nodes",
        ),
        ({"phase": "Failed", "reason": "Evicted", "conditions": []}, "Evicted"),
        ({"phase": "Pending", "conditions": []}, "Pending"),
    ],
)
def test_why_a_pod_is_not_ready(status: dict[str, Any], problem: str) -> None:
    assert snapshot(pods=[pod("a", status=status)]).pods[0].problem == problem


@pytest.mark.parametrize(
    ("args", "conf"),
    [
        (["-Z", "--conf", "'CPUs=2 Feature=cpu'"], "CPUs=2 Feature=cpu"),
        (["--conf", "CPUs=2", "-N", "x"], "CPUs=2"),
        (["-Z", "--conf"], ""),
        (["-Z"], ""),
        (None, ""),
    ],
)
def test_what_slurmd_was_told_to_register(args: list[str] | None, conf: str) -> None:
    containers = [{"name": "sidecar", "args": ["--conf", "other"]}, {"name": "slurmd", "args": args}]
    assert snapshot(pods=[pod("a", spec={"containers": containers})]).pods[0].slurmd_conf == conf


def test_times_conditions_and_owners() -> None:
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "Why",
        "message": "text",
        "lastTransitionTime": "1970-01-01T00:01:00Z",
    }
    found = snapshot(
        pods=[
            pod(
                "a",
                uid="u",
                creationTimestamp="1970-01-01T00:00:10Z",
                ownerReferences=[{"kind": "DaemonSet"}],
                annotations={"x": "y"},
                status={"conditions": [condition]},
            )
        ],
        nodes=[{"metadata": {"name": "n"}, "status": {"conditions": [condition]}}],
    )
    there = found.pods[0]
    assert (there.uid, there.created, there.owner_kind, there.annotations) == ("u", 10, "DaemonSet", {"x": "y"})
    assert there.conditions["Ready"] == Condition("False", "Why", "text", 60)
    assert found.kubernetes_nodes[0].conditions == there.conditions


def whole() -> Snapshot:
    return snapshot(
        workloads=[
            workload("cpu", nodeset="cpu", spec={"replicas": 3}, status={"replicas": 3, "readyReplicas": 2}),
            workload(
                "gpu",
                "DaemonSet",
                nodeset="gpu",
                status={"desiredNumberScheduled": 1, "currentNumberScheduled": 1, "numberReady": 1},
            ),
            workload(
                "slurm-restapi",
                "Deployment",
                "restapi",
                spec={"replicas": 1},
                status={"replicas": 1, "readyReplicas": 1},
            ),
            workload("slurm-controller", "StatefulSet", "controller"),
        ],
        pods=[
            pod("cpu-0"),
            pod("cpu-1"),
            pod("cpu-2", status={"conditions": [], "containerStatuses": [{"restartCount": 2}]}),
            pod("gpu-abcde", "gpu"),
            pod(
                "slurm-restapi-7-x",
                "",
                labels={"app.kubernetes.io/component": "restapi"},
                status={"containerStatuses": [{"restartCount": 3}]},
            ),
        ],
        nodes=[
            {
                "metadata": {"name": "node2", "labels": {"rack": "r2"}, "annotations": {"why": "disk", "other": "x"}},
                "spec": {
                    "unschedulable": True,
                    "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}, {"key": "c", "effect": "NoExecute"}],
                },
            },
            {"metadata": {"name": "node1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        ],
        slurm_nodes=[
            slurm_node(
                "cpu-10",
                "DOWN",
                "NOT_RESPONDING",
                "DYNAMIC_NORM",
                reason="Not responding",
                reason_set_by_user="slurm",
                reason_changed_at={"set": True, "infinite": False, "number": 5},
            ),
            slurm_node(
                "cpu-1",
                "MIXED",
                "DRAIN",
                cpus=4,
                alloc_cpus=2,
                real_memory=16000,
                gres="gpu:8",
                features=["cpu"],
                partitions="cpu,all",
            ),
            slurm_node("cpu-0"),
            slurm_node("g-node1", hostname="gpu-abcde"),
        ],
        partitions=[
            {
                "name": "cpu",
                "partition": {"state": ["UP"]},
                "flags": ["DEFAULT"],
                "nodes": {"configured": "cpu-[0-1]", "total": 2},
                "maximums": {"time": {"set": True, "infinite": False, "number": 60}},
            },
            {"name": "all", "maximums": {"time": {"set": False, "infinite": True, "number": 0}}},
        ],
        job_states=[
            {"state": ["RUNNING"]},
            {"state": ["COMPLETED", "COMPLETING"]},
            {"state": "RUNNING"},
            {"state": []},
        ],
    )


def test_the_report() -> None:
    found = cluster_report.plain(whole(), labels=["rack"], annotations=["why"], slurm_read=True)
    cpu, gpu = found["nodesets"]
    assert (cpu["kind"], cpu["desired"], cpu["current"], cpu["ready"]) == ("replica", 3, 3, 2)
    assert (cpu["nodes"], cpu["registered"], cpu["usable"]) == ("cpu-[0-1]", 2, 1)
    assert cpu["states"] == {"draining": 1, "idle": 1}
    assert (gpu["kind"], gpu["desired"], gpu["nodes"]) == ("node", 1, "g-node1")
    assert [item["name"] for item in found["nodes"]] == ["cpu-0", "cpu-1", "cpu-10", "g-node1", "cpu-2"]
    by_name = {item["name"]: item for item in found["nodes"]}
    assert by_name["cpu-1"]["draining"]
    assert by_name["cpu-1"]["partitions"] == ["cpu", "all"]
    assert by_name["cpu-10"]["pod"] is None
    assert by_name["cpu-10"]["reason_at"] == 5
    assert by_name["g-node1"]["pod"] == "gpu-abcde"
    assert (by_name["cpu-2"]["known_to_slurm"], by_name["cpu-2"]["word"], by_name["cpu-2"]["drained"]) == (
        False,
        "unknown",
        False,
    )
    assert len({frozenset(item) for item in found["nodes"]}) == 1
    assert [item["name"] for item in found["daemons"]] == ["slurm-controller", "slurm-restapi"]
    assert found["daemons"][1]["restarts"] == 3
    assert found["daemons"][0]["desired"] == 1
    assert found["kubernetes_nodes"] == [
        {"name": "node1", "ready": True, "cordoned": False, "taints": [], "labels": {}, "annotations": {}},
        {
            "name": "node2",
            "ready": False,
            "cordoned": True,
            "taints": ["a=b:NoSchedule", "c:NoExecute"],
            "labels": {"rack": "r2"},
            "annotations": {"why": "disk"},
        },
    ]
    assert [(item["default"], item["max_time"]) for item in found["partitions"]] == [(True, 60), (False, None)]
    assert found["jobs"] == {"total": 4, "by_state": {"COMPLETED": 1, "RUNNING": 2, "UNKNOWN": 1}}
    assert cluster_report.versions(whole()) == {"26.05.5": 4}


def test_a_side_that_was_not_read_is_not_said_to_be_empty() -> None:
    found = cluster_report.plain(snapshot(pods=[pod("cpu-0")]), labels=[], slurm_read=False)
    assert found["nodes"][0]["known_to_slurm"] is None
    assert found["nodes"][0]["drained"] is False


def test_jobs_of_either_form() -> None:
    assert count_jobs([{"job_state": ["PENDING"]}, {"state": ["PENDING"]}]) == {"PENDING": 2}


def test_a_hundred_thousand_nodes_are_quick() -> None:
    number = 100_000
    slurm = [slurm_node(f"cpu-{index}") for index in range(number)]
    pods = [pod(f"cpu-{index}") for index in range(number)]
    begun = time.process_time()
    both = snapshot(slurm_nodes=slurm, pods=pods)
    assert len(both.pod_of) == number
    assert both.pods_unknown_to_slurm() == []
    # Two seconds on a quiet machine of 2 cores; a quadratic pairing would take hours.
    assert time.process_time() - begun < 15
