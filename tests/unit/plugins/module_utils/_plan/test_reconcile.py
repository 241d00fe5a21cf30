# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reconciliation, row by row of its table."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.members import Options
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.reconcile import (
    RULES,
    TO_KUBERNETES,
    TO_SLURM,
    Plan,
    check_limit,
    plan,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.to_kubernetes import PROTECT, SHOWN
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.to_slurm import OUR_CORDON, RESTARTED

from .reconcile_model import CORDONED, JUST_NOW, NOW, OPTIONS, Model, Raw, host, kinds, nodeset, planned, pod, slurm


def said(found: Plan) -> list[tuple[str, ...]]:
    return [(action.kind, action.target, action.why) for action in found.actions if action.kind in ("drain", "undrain")]


def one(state: str = "IDLE", reason: str = "", *, of: Raw | None = None, on: Raw | None = None, **more: Any) -> Model:
    """One node of a NodeSet of one."""
    hosts = [on if on is not None else host()] if on != {} else []
    return Model([slurm("cpu-0", state, reason, **more)], [of or pod("cpu-0")], hosts, [nodeset(1)])


# --- rows 1 to 3: causes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (one(), None),
        (one(on=host(cordoned=True)), CORDONED),
        (one(on=host(cordoned=True, annotations={"slurm-ops.kubernetes/cordon-reason": "disk\n 3"})),
         "k8s: cordoned: disk 3"),
        (one(on=host(cordoned=True, annotations={"node.coreweave.cloud/cordonReason": "x"})), "k8s: cordoned: x"),
        (one(on=host(ready=False)), "k8s: not ready: no kubelet"),
        (one(on={}), "k8s: not ready: the Node is gone"),
        (one(on=host(bad={"Gpu": "Xid 79"})), "k8s: condition: Gpu: Xid 79"),
        (one(on=host(bad={"Other": "x"})), None),
        (one(of=pod("cpu-0", ready=False)), "k8s: pod: not ready: NotReady"),
        (one(of=pod("cpu-0", ready=False, since=JUST_NOW)), None),
        (one(of=pod("cpu-0", deletionTimestamp=JUST_NOW)), "k8s: pod: being deleted"),
        (Model([slurm("cpu-0")], [], [host()], [nodeset(1)]), "k8s: pod: there is none"),
        # The gravest cause is told.
        (one(of=pod("cpu-0", ready=False), on=host(cordoned=True, ready=False)), CORDONED),
        # Resumed while the cause lasts, or busy: drained (again).
        (one("ALLOCATED", on=host(cordoned=True)), CORDONED),
        (one("MIXED+COMPLETING", on=host(cordoned=True)), CORDONED),
        # Another cause than before, and the same one.
        (one("IDLE+DRAIN", "k8s: not ready: x", on=host(cordoned=True)), CORDONED),
        (one("IDLE+DRAIN", CORDONED, on=host(cordoned=True)), None),
        # Somebody else's, another module's, or down anyway.
        (one("IDLE+DRAIN", "disk, Ann", on=host(cordoned=True)), None),
        (one("IDLE+DRAIN", "", on=host(cordoned=True)), None),
        (one("IDLE+DRAIN", "k8s: drain: firmware", on=host(cordoned=True)), None),
        (one("IDLE+DRAIN", "k8s: scale-in: NodeSet cpu to 0", on=host(cordoned=True)), None),
        (one("DOWN+NOT_RESPONDING", "Not responding", on=host(ready=False)), None),
        # Our own cordon, which only shows what Slurm said, is no cause; that of another cluster is.
        (one(on=host(cordoned=True, annotations={OUR_CORDON: "hpc/slurm: cpu-0 drain: x"})), None),
        (one(on=host(cordoned=True, annotations={OUR_CORDON: "b/slurm: w-0 drain: x"})),
         "k8s: cordoned: b/slurm: w-0 drain: x"),
    ],
)  # fmt: skip
def test_causes(model: Model, reason: str | None) -> None:
    found = planned(model, conditions=("Gpu",), directions=(TO_SLURM,))
    assert [item for item in said(found) if item[0] == "drain"] == ([("drain", "cpu-0", reason)] if reason else [])


