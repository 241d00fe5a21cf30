# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rollouts: tables, then a made-up cluster in which each step is carried out and jobs come and go."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.jobs import Job
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import parse
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import rollout, rollout_actions
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.rollout import (
    BACK,
    DONE,
    DRAINING,
    EMPTY,
    LEFT,
    OLD,
    RETURNING,
    Picture,
    Rules,
    Step,
    Worker,
)

OURS = "k8s: rollout: w"
ANN = "bad disk, Ann"


def worker(number: int, state: str | None = "IDLE", reason: str = "", *, updated: bool = False, **more: Any) -> Worker:
    known = parse(state) if state else None
    pod = {"pod": f"w-{number}", "uid": f"old-{number}"}
    return Worker(f"w-{number}", **{**pod, "updated": updated, "state": known, "reason": reason, **more})


def picture(*workers: Worker, desired: int | None = None, **more: Any) -> Picture:
    return Picture("w", len(workers) if desired is None else desired, workers, **more)


def names(workers: Any) -> list[str]:
    return [item.node for item in workers]


@pytest.mark.parametrize(
    ("given_worker", "phase"),
    [
        (worker(0), OLD),
        (worker(0, "ALLOCATED"), OLD),
        (worker(0, "DOWN+NOT_RESPONDING", "Not responding"), OLD),
        (worker(0, "MIXED+DRAIN", OURS), DRAINING),
        (worker(0, "IDLE+COMPLETING+DRAIN", OURS), DRAINING),
        (worker(0, "UNKNOWN+DRAIN", OURS), DRAINING),
        (worker(0, "MIXED+DRAIN", ANN), DRAINING),
        (worker(0, "IDLE+DRAIN", OURS), EMPTY),
        (worker(0, "IDLE+DRAIN", ANN), EMPTY),
        (worker(0, None), EMPTY),
        (worker(0, "DOWN", ANN), LEFT),
        (worker(0, "IDLE+DRAIN", OURS, pod="", lacks="it has no Pod"), RETURNING),
        (worker(0, "IDLE+DRAIN", OURS, deleting=True), RETURNING),
        (worker(0, "IDLE+DRAIN", OURS, updated=True, lacks="its Pod is not ready"), RETURNING),
        (worker(0, "IDLE", updated=True, lacks="its Pod is not ready"), RETURNING),
        (worker(0, None, updated=True, lacks="its Pod is not ready"), RETURNING),
        (worker(0, "IDLE+DRAIN", OURS, updated=True), BACK),
        (worker(0, "IDLE+DRAIN", ANN, updated=True, lacks="its Pod is not ready"), DONE),
        (worker(0, "IDLE+DRAIN", "k8s: cordoned: Node n1", updated=True), DONE),
        # A refused registration is the template's; a machine that a person knows to be broken is not.
        (worker(0, "UNKNOWN+DRAIN+INVALID_REG", "gres/gpu count too low", updated=True, lacks="refused"), RETURNING),
        (worker(0, "UNKNOWN+DRAIN+INVALID_REG", "k8s: registration: few", updated=True, lacks="refused"), RETURNING),
        (worker(0, "UNKNOWN+DRAIN+INVALID_REG", ANN, updated=True, lacks="refused"), DONE),
        (worker(0, "UNKNOWN+DRAIN+INVALID_REG", "gres/gpu count too low"), EMPTY),
        (worker(0, updated=True), DONE),
        (worker(0, "ALLOCATED", updated=True), DONE),
    ],
)
def test_phases(given_worker: Worker, phase: str) -> None:
    assert picture(given_worker).phase(given_worker) == phase


def test_out_of_service_goes_first_then_idle_then_the_earliest_end_of_jobs() -> None:
    workers = (
        worker(0, "ALLOCATED", free_at=float("inf")),
        worker(1, "MIXED", free_at=200),
        worker(2, "ALLOCATED", free_at=100),
        worker(10),
        worker(9),
        worker(3, "IDLE+DRAIN", ANN),
        worker(4, "DOWN+NOT_RESPONDING", "Not responding", lacks="its Pod is not ready: Failed"),
    )
    found = rollout.batches(picture(*workers), Rules(4))
    assert [names(batch) for batch in found] == [
        ["w-3", "w-4"],
        ["w-9", "w-10", "w-2"],
        ["w-1", "w-0"],
    ]
    step = rollout.step(picture(*workers), Rules(4))
    assert (names(step.drain), names(step.replace)) == (["w-4", "w-9", "w-10"], ["w-3"])


