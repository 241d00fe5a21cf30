# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module cluster_info against a real cluster: what it tells, with how many calls, and while a side is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .support.kube import Json, Kube
from .support.minislurm import NAME, SMALL, MiniSlurm, is_ready, versions_there

NODESETS: list[Json] = [
    {"name": "cpu", "replicas": 2, **SMALL},
    {
        "name": "each",
        "kind": "node",
        "node_name_prefix": "e-",
        "partition": False,
        "resources": {"requests": {"cpu": "20m"}},
    },
]


@pytest.fixture(scope="module")
def mini(kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    """A small cluster: two replicas, and a node on the first Node."""
    version = versions_there(kube)[0]
    first = kube.items("/api/v1/nodes")[0]["metadata"]
    NODESETS[1]["node_selector"] = {"kubernetes.io/hostname": first["labels"]["kubernetes.io/hostname"]}
    made = MiniSlurm(kube, kubeconfig, _namespaces("cluster-info"), version, NODESETS)
    made.deploy()
    made.wait_for_nodes("cpu-0", "cpu-1", f"e-{first['name'].partition('.')[0]}")
    kube.wait(
        lambda: kube.items(f"/api/v1/namespaces/{made.namespace}/pods"),
        lambda pods: all(map(is_ready, pods)),
        what="Kubernetes has seen that all Pods are ready",
    )
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")


@pytest.fixture
def read(mini: MiniSlurm, run_module: Callable[..., Json]) -> Callable[..., Json]:
    def run(args: Json | None = None, **more: Any) -> Json:
        return run_module("cluster_info", {"namespace": mini.namespace, "name": NAME, **(args or {})}, **more)

    return run


def test_both_sides_in_a_fixed_number_of_calls(mini: MiniSlurm, read: Callable[..., Json]) -> None:
    found = read({"labels": ["kubernetes.io/hostname"], "conditions": ["Ready", "NoSuch"]})
    assert not found["changed"]
    assert found["api_calls"]["kubernetes"] == 6
    assert found["api_calls"]["slurm"] == 4
    assert found["api_calls"]["writes"] == 0
    cpu, each = found["nodesets"]
    assert (cpu["name"], cpu["kind"], cpu["desired"], cpu["ready"], cpu["registered"]) == ("cpu", "replica", 2, 2, 2)
    assert (cpu["nodes"], cpu["states"]) == ("cpu-[0-1]", {"idle": 2})
    assert (each["kind"], each["desired"], each["registered"]) == ("node", 1, 1)
    nodes = {item["name"]: item for item in found["nodes"]}
    there = nodes[each["nodes"]]
    assert there["pod"].startswith("each-")
    assert there["name"] == f"e-{there['kubernetes_node'].partition('.')[0]}"
    assert nodes["cpu-0"]["pod"] == "cpu-0"
    assert (nodes["cpu-0"]["cpus"], nodes["cpu-0"]["memory_mib"], nodes["cpu-0"]["usable"]) == (2, 256, True)
    assert {item["name"] for item in found["daemons"]} == {"slurm-controller", "slurm-restapi"}
    assert all(item["ready"] == 1 for item in found["daemons"])
    assert found["versions"]["slurmrestd"].startswith(mini.version)
    assert found["partitions"][0]["default"]
    assert all(item["labels"] for item in found["kubernetes_nodes"])
    assert {item["conditions"]["Ready"]["reason"] for item in found["kubernetes_nodes"]} == {"KubeletReady"}
    assert nodes["cpu-0"]["pod_conditions"]["Ready"]["status"] == "True"
    assert list(nodes["cpu-0"]["pod_conditions"]) == ["Ready"]
    assert found["readable"] == {"kubernetes": True, "kubernetes_nodes": True, "slurm": True}


def test_check_mode_is_the_same(read: Callable[..., Json]) -> None:
    def facts(found: Json) -> Json:
        return {key: value for key, value in found.items() if key not in ("duration", "invocation")}

    assert facts(read(check=True)) == facts(read())


def test_jobs_and_drains_are_seen(mini: MiniSlurm, read: Callable[..., Json]) -> None:
    job = mini.run("cd /tmp && sbatch --parsable -w cpu-0 -n1 --mem=10 --wrap 'sleep 60'", on="cpu-0").stdout.strip()

    def running() -> list[str]:
        return mini.run("squeue -h -t R -o %i").stdout.split()

    mini.kube.wait(running, lambda jobs: job in jobs, timeout=30, what="the job runs")
    mini.client().update_nodes(["cpu-0", "cpu-1"], state="drain", reason="k8s: test")
    found = read()
    nodes = {item["name"]: item for item in found["nodes"]}
    assert (nodes["cpu-0"]["word"], nodes["cpu-0"]["drained"], nodes["cpu-0"]["draining"]) == ("draining", False, True)
    assert (nodes["cpu-1"]["word"], nodes["cpu-1"]["drained"]) == ("drained", True)
    assert (nodes["cpu-1"]["reason"], nodes["cpu-1"]["reason_user"]) == ("k8s: test", "slurm")
    assert found["nodesets"][0]["states"] == {"drained": 1, "draining": 1}
    assert found["nodesets"][0]["usable"] == 0
    assert found["jobs"]["by_state"] == {"RUNNING": 1}
    mini.client().cancel_jobs([int(job)])
    mini.client().update_nodes(["cpu-0", "cpu-1"], state="undrain")


def test_a_pod_that_slurm_does_not_know(mini: MiniSlurm, read: Callable[..., Json]) -> None:
    mini.kube.wait(
        lambda: [item["state"] for item in mini.client().nodes().items if item["name"] == "cpu-1"],
        lambda states: states and states[0][0] == "IDLE",
        timeout=30,
    )
    mini.client().delete_nodes(["cpu-1"])
    nodes = {item["name"]: item for item in read()["nodes"]}
    assert (nodes["cpu-1"]["known_to_slurm"], nodes["cpu-1"]["pod_ready"], nodes["cpu-1"]["drained"]) == (
        False,
        True,
        False,
    )


def test_slurm_missing(mini: MiniSlurm, read: Callable[..., Json]) -> None:
    mini.scale("restapi", 0)
    failed = read(fails=True)
    assert failed["reason"] == "SlurmUnreachable"
    assert failed["duration"] < 30
    found = read({"fail_on_unreadable": False})
    assert found["readable"] == {"kubernetes": True, "kubernetes_nodes": True, "slurm": False}
    assert [item["side"] for item in found["unreadable"]] == ["slurm"]
    assert {item["name"]: item["known_to_slurm"] for item in found["nodes"]}["cpu-0"] is None
    mini.scale("restapi", 1)
    mini.scale("controller", 0)
    failed = read(fails=True)
    assert failed["reason"] == "ControllerUnreachable"
    assert failed["duration"] < 60
    mini.scale("controller", 1)


def test_another_name_and_namespace(mini: MiniSlurm, read: Callable[..., Json]) -> None:
    assert read({"name": "other"}, fails=True)["reason"] == "NoKey"
    assert "other-auth" in read({"name": "other"}, fails=True)["msg"]
    found = read({"name": "other", "fail_on_unreadable": False})
    assert found["nodesets"] == found["daemons"] == []


def test_a_role_in_the_namespace_is_enough(mini: MiniSlurm, read: Callable[..., Json]) -> None:
    """The rights that the documentation names, given to an account that has no others."""
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": ["apps"], "resources": ["statefulsets", "daemonsets", "deployments"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["slurm-auth"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["services/proxy"], "verbs": ["get", "create"]},
    ]
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{mini.namespace}"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}
    mini.kube.apply(f"/api/v1/namespaces/{mini.namespace}/serviceaccounts/reader", account)
    version = "rbac.authorization.k8s.io/v1"
    role = {"apiVersion": version, "kind": "Role", "metadata": {"name": "reader"}, "rules": rules}
    mini.kube.apply(f"{rbac}/roles/reader", role)
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": mini.namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    binding = {"apiVersion": version, "kind": "RoleBinding", "metadata": {"name": "reader"}}
    mini.kube.apply(f"{rbac}/rolebindings/reader", {**binding, "subjects": [subject], "roleRef": reference})
    found = read({"impersonate_user": f"system:serviceaccount:{mini.namespace}:reader"})
    assert found["readable"] == {"kubernetes": True, "kubernetes_nodes": False, "slurm": True}
    assert found["unreadable"][0]["reason"] == "Forbidden"
    assert len(found["nodesets"]) == 2
