# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module nodeset_scale on made-up sides: what is done in which order, and what an interrupted run leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import CLUSTER, COMPONENT, NODESET
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import draining, scale
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, carry_out, stages
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.scale import NodeSetScale
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.token import GivenToken

from .._slurm.fake_slurm import Slurm

Object = dict[str, Any]
OURS = "k8s: scale-in: NodeSet cpu to 1"
ANN = "bad disk, Ann"


class Kubernetes:
    """As much of a KubernetesClient as scaling uses, with controllers and slurmds that are done at once."""

    warnings = ()

    def __init__(self, slurm: Slurm) -> None:
        self.slurm = slurm
        self.calls: Counter[str] = Counter()
        self.written: list[tuple[str, str, Any]] = []
        self.nodes = {name: node(name) for name in ("n1", "n2", "n3")}
        self.cpu = workload("StatefulSet", "cpu", replicas=2)
        self.metal = workload("DaemonSet", "metal", template={"spec": {"nodeSelector": {NODESET: "metal"}}})
        self.workloads = [self.cpu, self.metal]
        self.pods: dict[str, Object] = {}
        self.reconcile()

    def reconcile(self) -> None:
        wanted = {f"cpu-{number}": ("cpu", "n1") for number in range(self.cpu["spec"]["replicas"])}
        for name, item in self.nodes.items():
            if item["metadata"]["labels"].get(NODESET) == "metal":
                wanted[f"m-{name}"] = ("metal", name)
        for name in self.pods.keys() - wanted.keys():
            del self.pods[name]
            if name in self.slurm.nodes:
                self.slurm.nodes[name]["state"][0] = "DOWN"
        for name, (nodeset, on) in wanted.items():
            if name not in self.pods:
                self.pods[name] = pod(name, nodeset, on)
                known = self.slurm.nodes.get(name)
                words = ["IDLE", *(known["state"][1:] if known else ["DYNAMIC_NORM"])]
                self.slurm.node(name, "+".join(words), known["reason"] if known else "", features=[nodeset])

    def list(self, resource: Any, namespace: str | None = None, *, labels: str = "") -> list[Object]:
        self.calls["list"] += 1
        if resource.kind == "Pod":
            return list(self.pods.values())
        if resource.kind == "Node":
            return list(self.nodes.values())
        return [item for item in self.workloads if item["kind"] == resource.kind]

    def patch(self, resource: Any, namespace: str | None, name: str, change: Object) -> None:
        self.written.append((resource.kind, name, change))
        if resource.kind == "Node":
            self.nodes[name]["metadata"]["labels"] |= change["metadata"]["labels"]
        else:
            self.cpu["spec"] |= change["spec"]
        self.reconcile()

    def delete(self, resource: Any, namespace: str, name: str, *, propagation: str) -> None:
        self.written.append((resource.kind, name, None))
        self.workloads.remove(self.cpu)
        self.cpu["spec"]["replicas"] = 0
        self.reconcile()

    def map_concurrent(
        self, work: Callable[[Any], Any], items: Sequence[Any], workers: int = 16
    ) -> Iterator[tuple[Any, Any]]:
        for item in items:
            yield item, work(item)


def node(name: str) -> Object:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "labels": {}}, "spec": {}, "status": status}


def workload(kind: str, name: str, **spec: Any) -> Object:
    return {"kind": kind, "metadata": {"name": name, "labels": {CLUSTER: "slurm", NODESET: name}}, "spec": spec}


def pod(name: str, nodeset: str, on: str) -> Object:
    labels = {COMPONENT: "worker", NODESET: nodeset}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": name, "labels": labels, "creationTimestamp": "2026-11-21T10:00:00Z"}
    return {"metadata": metadata, "spec": {"nodeName": on}, "status": status}


@pytest.fixture
def slurm() -> Slurm:
    return Slurm()


@pytest.fixture
def kubernetes(slurm: Slurm) -> Kubernetes:
    return Kubernetes(slurm)


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch, slurm: Slurm) -> None:
    """No network, and no time but that of pauses."""
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    def client_of(_kubernetes: Any, _params: Any, calls: Counter[str]) -> SlurmClient:
        return SlurmClient(slurm, GivenToken("t"), calls=calls, pause=pause)

    real = draining.wait_until

    def wait_until(*args: Any, **more: Any) -> None:
        real(*args, **more, clock=lambda: now[0], pause=pause)

    monkeypatch.setattr(draining, "client_of", client_of)
    for module in (draining, scale):
        monkeypatch.setattr(module, "wait_until", wait_until)


