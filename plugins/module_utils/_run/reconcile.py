# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module reconcile's work: read both sides, plan, and under a lock do what is still to be done; or stay for it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import CLUSTER, Snapshot, snapshot
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.lease import Lease
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import (
    KUBERNETES_NODE,
    POD,
    STATEFUL_SET,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import reconcile as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.members import Options
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.reconcile import Plan
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.to_kubernetes import NODE_CONDITION
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.alarm import Alarm
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, stages
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.reconcile_actions import Actor
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import client_of
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient

# Not passing by themselves, so that trying again is of no use.
FINAL = frozenset({"Drift", "Invalid", "Forbidden", "NoKey", "Unauthorized"})
KEPT = 1000  # actions of a resident run that are returned
SLOW = 10.0  # seconds that an answer may take without being told of


class Reconcile:
    """An Operation: see _run/module.py."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._params = run.params
        self._namespace: str = run.params["namespace"]
        self._cluster: str = run.params["name"]
        self._labels = f"{CLUSTER}={self._cluster}"
        self._kubernetes = run.kubernetes
        self._slurm_client: SlurmClient | None = None
        self._actor = Actor(self._kubernetes, self._namespace, self._slurm)
        self._lease = Lease(self._kubernetes, self._namespace, f"{self._cluster}-reconcile")
        self._begun = time.monotonic()
        self._end = self._begun + run.params["duration"]  # of a resident run
        self._listed = 0  # Slurm's time of the last list of nodes
        self._last: Plan | None = None
        self._passes = 0
        self._error: OperationError | None = None
        self._failures = 0  # in a row
        self._counts: Counter[str] = Counter()
        self._interruptions: list[dict[str, Any]] = []

    def _slurm(self) -> SlurmClient:
        if self._slurm_client is None:
            client = client_of(self._kubernetes, self._params, self._run.slurm_calls)
            client.require_controller()
            self._slurm_client = client
        return self._slurm_client

    # --- one pass -------------------------------------------------------------------------------------------------

    def plan(self) -> Sequence[Action]:
        """Read and plan. A resident run goes on when a side cannot be read; a single one fails."""
        try:
            return self._look().actions
        except OperationError as error:
            if not self._params["watch"] or error.reason in FINAL:
                raise
            self._interrupted(error)
            return ()

    def _look(self) -> Plan:
        """Plan from what is there now; raises OperationError when a side cannot be read or the plan may not be done."""
        params = self._params
        if NODE_CONDITION in params["conditions"]:
            raise OperationError(
                f"The condition {NODE_CONDITION} is what this module itself writes; it cannot be a cause.",
                reason="Invalid",
                hint="Leave it out of conditions.",
            )
        seen = self._read()
        options = Options(
            cluster=f"{self._namespace}/{self._cluster}",
            now=int(parsedate_to_datetime(self._kubernetes.server_date).timestamp()),
            conditions=tuple(params["conditions"]),
            grace=params["grace"],
            cordon=params["cordon"],
            nodesets=frozenset(params["nodesets"]),
            ignored_nodesets=frozenset(params["ignore_nodesets"]),
        )
        found = planner.plan(seen, options, directions=params["directions"], only=params["only"])
        self._last = found
        if params["fail_on_drift"] and found.drift:
            raise OperationError(
                f"Slurm and Kubernetes differ in {len(found.drift)} points: {'; '.join(found.drift[:10])}"
                f"{'; ...' if len(found.drift) > 10 else ''}. Nothing was changed.",
                reason="Drift",
                remaining=found.drift,
                hint="Run without fail_on_drift to mend what can be mended.",
            )
        if params["max_actions"]:
            planner.check_limit(found, params["max_actions"])
        self._passes += 1
        return found

    def _read(self) -> Snapshot:
        """Six calls, and more only for lists of more than one page.

        Slurm last: what it knows then is at least as new as the Pods. DaemonSets need not be read: each has a Pod for
        every Node that it is for.
        """
        pods = self._kubernetes.list(POD, self._namespace, labels=self._labels)
        nodes = self._kubernetes.list(KUBERNETES_NODE)
        workloads = self._kubernetes.list(STATEFUL_SET, self._namespace, labels=self._labels)
        listing = self._slurm().nodes()
        self._listed = listing.last_update
        return snapshot(workloads=workloads, pods=pods, nodes=nodes, slurm_nodes=listing.items)

    def act(self, actions: Sequence[Action]) -> None:
        """Do what is still to be done once the lock is ours: somebody may have done it while we waited."""
        if self._error is not None:
            return  # a resident run, which plans anew as soon as it can
        try:
            if self._lock():
                still = {(item.kind, item.target): item for item in self._look().actions}
                for action in self._run.actions:
                    fresh = still.get((action.kind, action.target))
                    action.subject = fresh.subject if fresh == action else None
            self._do([action for action in actions if action.subject is not None])
        except OperationError as error:
            if self._params["watch"] and error.reason not in FINAL:
                self._interrupted(error)
                return
            self._lease.release()
            raise

    def _lock(self) -> bool:
        """Take the lock unless it is ours already; whether it had to be taken."""
        if self._lease.held:
            return False
        self._lease.release()  # of one that was lost, the thread
        left = self._end - time.monotonic() if self._params["watch"] else self._params["lock_timeout"]
        self._lease.acquire(min(self._params["lock_timeout"], max(0.0, left)))
        self._lease.keep()
        return True

    def _do(self, actions: Sequence[Action]) -> None:
        for batch in stages(actions):
            if not self._lease.held:
                raise OperationError(
                    f"Lease {self._namespace}/{self._cluster}-reconcile was lost.",
                    reason="LockLost",
                    hint="Another run may be at work; run again.",
                )
            self._run.progress.say(f"{batch[0].stage}: {len(batch)} ({batch[0].target}, ...)")
            self._actor.act(batch)

    # --- resident -------------------------------------------------------------------------------------------------

    def wait(self) -> None:
        """Stay for the asked time and make a pass whenever something changes."""
        try:
            if self._params["watch"]:
                self._stay()
        finally:
            self._lease.release()

    def _stay(self) -> None:
        first = list(self._run.actions)
        self._run.actions.clear()
        self._keep(first)
        alarm = Alarm(self._kubernetes, self._namespace, self._labels, self._end - time.monotonic())
        while time.monotonic() < self._end:
            try:
                if self._error is None:
                    alarm.wait(self._slurm_changed, self._params["poll"], self._params["interval"])
                else:
                    time.sleep(min(2.0 * self._failures, 15.0, max(0.0, self._end - time.monotonic())))
                if time.monotonic() < self._end:
                    self._pass()
            except OperationError as error:
                if error.reason in FINAL:
                    raise
                self._interrupted(error)

    def _slurm_changed(self) -> bool:
        with self._noticing_slowness():
            return self._slurm().nodes(self._listed).changed

    @contextmanager
    def _noticing_slowness(self) -> Iterator[None]:
        """What the clients bridge by waiting and trying again is told all the same."""
        begun = time.monotonic()
        yield
        took = time.monotonic() - begun
        if took > SLOW:
            self._note("Slow", f"An answer took {took:.0f} s: the API server or Slurm was away.")

    def _pass(self) -> None:
        self._lock()
        with self._noticing_slowness():
            actions = self._look().actions
        try:
            self._do(actions)
        finally:
            self._keep(actions)
        if self._error is not None:
            self._run.progress.say("both sides can be read again")
            self._error, self._failures = None, 0

    def _keep(self, actions: Sequence[Action]) -> None:
        """Of what a resident run did, which may be much, keep the end; all of it is counted."""
        done = [action for action in actions if action.done]
        self._counts.update(action.kind for action in done)
        self._run.actions += done
        del self._run.actions[:-KEPT]

    def _interrupted(self, error: OperationError) -> None:
        """Tell it once for as long as it lasts, and look anew at what a token or an address was."""
        if self._error is None or self._error.reason != error.reason:
            self._note(error.reason, str(error))
        self._error = error
        self._failures += 1
        self._slurm_client = None

    def _note(self, reason: str, text: str) -> None:
        after = round(time.monotonic() - self._begun, 1)
        self._interruptions.append({"after": after, "reason": reason, "msg": text})
        del self._interruptions[:-KEPT]
        self._run.progress.say(text)

    # --- tell -----------------------------------------------------------------------------------------------------

    def result(self) -> Mapping[str, Any]:
        """Return the drift that the last look found. A resident run that ends in trouble has failed."""
        for item in self._interruptions[-10:]:
            self._run.warn(f"after {item['after']} s: {item['msg']}")
        if self._error is not None or self._last is None:
            raise self._error or OperationError("Nothing was read.", reason="Unexpected")
        counts = self._counts if self._params["watch"] else Counter(action.kind for action in self._run.actions)
        return {
            "drift": self._last.drift,
            "counts": {"nodes": self._last.members, **dict(sorted(counts.items()))},
            "passes": self._passes,
            "interruptions": self._interruptions,
        }
