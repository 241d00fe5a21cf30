# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drains: whose they are, and what plans may touch."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import drains
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.jobs import Job
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import (
    KubernetesNode,
    SlurmNode,
    slurm_node,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import drain
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action

OURS = "k8s: disk"
ANN = "bad disk, Ann"


def node(state: str, reason: str = "", name: str = "w-0") -> SlurmNode:
    return slurm_node({"name": name, "state": state.split("+"), "reason": reason})


def targets(actions: list[Action]) -> list[tuple[str, str]]:
    return [(action.kind, action.target) for action in actions]


@pytest.mark.parametrize(
    ("reason", "owner"),
    [
        ("", ""),
        (OURS, "ours"),
        (" k8s: cordon", "ours"),
        (ANN, "person"),
        ("K8S: shouting", "person"),
        ("see k8s: disk", "person"),
        ("Not responding", "slurm"),
        ("Prolog error", "slurm"),
        ("upg : reboot issued", "slurm"),
        ("gres/gpu count reported lower than configured (0 < 2)", "slurm"),
    ],
)
def test_whose_a_reason_is(reason: str, owner: str) -> None:
    assert drains.owner_of(reason) == owner


def test_the_owner_is_written_once() -> None:
    assert drains.with_owner(" disk\nis  replaced ") == "k8s: disk is replaced"
    assert drains.with_owner("k8s: disk") == "k8s: disk"


DRAIN_CASES = [
    (node("IDLE"), True, True),
    (node("MIXED"), True, True),
    (node("UNKNOWN"), True, True),
    (node("DOWN+NOT_RESPONDING", "Not responding"), True, True),
    (node("IDLE+DRAIN+UNDRAIN", OURS), True, True),
    (node("IDLE+DRAIN", OURS), False, False),
    (node("IDLE+DRAIN", "k8s: cordon: maintenance"), False, False),
    (node("IDLE+DRAIN", ANN), False, True),
    (node("IDLE+DRAIN", ""), False, True),
    (node("IDLE+DRAIN", "Prolog error"), False, True),
    (node("DOWN", ANN), False, True),
    (node("IDLE+FAIL", ANN), False, True),
]


@pytest.mark.parametrize(("of", "drained", "forced"), DRAIN_CASES)
def test_what_is_drained(of: SlurmNode, drained: bool, forced: bool) -> None:
    expected = [("drain", "w-0")]
    assert targets(drain.plan_drain([of], OURS)) == (expected if drained else [])
    assert targets(drain.plan_drain([of], OURS, force=True)) == (expected if forced else [])


@pytest.mark.parametrize(
    ("of", "pattern", "given_back", "forced"),
    [
        (node("IDLE"), None, False, False),
        (node("IDLE+DRAIN", OURS), None, True, True),
        (node("ALLOCATED+DRAIN", OURS), "disk", True, True),
        (node("IDLE+DRAIN", OURS), "^disk", False, False),
        (node("IDLE+DRAIN", ANN), None, False, True),
        (node("IDLE+DRAIN", ANN), "power", False, False),
        (node("IDLE+DRAIN", ""), None, False, True),
        (node("DOWN", ANN), None, False, False),
        (node("DOWN+DRAIN", OURS), None, True, True),
    ],
)
def test_what_is_given_back(of: SlurmNode, pattern: str | None, given_back: bool, forced: bool) -> None:
    expected = [("undrain", "w-0")]
    assert targets(drain.plan_undrain([of], pattern)) == (expected if given_back else [])
    assert targets(drain.plan_undrain([of], pattern, force=True)) == (expected if forced else [])


def test_a_pattern_that_is_none_is_told() -> None:
    with pytest.raises(OperationError) as caught:
        drain.plan_undrain([node("IDLE+DRAIN", OURS)], "(")
    assert caught.value.reason == "InvalidPattern"


def test_unknown_names_are_named() -> None:
    drain.require_known(["a", "b"], {"a", "b", "c"})
    with pytest.raises(OperationError) as caught:
        drain.require_known(["a", "z", "y"], {"a"})
    assert (caught.value.reason, caught.value.remaining) == ("UnknownNode", ("y", "z"))
    assert "y, z" in caught.value.msg


JOBS = [
    Job(9, "bob", frozenset({"w-1"}), ("RUNNING",)),
    Job(7, "ann", frozenset({"w-0", "w-1", "w-5"}), ("RUNNING",)),
    Job(8, "eve", frozenset({"w-0"}), ("RUNNING",), batch=False),
]


def test_jobs_are_ended_only_if_asked_and_only_as_asked() -> None:
    assert drain.plan_jobs("wait", JOBS, {"w-0", "w-1"}, "why") == []
    cancelled = drain.plan_jobs("cancel", JOBS, {"w-0", "w-1"}, "why")
    assert targets(cancelled) == [("cancel", "job 7"), ("cancel", "job 8"), ("cancel", "job 9")]
    assert cancelled[0].why == "why: w-[0-1]"
    assert targets(drain.plan_jobs("requeue", JOBS, {"w-0", "w-1"}, "why")) == [
        ("requeue", "job 7"),
        ("requeue", "job 9"),
    ]
    assert drain.not_requeueable(JOBS, {"w-0"}, 0) == ["job 8 of eve on w-0 (no time limit)"]


def kubernetes_node(cordoned: bool = False, **annotations: str) -> KubernetesNode:
    return KubernetesNode("node1", True, cordoned, {}, (), annotations)


def test_cordons() -> None:
    ours = dataclasses.replace(kubernetes_node(True), annotations={drain.CORDONED: OURS})
    lifted = dataclasses.replace(ours, cordoned=False)
    assert targets(drain.plan_cordon([kubernetes_node()], OURS)) == [("cordon", "Node node1")]
    assert drain.plan_cordon([kubernetes_node(True), ours], OURS) == []
    assert targets(drain.plan_uncordon([ours])) == [("uncordon", "Node node1")]
    assert targets(drain.plan_uncordon([lifted])) == [("uncordon", "Node node1")]
    assert drain.plan_uncordon([kubernetes_node(), kubernetes_node(True)]) == []


def test_a_node_stays_cordoned_while_something_we_drained_is_on_it() -> None:
    on = {"w-0": node("IDLE+DRAIN", OURS), "w-1": node("IDLE+DRAIN", OURS), "w-2": node("IDLE+DRAIN", ANN)}
    assert not drain.may_uncordon(on, {"w-0"})
    assert drain.may_uncordon(on, {"w-0", "w-1"})


@pytest.mark.parametrize(
    ("of", "empty"),
    [
        (node("IDLE+DRAIN", OURS), True),
        (node("MIXED+DRAIN", OURS), False),
        (node("IDLE"), False),
        (node("DOWN", ANN), True),
        (node("DOWN", "Not responding"), False),
        (node("MIXED+FAIL", ANN), False),
        (node("UNKNOWN+DRAIN", OURS), False),
    ],
)
def test_when_nothing_runs(of: SlurmNode, empty: bool) -> None:
    assert drains.is_empty(of) is empty


STATES = st.sampled_from(["IDLE", "MIXED", "IDLE+DRAIN", "MIXED+DRAIN", "DOWN", "DOWN+DRAIN", "UNKNOWN", "IDLE+FAIL"])
REASONS = st.sampled_from(["", OURS, ANN, "Not responding", "k8s: other"])


@given(STATES, REASONS, st.booleans())
def test_a_second_plan_is_empty(state: str, reason: str, force: bool) -> None:
    of = node(state, reason)
    if drain.plan_drain([of], OURS, force=force):
        after = node("+".join([*of.state.words, "DRAIN"]), OURS)
        assert drain.plan_drain([after], OURS, force=force) == []
    if drain.plan_undrain([of], force=force):
        assert drain.plan_undrain([node(of.state.base)], force=force) == []


@given(STATES, REASONS)
def test_a_persons_reason_is_neither_overwritten_nor_undone(state: str, reason: str) -> None:
    of = node(state, reason)
    if drains.owner_of(reason) == drains.PERSON and drains.is_foreign(of.state, of.reason):
        assert drain.plan_drain([of], OURS) == []
        assert drain.plan_undrain([of]) == []
