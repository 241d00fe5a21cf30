# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""A maintenance window for a rollout: a reservation keeps jobs away that would not have ended when it begins.

Before the window a run makes the reservation and no more. In the window all its nodes are drained at once; the drains
hold from then on, so the reservation goes, and each node is back in service as soon as it is good. What has not begun
when the window ends keeps its Pod and is given back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .._core import hostlist
from .._core.errors import OperationError
from .._core.values import number, words
from .action import Action

RESERVE, UNRESERVE = "reserve", "unreserve"
MAINTENANCE = "MAINT"
MINUTE = 60


@dataclass(frozen=True, slots=True)
class Window:
    """From when to when, in seconds since 1970."""

    start: int
    end: int

    def is_ahead(self, now: float) -> bool:
        """Whether it has not begun."""
        return now < self.start

    def is_over(self, now: float) -> bool:
        """Whether it has ended."""
        return now >= self.end


@dataclass(frozen=True, slots=True)
class Reservation:
    """One reservation as Slurm has it."""

    window: Window
    nodes: frozenset[str]
    flags: frozenset[str]


def name_of(nodeset: str) -> str:
    """The name of the reservation of a NodeSet's rollout."""
    return f"k8s-rollout-{nodeset}"


def parse(options: Mapping[str, Any]) -> Window:
    """The window that a user asked for. Raises OperationError (Invalid)."""
    text, minutes = str(options["start"]), options["duration"]
    try:
        begins = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        begins = None
    if begins is None or begins.tzinfo is None:
        raise OperationError(
            f"window.start is {text!r}, which is no time with a zone.",
            reason="Invalid",
            hint="Write it like 2026-11-22T02:00:00+01:00 or 2026-11-22T01:00:00Z.",
        )
    if minutes < 1:
        raise OperationError(f"window.duration is {minutes}; it must be at least 1 minute.", reason="Invalid")
    start = int(begins.timestamp())
    return Window(start, start + minutes * MINUTE)


def reservation(raw: Iterable[Mapping[str, Any]], nodeset: str) -> Reservation | None:
    """The reservation of a NodeSet's rollout among those that Slurm lists."""
    for item in raw:
        if item.get("name") == name_of(nodeset):
            window = Window(number(item.get("start_time")) or 0, number(item.get("end_time")) or 0)
            nodes = frozenset(hostlist.expand(str(item.get("node_list") or "")))
            return Reservation(window, nodes, frozenset(words(item.get("flags"))))
    return None


def plan(nodeset: str, wanted: Window, nodes: Collection[str], there: Reservation | None, now: float) -> list[Action]:
    """What is to be done about the reservation: make or change it before the window, take it away otherwise."""
    name = name_of(nodeset)
    if not nodes or not wanted.is_ahead(now):
        gone = "the drains hold from now on" if nodes else "nothing is left to roll out"
        return [Action(UNRESERVE, name, gone, plain(there), None)] if there else []
    as_wanted = Reservation(wanted, frozenset(nodes), frozenset({MAINTENANCE}))
    if there and (there.window, there.nodes) == (wanted, as_wanted.nodes) and MAINTENANCE in there.flags:
        return []
    why = f"NodeSet {nodeset} has a new template"
    return [Action(RESERVE, name, why, plain(there) if there else None, plain(as_wanted), subject=there)]


def plain(item: Reservation | None) -> dict[str, Any] | None:
    """A reservation as modules return it."""
    if item is None:
        return None
    nodes = hostlist.compress(item.nodes, sort=True)
    return {"nodes": nodes, "start": item.window.start, "end": item.window.end}
