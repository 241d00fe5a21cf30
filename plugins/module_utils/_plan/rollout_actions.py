# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What a rollout does to each node, as actions: drain, end jobs if asked, forget the record, replace, undrain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .._core.jobs import Job
from .action import Action
from .drain import plan_jobs
from .rollout import BACK, OLD, RETURNING, Picture, Worker, in_service, is_ours

DRAIN, FORGET, REPLACE, UNDRAIN = "drain", "forget", "replace", "undrain"
STAGE = "rollout"  # one stage for all: the nodes overlap


def action(kind: str, worker: Worker, picture: Picture, revision: str) -> Action:
    """One action on one node."""
    word = worker.state.word if worker.state else "unknown to Slurm"
    target = worker.node
    before: object = {"state": word, "reason": worker.reason} if worker.reason else {"state": word}
    after: object
    if kind == DRAIN:
        why, after = picture.reason, {"state": "drained", "reason": picture.reason}
    elif kind == UNDRAIN:
        why, before, after = "it is as declared", {"state": "drained", "reason": picture.reason}, {"state": "idle"}
    elif kind == FORGET:
        why, before, after = "what slurmd registers is new", "registered", None
    else:
        why, target = f"NodeSet {picture.nodeset} has a new template", f"Pod {worker.pod}"
        before, after = {"node": worker.node}, {"node": worker.node, "revision": revision}
    return Action(kind, target, why, before, after, (before, after), stage=STAGE, subject=worker)


def plan(
    picture: Picture, batches: Iterable[Sequence[Worker]], revision: str, policy: str, on: Mapping[str, Sequence[Job]]
) -> list[Action]:
    """Every action of a rollout, node by node in the order of the batches."""
    coming = [worker for worker in picture.of(BACK, RETURNING) if is_ours(worker, picture.reason)]
    actions = [action(UNDRAIN, worker, picture, revision) for worker in coming]
    told: set[int] = set()
    for worker in (worker for batch in batches for worker in batch):
        kinds = list(_kinds(worker, picture))
        if kinds[0] == DRAIN:
            actions.append(action(DRAIN, worker, picture, revision))
        if in_service(worker) or is_ours(worker, picture.reason):
            jobs = [job for job in on.get(worker.node, ()) if job.job_id not in told]
            told |= {job.job_id for job in jobs}
            actions += job_actions(policy, jobs, [worker.node], picture)
        actions += [action(kind, worker, picture, revision) for kind in kinds if kind != DRAIN]
    return actions


def _kinds(worker: Worker, picture: Picture) -> Iterable[str]:
    is_old = picture.phase(worker) == OLD
    if is_old:
        yield DRAIN
    if worker.anew:
        yield FORGET
    yield REPLACE
    # A record that is made anew comes back in service; one that somebody else drained stays so.
    if not worker.anew and (is_old or is_ours(worker, picture.reason)):
        yield UNDRAIN


def job_actions(policy: str, jobs: Sequence[Job], nodes: Sequence[str], picture: Picture) -> list[Action]:
    """End jobs as the policy says."""
    found = plan_jobs(policy, jobs, nodes, f"rollout of NodeSet {picture.nodeset}")
    for item in found:
        item.stage = STAGE
    return found
