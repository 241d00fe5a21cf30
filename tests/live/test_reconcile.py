# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module reconcile on a real cluster: every row of its table, two runs at once, and sides that go away."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import NodeState, parse

from .support.kube import Json, Kube, Refused
from .support.minislurm import ANYWHERE, NAME, MiniSlurm, is_ready, versions_there
from .support.playbook import CHECKOUT, PlaybookResult

SMALL = {"requests": {"cpu": "20m", "memory": "64Mi"}}


def deploy(version: str, kube: Kube, kubeconfig: str, namespace: str) -> MiniSlurm:
    """A small cluster: a node on each Node, and two replicas on the second Node."""
    assert version in versions_there(kube)
    quick = {**ANYWHERE, "SlurmdTimeout": 15}  # seconds until a slurmd that is gone is given up
    made = MiniSlurm(kube, kubeconfig, namespace, version, nodesets(), slurm_conf=quick)
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
    partition = "each" if node.startswith("e-") else "cpu"
    submit = f"cd /tmp && sbatch --parsable -p {partition} -w {node} -n1 --mem=10 --wrap 'sleep 300'"
    job = mini.run(submit, on="slurm-controller-0").stdout.strip()
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
    reason = "k8s: cordoned: disk"
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
    assert nodes(mini)["cpu-0"]["reason"] == "k8s: condition: GpuUnhealthy: Xid 79"
    mini.kube.patch(f"{node2}/status", {"status": {"conditions": [{**bad, "status": "False"}]}}, kind="strategic")
    foretold_then_done_then_quiet(reconcile, args)
    # The kubelet says within seconds that it is ready after all, so it may take more than one attempt to see it.
    away = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped"}

    def seen() -> str:
        mini.kube.patch(f"{node2}/status", {"status": {"conditions": [away]}}, kind="strategic")
        reconcile({"only": ["drain"]})
        return str(nodes(mini)["cpu-0"]["reason"])

    mini.kube.wait(seen, lambda reason: reason == "k8s: not ready: Kubelet stopped", timeout=60)
    wait_until_all_is_well(mini, reconcile)


def wait_until_all_is_well(mini: MiniSlurm, reconcile: Reconcile) -> None:
    """Every worker is there and ready, and reconciliation has given everything back and has nothing left to do."""

    def left() -> list[str]:
        found = list(reconcile()["drift"])
        found += [name for name, item in nodes(mini).items() if parse(item["state"]).drain]
        found += {"cpu-0", "cpu-1", "e-node1", "e-node2"} - nodes(mini).keys()
        pods = mini.kube.items(f"/api/v1/namespaces/{mini.namespace}/pods")
        return found + [item["metadata"]["name"] for item in pods if not is_ready(item)]

    mini.kube.wait(left, lambda left: not left, timeout=90, what="both sides agree and nothing is drained")


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


# --- Pods and records -------------------------------------------------------------------------------------------------


def test_an_eviction_waits_for_the_jobs(mini: MiniSlurm, reconcile: Reconcile, node2: str) -> None:
    """What kubectl drain does, with the disruption budget of role cluster; for workers of both kinds."""
    pods = f"/api/v1/namespaces/{mini.namespace}/pods"
    budget = f"/apis/policy/v1/namespaces/{mini.namespace}/poddisruptionbudgets/{NAME}-workers"
    selector = {"matchLabels": {"slurm-ops.kubernetes/cluster": NAME, "slurm-ops.kubernetes/protect": "true"}}
    manifest = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": f"{NAME}-workers"}}
    mini.kube.apply(budget, {**manifest, "spec": {"maxUnavailable": 0, "selector": selector}})
    each = next(
        item["metadata"]["name"]
        for item in mini.kube.items(pods)
        if item["metadata"]["name"].startswith("each-") and item["spec"]["nodeName"] == "node2"
    )
    workers = ["cpu-0", each]

    def evict(name: str) -> int:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        try:
            mini.kube.create(f"{pods}/{name}/eviction", body)
        except Refused as refused:
            return refused.status
        return 201

    jobs = [job_on(mini, "cpu-0"), job_on(mini, "e-node2")]
    mini.kube.patch(node2, {"spec": {"unschedulable": True}})
    reconcile()
    mini.kube.wait(
        budget, lambda item: item["status"].get("observedGeneration") and not item["status"]["disruptionsAllowed"]
    )
    assert [evict(name) for name in workers] == [429, 429]
    assert [job_state(mini, job) for job in jobs] == ["RUNNING", "RUNNING"]
    mini.client().cancel_jobs(int(job) for job in jobs)
    mini.kube.wait(lambda: any(parse(item["state"]).busy for item in nodes(mini).values()), lambda busy: not busy)
    assert {("unprotect", f"Pod {name}") for name in workers} <= set(kinds(reconcile()))
    assert [evict(name) for name in workers] == [201, 201]
    mini.kube.patch(node2, {"spec": {"unschedulable": None}})
    wait_until_all_is_well(mini, reconcile)