def test_a_reason_is_one_line_of_bounded_length() -> None:
    on = host(cordoned=True, annotations={"slurm-ops.kubernetes/cordon-reason": "x " * 500})
    assert len(planned(one(on=on)).actions[0].why) == 200


# --- row 2: the end of a cause ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "ends"),
    [
        (one("IDLE+DRAIN", CORDONED), True),
        (one("ALLOCATED+DRAIN", CORDONED), True),
        (one("IDLE+DRAIN", "k8s: pod: not ready: x"), True),
        (one("IDLE+DRAIN", "k8s: registration: old"), True),
        (one("IDLE+DRAIN", "k8s: drain: firmware"), False),
        (one("IDLE+DRAIN", "k8s: scale-in: x"), False),
        (one("IDLE+DRAIN", "k8s cordoned"), False),
        (one("IDLE+DRAIN", "disk, Ann"), False),
        (one("IDLE+DRAIN", ""), False),
        # No proof that all is well again.
        (one("IDLE+DRAIN", CORDONED, of=pod("cpu-0", ready=False, since=JUST_NOW)), False),
        (Model([slurm("cpu-0", "IDLE+DRAIN", CORDONED)], [], [host()], [nodeset(1)]), False),
        (one("IDLE+DRAIN", CORDONED, of=pod("cpu-0", host="")), False),
    ],
)
def test_the_end_of_a_cause(model: Model, ends: bool) -> None:
    found = planned(model, only=["undrain"])
    assert kinds(found) == ([("undrain", "cpu-0")] if ends else [])


# --- rows 4 and 5: what Slurm says ------------------------------------------------------------------------------------


def conditions_of(item: Raw) -> dict[str, str]:
    return {
        entry["type"]: entry["message"] for entry in item["status"]["conditions"] if entry["type"].startswith("Slurm")
    }


@pytest.mark.parametrize(
    ("state", "reason", "on_pod", "on_node"),
    [
        ("IDLE", "", {}, False),
        ("IDLE+DRAIN", "disk", {"SlurmNodeStateDrain": "disk"}, True),
        ("ALLOCATED+DRAIN", "disk", {"SlurmNodeStateDrain": "disk"}, True),
        ("IDLE+FAIL", "disk", {"SlurmNodeStateFail": "disk"}, True),
        ("DOWN+NOT_RESPONDING", "Not responding", {"SlurmNodeStateDown": "Not responding"}, False),
        ("UNKNOWN+DRAIN+INVALID_REG", "gres/gpu count too low",
         {"SlurmNodeStateDrain": "gres/gpu count too low", "SlurmNodeStateInvalidReg": "gres/gpu count too low"}, True),
        # What we did ourselves is not told back to those who made us do it.
        ("IDLE+DRAIN", CORDONED, {}, False),
        ("IDLE+DRAIN", "k8s: drain: firmware", {}, False),
    ],
)  # fmt: skip
def test_what_slurm_says_is_shown(state: str, reason: str, on_pod: dict[str, str], on_node: bool) -> None:
    model = one(state, reason)
    model.do(planned(model, directions=(TO_KUBERNETES,)).actions)
    assert conditions_of(model.pods["cpu-0"]) == on_pod
    assert bool(conditions_of(model.hosts["n1"])) == on_node
    held = any(name.endswith(("Drain", "Down", "Fail")) for name in on_pod)
    assert (SHOWN in model.pods["cpu-0"]["metadata"]["annotations"]) == held
    if on_node:
        text = model.hosts["n1"]["metadata"]["annotations"][SHOWN]
        assert text.startswith("hpc/slurm: cpu-0 ")
        assert text.endswith(f"{reason} (by ann, 1970-01-01T00:00:05Z)")
    # And it goes when it is over.
    model.slurm["cpu-0"] = slurm("cpu-0")
    model.do(planned(model, directions=(TO_KUBERNETES,)).actions)
    assert conditions_of(model.pods["cpu-0"]) == conditions_of(model.hosts["n1"]) == {}
    assert model.hosts["n1"]["metadata"]["annotations"] == {}


