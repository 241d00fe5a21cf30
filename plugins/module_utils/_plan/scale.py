# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Bring NodeSets to their size without harm to jobs: which nodes go, in which steps, and what stands in the way.

The steps of going smaller: drain the victims, wait until nothing runs on them (or requeue or cancel, if that was asked
for), lower the size, wait until the Pods are gone, delete the records that Slurm keeps of dynamic nodes. Each step is
seen from what is there, so a run that was interrupted goes on where it stopped when it is run again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import drains
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.jobs import Job
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import SlurmNode
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import NodeState
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.drain import plan_jobs
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.membership import Membership

REPLICA = "replica"
NODE = "node"
JOIN, LEAVE = "join", "leave"
SCALE_IN = "scale-in"

REFUSE = "refuse"  # beside the policies of _plan/drain.py: change nothing while jobs run on nodes that are to go


@dataclass(frozen=True, slots=True)
class Worker:
    """One node of a NodeSet as both sides see it; ``state`` is None if Slurm has no record of it.

    ``expected`` is False when Kubernetes is not to have a Pod for it any more, so that its record is a leftover.
    """

    node: str
    ordinal: int | None = None
    pod: str | None = None
    state: NodeState | None = None
    reason: str = ""
    dynamic: bool = True
    kubernetes_node: str = ""
    expected: bool = True


@dataclass(frozen=True, slots=True)
class Pool:
    """A NodeSet that is there: its size now and the size that is wanted.

    ``target`` None leaves the size alone, as where somebody else keeps it; ``removed`` means that the whole NodeSet is
    to go. ``membership`` says of a NodeSet of kind node which Nodes join and leave, if anybody wants that.
    """

    name: str
    kind: str
    size: int
    target: int | None
    workers: tuple[Worker, ...]
    removed: bool = False
    membership: Membership | None = None


def victims(pool: Pool) -> list[Worker]:
    """Return the nodes that go: all of a removed NodeSet; of a StatefulSet those from the top, it takes no others."""
    if pool.removed:
        return sorted(pool.workers, key=_by_name)
    if pool.kind == NODE:
        leaves = frozenset(pool.membership.leaves if pool.membership else ())
        return sorted((worker for worker in pool.workers if worker.kubernetes_node in leaves), key=_by_name)
    if pool.target is None:
        return []
    leaving = [worker for worker in pool.workers if worker.ordinal is not None and worker.ordinal >= pool.target]
    return sorted(leaving, key=lambda worker: worker.ordinal or 0, reverse=True)


def _by_name(worker: Worker) -> str:
    return worker.node


def is_kept(node: Worker | SlurmNode) -> bool:
    """Whether its record outlives its Pod: a person has drained it, and would find that undone when it comes back."""
    if node.state is None or drains.owner_of(node.reason) == drains.SLURM:
        return False
    return drains.is_foreign(node.state, node.reason)


def plan_in(pools: Sequence[Pool], jobs: Sequence[Job], owner: str, on_running_jobs: str) -> list[Action]:
    """Return what makes NodeSets smaller or takes them away. Raises OperationError (RunningJobs) for policy refuse.

    Nothing runs on a node without a record: Slurm's list of nodes was read as a whole. A node that is there but in an
    unknown state is not drained; it is drained and waited for like any other.
    """
    leaving = {worker.node: (pool, worker) for pool in pools for worker in victims(pool)}
    holding = [job for job in jobs if not job.nodes.isdisjoint(leaving)]
    if holding and on_running_jobs == REFUSE:
        raise _refused(leaving, holding)
    actions: list[Action] = []
    for node, (pool, worker) in leaving.items():
        if worker.state is None or worker.state.drain:
            continue
        if not drains.is_foreign(worker.state, worker.reason):  # a person has taken it down: nothing runs on it
            why = f"{owner} {SCALE_IN}: NodeSet {pool.name} {_to(pool)}"
            actions.append(
                Action("drain", node, why, before=worker.state.word, after="drained", stage="drain", subject=worker)
            )
    actions += plan_jobs(on_running_jobs, holding, leaving.keys(), "its node goes")
    for pool in pools:
        actions.extend(_smaller(pool))
    for node, (pool, worker) in leaving.items():
        if worker.state is not None and worker.dynamic and not is_kept(worker):
            why = f"NodeSet {pool.name} no longer has it"
            actions.append(Action("forget", node, why, "registered", None, stage="forget", subject=worker))
    return actions