def test_a_worker_that_is_deleted_by_hand(mini: MiniSlurm, reconcile: Reconcile) -> None:
    path = f"/api/v1/namespaces/{mini.namespace}/pods/cpu-1"
    old = pod(mini, "cpu-1")["metadata"]["uid"]
    # It cannot end before we have looked.
    mini.kube.patch(path, {"metadata": {"finalizers": ["example.org/hold"]}})
    mini.kube.delete(path)
    done = reconcile()
    assert ("drain", "cpu-1") in kinds(done)
    assert nodes(mini)["cpu-1"]["reason"] == "k8s: pod: being deleted"
    mini.kube.patch(path, {"metadata": {"finalizers": None}})
    mini.kube.wait(path, lambda item: item and item["metadata"]["uid"] != old and is_ready(item), timeout=60)
    wait_until_all_is_well(mini, reconcile)


def test_a_slurmd_that_slurm_forgot(mini: MiniSlurm, reconcile: Reconcile) -> None:
    mini.kube.wait(lambda: state(mini, "cpu-0").responding, bool, timeout=60)
    uid = pod(mini, "cpu-0")["metadata"]["uid"]
    mini.client().delete_nodes(["cpu-0"])
    done = reconcile({"grace": 1})
    assert kinds(done) == [("restart", "slurmd in Pod cpu-0")]
    mini.wait_for_nodes("cpu-0")
    wait_until_all_is_well(mini, reconcile)
    # The same Pod, and no mark left on it.
    assert pod(mini, "cpu-0")["metadata"]["uid"] == uid
    assert "slurm-ops.kubernetes/slurmd-restarted" not in pod(mini, "cpu-0")["metadata"].get("annotations", {})


def test_a_record_that_no_longer_matches_its_pod(mini: MiniSlurm, reconcile: Reconcile) -> None:
    job = job_on(mini, "cpu-1")
    mini.apply_nodesets(nodesets(cpus=3)[1:])
    mini.kube.delete(f"/api/v1/namespaces/{mini.namespace}/pods/cpu-0")
    mini.kube.wait(
        f"/api/v1/namespaces/{mini.namespace}/pods/cpu-0",
        lambda item: item and is_ready(item) and "CPUs=3" in str(item["spec"]["containers"][0]["args"]),
        timeout=60,
        what="cpu-0 has 3 CPUs",
    )
    mini.kube.wait(lambda: state(mini, "cpu-0").registered, bool, timeout=60)
    assert nodes(mini)["cpu-0"]["cpus"] == 2
    done = reconcile()
    took = [kind for kind, target in kinds(done) if target.endswith("cpu-0")]
    assert took == ["drain", "forget", "restart"]
    assert done["actions"][-1]["why"] == "CPUs=2 in its record, 3 declared"
    assert mini.wait_for_nodes("cpu-0")["cpu-0"]["cpus"] == 3
    assert job_state(mini, job) == "RUNNING"
    mini.client().cancel_jobs([int(job)])
    mini.apply_nodesets(nodesets()[1:])
    mini.kube.delete(f"/api/v1/namespaces/{mini.namespace}/pods/cpu-0")
    mini.kube.wait(
        lambda: bool(reconcile()["drift"]) or nodes(mini).get("cpu-0", {}).get("cpus"),
        lambda seen: seen == 2,
        timeout=90,
        what="cpu-0 has 2 CPUs again",
    )
    wait_until_all_is_well(mini, reconcile)


