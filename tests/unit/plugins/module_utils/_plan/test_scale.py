# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NodeSets get smaller without harm: tables, then properties."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.jobs import Job
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import parse
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import drain, scale
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.scale import NODE, REPLICA, Pool, Worker

OWNER = "k8s:"
OURS = "k8s: scale-in: NodeSet w to 1"


def worker(number: int, state: str | None = "IDLE", reason: str = "", dynamic: bool = True) -> Worker:
    return Worker(f"w-{number}", number, f"w-{number}", parse(state) if state else None, reason, dynamic)


def pool(size: int, target: int | None, *workers: Worker, kind: str = REPLICA, removed: bool = False) -> Pool:
    return Pool("w", kind, size, target, workers or tuple(worker(n) for n in range(size)), removed)


def kinds(actions: list[scale.Action]) -> list[tuple[str, str]]:
    return [(action.kind, action.target) for action in actions]


@pytest.mark.parametrize(
    ("given_pool", "expected"),
    [
        (pool(3, 3), []),
        (pool(3, None), []),
        (
            pool(3, 1),
            [("drain", "w-2"), ("drain", "w-1"), ("scale", "NodeSet w"), ("forget", "w-2"), ("forget", "w-1")],
        ),
        (pool(1, 3), []),
        # An interrupted run goes on: drained already, size lowered already, only the record is left.
        (pool(2, 1, worker(0), worker(1, "IDLE+DRAIN", OURS)), [("scale", "NodeSet w"), ("forget", "w-1")]),
        (pool(1, 1, worker(0), dataclasses.replace(worker(1, "DOWN+DRAIN", OURS), pod=None)), [("forget", "w-1")]),
        # A Pod that Slurm has never seen needs no drain and leaves no record.
        (pool(2, 1, worker(0), worker(1, None)), [("scale", "NodeSet w")]),
        (
            pool(2, None, kind=NODE, removed=True),
            [("drain", "w-0"), ("drain", "w-1"), ("remove", "NodeSet w"), ("forget", "w-0"), ("forget", "w-1")],
        ),
        # A record of slurm.conf is not ours to delete.
        (pool(2, 1, worker(0), worker(1, dynamic=False)), [("drain", "w-1"), ("scale", "NodeSet w")]),
    ],
)
def test_going_smaller(given_pool: Pool, expected: list[tuple[str, str]]) -> None:
    assert kinds(scale.plan_in([given_pool], [], OWNER, scale.REFUSE)) == expected


def test_running_jobs_are_refused_by_default_and_named() -> None:
    with pytest.raises(OperationError) as caught:
        scale.plan_in([pool(3, 1)], [Job(7, "ann", frozenset({"w-0", "w-2"}), ("RUNNING",))], OWNER, scale.REFUSE)
    assert caught.value.reason == "RunningJobs"
    assert "job 7 of ann on w-2" in caught.value.msg
    assert caught.value.remaining == ("w-2",)


def test_jobs_elsewhere_do_not_matter() -> None:
    assert scale.plan_in([pool(3, 2)], [Job(7, "ann", frozenset({"w-0", "w-1"}))], OWNER, scale.REFUSE)


@pytest.mark.parametrize("policy", [drain.REQUEUE, drain.CANCEL])
def test_jobs_are_acted_on_after_the_drain_and_only_if_asked(policy: str) -> None:
    jobs = [Job(9, "bob", frozenset({"w-1"})), Job(7, "ann", frozenset({"w-2"})), Job(3, "eve", frozenset({"w-0"}))]
    actions = scale.plan_in([pool(3, 1)], jobs, OWNER, policy)
    assert kinds(actions)[2:4] == [(policy, "job 7"), (policy, "job 9")]
    assert not [action for action in scale.plan_in([pool(3, 1)], jobs, OWNER, drain.WAIT) if action.stage == "jobs"]


@pytest.mark.parametrize(
    ("given_pool", "expected"),
    [
        (pool(1, 3), [("scale", "NodeSet w")]),
        (pool(3, 1), []),
        (pool(2, 2, worker(0), worker(1, "IDLE+DRAIN", OURS)), [("undrain", "w-1")]),
        (pool(2, 2, worker(0), worker(1, "IDLE+DRAIN", "bad disk, Ann")), []),
        (pool(2, 2, worker(0), worker(1, "IDLE+DRAIN", "k8s: cordon: maintenance")), []),
    ],
)
def test_going_larger(given_pool: Pool, expected: list[tuple[str, str]]) -> None:
    assert kinds(scale.plan_out([given_pool], OWNER)) == expected


STATES = st.sampled_from([None, "IDLE", "ALLOCATED", "MIXED+DRAIN", "IDLE+DRAIN", "DOWN+NOT_RESPONDING", "UNKNOWN"])


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    size = draw(st.integers(0, 6))
    members = tuple(worker(n, draw(STATES), draw(st.sampled_from(["", OURS, "broken, Ann"]))) for n in range(size))
    return Pool("w", REPLICA, size, draw(st.none() | st.integers(0, 8)), members, draw(st.booleans()))


def applied(given_pool: Pool, actions: list[scale.Action]) -> Pool:
    """What is there once the plan has been carried out."""
    forgotten = {action.target for action in actions if action.kind == "forget"}
    smaller = any(action.kind in ("scale", "remove") for action in actions)
    gone = {w.node for w in scale.victims(given_pool)} if smaller else set()
    workers = tuple(w for w in given_pool.workers if w.node not in forgotten and w.node not in gone)
    size = given_pool.size if not smaller else 0 if given_pool.removed else given_pool.target or 0
    return dataclasses.replace(given_pool, size=size, workers=workers)


@given(pools(), st.lists(st.integers(0, 6)))
def test_no_running_job_is_ever_touched_unasked(given_pool: Pool, holders: list[int]) -> None:
    jobs = [Job(number, "ann", frozenset({f"w-{number}"})) for number in holders]
    leaving = {w.node for w in scale.victims(given_pool)}
    try:
        actions = scale.plan_in([given_pool], jobs, OWNER, scale.REFUSE)
    except OperationError:
        assert any(not job.nodes.isdisjoint(leaving) for job in jobs)
        return
    assert not any(action.kind in ("requeue", "cancel") for action in actions)
    assert all(job.nodes.isdisjoint(leaving) for job in jobs)
    assert {action.target for action in actions if action.stage} <= leaving


@given(pools())
def test_a_plan_that_was_carried_out_leaves_nothing_to_plan(given_pool: Pool) -> None:
    after = applied(given_pool, scale.plan_in([given_pool], [], OWNER, drain.WAIT))
    if after.removed:
        assert after.workers == ()
        return
    assert scale.plan_in([after], [], OWNER, drain.WAIT) == []


@given(pools())
def test_nobody_elses_drain_is_undone(given_pool: Pool) -> None:
    foreign = {w.node for w in given_pool.workers if w.reason == "broken, Ann"}
    assert not foreign & {action.target for action in scale.plan_out([given_pool], OWNER)}
