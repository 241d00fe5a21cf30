# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Replace the worker Pods of a NodeSet by such of its new template: which now, which later, and when to stop.

One step is computed from what is there: who is out of service already is replaced first, then idle nodes, then those
whose jobs end first. A Pod is only deleted when its node is drained and empty. Since every step is seen from what is
there (a drain's reason says that it is the rollout's), a run that was interrupted goes on when it is run again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .._core import drains
from .._core.errors import OperationError
from .._core.names import natural
from .._core.states import NodeState
from .to_slurm import REGISTRATION
from .verify import is_refused

# Phases of a worker, in the order in which it goes through them.
OLD = "old"  # an old Pod that nobody has begun with
DRAINING = "draining"  # drained, and a job still runs
EMPTY = "empty"  # nothing runs there and nothing will: its Pod can go
RETURNING = "returning"  # its Pod is going, coming, or not at work yet
BACK = "back"  # as declared, and still drained by us
DONE = "done"
LEFT = "left alone"  # a person has set it DOWN or FAIL, which would end with the new Pod

REFUSAL = f"{drains.OWNER} {REGISTRATION}:"  # reconciliation's drain of a node whose registration was refused


@dataclass(frozen=True, slots=True)
class Worker:
    """One node of a NodeSet with its Pod (empty text: it has none). ``state`` is None if Slurm has no record of it.

    ``updated``: the Pod is of the newest template. ``lacks``: what keeps the node from being at work as declared, which
    waiting will not mend if ``final``. ``anew``: what slurmd registers changes with the new template, so that the
    record has to go with the Pod. ``free_at`` is when its last job ends, in seconds since 1970, 0 without a job.
    """

    node: str
    pod: str = ""
    uid: str = ""
    updated: bool = False
    deleting: bool = False
    lacks: str = ""
    final: bool = False
    state: NodeState | None = None
    reason: str = ""
    free_at: float = 0.0
    anew: bool = False
    kubernetes_node: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """How far a rollout may go: nodes out of service, nodes that may fail, and nodes that go ahead of all others.

    With ``go_on`` the others follow once those of ``canary`` are good; else they are all that is done. ``closed``: the
    time for it is over, nothing is begun any more.
    """

    max_unavailable: int
    failure_threshold: int = 1
    canary: int | None = None
    go_on: bool = False
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """A NodeSet at one moment. ``desired`` is how many nodes it should have.

    Of the clock the planner knows what the run says: nodes that did not come back in time (``failed``), that still have
    jobs after theirs (``held``), and that were given back too short ago to count (``settling``).
    """

    nodeset: str
    desired: int
    workers: tuple[Worker, ...]
    failed: frozenset[str] = field(default_factory=frozenset)
    held: frozenset[str] = field(default_factory=frozenset)
    settling: frozenset[str] = field(default_factory=frozenset)

    @property
    def reason(self) -> str:
        """The reason of our drains."""
        return reason_of(self.nodeset)

    def phase(self, worker: Worker) -> str:
        """Where a worker stands."""
        return _phase(worker, self.reason)

    def of(self, *phases: str) -> list[Worker]:
        """The workers in any of these phases, in the order in which they are taken."""
        return sorted((worker for worker in self.workers if self.phase(worker) in phases), key=_order)

    @property
    def bad(self) -> list[Worker]:
        """The workers that got the new template and did not come back good. Of what others drained it tells nothing."""
        return [w for w in self.of(RETURNING) if w.node in self.failed and not is_others(w, self.reason)]

    @property
    def unavailable(self) -> int:
        """How many nodes are out of service, whatever for."""
        return max(0, self.desired - sum(in_service(worker) for worker in self.workers))


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done now; ``waiting``: what is under way and may still end well."""

    drain: tuple[Worker, ...] = ()
    replace: tuple[Worker, ...] = ()
    give_back: tuple[Worker, ...] = ()
    waiting: tuple[Worker, ...] = ()

    @property
    def over(self) -> bool:
        """Whether nothing is left to do or to wait for."""
        return not (self.drain or self.replace or self.give_back or self.waiting)


def reason_of(nodeset: str) -> str:
    """The reason of the drains of a rollout."""
    return f"{drains.OWNER} rollout: {nodeset}"


def in_service(worker: Worker) -> bool:
    """Whether jobs can run on a node."""
    state = worker.state
    if state is None or not worker.pod or worker.deleting or worker.lacks:
        return False
    return not (state.drain or state.down or "FAIL" in state.flags)


def is_ours(worker: Worker, reason: str) -> bool:
    """Whether this rollout has drained it."""
    return worker.state is not None and worker.state.drain and worker.reason == reason


def is_others(worker: Worker, reason: str) -> bool:
    """Whether it is drained, or was taken down by a person, for another cause: that stays as it is.

    Not so the drain of a refused registration, of which the next one is to make an end.
    """
    state = worker.state
    if state is None or is_ours(worker, reason):
        return False
    if is_refused(state) and (drains.owner_of(worker.reason) == drains.SLURM or worker.reason.startswith(REFUSAL)):
        return False
    return state.drain or drains.is_foreign(state, worker.reason)


def _phase(worker: Worker, reason: str) -> str:
    if not worker.pod or worker.deleting:
        return RETURNING
    if worker.updated:
        if is_others(worker, reason):
            return DONE
        if worker.lacks:
            return RETURNING
        return BACK if is_ours(worker, reason) else DONE
    if worker.state is None or worker.state.drained:
        return EMPTY
    if worker.state.drain:
        return DRAINING
    return LEFT if is_others(worker, reason) else OLD


def _order(worker: Worker) -> tuple[int, float, tuple[str, int, str]]:
    """Out of service first, then idle, then by the end of the last job."""
    busy = worker.state is not None and worker.state.busy
    rank = 2 if busy else 1 if in_service(worker) else 0
    return rank, worker.free_at, natural(worker.node)


def step(picture: Picture, rules: Rules) -> Step:
    """Return what is to be done now.

    Nodes that we drain never make more than ``max_unavailable`` be out of service, for whatever cause the others are;
    what is out of service anyway may be replaced, ``max_unavailable`` at a time.
    """
    begun = {worker.node: worker for worker in picture.of(DRAINING, EMPTY) if is_ours(worker, picture.reason)}
    coming, back = picture.of(RETURNING), picture.of(BACK)
    late = picture.failed | picture.held
    if stopped(picture, rules):
        # What has its old Pod still was good before, and is so again.
        return Step(give_back=(*back, *begun.values()), waiting=tuple(w for w in coming if w.node not in late))
    room = rules.max_unavailable - len(begun) - len(coming) - len(back) - len(picture.settling)
    room = min(room, quota(picture, rules) - len(begun))
    spare = rules.max_unavailable - picture.unavailable - len(picture.settling)
    drain: list[Worker] = []
    replace = [worker for worker in begun.values() if picture.phase(worker) == EMPTY]
    for worker in picture.of(EMPTY, OLD):
        if worker.node in begun:
            continue
        cost = int(in_service(worker))
        if room < 1 or (cost and spare < 1):
            break
        room, spare = room - 1, spare - cost
        (drain if picture.phase(worker) == OLD else replace).append(worker)
    # Where only a part is to be done, nobody waits for jobs on nodes that others have drained.
    draining = [w for w in picture.of(DRAINING) if w.node in begun or not is_enough(picture, rules)]
    waiting = tuple(worker for worker in (*draining, *coming) if worker.node not in late)
    return Step(tuple(drain), tuple(replace), tuple(back), waiting)


def stopped(picture: Picture, rules: Rules) -> bool:
    """Whether no more is touched: too many nodes did not come back good, or the time is over."""
    return rules.closed or len(picture.bad) >= rules.failure_threshold


def quota(picture: Picture, rules: Rules) -> int:
    """How many nodes may still get the new template before the others have to wait for those that go ahead."""
    if rules.canary is None:
        return len(picture.workers)
    ahead = [worker for worker in picture.workers if worker.updated or picture.phase(worker) == RETURNING]
    good = [worker for worker in ahead if in_service(worker) and worker.node not in picture.settling]
    if rules.go_on and len(good) >= rules.canary:
        return len(picture.workers)
    return rules.canary - len(ahead)


def is_enough(picture: Picture, rules: Rules) -> bool:
    """Whether the nodes that go ahead are all that this run will do, and it is done or under way."""
    return not rules.go_on and quota(picture, rules) < 1


def outdated(picture: Picture) -> list[Worker]:
    """The workers whose Pods are still old, in the order in which they are taken."""
    return picture.of(OLD, DRAINING, EMPTY, LEFT)


def to_do(picture: Picture) -> list[Worker]:
    """Those of them that a rollout takes: all but what a person has set DOWN or FAIL."""
    return picture.of(OLD, DRAINING, EMPTY)


def batches(picture: Picture, rules: Rules) -> list[list[Worker]]:
    """Return which nodes are replaced together and in which order, if every job ends when it is due and all goes well.

    Raises OperationError (NoneToSpare) if nodes that are out of service for other causes leave none to take.
    """
    reason = picture.reason
    ours = [worker for worker in picture.of(EMPTY, DRAINING) if is_ours(worker, reason)]
    begun = {worker.node for worker in ours}
    wanted = ours + [worker for worker in picture.of(EMPTY, OLD, DRAINING) if worker.node not in begun]
    ahead = max(quota(picture, rules), len(ours))
    if not rules.go_on:
        wanted = wanted[:ahead]
    staying = [worker for worker in picture.workers if is_others(worker, reason)]
    spare = rules.max_unavailable - len(staying) - max(0, picture.desired - len(picture.workers))
    if spare < 1 and any(in_service(worker) for worker in wanted):
        raise none_to_spare(picture, rules)
    found: list[list[Worker]] = []
    for part in (wanted[:ahead], wanted[ahead:]):
        absent = [worker for worker in part if not in_service(worker)]
        present = [worker for worker in part if in_service(worker)]
        found += [*_cut(absent, rules.max_unavailable), *_cut(present, max(1, spare))]
    return found


def _cut(workers: Sequence[Worker], size: int) -> Iterator[list[Worker]]:
    for start in range(0, len(workers), size):
        yield list(workers[start : start + size])


def none_to_spare(picture: Picture, rules: Rules) -> OperationError:
    """The error that says which nodes are out of service, so that no other can be taken."""
    away = [worker for worker in picture.workers if not in_service(worker)]
    lines = [f"  {worker.node}  {_why_away(worker)}" for worker in sorted(away, key=_order)]
    missing = picture.desired - len(picture.workers)
    lines += [f"  {missing} of {picture.desired} nodes have no Pod"] if missing > 0 else []
    return OperationError(
        f"NodeSet {picture.nodeset}: {picture.unavailable} nodes are out of service already, and max_unavailable"
        f" is {rules.max_unavailable}:\n" + "\n".join(lines[:20]),
        reason="NoneToSpare",
        remaining=[worker.node for worker in outdated(picture)],
        hint="Bring them back, or raise max_unavailable.",
    )


def _why_away(worker: Worker) -> str:
    if worker.state is not None and (worker.state.drain or drains.is_foreign(worker.state, worker.reason)):
        return f"{worker.state.word}: {worker.reason or 'without a reason'}"
    if worker.deleting:
        return "its Pod is being deleted"
    return worker.lacks or (worker.state.word if worker.state else "Slurm does not know it")
