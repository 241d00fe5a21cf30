# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node_drain_info, job_info and the choice of nodes on made-up sides: what is found, told and documented."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import yaml

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import COMPONENT, NODESET
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.drain import CORDONED
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import draining
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.drain import NodeDrain
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, stages
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.targets import BY, hostlist_option, read_targets
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.token import GivenToken
from ansible_collections.slurm_ops.kubernetes.plugins.modules import job_info, node_drain, node_drain_info

from ..module_utils._slurm.fake_slurm import Slurm

Object = dict[str, Any]


class Kubernetes:
    """Three Nodes and three worker Pods, two of them on the first Node, one that Slurm does not know."""

    warnings = ()

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.patched: list[tuple[str, Any]] = []
        self.nodes = {name: {"metadata": {"name": name, "labels": {}, "annotations": {}}, "spec": {}} for name in "abc"}
        self.nodes["a"]["metadata"]["labels"] = {"rack": "r1"}
        self.pods = [pod("cpu-0", "cpu", "a"), pod("cpu-1", "cpu", "a"), pod("gpu-0", "gpu", "b")]

    def list(self, resource: Any, namespace: str | None = None, *, labels: str = "") -> Sequence[Object]:
        self.calls["list"] += 1
        if resource.kind == "Pod":
            return self.pods
        key, _equals, value = labels.partition("=")
        return [item for item in self.nodes.values() if not key or item["metadata"]["labels"].get(key) == value]

    def patch(self, resource: Any, namespace: str | None, name: str, change: Object) -> None:
        self.patched.append((name, change))
        self.nodes[name]["metadata"]["annotations"] = {
            key: value for key, value in change["metadata"]["annotations"].items() if value is not None
        }
        self.nodes[name]["spec"] = change["spec"]

    def map_concurrent(
        self, work: Callable[[Any], Any], items: Sequence[Any], workers: int = 16
    ) -> Iterator[tuple[Any, Any]]:
        for item in items:
            yield item, work(item)


def pod(name: str, nodeset: str, on: str) -> Object:
    labels = {COMPONENT: "worker", NODESET: nodeset}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": on}, "status": {}}


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> Slurm:
    made = Slurm()
    made.node("cpu-0", "IDLE+DRAIN", "k8s: disk", reason_changed_at={"set": True, "number": 1795258652})
    made.node("cpu-1", "IDLE+DRAIN", "bad disk, Ann")
    made.node("old-0", "IDLE+DRAIN", "Prolog error")
    made.job(7, "cpu-0", partition="cpu", job_state=["RUNNING"])
    made.job(8, "cpu-1", user="bob", job_state=["COMPLETED"])
    made.end(8, "COMPLETED")

    def client_of(_kubernetes: Any, _params: Any, calls: Counter[str]) -> SlurmClient:
        return SlurmClient(made, GivenToken("t"), calls=calls)

    monkeypatch.setattr(draining, "client_of", client_of)
    return made


@pytest.fixture
def kubernetes() -> Kubernetes:
    return Kubernetes()


@pytest.fixture
def run_of(kubernetes: Kubernetes, slurm: Slurm) -> Callable[..., Run]:
    def make(**params: Any) -> Run:
        run = Run({"namespace": "hpc", "name": "slurm", **dict.fromkeys(BY), **params}, "slurm")
        run._kubernetes = kubernetes  # type: ignore[assignment]
        return run

    return make


RunOf = Callable[..., Run]


def test_what_is_drained_is_told_as_documented(run_of: RunOf) -> None:
    found = node_drain_info.read(run_of())
    documented = yaml.safe_load(node_drain_info.RETURN)
    assert set(documented) == {*found, "api_calls", "duration"}
    assert set(documented["nodes"]["sample"][0]) == set(found["nodes"][0])
    assert set(documented["nodes"]["sample"][0]["jobs"][0]) == set(found["nodes"][0]["jobs"][0])
    assert set(documented["by"]["sample"]) == set(found["by"])
    assert [(node["name"], node["by"], node["nodeset"], node["since"]) for node in found["nodes"]] == [
        ("cpu-0", "ours", "cpu", "2026-11-21T10:57:32Z"),
        ("cpu-1", "person", "cpu", None),
        ("old-0", "slurm", None, None),
    ]
    assert (found["drained"], found["draining"]) == (["cpu-1", "old-0"], ["cpu-0"])
    assert found["by"] == {"ours": 1, "person": 1, "slurm": 1, "unknown": 0}


FILTERS = ("job_ids", "users", "partitions", "states", "nodes")