@pytest.fixture
def prepared(kubernetes: Kubernetes) -> Callable[..., tuple[Run, NodeSetScale]]:
    def prepare(*nodesets: Object, **options: Any) -> tuple[Run, NodeSetScale]:
        empty = dict.fromkeys(("replicas", "include", "exclude", "cpus", "memory_mib", "gres"))
        params = {
            "namespace": "hpc", "name": "slurm", "prune": False, "direction": "both", "on_running_jobs": "refuse",
            "wait": True, "wait_timeout": 60, "wait_sleep": 2, **options,
            "nodesets": [empty | item for item in nodesets],
        }  # fmt: skip
        run = Run(params, "slurm")
        run._kubernetes = kubernetes  # type: ignore[assignment]
        return run, NodeSetScale(run)

    return prepare


Prepared = Callable[..., tuple[Run, NodeSetScale]]


def kinds(actions: Sequence[Action]) -> list[tuple[str, str]]:
    return [(action.kind, action.target) for action in actions]


def nothing_is_left(
    prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm, *nodesets: Object, **options: Any
) -> None:
    kubernetes.written.clear()
    slurm.written.clear()
    run, work = prepared(*nodesets, **options)
    carry_out(run, work)
    assert (run.actions, kubernetes.written, slurm.written) == ([], [], [])


@pytest.mark.parametrize("size", [0, 1, 2, 4])
def test_replicas_come_to_their_number(prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm, size: int) -> None:
    run, work = prepared({"name": "cpu", "replicas": size})
    result = carry_out(run, work)
    assert sorted(slurm.nodes) == sorted(f"cpu-{number}" for number in range(size))
    assert all(action.done for action in run.actions)
    told = result["nodesets"][0]
    assert (told["replicas"], told["desired"], told["current"], told["ready"]) == (2, size, size, size)
    assert told["feasible"] is None
    nothing_is_left(prepared, kubernetes, slurm, {"name": "cpu", "replicas": size})


@pytest.mark.parametrize("size", [0, 1, 3])
def test_nodes_come_to_their_number(prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm, size: int) -> None:
    carry_out(*prepared({"name": "metal", "replicas": 2}))
    assert {name for name in slurm.nodes if name.startswith("m-")} == {"m-n1", "m-n2"}
    run, work = prepared({"name": "metal", "replicas": size})
    result = carry_out(run, work)
    told = next(item for item in result["nodesets"] if item["name"] == "metal")
    assert (told["replicas"], told["desired"], told["current"], told["ready"], told["feasible"]) == (
        2,
        size,
        size,
        size,
        3,
    )
    assert len([name for name in slurm.nodes if name.startswith("m-")]) == size
    nothing_is_left(prepared, kubernetes, slurm, {"name": "metal", "replicas": size})


def test_a_size_that_nobody_names_is_left_alone_without_reading_nodes(
    prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm
) -> None:
    nothing_is_left(prepared, kubernetes, slurm, {"name": "cpu"}, {"name": "metal"}, wait=False)
    assert kubernetes.calls["list"] == 3


def test_a_drain_comes_before_a_node_goes(prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm) -> None:
    slurm.job(7, "cpu-1")
    run, work = prepared({"name": "cpu", "replicas": 1}, on_running_jobs="wait")
    with pytest.raises(OperationError) as caught:
        carry_out(run, work)
    assert caught.value.reason == "Timeout"
    assert caught.value.remaining[0].startswith("job 7 of ann on cpu-1")
    assert kubernetes.written == []
    assert [(action.kind, action.done) for action in run.actions] == [
        ("drain", True),
        ("scale", False),
        ("forget", False),
    ]
    # Run again with the size that it has, in either direction that can grow.
    run, work = prepared({"name": "cpu", "replicas": 2}, direction="out", wait=False)
    carry_out(run, work)
    assert kinds(run.actions) == [("undrain", "cpu-1")]


@pytest.mark.parametrize("policy", ["requeue", "cancel"])
def test_jobs_are_ended_at_once_if_asked(prepared: Prepared, slurm: Slurm, policy: str) -> None:
    slurm.job(7, "cpu-1")
    run, work = prepared({"name": "cpu", "replicas": 1}, on_running_jobs=policy)
    carry_out(run, work)
    assert kinds(run.actions)[:2] == [("drain", "cpu-1"), (policy, "job 7")]
    assert "cpu-1" not in slurm.nodes


