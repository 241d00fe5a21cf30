# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The table of docs/guides/reconcile.md, put together: from one snapshot to actions in their order, and findings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from .._core.errors import OperationError
from .._core.share import share
from .._core.snapshot import Snapshot
from . import to_kubernetes, to_slurm
from .action import Action
from .members import Finding, Options, Picture, picture

TO_SLURM, TO_KUBERNETES = "kubernetes_to_slurm", "slurm_to_kubernetes"

Rule = Callable[[Picture], Iterator[Action | Finding]]

RULES: dict[str, tuple[str, Rule]] = {
    "drain": (TO_SLURM, to_slurm.drains),
    "undrain": (TO_SLURM, to_slurm.undrains),
    "registration": (TO_SLURM, to_slurm.registrations),
    "restart": (TO_SLURM, to_slurm.strangers),
    "forget": (TO_SLURM, to_slurm.records),
    "size": (TO_SLURM, to_slurm.sizes),
    "protect": (TO_KUBERNETES, to_kubernetes.protections),
    "pods": (TO_KUBERNETES, to_kubernetes.pod_conditions),
    "nodes": (TO_KUBERNETES, to_kubernetes.node_conditions),
    "cordon": (TO_KUBERNETES, to_kubernetes.cordons),
}
# Evictions wait before anything else happens; what gives nodes back comes after what takes them.
STAGES = ("labels", "drain", "forget", "restart", "undrain", "cordon", "nodes", "pods")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done, in order, and what is only told."""

    actions: Sequence[Action]
    findings: Sequence[Finding]
    members: int

    @property
    def drift(self) -> list[str]:
        """Everything in which the sides differ, in words."""
        told = [f"{action.target}: {_VERBS[action.kind]}: {action.why}" for action in self.actions]
        return told + [f"{finding.target}: {finding.text}" for finding in self.findings]


_VERBS = {
    "drain": "to be drained",
    "undrain": "to be resumed",
    "forget": "its record is to be deleted",
    "restart": "to be restarted",
    "protect": "to be protected from eviction",
    "unprotect": "no longer to be protected from eviction",
    "show": "to be shown",
    "cordon": "to be cordoned",
    "uncordon": "to be uncordoned",
}


def plan(
    snapshot: Snapshot,
    options: Options,
    *,
    directions: Collection[str] = (TO_SLURM, TO_KUBERNETES),
    only: Collection[str] = (),
) -> Plan:
    """Apply every rule that is asked for. The same snapshot always gives the same plan."""
    seen = picture(snapshot, options)
    found: list[Action | Finding] = []
    for name, (direction, rule) in RULES.items():
        if direction in directions and (not only or name in only):
            found.extend(rule(seen))
    actions = [item for item in found if isinstance(item, Action)]
    actions.sort(key=lambda action: STAGES.index(action.stage))
    return Plan(actions, [item for item in found if isinstance(item, Finding)], len(seen.members))


def check_limit(found: Plan, text: str) -> None:
    """Raise OperationError (TooManyNodes) when a plan takes more nodes out of service than is allowed."""
    allowed = share(text, found.members, "max_actions")
    leaving = sorted({a.target for a in found.actions if a.kind == "drain" and not a.subject.state.drain})
    if len(leaving) > allowed:
        causes = sorted({action.why for action in found.actions if action.target in leaving})
        raise OperationError(
            f"{len(leaving)} of {found.members} nodes would be taken out of service at once, max_actions allows "
            f"{allowed} ({text}). Nothing was changed. Causes: {'; '.join(causes[:5])}"
            f"{f' and {len(causes) - 5} more' if len(causes) > 5 else ''}.",
            reason="TooManyNodes",
            remaining=leaving,
            hint="Look whether Kubernetes is right about them; if so, run again with a higher max_actions.",
        )