def test_a_stale_record(mini: MiniSlurm, reconcile: Reconcile) -> None:
    path = f"/apis/apps/v1/namespaces/{mini.namespace}/statefulsets/cpu"
    mini.kube.patch(path, {"spec": {"replicas": 1}})
    mini.kube.wait(lambda: mini.kube.find(f"/api/v1/namespaces/{mini.namespace}/pods/cpu-1"), lambda item: not item)
    assert kinds(reconcile({"only": ["drain", "forget"]})) == [("drain", "cpu-1")]
    mini.kube.wait(
        lambda: nodes(mini)["cpu-1"]["state"],
        lambda words: {"DOWN", "NOT_RESPONDING"} <= set(words),
        timeout=90,
        what="slurmctld has given cpu-1 up",
    )
    foretold_then_done_then_quiet(reconcile)
    assert "cpu-1" not in nodes(mini)
    mini.kube.patch(path, {"spec": {"replicas": 2}})
    mini.wait_for_nodes("cpu-1")
    wait_until_all_is_well(mini, reconcile)


def test_a_size_that_is_not_reached_is_told(mini: MiniSlurm, reconcile: Reconcile) -> None:
    quotas = f"/api/v1/namespaces/{mini.namespace}/resourcequotas"
    workload = f"/apis/apps/v1/namespaces/{mini.namespace}/statefulsets/cpu"
    full = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"}, "spec": {"hard": {"pods": "1"}}}
    mini.kube.create(quotas, full)
    mini.kube.wait(f"{quotas}/full", lambda quota: quota["status"].get("hard"), timeout=30)
    mini.kube.patch(workload, {"spec": {"replicas": 3}})
    try:
        found = reconcile()
        assert not found["changed"]
        assert any("3 nodes wanted, 2 Pods there" in line for line in found["drift"]), found["drift"]
    finally:
        mini.kube.patch(workload, {"spec": {"replicas": 2}})
        mini.kube.delete(f"{quotas}/full")
    wait_until_all_is_well(mini, reconcile)


def test_nodes_that_registered_less_than_declared(mini: MiniSlurm, reconcile: Reconcile) -> None:
    """GPUs without devices, which Slurm leaves out of the record; and a topology that Slurm refuses (INVALID_REG)."""
    common: Json = {"replicas": 1, "resources": SMALL}
    mini.apply_nodesets(
        [
            {**common, "name": "few", "gres": ["gpu:h100:4"]},
            {**common, "name": "lost", "extra_conf": {"Topology": "nosuch:leaf"}},
        ]
    )
    mini.kube.wait(
        lambda: (nodes(mini).get("few-0", {}).get("gres"), nodes(mini).get("lost-0", {}).get("state", ())),
        lambda seen: seen[0] == "" and "INVALID_REG" in seen[1],
        timeout=90,
        what="few-0 has no GPU, and lost-0 was refused",
    )
    for name in ("few-0", "lost-0"):
        mini.kube.wait(f"/api/v1/namespaces/{mini.namespace}/pods/{name}", is_ready, timeout=60)
    mine = {"nodesets": ["few", "lost"]}
    # Once, it may be that the record is only old.
    assert [kind for kind, target in kinds(reconcile(mine)) if "few-0" in target] == ["drain", "forget", "restart"]
    told = mini.kube.wait(
        lambda: [text for text in reconcile(mine)["drift"] if ": registered again" in text],
        bool,
        timeout=60,
        what="few-0 is told to have fewer GPUs than declared",
    )
    assert told == ["few-0: registered again and still not as declared: 0 gpu:h100 in its record, 4 declared"]
    assert nodes(mini)["few-0"]["reason"] == "k8s: registration: 0 gpu:h100 in its record, 4 declared"
    found = reconcile(mine)
    assert not found["changed"]
    refused = next(text for text in found["drift"] if text.startswith("lost-0: "))
    assert "Failed to set topology" in refused
    assert "Topology=nosuch:leaf" in refused
    assert all(state(mini, name).drain for name in ("few-0", "lost-0"))
    assert "SlurmNodeStateInvalidReg" in shown(pod(mini, "lost-0"))
    for name in ("few", "lost"):
        mini.kube.delete(f"/apis/apps/v1/namespaces/{mini.namespace}/statefulsets/{name}")
        path = f"/api/v1/namespaces/{mini.namespace}/pods/{name}-0"
        mini.kube.wait(lambda path=path: mini.kube.find(path), lambda item: not item)  # type: ignore[misc]
    mini.client().delete_nodes(["few-0", "lost-0"])