def test_what_another_cluster_shows_on_a_node_is_left_alone() -> None:
    model = one("IDLE+DRAIN", "disk", on=host(annotations={SHOWN: "b/slurm: w-0 drain: x"}))
    assert ("show", "Node n1") not in kinds(planned(model))


@pytest.mark.parametrize("cordon", [True, False])
def test_a_cordon_only_if_asked_and_only_when_all_nodes_are_out(cordon: bool) -> None:
    model = Model([slurm("cpu-0", "IDLE+DRAIN", "x"), slurm("cpu-1")], [pod("cpu-0"), pod("cpu-1")], [host()],
                  [nodeset(2)])  # fmt: skip
    assert not planned(model, cordon=cordon, only=["cordon"]).actions
    model.slurm["cpu-1"] = slurm("cpu-1", "ALLOCATED+DRAIN", "x")
    found = planned(model, cordon=cordon, only=["cordon"])
    assert kinds(found) == ([("cordon", "Node n1")] if cordon else [])
    model.do(found.actions)
    assert not planned(model, cordon=cordon, only=["cordon"]).actions
    model.slurm["cpu-0"] = slurm("cpu-0")
    found = planned(model, cordon=cordon)
    assert ("uncordon", "Node n1") in kinds(found) or not cordon
    assert not said(found)


def test_a_cordon_of_somebody_else_stays() -> None:
    model = one("IDLE+DRAIN", "x", on=host(cordoned=True))
    assert not planned(model, cordon=True, only=["cordon"]).actions
    model.slurm["cpu-0"] = slurm("cpu-0")
    assert not planned(model, cordon=True, only=["cordon"]).actions


# --- rows 6 to 8: registration ----------------------------------------------------------------------------------------


def test_a_slurmd_that_slurm_does_not_know_is_restarted_once() -> None:
    model = Model([], [pod("cpu-0")], [host()], [nodeset(1)])
    found = planned(model)
    assert kinds(found) == [("restart", "slurmd in Pod cpu-0")]
    model.do(found.actions)
    del model.slurm["cpu-0"]
    assert not planned(model).actions  # it has only just been restarted
    found = planned(model, now=NOW + 1000)
    assert not found.actions
    assert "still does not know it" in found.drift[0]
    # Known again, it may be restarted the next time.
    model.slurm["cpu-0"] = slurm("cpu-0")
    model.do(planned(model).actions)
    assert RESTARTED not in model.pods["cpu-0"]["metadata"]["annotations"]


@pytest.mark.parametrize(
    "model",
    [
        Model([], [pod("cpu-0", since=JUST_NOW)], [host()]),
        Model([], [pod("cpu-0", ready=False)], [host()]),
        Model([], [pod("cpu-0", deletionTimestamp=JUST_NOW)], [host()]),
        # Known under a name that we do not understand: its address says so.
        Model([slurm("strange", address="10.0.cpu-0")], [pod("cpu-0")], [host()]),
    ],
)
def test_no_restart_without_need(model: Model) -> None:
    assert not planned(model).actions


@pytest.mark.parametrize(
    ("state", "features", "size", "deleted"),
    [
        ("DOWN+NOT_RESPONDING", ["cpu"], 3, True),
        ("DOWN+DRAIN+NOT_RESPONDING", ["cpu"], 3, True),
        ("DOWN+NOT_RESPONDING", ["cpu"], 4, False),  # its NodeSet wants it: the Pod will come back
        ("DOWN+NOT_RESPONDING", ["other"], 3, False),  # no NodeSet of ours
        ("DOWN", ["cpu"], 3, False),
        ("IDLE+NOT_RESPONDING", ["cpu"], 3, False),
        ("ALLOCATED+NOT_RESPONDING", ["cpu"], 3, False),
        ("DOWN+COMPLETING+NOT_RESPONDING", ["cpu"], 3, False),
    ],
)
def test_records_without_pod(state: str, features: list[str], size: int, deleted: bool) -> None:
    model = Model([slurm("cpu-3", state, "Not responding", features=features)], [], [host()], [nodeset(size)])
    assert kinds(planned(model, only=["forget"])) == ([("forget", "cpu-3")] if deleted else [])


