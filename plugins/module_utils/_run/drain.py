# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module node_drain's work: drain or give back nodes, and with them their Nodes, without touching a person's."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import drains, hostlist, jobs
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import SlurmNode
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import KUBERNETES_NODE
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import drain as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.draining import Draining
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, do_each
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.targets import Targets, read_targets

# Seconds for nodes to become drained once their jobs were requeued or cancelled: KillWait (30 s) and an epilog.
GRACE = 120.0


class NodeDrain:
    """An Operation: see _run/module.py."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._params = run.params
        self._draining = Draining(run)
        self._is_drain = run.params["state"] == "drained"
        self._policy: str = run.params["on_running_jobs"]
        self._targets: Targets
        self._left_alone: list[str] = []

    # --- plan -----------------------------------------------------------------------------------------------------

    def plan(self) -> Sequence[Action]:
        """Find the nodes, and what is to be written to them; names that nobody knows are refused before that."""
        reason = self._reason() if self._is_drain else ""
        cordon = self._params["cordon"]
        self._targets = read_targets(self._run, self._draining, pods=cordon, kubernetes_nodes=cordon)
        return self._plan_drain(reason) if self._is_drain else self._plan_undrain()

    def _reason(self) -> str:
        if not (self._params["reason"] or "").strip():
            raise OperationError(
                "A drain needs a reason.", reason="ReasonMissing", hint="Say what for, as in: disk is replaced."
            )
        if self._policy != planner.WAIT and not self._params["wait"]:
            raise OperationError(
                f"on_running_jobs {self._policy} needs wait.",
                reason="InvalidOptions",
                hint="Jobs get wait_timeout to end by themselves before anything is done to them; 0 gives them none.",
            )
        return drains.with_owner(self._params["reason"])

    def _plan_drain(self, reason: str) -> list[Action]:
        targets = self._targets
        actions = planner.plan_drain(targets.nodes, reason, force=self._params["force"])
        planned = {action.target for action in actions}
        self._left_alone = [
            node.name
            for node in targets.nodes
            if drains.is_foreign(node.state, node.reason) and node.name not in planned
        ]
        if self._params["cordon"]:
            actions += planner.plan_cordon(targets.kubernetes_nodes(), reason)
        if self._policy != planner.WAIT:
            waited = self._targets.names
            holding = jobs.holders(self._draining.jobs(), waited)
            actions += planner.plan_jobs(self._policy, holding, waited, self._why())
        return actions

    def _plan_undrain(self) -> list[Action]:
        targets = self._targets
        undrains = planner.plan_undrain(targets.nodes, self._params["reason_pattern"], force=self._params["force"])
        planned = {action.target for action in undrains}
        for node in targets.nodes:
            if node.state.drain and node.name not in planned:
                self._left_alone.append(node.name)
            elif drains.note(node):
                self._run.warn(f"{node.name} {drains.note(node)}.")
        if self._left_alone:
            names = hostlist.compress(self._left_alone, sort=True)
            self._run.warn(f"{names} stay drained: their reasons are not ours, or do not match reason_pattern.")
        actions: list[Action] = []
        if self._params["cordon"]:
            free = [
                node for node in targets.kubernetes_nodes() if planner.may_uncordon(targets.on_node(node.name), planned)
            ]
            # First: a node on a cordoned Node would be drained again by who keeps both sides the same.
            actions += planner.plan_uncordon(free)
        return actions + undrains

    # --- act ------------------------------------------------------------------------------------------------------

    def act(self, actions: Sequence[Action]) -> None:
        """One call for each distinct state and reason; Nodes one by one over several connections."""
        kind = actions[0].kind
        if kind == planner.DRAIN:
            self._draining.drain(actions)
        elif kind == planner.UNDRAIN:
            self._draining.undrain(actions)
        elif kind in (planner.CORDON, planner.UNCORDON):
            self._cordon(actions)
        # Jobs get their time first: see wait.

    def _cordon(self, actions: Sequence[Action]) -> None:
        def change(action: Action) -> None:
            note = action.why if action.kind == planner.CORDON else None
            patch = {
                "metadata": {"annotations": {planner.CORDONED: note}},
                "spec": {"unschedulable": True if note else None},
            }
            self._run.kubernetes.patch(KUBERNETES_NODE, None, action.subject, patch)

        do_each(self._run.kubernetes, change, actions)

    # --- wait -----------------------------------------------------------------------------------------------------

    def wait(self) -> None:
        """Wait until the nodes are drained; at the deadline give up, or end what still runs, as was asked."""
        names = self._targets.names
        if not (self._is_drain and self._params["wait"] and names):
            return
        try:
            self._wait_drained(names, self._params["wait_timeout"])
        except OperationError as error:
            if error.reason != "Timeout" or self._policy == planner.WAIT:
                raise
            self._end_jobs(names)
            self._wait_drained(names, GRACE)
        self._draining.drop(
            [action for action in self._run.actions if action.stage == planner.JOBS and not action.done]
        )

    def _wait_drained(self, names: Sequence[str], timeout: float) -> None:
        self._draining.wait_drained(
            names,
            f"Draining {hostlist.compress(names, sort=True)}",
            timeout=timeout,
            hint="The nodes stay drained, no job begins there. Run again to go on waiting; on_running_jobs requeue or"
            " cancel ends what still runs.",
        )

    def _end_jobs(self, names: Sequence[str]) -> None:
        """What still runs, also what had begun between our look and the drain; not where somebody lifted the drain."""
        known = self._draining.nodes()
        names = [name for name in names if name in known and known[name].state.drain]
        holding = jobs.holders(self._draining.jobs(), names)
        for line in planner.not_requeueable(holding, names, time.time()) if self._policy == planner.REQUEUE else ():
            self._run.warn(f"Not requeued, because it cannot be: {line}.")
        planned = {action.subject.job_id: action for action in self._run.actions if action.stage == planner.JOBS}
        actions = [
            planned.get(action.subject.job_id, action)
            for action in planner.plan_jobs(self._policy, holding, names, self._why())
        ]
        self._run.actions += [action for action in actions if action.subject.job_id not in planned]
        self._draining.end_jobs(self._policy, actions)

    def _why(self) -> str:
        return f"still there after {self._params['wait_timeout']} s"

    # --- tell -----------------------------------------------------------------------------------------------------

    def result(self) -> Mapping[str, Any]:
        """Return the nodes as they are now (in check mode: as they were found) and what holds them."""
        known: Mapping[str, SlurmNode] = self._targets.seen.slurm_nodes
        if any(action.done for action in self._run.actions) or (self._is_drain and self._params["wait"]):
            known = self._draining.nodes()
        nodes = [known.get(node.name, node) for node in self._targets.nodes]
        on = jobs.by_node(self._draining.jobs())
        now = time.time()
        return {
            "nodes": [
                {
                    **drains.plain(node, on.get(node.name, ()), now),
                    "kubernetes_node": self._targets.kubernetes_node_of(node.name),
                }
                for node in nodes
            ],
            "drained": [node.name for node in nodes if node.state.drained],
            "draining": [node.name for node in nodes if node.state.drain and not node.state.drained],
            "left_alone": self._left_alone,
        }