def test_a_node_that_is_deleted(mini: MiniSlurm, reconcile: Reconcile, node2: str) -> None:
    """The Node comes back as its kubelet would make it; its Pods have not been missed by then."""
    old = mini.kube.get(node2)
    mini.kube.delete(node2)
    try:
        reconcile({"only": ["drain"]})
        reasons = {item["reason"] for name, item in nodes(mini).items() if name in ON_NODE2}
    finally:
        kept = {key: old["metadata"].get(key) for key in ("name", "labels", "annotations")}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": kept, "spec": old["spec"]}
        mini.kube.create("/api/v1/nodes", node)
        mini.kube.patch(f"{node2}/status", {"status": old["status"]}, kind="strategic")
    assert reasons == {"k8s: not ready: the Node is gone"}
    wait_until_all_is_well(mini, reconcile)


# --- limits and locks -------------------------------------------------------------------------------------------------


def test_refusals_change_nothing(mini: MiniSlurm, reconcile: Reconcile, node2: str) -> None:
    mini.kube.patch(node2, {"spec": {"unschedulable": True}})
    for args, reason in (({"max_actions": "50%"}, "TooManyNodes"), ({"fail_on_drift": True}, "Drift")):
        failed = reconcile(args, fails=True)
        assert failed["reason"] == reason
        assert len(failed["remaining"]) == 3
        assert failed["api_calls"]["writes"] == 0
        assert not failed["changed"]
    assert not any(parse(item["state"]).drain for item in nodes(mini).values())
    assert reconcile({"max_actions": "lots"}, fails=True)["reason"] == "Invalid"
    mini.kube.patch(node2, {"spec": {"unschedulable": None}})
    assert not reconcile({"max_actions": "50%", "fail_on_drift": True})["changed"]


def test_two_runs_never_fight(
    mini: MiniSlurm, reconcile: Reconcile, node2: str, background: Callable[..., Future[Json]]
) -> None:
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{mini.namespace}/leases/{NAME}-reconcile"
    first = background({"watch": True, "duration": 14, "only": ["size"]})
    held = mini.kube.wait(lease, lambda item: item and item["spec"].get("holderIdentity"), timeout=30)
    mini.kube.patch(node2, {"spec": {"unschedulable": True}})
    failed = reconcile({"lock_timeout": 1}, fails=True)
    assert failed["reason"] == "Locked"
    assert failed["remaining"] == [held["spec"]["holderIdentity"]]
    assert not any(parse(item["state"]).drain for item in nodes(mini).values())
    # Two more wait for its end, and do each thing once between them.
    others = [background({"lock_timeout": 60}) for _count in range(2)]
    results = [other.result(timeout=90) for other in others]
    assert not first.result(timeout=30)["changed"]
    done = sorted(a["target"] for result in results for a in result["actions"] if a["kind"] == "drain" and a["done"])
    assert done == ON_NODE2
    assert not mini.kube.get(lease)["spec"]["holderIdentity"]
    mini.kube.patch(node2, {"spec": {"unschedulable": None}})
    wait_until_all_is_well(mini, reconcile)


@pytest.fixture
def background(reconcile: Reconcile) -> Iterator[Callable[..., Future[Json]]]:
    with ThreadPoolExecutor(max_workers=4) as pool:

        def start(args: Json, **more: Any) -> Future[Json]:
            time.sleep(0.3)  # each run has a folder of its own, by number
            return pool.submit(reconcile, args, **more)

        yield start