@pytest.mark.parametrize(
    ("given_picture", "rules", "expected"),
    [
        # Begun, then empty, then back, then the next.
        (picture(worker(0), worker(1)), Rules(1), (["w-0"], [], [])),
        (picture(worker(0, "MIXED+DRAIN", OURS), worker(1)), Rules(1), ([], [], [])),
        (picture(worker(0, "IDLE+DRAIN", OURS), worker(1)), Rules(1), ([], ["w-0"], [])),
        (picture(worker(0, "IDLE+DRAIN", OURS, updated=True), worker(1)), Rules(1), ([], [], ["w-0"])),
        (picture(worker(0, updated=True), worker(1)), Rules(1), (["w-1"], [], [])),
        (picture(worker(0, updated=True), worker(1, updated=True)), Rules(1), ([], [], [])),
        # Others that are out of service count, whatever for; they are replaced themselves when they are empty.
        (picture(worker(0, "IDLE+DRAIN", ANN, updated=True), worker(1), worker(2)), Rules(1), ([], [], [])),
        (picture(worker(0, "IDLE+DRAIN", ANN, updated=True), worker(1), worker(2)), Rules(2), (["w-1"], [], [])),
        (picture(worker(0, "IDLE+DRAIN", ANN), worker(1)), Rules(1), ([], ["w-0"], [])),
        (picture(worker(0, "MIXED+DRAIN", ANN), worker(1)), Rules(1), ([], [], [])),
        (picture(worker(0), desired=2), Rules(1), ([], [], [])),
        # The window is for those on their way, too.
        (picture(worker(0, "IDLE+DRAIN", ANN), worker(1, None), worker(2, None)), Rules(2), ([], ["w-0", "w-1"], [])),
        # What has come back must stay good for a while.
        (picture(worker(0, updated=True), worker(1), settling=frozenset(["w-0"])), Rules(1), ([], [], [])),
        # Enough have failed: what has its old Pod is given back.
        (
            picture(
                worker(0, "DOWN+DRAIN", OURS, updated=True, lacks="no"),
                worker(1, "IDLE+DRAIN", OURS),
                worker(2, "MIXED+DRAIN", OURS),
                worker(3),
                worker(4, "IDLE+DRAIN", ANN),
                failed=frozenset(["w-0"]),
            ),
            Rules(4),
            ([], [], ["w-1", "w-2"]),
        ),
        # What others have drained tells nothing of the template.
        (
            picture(worker(0, "DOWN+DRAIN", ANN, deleting=True), worker(1), failed=frozenset(["w-0"])),
            Rules(2),
            (["w-1"], [], []),
        ),
        # A person's DOWN would end with the new Pod.
        (picture(worker(0, "DOWN", ANN)), Rules(1), ([], [], [])),
    ],
)
def test_steps(given_picture: Picture, rules: Rules, expected: tuple[list[str], ...]) -> None:
    step = rollout.step(given_picture, rules)
    assert (names(step.drain), names(step.replace), names(step.give_back)) == expected


@pytest.mark.parametrize(
    ("workers", "go_on", "drained"),
    [
        ([worker(0), worker(1), worker(2)], False, ["w-0"]),
        ([worker(0, updated=True), worker(1), worker(2)], False, []),
        ([worker(0), worker(1), worker(2)], True, ["w-0"]),
        ([worker(0, updated=True, lacks="its Pod is not ready"), worker(1), worker(2)], True, []),
        ([worker(0, updated=True), worker(1), worker(2)], True, ["w-1", "w-2"]),
    ],
)
def test_a_canary_goes_ahead(workers: list[Worker], go_on: bool, drained: list[str]) -> None:
    rules = Rules(3, 1, 1, go_on)
    assert names(rollout.step(picture(*workers), rules).drain) == drained


