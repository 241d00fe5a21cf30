# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What a run did, or would do, for Ansible's result and diff."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .components import Component
from .observe import Observed
from .settings import Settings


@dataclass
class Report:
    """What was done, or would be; ``before`` and ``after`` are short descriptions for a diff."""

    actions: list[dict[str, str]] = field(default_factory=list)
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)

    def add(self, kind: str, target: str, why: str = "") -> None:
        self.actions.append({"kind": kind, "target": target, "why": why})

    @property
    def changed(self) -> bool:
        return bool(self.actions)


def describe(seen: Observed, wanted: Sequence[Component]) -> dict[str, Any]:
    """The sandbox as it is, for a diff."""
    if seen.init is None:
        return {"state": "not running"}

    def state(component: Component) -> str:
        process = seen.running.get(component.name)
        if process is None:
            return "not running"
        if component.name in seen.silent:
            return "does not answer"
        return "running" if process.argv == component.argv else "running, with another version or configuration"

    names = {component.name for component in wanted}
    extra: Mapping[str, str] = {name: "running, not wanted" for name in seen.running if name not in names}
    return {
        "state": "running",
        "nodes": len(seen.holders),
        "components": {**{component.name: state(component) for component in wanted}, **extra},
    }


def describe_wanted(settings: Settings, wanted: Sequence[Component]) -> dict[str, Any]:
    """The sandbox as it shall be, in the same form."""
    return {
        "state": "running",
        "nodes": settings.nodes,
        "components": {component.name: "running" for component in wanted},
    }
