# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Drains carried out: set and lifted in bulk, waited for, and jobs ended where somebody asked for that.

Everything that takes nodes away from users goes through here. What somebody else did between plan and act is respected:
a drain that a person set meanwhile is neither overwritten nor undone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import drains, jobs
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.jobs import Job
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import SlurmNode, snapshot
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.trouble import INFORMATION
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.drain import CANCEL
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.scontrol import scontrol
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import client_of
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.wait import Seen, Trouble, wait_until
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import Listing, SlurmClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.errors import SlurmError

# Requeueing over REST came with this data_parser (Slurm 26.05).
REQUEUE_PARSER = "v0.0.45"
# What may come back while we wait: slurmrestd or slurmctld restarting, the API server being replaced.
PASSING = frozenset({"SlurmUnreachable", "ControllerUnreachable", "Unreachable"})
LOST = 5.0  # seconds for which a drain must be gone before the wait for it gives up
BROKEN = 60.0  # seconds for which Slurm must answer with errors of its own
UNKNOWN = 60.0  # seconds for which Slurm must not know a node; slurmctld may be reading its state


class Draining:
    """The drains of one cluster; reads are of whole lists, writes one call for each distinct state and reason."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._client: SlurmClient | None = None
        self._listing: Listing | None = None

    @property
    def slurm(self) -> SlurmClient:
        """The client, made on first use."""
        if self._client is None:
            self._client = client_of(self._run.kubernetes, self._run.params, self._run.slurm_calls)
        return self._client

    def listing(self) -> Sequence[Mapping[str, Any]]:
        """All nodes as Slurm lists them, read anew only if Slurm says that one changed, as any state and reason does.

        A registration that changes neither may go unnoticed: who waits for slurmd reads with ``slurm.nodes()``.
        """
        found = self.slurm.nodes(self._listing.last_update if self._listing else 0)
        if found.changed or self._listing is None:
            self._listing = found
        return self._listing.items

    def nodes(self) -> Mapping[str, SlurmNode]:
        """All nodes by name."""
        return snapshot(slurm_nodes=self.listing()).slurm_nodes

    def jobs(self) -> list[Job]:
        """All jobs that slurmctld still knows."""
        return jobs.parse_all(self.slurm.jobs().items)

    # --- set and lift ---------------------------------------------------------------------------------------------

    def drain(self, actions: Sequence[Action]) -> None:
        """Drain; each action's ``why`` is the reason that is written."""
        actions = self._not_taken(actions)
        for reason in sorted({action.why for action in actions}):
            same = [action for action in actions if action.why == reason]
            self._update(same, "DRAIN", reason, _drained_for(reason))

    def undrain(self, actions: Sequence[Action]) -> None:
        """Give nodes back. UNDRAIN and not RESUME: that one is an error on a node that is idle already."""
        self._update(self._not_taken(actions), "UNDRAIN", "", lambda node: not node.state.drain)

    def _not_taken(self, actions: Sequence[Action]) -> Sequence[Action]:
        """The actions without those on nodes that somebody else has taken since the plan was made."""
        now = self.nodes()
        taken = [
            action
            for action in actions
            if (node := now.get(action.target))
            and drains.is_foreign(node.state, node.reason)
            and node.reason != action.subject.reason
        ]
        for action in taken:
            reason = now[action.target].reason
            self._run.warn(f"{action.target} was drained by somebody else meanwhile ({reason}): it was left alone.")
        self.drop(taken)
        names = {action.target for action in taken}
        return [action for action in actions if action.target not in names]

    def _update(self, actions: Sequence[Action], state: str, reason: str, took: Callable[[SlurmNode], bool]) -> None:
        """One call. Slurm goes through a list name by name, so after an error what came before it is done."""
        try:
            self.slurm.update_nodes([action.target for action in actions], state=state, reason=reason)
        except OperationError:
            self._mark(actions, took)
            raise
        for action in actions:
            action.done = True

    def _mark(self, actions: Sequence[Action], took: Callable[[SlurmNode], bool]) -> None:
        try:
            now = self.nodes()
        except OperationError:
            return
        for action in actions:
            node = now.get(action.target)
            action.done = node is not None and took(node)

    def drop(self, actions: Sequence[Action]) -> None:
        """Take back actions that have become needless, so that the result tells what was done."""
        needless = {id(action) for action in actions}
        self._run.actions[:] = [action for action in self._run.actions if id(action) not in needless]

    # --- jobs -----------------------------------------------------------------------------------------------------

    def end_jobs(self, policy: str, actions: Sequence[Action]) -> None:
        """Requeue or cancel the jobs that still hold nodes, in one call; the others have ended by themselves."""
        holding = self._holding()
        left = [action for action in actions if action.subject.job_id in holding]
        self.drop([action for action in actions if action.subject.job_id not in holding])
        numbers = [action.subject.job_id for action in left]
        try:
            if policy == CANCEL:
                self.slurm.cancel_jobs(numbers)
            elif numbers:
                self._requeue(numbers)
        except OperationError:
            holding = self._holding()
            for action in left:
                action.done = action.subject.job_id not in holding
            raise
        for action in left:
            action.done = True

    def _holding(self) -> set[int]:
        # Jobs that complete are being ended already.
        return {job.job_id for job in self.jobs() if job.holding and "COMPLETING" not in job.states}

    def _requeue(self, numbers: Sequence[int]) -> None:
        if self.slurm.parser >= REQUEUE_PARSER:
            self.slurm.requeue_jobs(numbers)
            return
        # Before 26.05 only scontrol can do it.
        scontrol(
            self._run,
            ["requeue", ",".join(map(str, numbers))],
            f"requeue {len(numbers)} jobs",
            reason="RequeueFailed",
            hint="Some may have been requeued; wait for the others, or cancel them.",
        )

    # --- wait -----------------------------------------------------------------------------------------------------

    def wait_drained(
        self, nodes: Collection[str], what: str, *, timeout: float, hint: str, may_be_gone: bool = False
    ) -> None:
        """Wait until nothing runs on nodes that were drained. Raises OperationError (Timeout) with what holds them.

        Fails closed: anything but drained keeps us waiting, also a Slurm that does not answer for a while. With
        ``may_be_gone`` a node that Slurm no longer lists is done.
        """

        try:
            wait_until(
                patient(lambda: self._look(nodes, may_be_gone)),
                what,
                timeout=timeout,
                interval=self._run.params["wait_sleep"],
                progress=self._run.progress,
            )
        except OperationError as error:
            if error.reason != "Timeout":
                raise
            raise OperationError(error.msg, reason="Timeout", remaining=error.remaining, hint=hint) from None

    def _look(self, nodes: Collection[str], may_be_gone: bool) -> Seen:
        known = self.nodes()
        busy = {node for node in nodes if node in known and not drains.is_empty(known[node])}
        missing = [] if may_be_gone else sorted(node for node in nodes if node not in known)
        if not busy and not missing:
            return Seen()
        holders = jobs.holders(self.jobs(), busy)
        held = frozenset().union(*(job.nodes for job in holders)) if holders else frozenset()
        troubles = [
            Trouble(
                f"lost {node}",
                f"{node} is {known[node].state.word}: somebody gave it back to users",
                LOST,
                "DrainLost",
                "Ask who did; run again to drain it again.",
            )
            for node in sorted(busy)
            if not known[node].state.drain and not drains.is_foreign(known[node].state, known[node].reason)
        ]
        troubles += [
            Trouble(f"unknown {node}", f"Slurm no longer knows {node}", UNKNOWN, "UnknownNode") for node in missing
        ]
        remaining = jobs.lines(holders, busy, time.time())
        remaining += [f"{node} is {known[node].state.word}" for node in sorted(busy - held)]
        remaining += [f"{node} is not known to Slurm" for node in missing]
        return Seen(remaining, troubles)


def patient(look: Callable[[], Seen]) -> Callable[[], Seen]:
    """A look that takes a Slurm that does not answer for one that will again: the wait's own end is soon enough."""

    def looked() -> Seen:
        try:
            return look()
        except OperationError as error:
            grace = _grace(error)
            if not grace:
                raise
            said = f"Slurm does not answer: {error.msg}"
            return Seen([said], [Trouble("no answer", said, grace, error.reason, error.hint)])

    return looked


def _grace(error: OperationError) -> float:
    if error.reason in PASSING:
        return INFORMATION
    # What a slurmctld that is going down answers to a read may be any error, such as Connection reset by peer.
    is_broken = isinstance(error, SlurmError) and error.status >= 500 and error.reason != "TokenRefused"
    return BROKEN if is_broken else 0


def _drained_for(reason: str) -> Callable[[SlurmNode], bool]:
    return lambda node: node.state.drain and node.reason == reason