# --- resident ---------------------------------------------------------------------------------------------------------


def api_server(kubeconfig: str) -> int:
    """Process number of the sandbox's API server."""
    sandbox = str(Path(kubeconfig).parent).encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"/kube-apiserver") and any(sandbox in word for word in words):
                return int(entry.name)
    raise AssertionError("this test stops the API server of a sandbox, and finds none")


def test_resident(
    mini: MiniSlurm, kubeconfig: str, reconcile: Reconcile, node2: str, background: Callable[..., Future[Json]]
) -> None:
    """It follows both sides within seconds, and outlives what goes away."""
    run = background({"watch": True, "duration": 80, "interval": 20, "poll": 2}, timeout=200)
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{mini.namespace}/leases/{NAME}-reconcile"
    mini.kube.wait(lease, lambda item: item and item["spec"].get("holderIdentity"), timeout=30)

    def drained(yes: bool, timeout: float = 10) -> None:
        mini.kube.wait(
            lambda: [state(mini, name).drain for name in ON_NODE2],
            lambda drains: drains == [yes] * 3,
            timeout=timeout,
            what=f"nodes on node2 are {'' if yes else 'not '}drained",
        )

    begun = time.monotonic()
    mini.kube.patch(node2, {"spec": {"unschedulable": True}})
    drained(True)
    assert time.monotonic() - begun < 5
    mini.client().update_nodes(["cpu-0"], state="undrain")
    drained(True)
    mini.kube.patch(node2, {"spec": {"unschedulable": None}})
    drained(False)
    # The API server hangs for 20 s.
    process = api_server(kubeconfig)
    os.kill(process, signal.SIGSTOP)
    try:
        time.sleep(20)
    finally:
        os.kill(process, signal.SIGCONT)
    mini.kube.patch(node2, {"spec": {"unschedulable": True}})
    drained(True, timeout=45)
    # slurmrestd is killed, and slurmctld starts again.
    mini.scale("restapi", 0)
    mini.kube.patch(node2, {"spec": {"unschedulable": None}})
    time.sleep(3)
    mini.scale("restapi", 1)
    drained(False, timeout=30)
    mini.run("pkill slurmctld")
    mini.kube.patch(node2, {"spec": {"unschedulable": True}})
    drained(True, timeout=45)
    mini.kube.patch(node2, {"spec": {"unschedulable": None}})
    drained(False, timeout=30)
    found = run.result(timeout=120)
    assert found["duration"] < 130
    told = [item["reason"] for item in found["interruptions"]]
    assert told[0] == "Slow", found["interruptions"]
    assert set(told) & {"SlurmUnreachable", "ControllerUnreachable"}
    assert all(action["done"] for action in found["actions"])
    wait_until_all_is_well(mini, reconcile)


def test_a_side_that_cannot_be_read_means_no_write(mini: MiniSlurm, reconcile: Reconcile, node2: str) -> None:
    mini.scale("restapi", 0)
    mini.kube.patch(node2, {"spec": {"unschedulable": True}})
    failed = reconcile(fails=True)
    assert failed["reason"] == "SlurmUnreachable"
    assert failed["api_calls"]["writes"] == 0
    mini.kube.patch(node2, {"spec": {"unschedulable": None}})
    mini.scale("restapi", 1)
    assert reconcile({"name": "other"}, fails=True)["reason"] == "NoKey"


