# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nodeset_scale against real Slurms: both kinds, jobs and people on what goes, interrupted runs, to zero and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .support.guides import inventory_of, playbook_of
from .support.jobs import job_state
from .support.kube import Json, Kube
from .support.minislurm import NAME, SMALL, MiniSlurm, versions_there
from .support.playbook import NO_INVENTORY, PlaybookResult

NODESETS: list[Json] = [
    {"name": "cpu", "replicas": 2, **SMALL},
    {"name": "metal", "kind": "node", "node_name_prefix": "m-", **SMALL},
]
LABEL = "slurm-ops.kubernetes/nodeset"
ANN = "bad disk, Ann"


@pytest.fixture(scope="module")
def machines(kube: Kube) -> list[str]:
    """Nodes, of which at least two are needed."""
    names = sorted(item["metadata"]["name"] for item in kube.items("/api/v1/nodes"))
    assert len(names) > 1
    return names


def deployed(kube: Kube, kubeconfig: str, namespace: str, version: str) -> Iterator[MiniSlurm]:
    assert version in versions_there(kube)
    made = MiniSlurm(kube, kubeconfig, namespace, version, NODESETS)
    made.deploy()
    made.wait_for_nodes("cpu-0", "cpu-1")
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")
    for item in kube.items("/api/v1/nodes", labelSelector=LABEL):
        kube.patch(f"/api/v1/nodes/{item['metadata']['name']}", {"metadata": {"labels": {LABEL: None}}})


