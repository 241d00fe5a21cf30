# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""NodeSets of kind node: which Nodes join and which leave, to come to a number or to named ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import NodeState

ENDLESS = float("inf")


@dataclass(frozen=True, slots=True)
class Place:
    """One Node as a NodeSet sees it, with the node on it if there is one.

    ``state`` is None if Slurm has no record; ``free_at`` is when its last job ends, in seconds since 1970, 0 without
    a job; ``leaving`` means that an earlier run has drained it in order to take it out.
    """

    name: str
    member: bool
    why_not: str = ""
    ready: bool = False
    state: NodeState | None = None
    leaving: bool = False
    deletion_cost: int = 0
    free_at: float = 0
    created: float = 0


@dataclass(frozen=True, slots=True)
class Membership:
    """Names of Nodes: who joins, who leaves, and all that there are afterwards."""

    joins: tuple[str, ...]
    leaves: tuple[str, ...]
    after: tuple[str, ...]


def victim_order(place: Place) -> tuple[int, int, float, float, str]:
    """Who goes first: not ready, idle, draining, running; then the cheapest, the soonest free, the newest.

    What an earlier run has begun to take out goes before all. Where a job runs, that counts more than a Pod that is
    not ready.
    """
    return (_rank(place), place.deletion_cost, place.free_at, -place.created, place.name)


def _rank(place: Place) -> int:
    if place.leaving:
        return 0
    if place.state is not None and place.state.busy:
        return 3 if place.state.drain else 4
    registered = place.state is not None and place.state.registered
    return 2 if place.ready and registered else 1


def choose(
    nodeset: str,
    places: Sequence[Place],
    replicas: int | None,
    include: Collection[str] = (),
    exclude: Collection[str] = (),
) -> Membership:
    """Return who joins and leaves. Raises OperationError that names each Node that cannot be had, and why."""
    there = {place.name: place for place in places}
    _require(nodeset, there, include, exclude)
    members = {place.name for place in places if place.member}
    unwanted = set(exclude)
    after = (members | set(include)) - unwanted
    if replicas is not None and len(after) > replicas:
        removable = sorted((there[name] for name in after - set(include)), key=victim_order)
        excess = len(after) - replicas
        if excess > len(removable):
            raise OperationError(
                f"NodeSet {nodeset}: {len(include)} Nodes are included and {replicas} are wanted.",
                reason="InvalidOptions",
                hint="Raise replicas, or include fewer.",
            )
        after -= {place.name for place in removable[:excess]}
    elif replicas is not None and len(after) < replicas:
        free = [
            place.name
            for place in sorted(places, key=lambda place: place.name)
            if not place.why_not and place.name not in after and place.name not in unwanted
        ]
        if len(after) + len(free) < replicas:
            raise _too_few(nodeset, replicas, after, free, places)
        after |= set(free[: replicas - len(after)])
    return Membership(
        joins=tuple(sorted(after - members)), leaves=tuple(sorted(members - after)), after=tuple(sorted(after))
    )


def _require(nodeset: str, there: Mapping[str, Place], include: Collection[str], exclude: Collection[str]) -> None:
    lines = [f"  {name}  is both included and excluded" for name in sorted(set(include) & set(exclude))]
    lines += [f"  {name}  is no Node of this cluster" for name in sorted({*include, *exclude} - there.keys())]
    lines += [
        f"  {name}  {there[name].why_not}"
        for name in sorted(set(include) & there.keys())
        if there[name].why_not and not there[name].member
    ]
    if lines:
        raise OperationError(
            f"NodeSet {nodeset} cannot have these Nodes:\n" + "\n".join(lines) + "\nNothing was changed.",
            reason="NotFeasible",
            remaining=[line.split()[0] for line in lines],
            hint="Mend them, or name others.",
        )


def _too_few(
    nodeset: str, replicas: int, after: Collection[str], free: Sequence[str], places: Sequence[Place]
) -> OperationError:
    reasons = [f"{place.name}  {place.why_not}" for place in places if place.why_not and not place.member]
    more = f"\n  and {len(reasons) - 20} more" if len(reasons) > 20 else ""
    return OperationError(
        f"NodeSet {nodeset}: {len(after) + len(free)} of {replicas} Nodes can be had. These cannot:\n"
        + "\n".join(f"  {reason}" for reason in reasons[:20])
        + f"{more}\nNothing was changed.",
        reason="NotFeasible",
        remaining=reasons,
        hint="Mend Nodes, free them from other NodeSets, or want fewer.",
    )
