# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What people read of a rollout: lines while it runs, numbers and lists at its end."""

from __future__ import annotations

from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import jobs, names
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import rollout as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.rollout import (
    BACK,
    DRAINING,
    LEFT,
    RETURNING,
    Picture,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.returning import Returning
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.workers import Workers


def lines(workers: Workers, picture: Picture, returning: Returning, now: float) -> list[str]:
    """How far it is, which jobs hold which nodes, and what has not come back yet."""
    draining = {worker.node for worker in picture.of(DRAINING)}
    found = {job.job_id: job for node in draining for job in workers.on.get(node, ())}
    summary = (
        f"{sum(worker.updated for worker in picture.workers)} of {picture.desired} updated,"
        f" {sum(planner.in_service(worker) for worker in picture.workers)} in service, {len(draining)} draining,"
        f" {len(picture.of(RETURNING, BACK))} coming back, {len(planner.outdated(picture))} left"
    )
    return [
        summary,
        *jobs.lines([found[number] for number in sorted(found)], draining, now),
        *(f"{worker.node}: {returning.why(worker)[0]}" for worker in picture.of(RETURNING)),
    ]


def told(workers: Workers, now: float) -> dict[str, Any]:
    """A NodeSet as numbers and lists."""
    picture = workers.picture
    return {
        "name": workers.name,
        "kind": workers.kind,
        "revision": workers.revision,
        "desired": picture.desired,
        "updated": sum(worker.updated for worker in picture.workers),
        "outdated": len(planner.outdated(picture)),
        "in_service": sum(planner.in_service(worker) for worker in picture.workers),
        "left_alone": [worker.node for worker in picture.of(LEFT)],
        "nodes": [
            {
                "name": worker.node,
                "pod": worker.pod or None,
                "kubernetes_node": worker.kubernetes_node or None,
                "revision": workers.revision_of(worker),
                "updated": worker.updated,
                "in_service": planner.in_service(worker),
                "state": worker.state.word if worker.state else None,
                "reason": worker.reason,
                "lacks": worker.lacks or None,
                "jobs": [jobs.plain(job, now) for job in workers.on.get(worker.node, ())],
            }
            for worker in sorted(picture.workers, key=lambda worker: names.natural(worker.node))
        ],
    }