def _to(pool: Pool) -> str:
    if pool.removed:
        return "removed"
    return f"to {len(pool.membership.after) if pool.membership else pool.target}"


def _smaller(pool: Pool) -> Iterable[Action]:
    if pool.removed:
        yield Action(
            "remove", f"NodeSet {pool.name}", "not among the wanted NodeSets", {"size": pool.size}, None, subject=pool
        )
    elif pool.kind == REPLICA and pool.target is not None and pool.target < pool.size:
        yield _resize(pool, "smaller")
    elif pool.membership:
        for node in pool.membership.leaves:
            yield _move(LEAVE, pool, node)


def plan_leftovers(pools: Sequence[Pool], owner: str, planned: Collection[str] = ()) -> list[Action]:
    """Forget the records that a scale-in left which was interrupted after its Pods had gone; ``planned`` are done."""
    return [
        Action("forget", worker.node, "left by an earlier scale-in", "registered", None, stage="forget", subject=worker)
        for pool in pools
        for worker in pool.workers
        if not pool.removed
        and not worker.expected
        and worker.node not in planned
        and worker.dynamic
        and worker.state is not None
        and worker.state.drained
        and _is_scale_in(worker, owner)
    ]


def _is_scale_in(worker: Worker, owner: str) -> bool:
    return worker.reason.startswith(f"{owner} {SCALE_IN}:")


def plan_out(pools: Sequence[Pool], owner: str) -> list[Action]:
    """Return what makes NodeSets larger, and gives back to Slurm nodes that we had drained and that stay after all."""
    actions: list[Action] = []
    for pool in pools:
        if pool.removed:
            continue
        if pool.kind == REPLICA and pool.target is not None and pool.target > pool.size:
            actions.append(_resize(pool, "larger"))
        actions += [_move(JOIN, pool, node) for node in (pool.membership.joins if pool.membership else ())]
        leaving = {worker.node for worker in victims(pool)}
        for worker in pool.workers:
            ours = _is_scale_in(worker, owner) and worker.expected
            if worker.node not in leaving and worker.state is not None and worker.state.drain and ours:
                why = f"NodeSet {pool.name} keeps it"
                actions.append(
                    Action("undrain", worker.node, why, worker.state.word, "idle", stage="undrain", subject=worker)
                )
    return actions


def _move(kind: str, pool: Pool, node: str) -> Action:
    mine, nobodys = {"nodeset": pool.name}, {"nodeset": None}
    before, after = (nobodys, mine) if kind == JOIN else (mine, nobodys)
    why = f"NodeSet {pool.name} is to have {len(pool.membership.after) if pool.membership else 0} Nodes"
    return Action(
        kind, f"Node {node}", why, before, after, (before, after), stage=f"{kind} {pool.name}", subject=(pool, node)
    )


def _resize(pool: Pool, direction: str) -> Action:
    return Action(
        "scale",
        f"NodeSet {pool.name}",
        f"wanted {direction}",
        before={"replicas": pool.size},
        after={"replicas": pool.target},
        diff=({"replicas": pool.size}, {"replicas": pool.target}),
        subject=pool,
    )


def _refused(leaving: dict[str, tuple[Pool, Worker]], holding: Sequence[Job]) -> OperationError:
    names = sorted({leaving[node][0].name for job in holding for node in job.nodes if node in leaving})
    lines = [f"Jobs run on nodes that are to go (NodeSet {', '.join(names)}):"]
    for job in sorted(holding, key=lambda job: job.job_id)[:20]:
        lines.append(f"  job {job.job_id} of {job.user} on {', '.join(sorted(job.nodes & leaving.keys()))}")
    if len(holding) > 20:
        lines.append(f"  and {len(holding) - 20} more")
    return OperationError(
        "\n".join(lines) + "\nNothing was changed.",
        reason="RunningJobs",
        remaining=sorted({node for job in holding for node in job.nodes if node in leaving}),
        hint="Wait for them, or say what is to happen to them: on_running_jobs wait, requeue or cancel.",
    )
