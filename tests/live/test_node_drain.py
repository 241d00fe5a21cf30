# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node_drain, node_drain_info and job_info against real Slurms: what becomes of jobs and of people's drains."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.token import SharedKey

from .support.guides import inventory_of, playbook_of
from .support.jobs import job_state
from .support.kube import Json, Kube
from .support.minislurm import NAME, SMALL, MiniSlurm, is_ready, versions_there
from .support.playbook import NO_INVENTORY, PlaybookResult

NODESETS: list[Json] = [
    {"name": "cpu", "replicas": 3, **SMALL},
]
NODES = ["cpu-0", "cpu-1", "cpu-2"]
ANN = "bad disk, Ann"


def deployed(kube: Kube, kubeconfig: str, namespace: str, version: str) -> MiniSlurm:
    assert version in versions_there(kube)
    made = MiniSlurm(kube, kubeconfig, namespace, version, NODESETS)
    made.deploy()
    made.wait_for_nodes(*NODES)
    return made


@pytest.fixture(scope="module")
def mini(kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    made = deployed(kube, kubeconfig, _namespaces("drain"), "26.05")
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")


@pytest.fixture
def older(kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    made = deployed(kube, kubeconfig, _namespaces("drain-2411"), "24.11")
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")


class Drains:
    """The modules, and what a person does beside them."""

    def __init__(self, mini: MiniSlurm, run_module: Callable[..., Json]) -> None:
        self.mini = mini
        self._run_module = run_module

    def module(self, name: str = "node_drain", /, *, check: bool = False, fails: bool = False, **args: Any) -> Json:
        common = {"namespace": self.mini.namespace, "name": NAME}
        return self._run_module(name, {**common, **args}, check=check, fails=fails)

    @contextmanager
    def meanwhile(self, **args: Any) -> Iterator[Future[Json]]:
        """Run node_drain in the background; it has drained the nodes when this goes on."""
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(self.module, **args)
            names = args["nodes"]
            self.mini.kube.wait(
                lambda: {name: self.states()[name] for name in names},
                lambda states: future.done() or all("DRAIN" in state for state in states.values()),
                timeout=30,
                what="the module has drained",
            )
            yield future

    def states(self) -> dict[str, list[str]]:
        return {item["name"]: list(item["state"]) for item in self.mini.client().nodes().items}

    def reasons(self) -> dict[str, str]:
        return {item["name"]: str(item["reason"]) for item in self.mini.client().nodes().items}

    def person(self, command: str) -> None:
        self.mini.run(f"scontrol update {command}")

    def job(self, node: str, *more: str) -> int:
        """A job that runs on a node."""
        options = " ".join(["-n1", "--mem=10", "--time=10", f"-w {node}", *more])
        said = self.mini.run(f"cd /tmp && sbatch --parsable {options} --wrap 'sleep 500'", on=node)
        number = int(said.stdout.strip())
        self.mini.kube.wait(lambda: job_state(self.mini.run, number), lambda state: state == "RUNNING", timeout=30)
        return number


def put_back(drains: Drains) -> None:
    """No job, no drain."""
    client = drains.mini.client()
    drains.mini.run("scancel --user=root", check=False)
    drains.mini.kube.wait(
        lambda: drains.mini.run("squeue -h -o '%i %T'").stdout, lambda jobs: not jobs.strip(), timeout=60, what="no job"
    )
    client.update_nodes(NODES, state="UNDRAIN")


@pytest.fixture
def drains(mini: MiniSlurm, run_module: Callable[..., Json]) -> Iterator[Drains]:
    made = Drains(mini, run_module)
    yield made
    put_back(made)


def actions(result: Json) -> list[tuple[str, str]]:
    return [(action["kind"], action["target"]) for action in result["actions"]]


def round_trip(drains: Drains) -> None:
    """Drained and given back, each predicted by check mode and done once."""
    wanted: Json = {"nodes": ["cpu-[0-1]"], "reason": "memory"}
    predicted = drains.module(check=True, **wanted)
    assert predicted["changed"]
    assert not any("DRAIN" in state for state in drains.states().values())
    done = drains.module(**wanted)
    assert actions(done) == actions(predicted) == [("drain", "cpu-0"), ("drain", "cpu-1")]
    assert done["drained"] == ["cpu-0", "cpu-1"]
    assert done["api_calls"]["writes"] == 1
    assert drains.reasons()["cpu-0"] == "k8s: memory"
    again = drains.module(**wanted)
    assert not again["changed"]
    assert again["api_calls"]["writes"] == 0
    assert drains.module(state="undrained", reason_pattern="disk", nodes=["cpu-0"])["left_alone"] == ["cpu-0"]
    back = drains.module(state="undrained", nodeset="cpu", reason_pattern="^k8s: mem")
    assert actions(back) == [("undrain", "cpu-0"), ("undrain", "cpu-1")]
    assert (back["drained"], back["draining"], back["left_alone"]) == ([], [], [])
    again = drains.module(state="undrained", nodeset="cpu")
    assert (again["changed"], again["api_calls"]["writes"]) == (False, 0)
    assert not any("DRAIN" in state for state in drains.states().values())


def test_drained_and_given_back(drains: Drains) -> None:
    round_trip(drains)


def test_an_unknown_name_is_refused_before_anything_is_written(drains: Drains) -> None:
    failed = drains.module(nodes=["cpu-0", "cpu-[7-8]"], reason="x", fails=True)
    assert (failed["reason"], failed["remaining"]) == ("UnknownNode", ["cpu-7", "cpu-8"])
    assert (failed["changed"], failed["api_calls"]["writes"]) == (False, 0)
    assert not any("DRAIN" in state for state in drains.states().values())
    assert drains.module(nodeset="nope", reason="x", fails=True)["reason"] == "NotFound"


def test_jobs_get_their_time_and_then_what_was_asked_for(drains: Drains) -> None:
    job = drains.job("cpu-0")
    gave_up = drains.module(nodes=["cpu-0"], reason="disk", wait_timeout=2, fails=True)
    assert gave_up["reason"] == "Timeout"
    assert gave_up["remaining"][0].startswith(f"job {job} of root on cpu-0 (")
    assert "min left)" in gave_up["msg"]
    assert job_state(drains.mini.run, job) == "RUNNING"

    found = drains.module("node_drain_info")
    assert (found["draining"], found["drained"]) == (["cpu-0"], [])
    only = found["nodes"][0]
    assert (only["by"], only["reason"], only["nodeset"]) == ("ours", "k8s: disk", "cpu")
    assert [(item["job_id"], item["user"]) for item in only["jobs"]] == [(job, "root")]
    assert 0 < only["jobs"][0]["time_left"] <= 600
    assert found["by"] == {"ours": 1, "person": 0, "slurm": 0, "unknown": 0}
    listed = drains.module("job_info", nodes=["cpu-0"], states=["running"])
    assert [item["job_id"] for item in listed["jobs"]] == [job]
    assert listed["summary"]["by_user"] == {"root": 1}
    assert listed["api_calls"]["writes"] == 0

    interactive = drains.job("cpu-1", "--no-requeue")
    wanted: Json = {"nodes": ["cpu-0"], "reason": "disk", "wait_timeout": 1, "on_running_jobs": "requeue"}
    predicted = drains.module(check=True, **wanted)
    requeued = drains.module(**wanted)
    assert actions(predicted) == actions(requeued) == [("requeue", f"job {job}")]
    assert job_state(drains.mini.run, job) == "PENDING"
    assert requeued["drained"] == ["cpu-0"]
    again = drains.module(**wanted)
    assert (again["changed"], again["api_calls"]["writes"]) == (False, 0)

    cancelled = drains.module(nodes=["cpu-1"], reason="disk", wait_timeout=0, on_running_jobs="cancel")
    assert actions(cancelled) == [("drain", "cpu-1"), ("cancel", f"job {interactive}")]
    assert all(action["done"] for action in cancelled["actions"])
    assert cancelled["drained"] == ["cpu-1"]


def test_what_a_person_drained_is_left_alone(drains: Drains) -> None:
    drains.person(f"nodename=cpu-0 state=drain reason='{ANN}'")
    done = drains.module(nodes=["cpu-[0-1]"], reason="power")
    assert actions(done) == [("drain", "cpu-1")]
    assert (done["drained"], done["left_alone"]) == (["cpu-0", "cpu-1"], ["cpu-0"])
    assert [(node["name"], node["by"]) for node in done["nodes"]] == [("cpu-0", "person"), ("cpu-1", "ours")]
    back = drains.module(nodeset="cpu", state="undrained")
    assert actions(back) == [("undrain", "cpu-1")]
    assert back["left_alone"] == ["cpu-0"]
    assert drains.reasons()["cpu-0"] == ANN

    taken = drains.module(nodes=["cpu-0"], reason="power", force=True)
    assert actions(taken) == [("drain", "cpu-0")]
    assert drains.reasons()["cpu-0"] == "k8s: power"
    assert drains.module(nodes=["cpu-0"], reason="power", force=True)["api_calls"]["writes"] == 0


def test_people_during_a_wait(drains: Drains) -> None:
    job = drains.job("cpu-0")
    with drains.meanwhile(nodes=["cpu-0"], reason="disk", wait_timeout=60) as running:
        drains.person(f"nodename=cpu-0 state=drain reason='{ANN}'")
        drains.mini.client().cancel_jobs([job])
        assert running.result(60)["drained"] == ["cpu-0"]
    assert drains.reasons()["cpu-0"] == ANN

    job = drains.job("cpu-1")
    with drains.meanwhile(nodes=["cpu-1"], reason="disk", wait_timeout=60, fails=True) as running:
        drains.person("nodename=cpu-1 state=resume")
        lost = running.result(60)
    assert lost["reason"] == "DrainLost"
    assert job_state(drains.mini.run, job) == "RUNNING"


def test_slurm_restarts_during_a_wait(drains: Drains) -> None:
    mini, job = drains.mini, drains.job("cpu-0")
    pods = f"/api/v1/namespaces/{mini.namespace}/pods"
    controller = f"{pods}/{NAME}-controller-0"

    def restarts() -> int:
        return int(mini.kube.get(controller)["status"]["containerStatuses"][0]["restartCount"])

    with drains.meanwhile(nodes=["cpu-0"], reason="disk", wait_timeout=200) as running:
        for pod in mini.kube.items(pods, labelSelector="app.kubernetes.io/component=restapi"):
            mini.kube.delete(f"{pods}/{pod['metadata']['name']}")
        before = restarts()
        mini.run("kill 1", check=False)
        mini.kube.wait(restarts, lambda count: count > before, timeout=60, what="slurmctld was started again")
        mini.kube.wait(controller, is_ready, timeout=60, what="slurmctld is ready")
        assert not running.done()
        mini.kube.wait(lambda: mini.run(f"scancel {job}", check=False).rc, lambda rc: rc == 0, timeout=60)
        assert running.result(120)["drained"] == ["cpu-0"]


def test_a_token_that_expires_during_a_wait(drains: Drains) -> None:
    job = drains.job("cpu-0")
    secret = drains.mini.kube.get(f"/api/v1/namespaces/{drains.mini.namespace}/secrets/{NAME}-auth")
    now = int(time.time())
    token = SharedKey(base64.b64decode(secret["data"]["jwt.key"])).sign(
        {"iat": now - 30, "exp": now + 8, "sun": "slurm"}
    )
    failed = drains.module(nodes=["cpu-0"], reason="disk", wait_timeout=60, slurm_token=token, fails=True)
    assert failed["reason"] == "TokenRefused"
    assert failed["changed"]
    assert failed["duration"] < 30
    assert token not in str(failed)
    assert job_state(drains.mini.run, job) == "RUNNING"


def test_nodes_are_cordoned_and_only_ours_are_uncordoned(drains: Drains, kube: Kube) -> None:
    pods = kube.items(f"/api/v1/namespaces/{drains.mini.namespace}/pods")
    on = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods}
    first = on["cpu-0"]
    path = f"/api/v1/nodes/{first}"
    there = sorted(name for name in NODES if on[name] == first)
    wanted: Json = {"kubernetes_nodes": [first], "cordon": True}
    try:
        predicted = drains.module(check=True, reason="power", **wanted)
        done = drains.module(reason="power", **wanted)
        expected = [*(("drain", name) for name in there), ("cordon", f"Node {first}")]
        assert actions(done) == actions(predicted) == expected
        assert kube.get(path)["spec"]["unschedulable"]
        assert drains.module(reason="power", **wanted)["api_calls"]["writes"] == 0
        selector = f"kubernetes.io/hostname={kube.get(path)['metadata']['labels']['kubernetes.io/hostname']}"
        back = drains.module(state="undrained", label_selector=selector, cordon=True)
        assert actions(back) == [("uncordon", f"Node {first}"), *(("undrain", name) for name in there)]
        assert "unschedulable" not in kube.get(path)["spec"]
        assert "slurm-ops.kubernetes/cordoned" not in (kube.get(path)["metadata"].get("annotations") or {})
        kube.patch(path, {"spec": {"unschedulable": True}})
        assert not drains.module(state="undrained", **wanted)["changed"]
        assert kube.get(path)["spec"]["unschedulable"]
    finally:
        kube.patch(path, {"spec": {"unschedulable": None}})
    failed = drains.module(kubernetes_nodes=["nowhere"], reason="x", fails=True)
    assert (failed["reason"], failed["remaining"]) == ("UnknownNode", ["nowhere"])


def test_the_examples_of_the_guide(drains: Drains, run_playbook: Callable[..., PlaybookResult], tmp_path: Path) -> None:
    job = drains.job("cpu-2")
    done = run_playbook(playbook_of("drain.md", drains.mini, tmp_path), inventory=NO_INVENTORY)
    assert [task.changed for task in done.tasks] == [True, True, False, False, True, True, True]
    assert actions(done.tasks[1].result) == [("drain", "cpu-2"), ("cancel", f"job {job}")]
    assert len(done.tasks[2].result["nodes"]) == 3


def test_the_playbooks(drains: Drains, run_playbook: Callable[..., PlaybookResult], tmp_path: Path) -> None:
    inventory = inventory_of(drains.mini, tmp_path)
    wanted = {"drain_nodes": "cpu-[0,2]", "drain_nodeset": "", "drain_reason": "fans", "drain_wait_timeout": "60"}
    predicted = run_playbook("drain", inventory=inventory, extra_vars=wanted, check=True)
    assert predicted.tasks[-1].result["msg"][0] == "would be drained: cpu-[0,2]"
    done = run_playbook("drain", inventory=inventory, extra_vars=wanted)
    assert done.tasks[-1].result["msg"][:3] == [
        "drained: cpu-[0,2]",
        "empty: cpu-[0,2]",
        "jobs still run on: none",
    ]
    assert run_playbook("drain", inventory=inventory, extra_vars=wanted).changed == []
    back = run_playbook("undrain", inventory=inventory, extra_vars={"undrain_nodeset": "cpu", "undrain_nodes": ""})
    assert back.tasks[-1].result["msg"] == ["given back: cpu-[0,2]", "left alone: none"]


@pytest.mark.parametrize(
    ("playbook", "variables", "missing"),
    [
        ("drain", {"drain_nodes": "cpu-0"}, "drain_reason, and exactly one of drain_nodes, drain_nodeset,"),
        ("drain", {"drain_nodes": "", "drain_reason": "fan"}, "exactly one of drain_nodes, drain_nodeset,"),
        ("undrain", {"drain_nodes": "cpu-0"}, "exactly one of undrain_nodes, undrain_nodeset,"),
        ("undrain", {"undrain_nodes": "cpu-0", "undrain_nodeset": "cpu"}, "exactly one of undrain_nodes,"),
    ],
)
def test_playbooks_name_their_variables(
    run_playbook: Callable[..., PlaybookResult], playbook: str, variables: Json, missing: str
) -> None:
    refused = run_playbook(playbook, extra_vars=variables, fails=True)
    assert missing in refused.failed[-1].result["msg"]


def test_an_older_slurm(older: MiniSlurm, run_module: Callable[..., Json]) -> None:
    """24.11, which cannot requeue over REST."""
    drains = Drains(older, run_module)
    round_trip(drains)
    job = drains.job("cpu-0")
    wanted: Json = {"nodes": ["cpu-0"], "reason": "disk", "wait_timeout": 0, "on_running_jobs": "requeue"}
    done = drains.module(**wanted)
    assert actions(done) == [("drain", "cpu-0"), ("requeue", f"job {job}")]
    assert (done["drained"], job_state(drains.mini.run, job)) == (["cpu-0"], "PENDING")
    assert drains.module(**wanted)["api_calls"]["writes"] == 0