def test_the_guide(mini: MiniSlurm, run_playbook: Callable[..., PlaybookResult], node2: str) -> None:
    """The commands of docs/guides/reconcile.md, as they stand there, but for the time to stay."""
    guide = (CHECKOUT / "docs" / "guides" / "reconcile.md").read_text(encoding="utf-8")
    commands = re.findall(
        r"^    ansible-playbook slurm_ops\.kubernetes\.reconcile -i inventory/(.*)$", guide, re.MULTILINE
    )
    assert len(commands) == 3
    deployment = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)[0])
    deployment["metadata"]["namespace"] = mini.namespace
    path = f"/apis/apps/v1/namespaces/{mini.namespace}/deployments"
    # The schema and what admission says of it; its image is the reader's.
    assert mini.kube.create(f"{path}?dryRun=All&fieldValidation=Strict", deployment)["kind"] == "Deployment"
    mini.kube.patch(node2, {"metadata": {"annotations": {CORDON_REASON: "disk"}}, "spec": {"unschedulable": True}})
    for command in commands:
        given = dict(re.findall(r"-e (\w+)=(\S+)", command))
        given |= {"reconcile_watch_seconds": 3} if "reconcile_watch_seconds" in given else {}
        variables = {"slurm_namespace": mini.namespace, "reconcile_max_actions": "75%", **given}
        result = run_playbook("reconcile", extra_vars=variables, check="--check" in command)
        last = "\n".join(result.tasks[-1].result["msg"])
        assert last.startswith(f"{mini.namespace}/slurm: 4 nodes, ")
        if command == commands[0]:
            assert "cpu-0: to be drained: k8s: cordoned: disk" in last
            assert not any(state(mini, name).drain for name in ON_NODE2)
    assert all(state(mini, name).drain for name in ON_NODE2)


def test_the_rights_of_the_guide_are_enough(mini: MiniSlurm, reconcile: Reconcile, node2: str) -> None:
    """The operator's Role, and the ClusterRole that docs/guides/rbac.md shows."""
    kube, namespace, version = mini.kube, mini.namespace, "rbac.authorization.k8s.io/v1"
    rules = yaml.safe_load((CHECKOUT / "roles/cluster/files/operator-rules.yaml").read_text(encoding="utf-8"))["rules"]
    guide = (CHECKOUT / "docs" / "guides" / "rbac.md").read_text(encoding="utf-8")
    shown_there = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)[-1])
    assert shown_there["kind"] == "ClusterRole"
    name = f"{namespace}-{shown_there['metadata']['name']}"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ops"}}
    kube.apply(f"/api/v1/namespaces/{namespace}/serviceaccounts/ops", account)
    subject = {"kind": "ServiceAccount", "name": "ops", "namespace": namespace}
    rbac = f"/apis/{version}"
    for kind, where, own in (
        ("Role", f"{rbac}/namespaces/{namespace}/", rules),
        ("ClusterRole", f"{rbac}/", shown_there["rules"]),
    ):
        role = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "rules": own}
        kube.apply(f"{where}{kind.lower()}s/{name}", role)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        binding = {"apiVersion": version, "kind": f"{kind}Binding", "metadata": {"name": name}}
        kube.apply(f"{where}{kind.lower()}bindings/{name}", {**binding, "subjects": [subject], "roleRef": reference})
    account_of = {"impersonate_user": f"system:serviceaccount:{namespace}:ops"}
    try:
        mini.client().update_nodes(ON_NODE2, state="drain", reason="burn-in")
        reconcile({**account_of, "cordon": True})
        assert kube.get(node2)["spec"]["unschedulable"]
        mini.client().update_nodes(ON_NODE2, state="undrain")
        mini.client().delete_nodes(["cpu-0"])
        done = reconcile({**account_of, "grace": 1})
        assert {"uncordon", "show", "restart"} == {kind for kind, _target in kinds(done)}
        assert not reconcile({**account_of, "watch": True, "duration": 2})["interruptions"]
    finally:
        kube.delete(f"{rbac}/clusterroles/{name}")
        kube.delete(f"{rbac}/clusterrolebindings/{name}")
    failed = reconcile(account_of, fails=True)
    assert failed["reason"] == "Forbidden"
    mini.wait_for_nodes("cpu-0")
    wait_until_all_is_well(mini, reconcile)


@pytest.fixture
def oldest(kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    made = deploy("24.11", kube, kubeconfig, _namespaces("reconcile-2411"))
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")


def test_on_the_oldest_release(oldest: MiniSlurm, run_module: Callable[..., Json], node2: str) -> None:
    def run(args: Json | None = None, **more: Any) -> Json:
        return run_module("reconcile", {"namespace": oldest.namespace, "name": NAME, **(args or {})}, **more)

    cordon_main_path(oldest, run, node2)