@pytest.mark.parametrize(
    ("hostname", "there", "deleted"),
    [("gpu-x7k2p", [], True), ("gpu-x7k2p", [host("node9.example.org")], False), ("metal9", [], False)],
)
def test_records_of_nodes_that_are_gone(hostname: str, there: list[Raw], deleted: bool) -> None:
    """Kind node: a machine outside Kubernetes with the same feature is not ours."""
    record = slurm("g-node9", "DOWN+NOT_RESPONDING", features=["gpu"], hostname=hostname)
    other = pod("gpu-aaaaa", nodeset="gpu", owner="DaemonSet")
    model = Model([record, slurm("g-n1", hostname="gpu-aaaaa")], [other], [host(), *there])
    assert kinds(planned(model, only=["forget"])) == ([("forget", "g-node9")] if deleted else [])


def test_a_static_node_is_never_deleted() -> None:
    model = Model([slurm("cpu-3", "DOWN+NOT_RESPONDING")], [], [host()], [nodeset(1)])
    model.slurm["cpu-3"]["state"].remove("DYNAMIC_NORM")
    assert not planned(model).actions


@pytest.mark.parametrize(
    ("record", "difference"),
    [
        ({}, ""),
        ({"cpus": 2}, "CPUs=2 in its record, 4 declared"),
        ({"real_memory": 2000}, "RealMemory=2000 in its record, 1000 declared"),
        ({"gres": "gpu:h100:1(S:0)"}, "1 gpu:h100 in its record, 2 declared"),
        ({"gres": ""}, "0 gpu:h100 in its record, 2 declared"),
        ({"gres": "gpu:h100:2(S:0),shard:3"}, ""),
    ],
)
def test_a_record_that_does_not_match_is_made_anew(record: dict[str, Any], difference: str) -> None:
    model = one(**record)
    found = planned(model)
    wanted = [("drain", "cpu-0"), ("forget", "cpu-0"), ("restart", "slurmd in Pod cpu-0")] if difference else []
    assert kinds(found) == wanted
    assert all(difference in action.why for action in found.actions)
    model.do(found.actions)
    assert not [kind for kind, _target in kinds(planned(model)) if kind != "show"]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (one("ALLOCATED", cpus=2), [("drain", "cpu-0")]),
        (one("MIXED+DRAIN", "k8s: registration: x", cpus=2), [("drain", "cpu-0")]),
        (one("IDLE", cpus=2, alloc_cpus=1), [("drain", "cpu-0")]),
        (one("IDLE+DRAIN", "Ann", cpus=2), []),
        (one("IDLE+DRAIN", "k8s: drain: x", cpus=2), []),
        (one("IDLE", cpus=2, of=pod("cpu-0", annotations={RESTARTED: "x"})), [("drain", "cpu-0")]),
        (one("IDLE", cpus=2, on=host(cordoned=True)), [("drain", "cpu-0")]),
    ],
)
def test_no_record_is_deleted_under_a_job_or_a_drain(model: Model, expected: list[tuple[str, str]]) -> None:
    assert kinds(planned(model, directions=(TO_SLURM,))) == expected


def test_untyped_and_uncounted_gres_match_what_slurm_makes_of_them() -> None:
    conf = "Gres=gpu:2,licence:no_consume:5"
    assert not planned(one(of=pod("cpu-0", conf=conf), gres="gpu:h100:2,licence:5")).actions


