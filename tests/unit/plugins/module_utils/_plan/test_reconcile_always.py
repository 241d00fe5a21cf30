# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reconciliation: what never happens, whatever the cluster looks like."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.reconcile import STAGES, check_limit
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.to_kubernetes import PROTECT, SHOWN
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.to_slurm import OUR_CORDON, OURS, RESTARTED

from .reconcile_model import CORDONED, JUST_NOW, Model, host, kinds, nodeset, planned, pod, slurm

BASES = st.sampled_from(["IDLE", "ALLOCATED", "MIXED", "DOWN", "UNKNOWN", "ERROR", "FUTURE"])
FLAGS = st.lists(
    st.sampled_from(["DRAIN", "COMPLETING", "NOT_RESPONDING", "FAIL", "INVALID_REG", "MAINTENANCE", "UNDRAIN"]),
    max_size=3, unique=True,
)  # fmt: skip
REASONS = st.sampled_from(
    ["", "Ann", "Not responding", "k8s: drain: x", "k8s: scale-in: x", *(f"{word} x" for word in OURS), CORDONED]
)


@st.composite
def models(draw: st.DrawFn) -> Model:
    hosts = [
        host(
            name,
            ready=draw(st.booleans()),
            cordoned=draw(st.booleans()),
            bad=draw(st.sampled_from([{}, {"Gpu": "Xid"}])),
            annotations=draw(st.sampled_from([{}, {OUR_CORDON: "hpc/slurm: x"}, {SHOWN: "hpc/slurm: x"}])),
        )
        for name in draw(st.lists(st.sampled_from(["n0", "n1", "n2"]), unique=True))
    ]
    names = [f"cpu-{number}" for number in range(5)]
    pods = [
        pod(
            name,
            draw(st.sampled_from(["n0", "n1", "n2"])),
            ready=draw(st.booleans()),
            since=draw(st.sampled_from([JUST_NOW, "2026-01-01T00:00:00Z"])),
            labels=draw(st.sampled_from([{}, {PROTECT: "true"}])),
            annotations=draw(st.sampled_from([{}, {RESTARTED: "x"}, {SHOWN: "x"}])),
            **draw(st.sampled_from([{}, {"deletionTimestamp": JUST_NOW}])),
        )
        for name in draw(st.lists(st.sampled_from(names), unique=True))
    ]
    records = [
        slurm(
            name,
            "+".join([draw(BASES), *draw(FLAGS)]),
            draw(REASONS),
            cpus=draw(st.sampled_from([4, 4, 2])),
            alloc_cpus=draw(st.sampled_from([0, 0, 1])),
        )
        for name in draw(st.lists(st.sampled_from(names), unique=True))
    ]
    return Model(records, copy.deepcopy(pods), hosts, [nodeset(draw(st.integers(0, 5)))])


@given(models(), st.booleans())
def test_no_job_is_killed_and_no_drain_of_others_undone(model: Model, cordon: bool) -> None:
    found = planned(model, cordon=cordon, conditions=("Gpu",))
    forgotten = {action.target for action in found.actions if action.kind == "forget"}
    for action in found.actions:
        node = model.slurm.get(action.target)
        if action.kind in ("drain", "undrain", "forget"):
            assert node is not None
            others = "DRAIN" in node["state"] and "UNDRAIN" not in node["state"]
            assert (
                not others or node["reason"].startswith(OURS) or (action.kind == "forget" and "DOWN" in node["state"])
            )
        if action.kind == "undrain":
            assert node is not None
            assert node["reason"].startswith(OURS)
        if action.kind == "forget":
            assert node is not None
            assert {"ALLOCATED", "MIXED", "COMPLETING"}.isdisjoint(node["state"])
            assert node["alloc_cpus"] == 0
        if action.kind == "restart":
            assert action.subject.name not in model.slurm or action.subject.name in forgotten


@given(models(), st.booleans())
def test_a_plan_that_was_carried_out_leaves_nothing_to_plan(model: Model, cordon: bool) -> None:
    def restarted() -> list[str]:
        return [action.target for action in planned(model, cordon=cordon).actions if action.kind == "restart"]

    before = restarted()
    model.do(planned(model, cordon=cordon, conditions=("Gpu",)).actions)
    again = planned(model, cordon=cordon, conditions=("Gpu",))
    if before:
        # A slurmd that came back has news of its own: its node is shown, drained or protected as any other.
        model.do(again.actions)
        again = planned(model, cordon=cordon, conditions=("Gpu",))
    assert kinds(again) == []


@given(models())
def test_the_limit_is_never_exceeded_and_the_order_is_fixed(model: Model) -> None:
    found = planned(model)
    leaving = [a for a in found.actions if a.kind == "drain" and not a.subject.state.drain]
    try:
        check_limit(found, "2")
    except OperationError:
        assert len(leaving) > 2
    else:
        assert len(leaving) <= 2
    order = [STAGES.index(action.stage) for action in found.actions]
    assert order == sorted(order)
    model.pods = dict(reversed(list(model.pods.items())))
    model.slurm = dict(reversed(list(model.slurm.items())))
    assert kinds(planned(model)) == kinds(found)
