# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Plans of drains and undrains: what is written to which node, and which nodes are somebody else's."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import drains, hostlist, jobs, names
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.jobs import Job
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import KubernetesNode, SlurmNode
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action

# What happens to jobs on nodes that are drained.
WAIT, REQUEUE, CANCEL = "wait", "requeue", "cancel"
DRAIN, UNDRAIN, CORDON, UNCORDON = "drain", "undrain", "cordon", "uncordon"
JOBS = "jobs"

# Our cordon: the reason of the drain that it belongs to.
CORDONED = f"{names.DOMAIN}/cordoned"


def require_known(wanted: Collection[str], known: Collection[str], what: str = "Slurm") -> None:
    """Raise OperationError (UnknownNode) that names what is not there. Slurm would change the others and then fail."""
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        shown = ", ".join(unknown[:20]) + (f" and {len(unknown) - 20} more" if len(unknown) > 20 else "")
        raise OperationError(
            f"{what} does not know {shown}. Nothing was changed.",
            reason="UnknownNode",
            remaining=unknown,
            hint="Check the names; cluster_info lists the nodes.",
        )


def plan_drain(nodes: Sequence[SlurmNode], reason: str, *, force: bool = False) -> list[Action]:
    """Drain what is not drained. With ``force`` also take over what somebody else has drained, with our reason.

    A node that we have drained for another reason keeps it: whoever set it waits for it.
    """
    return [
        Action(
            DRAIN,
            node.name,
            reason,
            before={"state": node.state.word, "reason": node.reason},
            after={"state": "drained", "reason": reason},
            diff=({"state": node.state.word, "reason": node.reason}, {"state": "drained", "reason": reason}),
            stage=DRAIN,
            subject=node,
        )
        for node in nodes
        if (force if drains.is_foreign(node.state, node.reason) else not node.state.drain)
    ]


def plan_undrain(nodes: Sequence[SlurmNode], pattern: str | None = None, *, force: bool = False) -> list[Action]:
    """Give drained nodes back: those of ours, with ``force`` anybody's, whose reason matches the pattern."""
    matches = _matcher(pattern)
    return [
        Action(
            UNDRAIN,
            node.name,
            f"was drained: {node.reason or 'without a reason'}",
            before={"state": node.state.word, "reason": node.reason},
            after={"state": "idle", "reason": ""},
            diff=({"state": node.state.word, "reason": node.reason}, {"state": "idle", "reason": ""}),
            stage=UNDRAIN,
            subject=node,
        )
        for node in nodes
        if node.state.drain and (force or drains.ours(node.reason)) and matches(node.reason)
    ]


def _matcher(pattern: str | None) -> Callable[[str], bool]:
    if not pattern:
        return lambda reason: True
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise OperationError(
            f"reason_pattern {pattern!r} is no regular expression: {error}.",
            reason="InvalidPattern",
            hint="Python's syntax; it is searched for anywhere in the reason.",
        ) from error
    return lambda reason: compiled.search(reason) is not None


def plan_jobs(policy: str, holding: Sequence[Job], nodes: Collection[str], why: str) -> list[Action]:
    """End jobs as the policy says. What cannot go back into the queue is not ended by ``requeue``."""
    if policy not in (REQUEUE, CANCEL):
        return []
    wanted = frozenset(nodes)
    return [
        Action(
            policy,
            f"job {job.job_id}",
            f"{why}: {hostlist.compress(job.nodes & wanted, sort=True)}",
            before=job.state.lower() if job.states else "running",
            after=None,
            stage=JOBS,
            subject=job,
        )
        for job in sorted(holding, key=lambda job: job.job_id)
        if policy == CANCEL or job.requeueable
    ]


def not_requeueable(holding: Sequence[Job], nodes: Collection[str], now: float) -> list[str]:
    """What people read of jobs that requeue leaves alone."""
    return jobs.lines([job for job in holding if not job.requeueable], nodes, now)


def plan_cordon(nodes: Sequence[KubernetesNode], reason: str) -> list[Action]:
    """Cordon Nodes that are not; somebody else's cordon stays somebody else's."""
    return [
        Action(
            CORDON,
            f"Node {node.name}",
            reason,
            before={"unschedulable": False},
            after={"unschedulable": True},
            diff=({"unschedulable": False}, {"unschedulable": True, CORDONED: reason}),
            stage=CORDON,
            subject=node.name,
        )
        for node in nodes
        if not node.cordoned
    ]


def plan_uncordon(nodes: Sequence[KubernetesNode]) -> list[Action]:
    """Uncordon the Nodes that we cordoned. Who uncordoned one in between leaves only our annotation to remove."""
    return [
        Action(
            UNCORDON,
            f"Node {node.name}",
            f"was cordoned: {node.annotations[CORDONED]}",
            before={"unschedulable": node.cordoned},
            after={"unschedulable": False},
            diff=({"unschedulable": node.cordoned, CORDONED: node.annotations[CORDONED]}, {"unschedulable": False}),
            stage=UNCORDON,
            subject=node.name,
        )
        for node in nodes
        if CORDONED in node.annotations
    ]


def may_uncordon(on_node: Mapping[str, SlurmNode], given_back: Collection[str]) -> bool:
    """Whether nothing that we drained stays on a Node: ``on_node`` are all its nodes, {name: node}."""
    return not any(
        node.state.drain and drains.ours(node.reason) and name not in given_back for name, node in on_node.items()
    )