@pytest.fixture(scope="module")
def mini(kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    yield from deployed(kube, kubeconfig, _namespaces("scale"), "26.05")


@pytest.fixture
def older(kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    yield from deployed(kube, kubeconfig, _namespaces("scale-2411"), "24.11")


Scale = Callable[..., Json]


@pytest.fixture
def scale(mini: MiniSlurm, run_module: Callable[..., Json]) -> Scale:
    return scaling(mini, run_module)


def scaling(mini: MiniSlurm, run_module: Callable[..., Json]) -> Scale:
    def run(nodeset: Json, *, check: bool = False, fails: bool = False, **args: Any) -> Json:
        common = {"namespace": mini.namespace, "name": NAME, "nodesets": [nodeset], "wait_timeout": 90}
        return run_module("nodeset_scale", {**common, **args}, check=check, fails=fails)

    return run


def actions(result: Json) -> list[tuple[str, str]]:
    return [(action["kind"], action["target"]) for action in result["actions"]]


def told_of(result: Json, nodeset: str) -> Json:
    return next(item for item in result["nodesets"] if item["name"] == nodeset)


def nodes(mini: MiniSlurm) -> dict[str, Json]:
    return {item["name"]: dict(item) for item in mini.client().nodes().items}


def job_on(mini: MiniSlurm, node: str, partition: str) -> int:
    command = f"cd /tmp && sbatch --parsable -n1 --mem=10 --time=10 -p {partition} -w {node} --wrap 'sleep 500'"
    number = int(mini.run(command, on="cpu-0").stdout.strip())
    mini.kube.wait(lambda: job_state(mini.run, number), lambda state: state == "RUNNING", timeout=30)
    return number


def test_replicas_with_jobs_on_what_goes(mini: MiniSlurm, scale: Scale) -> None:
    grown = scale({"name": "cpu", "replicas": 3})
    assert actions(grown) == [("scale", "NodeSet cpu")]
    told = told_of(grown, "cpu")
    assert (told["desired"], told["current"], told["ready"], told["drained"]) == (3, 3, 3, 0)
    again = scale({"name": "cpu", "replicas": 3})
    assert (again["changed"], again["api_calls"]["writes"]) == (False, 0)

    job = job_on(mini, "cpu-2", "cpu")
    refused = scale({"name": "cpu", "replicas": 2}, fails=True)
    assert (refused["reason"], refused["api_calls"]["writes"]) == ("RunningJobs", 0)
    gave_up = scale({"name": "cpu", "replicas": 2}, on_running_jobs="wait", wait_timeout=2, fails=True)
    assert gave_up["reason"] == "Timeout"
    assert gave_up["remaining"][0].startswith(f"job {job} of root on cpu-2 (")
    assert job_state(mini.run, job) == "RUNNING"
    # The size that it has: what the interrupted run had drained is given back.
    back = scale({"name": "cpu", "replicas": 3}, direction="out")
    assert actions(back) == [("undrain", "cpu-2")]

    predicted = scale({"name": "cpu", "replicas": 2}, on_running_jobs="requeue", check=True)
    smaller = scale({"name": "cpu", "replicas": 2}, on_running_jobs="requeue")
    expected = [("drain", "cpu-2"), ("requeue", f"job {job}"), ("scale", "NodeSet cpu"), ("forget", "cpu-2")]
    assert actions(smaller) == actions(predicted) == expected
    assert "cpu-2" not in nodes(mini)
    assert job_state(mini.run, job) == "PENDING"
    again = scale({"name": "cpu", "replicas": 2}, on_running_jobs="requeue")
    assert (again["changed"], again["api_calls"]["writes"]) == (False, 0)
    mini.client().cancel_jobs([job])


def test_a_leftover_record_is_forgotten_in_direction_out(mini: MiniSlurm, scale: Scale) -> None:
    """As if a run had ended between making the NodeSet smaller and forgetting its node."""
    path = f"/apis/apps/v1/namespaces/{mini.namespace}/statefulsets/cpu"
    mini.client().update_nodes(["cpu-1"], state="DRAIN", reason="k8s: scale-in: NodeSet cpu to 1")
    mini.kube.patch(path, {"spec": {"replicas": 1}})
    pod = f"/api/v1/namespaces/{mini.namespace}/pods/cpu-1"
    mini.kube.wait(lambda: mini.kube.find(pod), lambda found: found is None, timeout=60, what="cpu-1 is gone")
    assert "cpu-1" in nodes(mini)
    done = scale({"name": "cpu", "replicas": 2}, direction="out")
    assert actions(done) == [("forget", "cpu-1"), ("scale", "NodeSet cpu")]
    assert "DRAIN" not in nodes(mini)["cpu-1"]["state"]


def test_nodes_of_kind_node_to_a_number_and_back(
    mini: MiniSlurm, scale: Scale, kube: Kube, machines: list[str]
) -> None:
    first, second = machines[:2]
    predicted = scale({"name": "metal", "replicas": 2}, check=True)
    grown = scale({"name": "metal", "replicas": 2})
    assert actions(grown) == actions(predicted) == [("join", f"Node {first}"), ("join", f"Node {second}")]
    told = told_of(grown, "metal")
    assert (told["kind"], told["replicas"], told["desired"], told["ready"]) == ("node", 0, 2, 2)
    assert (told["feasible"], told["infeasible"]) == (len(machines), [])
    again = scale({"name": "metal", "replicas": 2})
    assert (again["changed"], again["api_calls"]["writes"]) == (False, 0)

    # The one with a job stays.
    job = job_on(mini, f"m-{first}", "metal")
    smaller = scale({"name": "metal", "replicas": 1})
    expected = [("drain", f"m-{second}"), ("leave", f"Node {second}"), ("forget", f"m-{second}")]
    assert actions(smaller) == expected
    assert job_state(mini.run, job) == "RUNNING"

    too_many = scale({"name": "metal", "replicas": len(machines) + 1}, fails=True)
    assert (too_many["reason"], too_many["api_calls"]["writes"]) == ("NotFeasible", 0)

    # Named Nodes: the one with the job goes, the other takes its place.
    swapped = scale({"name": "metal", "include": [second], "exclude": [first]}, on_running_jobs="cancel")
    assert actions(swapped) == [
        ("drain", f"m-{first}"),
        ("cancel", f"job {job}"),
        ("leave", f"Node {first}"),
        ("forget", f"m-{first}"),
        ("join", f"Node {second}"),
    ]
    assert kube.get(f"/api/v1/nodes/{second}")["metadata"]["labels"][LABEL] == "metal"

    # A person's drain outlives the node.
    mini.run(f"scontrol update nodename=m-{second} state=drain reason='{ANN}'")
    gone = scale({"name": "metal", "replicas": 0})
    assert actions(gone) == [("leave", f"Node {second}")]
    assert scale({"name": "metal", "replicas": 0})["api_calls"]["writes"] == 0
    assert nodes(mini)[f"m-{second}"]["reason"] == ANN
    back = scale({"name": "metal", "include": [second]})
    assert actions(back) == [("join", f"Node {second}")]
    assert told_of(back, "metal")["drained"] == 1
    assert nodes(mini)[f"m-{second}"]["reason"] == ANN
    mini.client().update_nodes([f"m-{second}"], state="UNDRAIN")


def test_an_interrupted_scale_in_of_kind_node_goes_on(
    mini: MiniSlurm, scale: Scale, kube: Kube, machines: list[str]
) -> None:
    first, second = machines[:2]
    scale({"name": "metal", "include": [first, second]})
    job = job_on(mini, f"m-{second}", "metal")
    gave_up = scale({"name": "metal", "exclude": [second]}, on_running_jobs="wait", wait_timeout=1, fails=True)
    assert gave_up["reason"] == "Timeout"
    assert kube.get(f"/api/v1/nodes/{second}")["metadata"]["labels"][LABEL] == "metal"
    # By number now: what had been begun goes on, though the other node is idle.
    done = scale({"name": "metal", "replicas": 1}, on_running_jobs="cancel")
    assert actions(done) == [("cancel", f"job {job}"), ("leave", f"Node {second}"), ("forget", f"m-{second}")]

    # Its Node is cordoned: told, and not taken when there are to be more.
    path = f"/api/v1/nodes/{second}"
    kube.patch(path, {"spec": {"unschedulable": True}})
    try:
        failed = scale({"name": "metal", "include": [second]}, fails=True)
        assert failed["reason"] == "NotFeasible"
        assert f"{second}  is cordoned" in failed["msg"]
        told = told_of(scale({"name": "metal", "replicas": 1}), "metal")
        assert {"kubernetes_node": second, "why": "is cordoned"} in told["infeasible"]
    finally:
        kube.patch(path, {"spec": {"unschedulable": None}})
    gone = scale({"name": "metal", "replicas": 0}, direction="in")
    assert [kind for kind, target in actions(gone)] == ["drain", "leave", "forget"]


def test_the_examples_of_the_guide_and_the_playbook(
    mini: MiniSlurm, run_playbook: Callable[..., PlaybookResult], tmp_path: Path
) -> None:
    done = run_playbook(playbook_of("scale.md", mini, tmp_path), inventory=NO_INVENTORY)
    assert all(task.changed for task in done.tasks)
    assert nodes(mini).keys() == {"cpu-0", "cpu-1"}

    inventory = inventory_of(mini, tmp_path)
    wanted = {"scale_nodeset": "cpu", "scale_replicas": "1", "scale_include": "", "scale_exclude": ""}
    predicted = run_playbook("scale", inventory=inventory, extra_vars=wanted, check=True)
    told = ["cpu would have 1 nodes", "found 2, ready 2, drained 0"]
    assert predicted.tasks[-1].result["msg"][:2] == told
    done = run_playbook("scale", inventory=inventory, extra_vars=wanted)
    assert done.tasks[-1].result["msg"][:2] == ["cpu has 1 nodes", "found 2, ready 1, drained 0"]
    assert run_playbook("scale", inventory=inventory, extra_vars=wanted).changed == []
    none = {"scale_nodeset": "metal", "scale_replicas": 0}
    told = run_playbook("scale", inventory=inventory, extra_vars=none).tasks[-1].result["msg"]
    assert told[:2] == ["metal has 0 nodes", "found 0, ready 0, drained 0"]


def test_an_older_slurm(older: MiniSlurm, run_module: Callable[..., Json], machines: list[str]) -> None:
    """24.11: both kinds; requeueing goes through scontrol."""
    scale, first = scaling(older, run_module), machines[0]
    job = job_on(older, "cpu-1", "cpu")
    smaller = scale({"name": "cpu", "replicas": 1}, on_running_jobs="requeue")
    expected = [("drain", "cpu-1"), ("requeue", f"job {job}"), ("scale", "NodeSet cpu"), ("forget", "cpu-1")]
    assert actions(smaller) == expected
    assert job_state(older.run, job) == "PENDING"
    assert actions(scale({"name": "metal", "replicas": 1})) == [("join", f"Node {first}")]
    gone = scale({"name": "metal", "replicas": 0})
    assert actions(gone) == [("drain", f"m-{first}"), ("leave", f"Node {first}"), ("forget", f"m-{first}")]
    assert scale({"name": "metal", "replicas": 0})["api_calls"]["writes"] == 0