def test_batches_with_a_canary() -> None:
    seen = picture(*(worker(number) for number in range(4)))
    assert [names(batch) for batch in rollout.batches(seen, Rules(2, 1, 1))] == [["w-0"]]
    found = [names(batch) for batch in rollout.batches(seen, Rules(2, 1, 1, go_on=True))]
    assert found == [["w-0"], ["w-1", "w-2"], ["w-3"]]


def test_none_to_spare_is_told_before_anything_is_done() -> None:
    with pytest.raises(OperationError) as caught:
        rollout.batches(picture(worker(0, "IDLE+DRAIN", ANN), worker(1)), Rules(1))
    assert caught.value.reason == "NoneToSpare"
    assert f"w-0  drained: {ANN}" in caught.value.msg
    assert caught.value.remaining == ("w-0", "w-1")
    # Without any in service to be taken there is nothing to refuse.
    found = rollout.batches(picture(worker(0, "IDLE+DRAIN", ANN), worker(1, updated=True)), Rules(1))
    assert [names(batch) for batch in found] == [["w-0"]]


def kinds(actions: Any) -> list[tuple[str, str]]:
    return [(action.kind, action.target) for action in actions]


def test_actions_node_by_node() -> None:
    job = Job(7, "ann", frozenset({"w-3"}), ("RUNNING",))
    seen = picture(
        worker(0, "IDLE+DRAIN", OURS, updated=True),
        worker(1, "IDLE+DRAIN", OURS),
        worker(2, "IDLE+DRAIN", ANN),
        worker(3, "MIXED"),
        worker(4, anew=True),
        worker(5, None),
    )
    found = rollout_actions.plan(seen, rollout.batches(seen, Rules(9)), "new", "cancel", {"w-3": [job]})
    assert kinds(found) == [
        ("undrain", "w-0"),
        ("replace", "Pod w-1"),
        ("undrain", "w-1"),
        ("replace", "Pod w-2"),
        ("replace", "Pod w-5"),
        ("drain", "w-4"),
        ("forget", "w-4"),
        ("replace", "Pod w-4"),
        ("drain", "w-3"),
        ("cancel", "job 7"),
        ("replace", "Pod w-3"),
        ("undrain", "w-3"),
    ]
    assert {action.stage for action in found} == {"rollout"}


# --- a made-up cluster ----------------------------------------------------------------------------------------------


@dataclasses.dataclass
class World:
    """What carrying out a step does. A new Pod is there at once and comes back good at the next tick, or never."""

    workers: dict[str, Worker]
    broken: frozenset[str]
    late: set[str] = dataclasses.field(default_factory=set)
    deleted: list[str] = dataclasses.field(default_factory=list)

    def picture(self) -> Picture:
        workers = tuple(self.workers.values())
        return Picture("w", len(workers), workers, failed=frozenset(self.late))

    def do(self, step: Step) -> None:
        for item in step.drain:
            assert item.state is not None
            state = parse("+".join([*item.state.words, "DRAIN"]))
            self.workers[item.node] = replace(item, state=state, reason=OURS)
        for item in step.replace:
            assert item.state is None or item.state.drained, "a node that is in use lost its Pod"
            assert not item.updated
            self.deleted.append(item.node)
            self.workers[item.node] = replace(item, uid="new", updated=True, lacks="its Pod is not ready")
        for item in step.give_back:
            assert item.reason == OURS
            self.workers[item.node] = replace(item, state=parse("IDLE"), reason="")

    def tick(self, ends: int) -> None:
        """Pods come up, or it is seen that they never will; a job ends."""
        for node, item in self.workers.items():
            if item.updated and item.lacks and node in self.broken:
                self.late.add(node)
            elif item.updated and item.lacks:
                state = item.state if item.state and item.state.drain else parse("IDLE")
                self.workers[node] = replace(item, lacks="", state=state)
        busy = sorted(node for node, item in self.workers.items() if item.state and item.state.busy)
        if busy:
            node = busy[ends % len(busy)]
            item = self.workers[node]
            words = [word for word in (item.state.words if item.state else ()) if word == "DRAIN"]
            self.workers[node] = replace(item, state=parse("+".join(["IDLE", *words])))


