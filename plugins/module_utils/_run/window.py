# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The reservation of a rollout's window: read over REST, written by scontrol, which every supported Slurm has."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import hostlist
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import window as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.window import MINUTE, RESERVE
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.scontrol import scontrol
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient


class RolloutWindow:
    """The window of one run, which may be ahead, open or over. ``clock`` is there for tests."""

    def __init__(self, run: Run, nodeset: str, clock: Callable[[], float] = time.time) -> None:
        self._run = run
        self._clock = clock
        self._nodeset = nodeset
        self._name = planner.name_of(nodeset)
        self._window = planner.parse(run.params["window"])
        self._actions: list[Action] = []

    @property
    def is_ahead(self) -> bool:
        """Whether it has not begun."""
        return self._window.is_ahead(self._clock())

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._window.is_over(self._clock())

    def plan(self, slurm: SlurmClient, nodes: Sequence[str]) -> list[Action]:
        """What is to be done about the reservation of these nodes. Raises OperationError (WindowOver)."""
        if nodes and self.is_over:
            raise self.over(nodes, "Nothing was begun.")
        there = planner.reservation(slurm.reservations().items, self._nodeset)
        self._actions = planner.plan(self._nodeset, self._window, nodes, there, self._clock())
        return list(self._actions)

    def carry_out(self) -> None:
        """Make or change the reservation, or take it away; nothing when that is done."""
        for action in self._actions:
            if not action.done:
                scontrol(
                    self._run,
                    self._arguments(action),
                    f"{action.kind} nodes as {self._name}",
                    reason="ReservationRefused",
                    hint="scontrol show reservation tells what else is reserved then.",
                )
                action.done = True

    def _arguments(self, action: Action) -> list[str]:
        if action.kind != RESERVE:
            return ["delete", f"ReservationName={self._name}"]
        wanted = [
            f"ReservationName={self._name}",
            # Seconds since 1970: slurmctld's time zone does not matter.
            f"StartTime=uts{action.after['start']}",
            f"Duration={(action.after['end'] - action.after['start']) // MINUTE}",
            f"Nodes={action.after['nodes']}",
        ]
        if action.subject is not None:
            return ["update", *wanted]
        # IGNORE_JOBS: a job that runs is no reason to refuse; what becomes of it is for the policy to say.
        return ["create", *wanted, "Users=root", "Flags=MAINT,IGNORE_JOBS"]

    def over(self, nodes: Sequence[str], what: str) -> OperationError:
        """The error that the window has ended before these nodes were done."""
        return OperationError(
            f"Rollout of NodeSet {self._nodeset}: the window ended at {self._said(self._window.end)} and"
            f" {hostlist.compress(nodes, sort=True)} still have their old Pods. {what}",
            reason="WindowOver",
            remaining=nodes,
            hint="Run again with another window, or without one.",
        )

    def told(self) -> Mapping[str, Any]:
        """The window as the module returns it."""
        phase = "ahead" if self.is_ahead else "over" if self.is_over else "open"
        return {
            "reservation": self._name,
            "start": self._said(self._window.start),
            "end": self._said(self._window.end),
            "phase": phase,
        }

    @staticmethod
    def _said(seconds: int) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
