# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module reconcile on a real cluster: every row of its table."""

from __future__ import annotations

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import parse

from ..support.jobs import job_state
from ..support.kube import Json, Refused
from ..support.minislurm import NAME, MiniSlurm, is_ready
from .scene import (
    ON_NODE2,
    SMALL,
    Reconcile,
    cordon_main_path,
    foretold_then_done_then_quiet,
    job_on,
    kinds,
    nodes,
    nodesets,
    pod,
    shown,
    state,
    wait_until_all_is_well,
)


def test_a_converged_pass_is_six_calls(mini: MiniSlurm, reconcile: Reconcile) -> None:
    found = reconcile()
    assert not found["changed"]
    assert found["drift"] == []
    assert found["counts"]["nodes"] == 4
    assert found["api_calls"]["kubernetes"] + found["api_calls"]["slurm"] == 6
    assert found["api_calls"]["writes"] == 0


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
    assert [job_state(mini.run, job) for job in jobs] == ["RUNNING", "RUNNING"]
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
    assert job_state(mini.run, job) == "RUNNING"
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
