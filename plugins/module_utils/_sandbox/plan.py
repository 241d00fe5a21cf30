# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What has to be done so that what is there becomes what is wanted. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from .components import Component
from .observe import Observed


class Kind(Enum):
    CLEAN = "clean"
    CREATE = "create"
    CONNECT = "connect"
    REMOVE = "remove"
    STOP = "stop"
    START = "start"
    RESTART = "restart"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do. ``target`` is a component, a node or a part of the sandbox."""

    kind: Kind
    target: str
    why: str = ""


NAMESPACES = "namespaces"
INTERFACE = "interface"
NODE = "node:"


def plan_processes(wanted: Sequence[Component], nodes: Sequence[str], seen: Observed) -> list[Step]:
    """Steps in the order in which they must happen; none if everything runs as it should."""
    steps: list[Step] = []
    if seen.init is None:
        steps += [Step(Kind.CLEAN, what, "left behind") for what in seen.leftovers]
        steps.append(Step(Kind.CREATE, NAMESPACES, "not running"))
    elif not seen.interface:
        steps.append(Step(Kind.CONNECT, INTERFACE, "is gone"))
    steps += [Step(Kind.REMOVE, NODE + node, "not wanted") for node in sorted(seen.holders) if node not in nodes]
    fresh = [node for node in nodes if node not in seen.holders]
    steps += [Step(Kind.CREATE, NODE + node, "not there") for node in fresh]
    names = {component.name for component in wanted}
    removed = {node for node in seen.holders if node not in nodes}
    for name in sorted(set(seen.running) - names):
        if name.rpartition("-")[2] not in removed:  # a removed node takes its components with it
            steps.append(Step(Kind.STOP, name, "not wanted"))
    return steps + [step for component in wanted for step in _component_steps(component, fresh, seen)]


def _component_steps(component: Component, fresh: Sequence[str], seen: Observed) -> list[Step]:
    process = seen.running.get(component.name)
    if process is None or component.place in fresh:
        return [Step(Kind.START, component.name, "not running")]
    if process.argv != component.argv:
        return [Step(Kind.RESTART, component.name, "another version or configuration is wanted")]
    if component.name in seen.silent:
        return [Step(Kind.RESTART, component.name, f"does not answer: {seen.silent[component.name]}")]
    return []