def test_jobs_are_told_as_documented(run_of: RunOf) -> None:
    found = job_info.read(run_of(**dict.fromkeys(FILTERS)))
    documented = yaml.safe_load(job_info.RETURN)
    assert set(documented) == {*found, "api_calls", "duration"}
    assert set(documented["jobs"]["sample"][0]) == set(found["jobs"][0])
    assert [job["job_id"] for job in found["jobs"]] == [7, 8]
    assert found["summary"]["by_user"] == {"ann": 1, "bob": 1}


def test_jobs_are_read_with_one_call(run_of: RunOf) -> None:
    run = run_of(**dict.fromkeys(FILTERS) | {"nodes": ["cpu-[0", "1]"], "states": ["running"]})
    found = job_info.read(run)
    assert [job["job_id"] for job in found["jobs"]] == [7]
    assert run.slurm_calls == {"get": 2}  # one is the ping that finds the parser
    assert run.kubernetes_calls == {}


def test_host_lists_that_ansible_cut_are_whole_again() -> None:
    assert hostlist_option(["cpu-[0", "2]", "gpu-1"]) == ["cpu-0", "cpu-2", "gpu-1"]


@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({}, ["cpu-0", "cpu-1", "old-0"]),
        ({"nodes": ["cpu-1", "cpu-[0-1]"]}, ["cpu-1", "cpu-0"]),
        ({"nodeset": "cpu"}, ["cpu-0", "cpu-1"]),
        ({"nodeset": "old"}, ["old-0"]),
        ({"kubernetes_nodes": ["a"]}, ["cpu-0", "cpu-1"]),
        ({"label_selector": "rack=r1"}, ["cpu-0", "cpu-1"]),
        ({"label_selector": "rack=r9"}, []),
    ],
)
def test_nodes_are_found(run_of: RunOf, params: Object, names: list[str]) -> None:
    run = run_of(**params)
    assert read_targets(run, draining.Draining(run)).names == names


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"nodes": ["cpu-9"]}, "UnknownNode"),
        ({"nodes": ["cpu-[0-"]}, "InvalidHostlist"),
        ({"nodeset": "nope"}, "NotFound"),
        ({"kubernetes_nodes": ["a", "z"]}, "UnknownNode"),
    ],
)
def test_what_is_not_there_is_told(run_of: RunOf, params: Object, reason: str) -> None:
    run = run_of(**params)
    with pytest.raises(OperationError) as caught:
        read_targets(run, draining.Draining(run))
    assert caught.value.reason == reason


def test_workers_without_a_record_and_nodes_without_a_worker_are_told(run_of: RunOf) -> None:
    run = run_of(kubernetes_nodes=["b", "c"])
    assert read_targets(run, draining.Draining(run)).names == []
    assert run.warnings == [
        "No worker of this cluster is on c.",
        "Slurm does not know gpu-0, whose Pod is there: it has no state to change.",
    ]


def carried_out(run: Run) -> Object:
    work = NodeDrain(run)
    run.actions += work.plan()
    for batch in stages(run.actions):
        work.act(batch)
    work.wait()
    return dict(work.result())


def test_nodes_are_cordoned_and_given_back(run_of: RunOf, kubernetes: Kubernetes, slurm: Slurm) -> None:
    defaults = {
        "state": "drained", "reason": "fans", "reason_pattern": None, "cordon": True, "force": False, "wait": False,
        "on_running_jobs": "wait", "wait_timeout": 1, "wait_sleep": 1, "kubernetes_nodes": ["a"],
    }  # fmt: skip
    slurm.node("cpu-2", features=["cpu"])
    kubernetes.pods.append(pod("cpu-2", "cpu", "a"))
    run = run_of(**defaults)
    result = carried_out(run)
    assert [(action.kind, action.target) for action in run.actions] == [("drain", "cpu-2"), ("cordon", "Node a")]
    assert kubernetes.nodes["a"]["metadata"]["annotations"] == {CORDONED: "k8s: fans"}
    assert result["left_alone"] == ["cpu-1"]
    documented = yaml.safe_load(node_drain.RETURN)
    assert set(documented["nodes"]["sample"][0]) == set(result["nodes"][0])
    assert set(result) < set(documented)
    # Not while cpu-0, which we drained for another reason, is there.
    run = run_of(**defaults | {"state": "undrained", "reason_pattern": "fans"})
    carried_out(run)
    assert [(action.kind, action.target) for action in run.actions] == [("undrain", "cpu-2")]
    run = run_of(**defaults | {"state": "undrained"})
    carried_out(run)
    assert [(action.kind, action.target) for action in run.actions] == [("uncordon", "Node a"), ("undrain", "cpu-0")]
    assert kubernetes.patched[-1] == (
        "a",
        {"metadata": {"annotations": {CORDONED: None}}, "spec": {"unschedulable": None}},
    )