@pytest.mark.parametrize("direction", ["out", "both"])
def test_a_leftover_of_an_interrupted_run_is_forgotten(
    prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm, direction: str
) -> None:
    slurm.node("cpu-2", "DOWN+DRAIN+DYNAMIC_NORM", OURS, features=["cpu"])
    slurm.node("cpu-3", "DOWN+DRAIN+DYNAMIC_NORM", ANN, features=["cpu"])
    run, work = prepared({"name": "cpu", "replicas": 2}, direction=direction)
    carry_out(run, work)
    assert kinds(run.actions) == [("forget", "cpu-2")]
    assert slurm.nodes["cpu-3"]["reason"] == ANN
    nothing_is_left(prepared, kubernetes, slurm, {"name": "cpu", "replicas": 2}, direction=direction)


@pytest.mark.parametrize("direction", ["in", "out", "both"])
def test_a_leftover_of_kind_node_is_forgotten(prepared: Prepared, slurm: Slurm, direction: str) -> None:
    slurm.node("m-n9", "DOWN+DRAIN+DYNAMIC_NORM", "k8s: scale-in: NodeSet metal to 0", features=["metal"])
    run, work = prepared({"name": "metal", "replicas": 0}, direction=direction)
    carry_out(run, work)
    assert kinds(run.actions) == [("forget", "m-n9")]


def test_a_record_whose_pod_may_come_back_is_no_leftover(
    prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm
) -> None:
    """A Pod that is being made anew is not there for a moment."""
    del kubernetes.pods["cpu-1"]
    slurm.nodes["cpu-1"] |= {"state": ["DOWN", "DRAIN", "DYNAMIC_NORM"], "reason": OURS}
    run, work = prepared({"name": "cpu", "replicas": 2}, wait=False)
    run.actions += work.plan()
    assert kinds(run.actions) == [("undrain", "cpu-1")]


def test_a_person_drained_what_goes(prepared: Prepared, slurm: Slurm) -> None:
    carry_out(*prepared({"name": "metal", "replicas": 1}))
    slurm.node("m-n1", "IDLE+DRAIN+DYNAMIC_NORM", ANN, features=["metal"])
    run, work = prepared({"name": "metal", "replicas": 0})
    carry_out(run, work)
    assert kinds(run.actions) == [("leave", "Node n1")]
    assert slurm.nodes["m-n1"]["reason"] == ANN
    run, work = prepared({"name": "metal", "replicas": 1})
    carry_out(run, work)
    assert "DRAIN" in slurm.nodes["m-n1"]["state"]


def test_a_person_drained_it_while_it_went(prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm) -> None:
    run, work = prepared({"name": "cpu", "replicas": 1})
    run.actions += work.plan()
    batches = stages(run.actions)
    work.act(batches[0])
    work.act(batches[1])
    slurm.nodes["cpu-1"]["reason"] = ANN
    work.act(batches[2])
    assert kinds(run.actions) == [("drain", "cpu-1"), ("scale", "NodeSet cpu")]
    assert slurm.nodes["cpu-1"]["reason"] == ANN


@pytest.mark.parametrize(
    ("nodeset", "reason"),
    [
        ({"name": "cpu", "include": ["n1"]}, "InvalidOptions"),
        ({"name": "metal", "include": ["n9"]}, "NotFeasible"),
        ({"name": "metal", "replicas": 4}, "NotFeasible"),
        ({"name": "nope", "replicas": 1}, "NotFound"),
    ],
)
def test_what_cannot_be_is_refused(
    prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm, nodeset: Object, reason: str
) -> None:
    with pytest.raises(OperationError) as caught:
        carry_out(*prepared(nodeset))
    assert (caught.value.reason, kubernetes.written, slurm.written) == (reason, [], [])


def test_nodes_that_other_labels_choose_are_not_ours_to_give(prepared: Prepared, kubernetes: Kubernetes) -> None:
    kubernetes.metal["spec"]["template"]["spec"]["nodeSelector"] = {"gpu": "h100"}
    with pytest.raises(OperationError) as caught:
        carry_out(*prepared({"name": "metal", "replicas": 1}))
    assert caught.value.reason == "NotScalable"


def test_a_nodeset_that_is_gone_from_the_list_is_removed(
    prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm
) -> None:
    run, work = prepared({"name": "metal"}, prune=True)
    carry_out(run, work)
    assert kinds(run.actions) == [
        ("drain", "cpu-0"),
        ("drain", "cpu-1"),
        ("remove", "NodeSet cpu"),
        ("forget", "cpu-0"),
        ("forget", "cpu-1"),
    ]
    assert slurm.nodes == {}


def test_without_anything_to_shrink_slurm_is_not_asked(prepared: Prepared, slurm: Slurm) -> None:
    _run, work = prepared({"name": "cpu", "replicas": 3}, {"name": "metal"}, direction="in")
    assert (list(work.plan()), slurm.reads) == ([], 0)
