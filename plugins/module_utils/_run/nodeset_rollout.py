# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module nodeset_rollout's work: a rolling window of nodes that are drained, replaced, verified and given back."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import jobs
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.share import share
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.lease import Lease
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import POD
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import rollout as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import rollout_actions as actions_of
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.drain import WAIT
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.rollout import (
    DONE,
    DRAINING,
    LEFT,
    RETURNING,
    Picture,
    Rules,
    Step,
    Worker,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.drain import GRACE
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.draining import Draining, patient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, do_each
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.returning import Returning
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.rollout_report import lines, told
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.wait import Seen, wait_until
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.window import RolloutWindow
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.workers import Workers, WorkersReader


class NodeSetRollout:
    """An Operation: see _run/module.py. Each turn of its loop looks at both sides and does the planner's next step."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._params = run.params
        self._namespace: str = run.params["namespace"]
        self._nodeset: str = run.params["nodeset"]
        self._policy: str = run.params["on_running_jobs"]
        self._draining = Draining(run)
        self._reader = WorkersReader(run, self._draining)
        self._returning = Returning(run.kubernetes)
        self._lease = Lease(run.kubernetes, self._namespace, f"{run.params['name']}-rollout-{self._nodeset}")
        self._window = RolloutWindow(run, self._nodeset) if run.params["window"] else None
        self._only_reserves = False  # the window is still ahead
        self._rules = Rules(1)
        self._batches: list[list[Worker]] = []
        self._seen: Workers
        self._places: dict[str, str] = {}  # topology of nodes whose records were deleted
        self._ended: set[int] = set()  # jobs

    # --- plan -----------------------------------------------------------------------------------------------------

    def plan(self) -> Sequence[Action]:
        """Read both sides. What is under way from an interrupted run comes first."""
        self._seen = self._reader.read(self._nodeset)[0]
        picture = self._seen.picture
        self._rules = self._rules_for(picture)
        window: list[Action] = []
        if self._window is not None:
            self._only_reserves = self._window.is_ahead
            window = self._window.plan(self._draining.slurm, [worker.node for worker in planner.to_do(picture)])
            if self._only_reserves:
                return window
        self._batches = planner.batches(picture, self._rules)
        return window + actions_of.plan(picture, self._batches, self._seen.revision, self._policy, self._seen.on)

    def _rules_for(self, picture: Picture) -> Rules:
        counts: dict[str, int] = {}
        for option in ("max_unavailable", "failure_threshold", "canary"):
            text = self._params[option]
            if text is not None:
                counts[option] = share(str(text), picture.desired, option)
                if counts[option] < 1:
                    raise OperationError(f"{option} is {text!r}; it must be at least 1.", reason="Invalid")
        # In a window all its nodes are out of service anyway.
        everything = max(picture.desired, len(picture.workers))
        return Rules(
            counts["max_unavailable"] if self._window is None else everything,
            counts["failure_threshold"],
            counts.get("canary"),
            go_on="canary" in counts and self._params["continue_after_canary"],
        )

    # --- act ------------------------------------------------------------------------------------------------------

    def act(self, actions: Sequence[Action]) -> None:
        """Carry out everything: the nodes overlap, so all actions are of one stage."""
        if self._only_reserves and self._window is not None:
            self._window.carry_out()
            return
        self._lease.acquire(self._params["lock_timeout"])
        self._lease.keep()
        try:
            self._roll()
        finally:
            self._lease.release()

    def wait(self) -> None:
        """Without anything to do, wait for nodes that are still coming back from an earlier run."""
        if not (self._run.actions or self._only_reserves) and self._seen.picture.of(RETURNING):
            self._roll()

    def _roll(self) -> None:
        nodes = 1 + len(self._seen.picture.workers)
        each = self._params["drain_timeout"] + self._params["ready_timeout"] + self._params["pause"] + GRACE
        wait_until(
            patient(self._turn),
            f"Rollout of NodeSet {self._nodeset}",
            timeout=nodes * each,  # each phase of each node ends by itself before
            interval=self._params["wait_sleep"],
            progress=self._run.progress,
        )

    def _turn(self) -> Seen:
        """Look, do what can be done now, and say what is still to come."""
        step, picture = self._next_step()
        self._give_back(step.give_back, picture)
        self._drain(step.drain, picture)
        if self._window is not None:
            self._window.carry_out()  # the reservation goes: the drains hold, and a reserved record cannot be made anew
        self._end_jobs(picture)
        self._replace(step.replace, picture)
        if step.over and not (picture.settling and self._is_unfinished(picture)):
            self._conclude(picture)
            return Seen()
        return Seen(lines(self._seen, picture, self._returning, time.time()))

    def _next_step(self) -> tuple[Step, Picture]:
        before = self._seen.revision
        self._seen = seen = self._reader.read(self._nodeset)[0]
        if seen.revision != before:
            raise OperationError(
                f"Somebody gave NodeSet {self._nodeset} another template while it was rolled out.",
                reason="TemplateChanged",
                remaining=[worker.node for worker in planner.outdated(seen.picture)],
                hint="Run again to go on with that one.",
            )
        if self._run.actions and not self._lease.held:
            raise OperationError(
                f"The lock of the rollout of NodeSet {self._nodeset} was lost.",
                reason="LockLost",
                hint="Another run may be at work; run again.",
            )
        self._put_back(seen)
        self._returning.look(seen)
        overdue = self._params["drain_timeout"] + (0 if self._policy == WAIT else GRACE)
        picture = dataclasses.replace(
            seen.picture,
            failed=self._returning.failed(self._params["ready_timeout"]),
            held=self._returning.draining_for(overdue),
            settling=self._returning.came_back_within(self._params["pause"]),
        )
        is_closed = self._window is not None and self._window.is_over
        self._rules = dataclasses.replace(self._rules, closed=is_closed)
        return planner.step(picture, self._rules), picture

    def _is_unfinished(self, picture: Picture) -> bool:
        """Whether others follow once those that have just come back have stayed good."""
        return bool(planner.outdated(picture)) and not planner.is_enough(picture, self._rules)

    # --- one step -------------------------------------------------------------------------------------------------

    def _planned(self, kind: str, workers: Iterable[Worker], picture: Picture) -> list[Action]:
        """The actions as they were planned; new ones for what nobody could foresee."""
        known = {(action.kind, action.subject.node): action for action in self._run.actions if _is_of_node(action)}
        found = []
        for worker in workers:
            action = known.get((kind, worker.node))
            if action is None or action.done:
                action = actions_of.action(kind, worker, picture, self._seen.revision)
                self._run.actions.append(action)
            action.subject = worker
            found.append(action)
        return found

    def _give_back(self, workers: Sequence[Worker], picture: Picture) -> None:
        if workers:
            self._draining.undrain(self._planned(actions_of.UNDRAIN, workers, picture))

    def _drain(self, workers: Sequence[Worker], picture: Picture) -> None:
        if workers:
            self._draining.drain(self._planned(actions_of.DRAIN, workers, picture))

    def _end_jobs(self, picture: Picture) -> None:
        """Requeue or cancel, where that was asked for, what still runs when its time is over."""
        if self._policy == WAIT:
            return
        overdue = self._returning.draining_for(self._params["drain_timeout"])
        ours = [w.node for w in picture.of(DRAINING) if w.node in overdue and planner.is_ours(w, picture.reason)]
        holding = {job.job_id: job for node in ours for job in self._seen.on.get(node, ())}
        due = [job for number, job in holding.items() if number not in self._ended]
        actions = actions_of.job_actions(self._policy, due, ours, picture)
        if not actions:
            return
        planned = {action.target: action for action in self._run.actions if not _is_of_node(action)}
        self._run.actions += [action for action in actions if action.target not in planned]
        self._draining.end_jobs(self._policy, [planned.get(action.target, action) for action in actions])
        self._ended |= {job.job_id for job in due}

    def _replace(self, workers: Sequence[Worker], picture: Picture) -> None:
        """Delete the records that change, then the Pods.

        In this order, since a new slurmd may register at once; slurmctld refuses to delete a node with a job; and a
        slurmd without a record that is still there does not register again by itself (seen on 24.11 and 26.05).
        """
        if not workers:
            return
        changing = [worker for worker in workers if worker.anew and worker.state is not None]
        if changing:
            actions = self._planned(actions_of.FORGET, changing, picture)
            self._places |= {w.node: self._seen.records[w.node].topology for w in changing}
            self._draining.slurm.delete_nodes([worker.node for worker in changing])
            _mark(actions)
        replacing = self._planned(actions_of.REPLACE, workers, picture)
        do_each(self._run.kubernetes, self._delete_pod, replacing)

    def _delete_pod(self, action: Action) -> None:
        worker: Worker = action.subject
        self._run.kubernetes.delete(POD, self._namespace, worker.pod, uid=worker.uid)

    def _put_back(self, seen: Workers) -> None:
        """A record that was made anew gets the place in the topology that it had."""
        for node in [node for node in self._places if node in seen.records]:
            place = self._places.pop(node)
            if place and not seen.records[node].topology:
                self._draining.slurm.update_nodes([node], topology_str=place)

    # --- the end --------------------------------------------------------------------------------------------------

    def _conclude(self, picture: Picture) -> None:
        """Nothing is left that could be done: is that the end, or what is in the way?"""
        waiting = [worker.node for worker in planner.to_do(picture)]
        if picture.bad:
            raise self._failed(picture)
        if waiting and self._window is not None and self._rules.closed:
            raise self._window.over(waiting, "They were given back.")
        if picture.held:
            raise OperationError(
                f"Rollout of NodeSet {self._nodeset}: jobs still run after {self._params['drain_timeout']} s: "
                + "; ".join(jobs.lines(self._holders(picture), picture.held, time.time())[:10])
                + ".",
                reason="Timeout",
                remaining=waiting,
                hint="Their nodes stay drained; run again to go on, or let on_running_jobs be requeue or cancel.",
            )
        if waiting and not planner.is_enough(picture, self._rules):
            raise planner.none_to_spare(picture, self._rules)
        for worker in picture.of(RETURNING):
            self._run.warn(f"{worker.node}, which others drained ({worker.reason}), has not come back.")
        for worker in picture.of(LEFT):
            self._run.warn(
                f"{worker.node} keeps its old Pod: {worker.state.word if worker.state else ''} by a person"
                f" ({worker.reason}), which a new Pod would end. Drain it instead."
            )
        self._draining.drop([action for action in self._run.actions if not action.done])

    def _failed(self, picture: Picture) -> OperationError:
        bad, rest = picture.bad, planner.outdated(picture)
        why = [(worker.node, *self._returning.why(worker)) for worker in bad]
        said = "\n".join(f"  {node}  {text}" for node, text, _hint in why[:10])
        hints = dict.fromkeys(hint for _node, _text, hint in why if hint)
        return OperationError(
            f"Rollout of NodeSet {self._nodeset}: {len(bad)} of {len(picture.of(DONE, RETURNING))} nodes with the new"
            f" template did not come back as declared:\n{said}\n"
            f"{len(rest)} others keep their old Pods.",
            reason="RolloutFailed",
            remaining=[worker.node for worker in (*bad, *rest)],
            hint=" ".join((*hints, "Then run again: what failed goes first.")),
        )

    def _holders(self, picture: Picture) -> list[jobs.Job]:
        found = {job.job_id: job for node in picture.held for job in self._seen.on.get(node, ())}
        return [found[number] for number in sorted(found)]

    # --- tell -----------------------------------------------------------------------------------------------------

    def result(self) -> Mapping[str, Any]:
        """Return the NodeSet as it is now (in check mode: as it was found)."""
        picture = self._seen.picture
        planned = {worker.node for batch in self._batches for worker in batch}
        others = {worker.node for worker in planner.to_do(picture)} - planned
        return {
            "nodeset": told(self._seen, time.time()),
            "batches": [[worker.node for worker in batch] for batch in self._batches],
            "paused": bool(others),
            **({"window": self._window.told()} if self._window is not None else {}),
        }


def _is_of_node(action: Action) -> bool:
    return isinstance(action.subject, Worker)


def _mark(actions: Iterable[Action]) -> None:
    for action in actions:
        action.done = True
