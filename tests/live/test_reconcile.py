# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module reconcile on a real cluster: every row of its table, two runs at once, and sides that go away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import NodeState, parse

from .support.kube import Json, Kube
from .support.minislurm import NAME, MiniSlurm, is_ready, versions_there

SMALL = {"requests": {"cpu": "20m", "memory": "64Mi"}}


def deploy(version: str, kube: Kube, kubeconfig: str, namespace: str) -> MiniSlurm:
    """A small cluster: a node on each Node, and two replicas on the second Node."""
    assert version in versions_there(kube)
    made = MiniSlurm(kube, kubeconfig, namespace, version, nodesets())
    made.deploy()
    made.wait_for_nodes("e-node1", "e-node2", "cpu-0", "cpu-1")
    return made


def nodesets(cpus: int = 2) -> list[Json]:
    stays = [{"operator": "Exists"}]
    return [
        {"name": "each", "kind": "node", "node_name_prefix": "e-", "node_selector": {"kubernetes.io/os": "linux"},
         "tolerations": stays, "resources": SMALL, "cpus": 2, "memory": "256Mi"},
        {"name": "cpu", "replicas": 2, "resources": SMALL, "cpus": cpus, "memory": "256Mi",
         "tolerations": stays, "node_selector": {"kubernetes.io/hostname": "node2"}},
    ]  # fmt: skip