def test_a_refused_registration_is_reported_with_what_was_declared() -> None:
    model = one("UNKNOWN+DRAIN+INVALID_REG", "gres/gpu count reported lower than configured (1 < 2)")
    found = planned(model, directions=(TO_SLURM,))
    assert not found.actions
    assert "(1 < 2)" in found.drift[0]
    assert "Gres=gpu:h100:2" in found.drift[0]
    model = one("IDLE+INVALID_REG", "gres/gpu count reported lower than configured (1 < 2)")
    model.do(planned(model, directions=(TO_SLURM,)).actions)
    assert model.slurm["cpu-0"]["reason"].startswith("k8s: registration: gres/gpu count")
    assert not planned(model, directions=(TO_SLURM,)).actions


# --- rows 9 and 10 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "protected", "expected"),
    [
        ("ALLOCATED", False, "protect"),
        ("IDLE+COMPLETING", False, "protect"),
        ("MIXED", True, None),
        ("IDLE", True, "unprotect"),
        ("IDLE", False, None),
        ("UNKNOWN", True, None),  # fails closed
    ],
)
def test_busy_workers_are_protected(state: str, protected: bool, expected: str | None) -> None:
    model = one(state, of=pod("cpu-0", labels={PROTECT: "true"} if protected else {}))
    assert kinds(planned(model, only=["protect"])) == ([(expected, "Pod cpu-0")] if expected else [])


def test_a_nodeset_that_has_not_all_its_pods_is_reported() -> None:
    model = Model([slurm("cpu-0")], [pod("cpu-0")], [host()], [nodeset(3)])
    assert planned(model, only=["size"]).drift == ["NodeSet cpu: 3 nodes wanted, 1 Pods there"]


# --- options ----------------------------------------------------------------------------------------------------------


def mixed() -> Model:
    return Model(
        [slurm("cpu-0", "ALLOCATED"), slurm("big-0", "IDLE+DRAIN", "Ann")],
        [pod("cpu-0"), pod("big-0", nodeset="big")],
        [host(cordoned=True)],
        [nodeset(1), nodeset(1, "big")],
    )


def test_directions_rules_and_nodesets_can_be_chosen() -> None:
    model = mixed()
    assert {action.kind for action in planned(model, directions=(TO_SLURM,)).actions} == {"drain"}
    assert {action.kind for action in planned(model, directions=(TO_KUBERNETES,)).actions} == {"protect", "show"}
    for name in RULES:
        assert len(planned(model, only=[name]).actions) <= 1
    # The Node's mirror speaks of the nodes that are looked at.
    assert kinds(planned(model, nodesets=frozenset(["cpu"]))) == [("protect", "Pod cpu-0"), ("drain", "cpu-0")]
    assert kinds(planned(model, ignored_nodesets=frozenset(["cpu", "big"]))) == []


def test_a_plan_that_takes_too_many_nodes_is_refused() -> None:
    names = [f"cpu-{number}" for number in range(4)]
    model = Model(map(slurm, names), map(pod, names), [host(cordoned=True)], [nodeset(4)])
    found = planned(model)
    check_limit(found, "100%")
    with pytest.raises(OperationError) as caught:
        check_limit(found, "50%")
    assert caught.value.reason == "TooManyNodes"
    assert caught.value.remaining == tuple(names)
    assert CORDONED in str(caught.value)


def test_five_thousand_nodes_are_quick() -> None:
    names = [f"cpu-{number}" for number in range(5000)]
    hosts = [host(f"n{number}", cordoned=number % 5 == 0) for number in range(5000)]
    pods = [pod(name, f"n{number}") for number, name in enumerate(names)]
    model = Model(map(slurm, names), pods, hosts, [nodeset(5000)])
    begun = time.process_time()
    seen = model.snapshot()
    read = time.process_time() - begun
    begun = time.process_time()
    found = plan(seen, Options(**OPTIONS))
    took = time.process_time() - begun
    assert len(found.actions) == 1000
    # 0.1 s each on a machine of 2 cores.
    assert read < 1
    assert took < 0.5