STATES = st.sampled_from(
    ["IDLE", "ALLOCATED", "MIXED", "IDLE+DRAIN", "MIXED+DRAIN", "DOWN+NOT_RESPONDING", None, "IDLE+COMPLETING"]
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    workers = {}
    for number in range(draw(st.integers(1, 8))):
        state = draw(STATES)
        reason = draw(st.sampled_from([OURS, ANN, "k8s: cordoned: Node n1"])) if state and "DRAIN" in state else ""
        updated = draw(st.booleans())
        free_at = draw(st.integers(1, 9)) if state in ("ALLOCATED", "MIXED", "MIXED+DRAIN") else 0
        lacks = "its slurmd has not registered" if state is None or "DOWN" in state else ""
        item = worker(number, state, reason, updated=updated, lacks=lacks, free_at=free_at)
        workers[item.node] = item
    return World(workers, frozenset(draw(st.sets(st.sampled_from(sorted(workers)), max_size=2))))


RULES = st.builds(Rules, st.integers(1, 4), st.integers(1, 3), st.none() | st.integers(1, 3), st.booleans())


def out_of_service(world: World) -> int:
    return sum(not rollout.in_service(item) for item in world.workers.values())


def rolled(world: World, rules: Rules, ends: list[int]) -> Step:
    """Turns until nothing is left; what is out of service is watched all the time."""
    foreign = {node for node, item in world.workers.items() if item.state and item.state.drain and item.reason != OURS}
    for turn in range(100):
        step = rollout.step(world.picture(), rules)
        if step.over:
            return step
        before = out_of_service(world)
        world.do(step)
        assert out_of_service(world) <= max(rules.max_unavailable, before), "too many were taken"
        world.tick(ends[turn % len(ends)])
        for node in foreign:
            state = world.workers[node].state
            assert state is None or state.drain, "somebody else's drain was undone"
    raise AssertionError("it never ends")


@given(worlds(), RULES, st.lists(st.integers(0, 7), min_size=1, max_size=5))
def test_a_rollout_ends_and_is_safe_all_the_way(world: World, rules: Rules, ends: list[int]) -> None:
    old = {node for node, item in world.workers.items() if not item.updated}
    rolled(world, rules, ends)
    assert len(world.deleted) == len(set(world.deleted)), "a Pod was deleted twice"
    assert set(world.deleted) <= old
    after = world.picture()
    left = rollout.outdated(after)
    if not left:
        return
    # What is left is left for a reason that can be told.
    spare = rules.max_unavailable - after.unavailable
    assert rollout.stopped(after, rules) or rollout.is_enough(after, rules) or after.failed or spare < 1
    if rollout.stopped(after, rules):
        assert not any(rollout.is_ours(item, OURS) for item in left), "a good node was kept from its users"


@given(worlds(), st.integers(1, 4), st.lists(st.integers(0, 7), min_size=1, max_size=5))
def test_without_trouble_nothing_old_is_left_and_a_second_run_does_nothing(
    world: World, window: int, ends: list[int]
) -> None:
    world.broken = frozenset()
    staying = sum(rollout.is_others(item, OURS) for item in world.workers.values())
    rules = Rules(window + staying)
    rolled(world, rules, ends)
    assert rollout.outdated(world.picture()) == []
    assert rollout.batches(world.picture(), rules) == []
    assert not any(item.reason == OURS for item in world.workers.values())


@given(worlds(), st.integers(1, 4))
def test_the_plan_names_each_old_node_once(world: World, window: int) -> None:
    seen = world.picture()
    staying = sum(rollout.is_others(item, OURS) for item in seen.workers)
    planned = [item.node for batch in rollout.batches(seen, Rules(window + staying)) for item in batch]
    assert sorted(planned) == sorted(item.node for item in rollout.outdated(seen) if seen.phase(item) != LEFT)
    assert len(planned) == len(set(planned))