@pytest.fixture(scope="module")
def mini(kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    made = deploy("26.05", kube, kubeconfig, _namespaces("reconcile"))
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")


Reconcile = Callable[..., Json]


@pytest.fixture
def reconcile(mini: MiniSlurm, run_module: Callable[..., Json]) -> Reconcile:
    def run(args: Json | None = None, **more: Any) -> Json:
        return run_module("reconcile", {"namespace": mini.namespace, "name": NAME, **(args or {})}, **more)

    return run


def nodes(mini: MiniSlurm) -> dict[str, Json]:
    return {item["name"]: dict(item) for item in mini.client().nodes().items}


def state(mini: MiniSlurm, name: str) -> NodeState:
    return parse(nodes(mini)[name]["state"])


def kinds(result: Json) -> list[tuple[str, str]]:
    return [(action["kind"], action["target"]) for action in result["actions"]]


def foretold_then_done_then_quiet(reconcile: Reconcile, args: Json | None = None) -> Json:
    """Check mode says what then is done; after that nothing is left to do, and nothing is written."""
    foretold = reconcile(args, check=True)
    assert foretold["changed"]
    assert foretold["api_calls"]["writes"] == 0
    done = reconcile(args)
    assert kinds(done) == kinds(foretold)
    assert all(action["done"] for action in done["actions"])
    again = reconcile(args)
    assert not again["changed"], again["actions"]
    assert again["api_calls"]["writes"] == 0
    return done


def test_a_converged_pass_is_six_calls(mini: MiniSlurm, reconcile: Reconcile) -> None:
    found = reconcile()
    assert not found["changed"]
    assert found["drift"] == []
    assert found["counts"]["nodes"] == 4
    assert found["api_calls"]["kubernetes"] + found["api_calls"]["slurm"] == 6
    assert found["api_calls"]["writes"] == 0


@pytest.fixture
def node2(kube: Kube) -> Iterator[str]:
    """Path of the second Node, which is as it was afterwards."""
    path = "/api/v1/nodes/node2"
    yield path
    notes = dict.fromkeys((CORDON_REASON, "slurm-ops.kubernetes/drain", "slurm-ops.kubernetes/cordoned-for"))
    kube.patch(path, {"metadata": {"annotations": notes}, "spec": {"unschedulable": None}})
    gone = [{"$patch": "delete", "type": name} for name in ("GpuUnhealthy", "SlurmDrain")]
    kube.patch(f"{path}/status", {"status": {"conditions": gone}}, kind="strategic")


CORDON_REASON = "slurm-ops.kubernetes/cordon-reason"
ON_NODE2 = ["cpu-0", "cpu-1", "e-node2"]


def job_on(mini: MiniSlurm, node: str) -> str:
    """A job that runs there until it is cancelled."""
    job = mini.run(
        f"cd /tmp && sbatch --parsable -p {node.partition('-')[0]} -w {node} -n1 --mem=10 --wrap 'sleep 300'", on="slurm-controller-0"
    ).stdout.strip()
    mini.kube.wait(lambda: job_state(mini, job), lambda word: word == "RUNNING", timeout=40, what=f"job {job} runs")
    return job


def job_state(mini: MiniSlurm, job: str) -> str:
    return mini.run(f"squeue -h -j {job} -o %T", check=False).stdout.strip()


def pod(mini: MiniSlurm, name: str) -> Json:
    return mini.kube.get(f"/api/v1/namespaces/{mini.namespace}/pods/{name}")


def shown(item: Json) -> dict[str, str]:
    return {
        entry["type"]: entry.get("message", "")
        for entry in item["status"]["conditions"]
        if entry["type"].startswith("Slurm")
    }


def cordon_main_path(mini: MiniSlurm, reconcile: Reconcile, node2: str) -> None:
    """Cordoned while a job runs, resumed by hand meanwhile, uncordoned."""
    job = job_on(mini, "cpu-0")
    mini.client().update_nodes(["e-node2"], state="drain", reason="memory errors, Ann")
    mini.kube.patch(node2, {"metadata": {"annotations": {CORDON_REASON: "disk"}}, "spec": {"unschedulable": True}})
    done = foretold_then_done_then_quiet(reconcile)
    reason = "k8s: cordoned: Node node2: disk"
    there = nodes(mini)
    assert [there[name]["reason"] for name in ON_NODE2] == [reason, reason, "memory errors, Ann"]
    assert state(mini, "cpu-0").draining
    assert state(mini, "cpu-1").drained
    assert not state(mini, "e-node1").drain
    assert ("protect", "Pod cpu-0") in kinds(done)
    assert pod(mini, "cpu-0")["metadata"]["labels"]["slurm-ops.kubernetes/protect"] == "true"
    # One call for both nodes.
    assert done["api_calls"]["verbs"]["update"] == 1
    # Somebody resumes one while the cause lasts.
    mini.client().update_nodes(["cpu-1"], state="undrain")
    assert kinds(reconcile()) == [("drain", "cpu-1")]
    # The drain of a person is shown, and stays.
    each = next(item for item in mini.kube.items(f"/api/v1/namespaces/{mini.namespace}/pods")
                if item["metadata"]["name"].startswith("each-") and item["spec"]["nodeName"] == "node2")  # fmt: skip
    assert shown(each) == {"SlurmNodeStateDrain": "memory errors, Ann"}
    assert "(by slurm, 20" in each["metadata"]["annotations"]["slurm-ops.kubernetes/drain"]
    there_too = mini.kube.get(node2)
    assert "e-node2 drain: memory errors, Ann" in shown(there_too)["SlurmDrain"]
    assert shown(pod(mini, "cpu-0")) == {}
    # The job was not touched, and ends by itself.
    assert job_state(mini, job) == "RUNNING"
    mini.client().cancel_jobs([int(job)])
    mini.kube.wait(lambda: state(mini, "cpu-0").drained, bool, timeout=40, what="cpu-0 is drained")
    mini.kube.patch(node2, {"metadata": {"annotations": {CORDON_REASON: None}}, "spec": {"unschedulable": None}})
    mini.client().update_nodes(["e-node2"], state="undrain")
    undone = foretold_then_done_then_quiet(reconcile)
    assert {kind for kind, _target in kinds(undone)} == {"unprotect", "undrain", "show"}
    assert not any(state(mini, name).drain for name in ON_NODE2)
    assert shown(mini.kube.get(node2)) == {}


def test_a_cordon_and_its_end(mini: MiniSlurm, reconcile: Reconcile, node2: str) -> None:
    cordon_main_path(mini, reconcile, node2)


def test_a_persons_drain_before_during_and_after(mini: MiniSlurm, reconcile: Reconcile, node2: str) -> None:
    mini.kube.patch(node2, {"spec": {"unschedulable": True}})
    reconcile({"only": ["drain"]})
    # During: the reason is a person's now, so neither the cause nor its end matters any more.
    mini.client().update_nodes(["cpu-0"], state="drain", reason="Ben looks at it")
    assert not reconcile({"only": ["drain", "undrain"]})["changed"]
    mini.kube.patch(node2, {"spec": {"unschedulable": None}})
    after = reconcile({"only": ["drain", "undrain"]})
    assert sorted(kinds(after)) == [("undrain", "cpu-1"), ("undrain", "e-node2")]
    assert nodes(mini)["cpu-0"]["reason"] == "Ben looks at it"
    # Drains by other modules of the collection are theirs.
    for reason in ("k8s: scale-in: NodeSet cpu to 1", "k8s: drain: firmware"):
        mini.client().update_nodes(["cpu-0"], state="drain", reason=reason)
        assert not reconcile({"only": ["drain", "undrain"]})["changed"]
    mini.client().update_nodes(["cpu-0"], state="undrain")


def test_conditions_and_readiness_of_nodes(mini: MiniSlurm, reconcile: Reconcile, node2: str) -> None:
    bad = {"type": "GpuUnhealthy", "status": "True", "reason": "Xid", "message": "Xid 79"}
    mini.kube.patch(f"{node2}/status", {"status": {"conditions": [bad]}}, kind="strategic")
    assert not reconcile()["changed"]
    args = {"conditions": ["GpuUnhealthy"]}
    foretold_then_done_then_quiet(reconcile, args)
    assert nodes(mini)["cpu-0"]["reason"] == "k8s: condition: GpuUnhealthy of Node node2: Xid 79"
    mini.kube.patch(f"{node2}/status", {"status": {"conditions": [{**bad, "status": "False"}]}}, kind="strategic")
    foretold_then_done_then_quiet(reconcile, args)
    # The kubelet says within seconds that it is ready after all.
    away = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped"}
    mini.kube.patch(f"{node2}/status", {"status": {"conditions": [away]}}, kind="strategic")
    reconcile()
    assert nodes(mini)["cpu-0"]["reason"] == "k8s: not ready: Node node2: Kubelet stopped"
    mini.kube.wait(node2, is_ready, timeout=60, what="node2 is ready")
    for name in ("cpu-0", "cpu-1"):
        mini.kube.wait(f"/api/v1/namespaces/{mini.namespace}/pods/{name}", is_ready, timeout=60)
    mini.kube.wait(
        lambda: reconcile()["changed"] or any(state(mini, name).drain for name in ON_NODE2),
        lambda differs: not differs,
        timeout=60,
        what="all nodes are back",
    )


def test_a_cordon_on_request(mini: MiniSlurm, reconcile: Reconcile, node2: str) -> None:
    client = mini.client()
    args = {"cordon": True}
    client.update_nodes(["cpu-0", "cpu-1"], state="drain", reason="burn-in")
    reconcile(args)
    assert "unschedulable" not in mini.kube.get(node2)["spec"]  # e-node2 still works
    client.update_nodes(["e-node2"], state="drain", reason="burn-in")
    foretold_then_done_then_quiet(reconcile, args)
    assert mini.kube.get(node2)["spec"]["unschedulable"]
    client.update_nodes(ON_NODE2, state="undrain")
    # Our own cordon is no cause.
    done = foretold_then_done_then_quiet(reconcile, args)
    assert ("uncordon", "Node node2") in kinds(done)
    assert not any(kind == "drain" for kind, _target in kinds(done))
    assert "unschedulable" not in mini.kube.get(node2)["spec"]
