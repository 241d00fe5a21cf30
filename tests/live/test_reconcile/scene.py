# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The small cluster that is reconciled, and what tests look at: workers of both kinds, most of them on one Node."""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import NodeState, parse

from ..support.jobs import job_state
from ..support.kube import Json, Kube
from ..support.minislurm import ANYWHERE, MiniSlurm, is_ready, versions_there

SMALL = {"requests": {"cpu": "20m", "memory": "64Mi"}}
CORDON_REASON = "slurm-ops.kubernetes/cordon-reason"
ON_NODE2 = ["cpu-0", "cpu-1", "e-node2"]

Reconcile = Callable[..., Json]


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


def nodes(mini: MiniSlurm) -> dict[str, Json]:
    return {item["name"]: dict(item) for item in mini.client().nodes().items}


def state(mini: MiniSlurm, name: str) -> NodeState:
    return parse(nodes(mini)[name]["state"])


def kinds(result: Json) -> list[tuple[str, str]]:
    return [(action["kind"], action["target"]) for action in result["actions"]]


def pod(mini: MiniSlurm, name: str) -> Json:
    return mini.kube.get(f"/api/v1/namespaces/{mini.namespace}/pods/{name}")


def shown(item: Json) -> dict[str, str]:
    return {
        entry["type"]: entry.get("message", "")
        for entry in item["status"]["conditions"]
        if entry["type"].startswith("Slurm")
    }


def job_on(mini: MiniSlurm, node: str) -> str:
    """A job that runs there until it is cancelled."""
    partition = "each" if node.startswith("e-") else "cpu"
    submit = f"cd /tmp && sbatch --parsable -p {partition} -w {node} -n1 --mem=10 --wrap 'sleep 300'"
    job = mini.run(submit, on="slurm-controller-0").stdout.strip()
    mini.kube.wait(lambda: job_state(mini.run, job), lambda word: word == "RUNNING", timeout=40, what=f"job {job} runs")
    return job


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


def wait_until_all_is_well(mini: MiniSlurm, reconcile: Reconcile) -> None:
    """Every worker is there and ready, and reconciliation has given everything back and has nothing left to do."""

    def left() -> list[str]:
        found = list(reconcile()["drift"])
        found += [name for name, item in nodes(mini).items() if parse(item["state"]).drain]
        found += {"cpu-0", "cpu-1", "e-node1", "e-node2"} - nodes(mini).keys()
        pods = mini.kube.items(f"/api/v1/namespaces/{mini.namespace}/pods")
        return found + [item["metadata"]["name"] for item in pods if not is_ready(item)]

    mini.kube.wait(left, lambda left: not left, timeout=90, what="both sides agree and nothing is drained")


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
    assert job_state(mini.run, job) == "RUNNING"
    mini.client().cancel_jobs([int(job)])
    mini.kube.wait(lambda: state(mini, "cpu-0").drained, bool, timeout=40, what="cpu-0 is drained")
    mini.kube.patch(node2, {"metadata": {"annotations": {CORDON_REASON: None}}, "spec": {"unschedulable": None}})
    mini.client().update_nodes(["e-node2"], state="undrain")
    undone = foretold_then_done_then_quiet(reconcile)
    assert {kind for kind, _target in kinds(undone)} == {"unprotect", "undrain", "show"}
    assert not any(state(mini, name).drain for name in ON_NODE2)
    assert shown(mini.kube.get(node2)) == {}
