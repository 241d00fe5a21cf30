# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NodeSets of kind node: who joins and who leaves."""

from __future__ import annotations

import dataclasses
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import parse
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.membership import (
    ENDLESS,
    Membership,
    Place,
    choose,
    victim_order,
)


def place(name: str, state: str | None = "IDLE", *, member: bool = True, ready: bool = True, **more: object) -> Place:
    made = Place(name, member, ready=ready, state=parse(state) if state else None)
    return dataclasses.replace(made, **more)  # type: ignore[arg-type]


def free(name: str, why_not: str = "") -> Place:
    return Place(name, False, why_not)


def test_victims_go_in_this_order() -> None:
    ordered = [
        place("begun", "MIXED+DRAIN", leaving=True),
        place("no-pod", None, ready=False),
        place("not-ready", ready=False, created=-1.0),
        place("cheap", deletion_cost=-1),
        place("newest", created=200.0),
        place("a", created=100.0),
        place("b", created=100.0),
        place("dear", deletion_cost=5, created=300.0),
        place("draining", "MIXED+DRAIN", free_at=900.0),
        place("runs-briefly", "MIXED", free_at=1000.0),
        place("runs-long", "ALLOCATED", free_at=2000.0),
        place("runs-for-ever", "ALLOCATED", free_at=ENDLESS),
        place("runs-and-not-ready-but-dear", "ALLOCATED", ready=False, deletion_cost=9),
    ]
    backwards = ordered[::-1]
    assert [item.name for item in sorted(backwards, key=victim_order)] == [item.name for item in ordered]


MEMBERS = [place("a"), place("b"), place("c", "MIXED")]


@pytest.mark.parametrize(
    ("replicas", "include", "exclude", "joins", "leaves"),
    [
        (None, [], [], [], []),
        (3, [], [], [], []),
        (2, [], [], [], ["a"]),
        (0, [], [], [], ["a", "b", "c"]),
        (4, [], [], ["d"], []),
        (None, ["d"], [], ["d"], []),
        (None, ["a"], ["b"], [], ["b"]),
        (3, [], ["c"], ["d"], ["c"]),
        (3, ["e"], [], ["e"], ["a"]),
        (1, ["a"], [], [], ["b", "c"]),
        (None, [], ["nobodys"], [], []),
    ],
)
def test_who_joins_and_leaves(
    replicas: int | None, include: list[str], exclude: list[str], joins: list[str], leaves: list[str]
) -> None:
    places = [*MEMBERS, free("e"), free("d"), free("nobodys", "is cordoned")]
    found = choose("w", places, replicas, include, exclude)
    assert (list(found.joins), list(found.leaves)) == (joins, leaves)


@pytest.mark.parametrize(
    ("replicas", "include", "exclude", "reason", "text"),
    [
        (5, [], [], "NotFeasible", "4 of 5 Nodes can be had"),
        (5, [], [], "NotFeasible", "cordoned-one  is cordoned"),
        (None, ["cordoned-one"], [], "NotFeasible", "cordoned-one  is cordoned"),
        (None, ["z"], [], "NotFeasible", "z  is no Node"),
        (None, ["a"], ["a"], "NotFeasible", "both"),
        (1, ["a", "b"], [], "InvalidOptions", "2 Nodes are included and 1 are wanted"),
    ],
)
def test_what_cannot_be_is_named(
    replicas: int | None, include: list[str], exclude: list[str], reason: str, text: str
) -> None:
    with pytest.raises(OperationError) as caught:
        choose("w", [*MEMBERS, free("d"), free("cordoned-one", "is cordoned")], replicas, include, exclude)
    assert caught.value.reason == reason
    assert text in caught.value.msg


def test_a_member_that_is_cordoned_stays_a_member() -> None:
    places = [place("a", why_not="is cordoned"), place("b")]
    assert choose("w", places, 2, ["a"]) == Membership((), (), ("a", "b"))


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from(["", "is cordoned"])), max_size=8),
    st.none() | st.integers(0, 9),
)
def test_the_number_is_met_and_then_nothing_is_left(kinds: list[tuple[bool, str]], replicas: int | None) -> None:
    places = [Place(f"n{index}", member, why_not) for index, (member, why_not) in enumerate(kinds)]
    try:
        found = choose("w", places, replicas)
    except OperationError:
        assert replicas is not None
        assert replicas > sum(member or not why_not for member, why_not in kinds)
        return
    after = [dataclasses.replace(item, member=item.name in found.after) for item in places]
    assert replicas is None or len(found.after) == replicas
    assert not set(found.joins) & set(found.leaves)
    assert choose("w", after, replicas) == Membership((), (), found.after)


def test_ten_thousand_nodes_are_quick() -> None:
    places = [place(f"n{number}", "MIXED" if number % 2 else "IDLE") for number in range(10_000)]
    begun = time.perf_counter()
    found = choose("w", places, 10, exclude=[f"n{number}" for number in range(5_000)])
    assert (len(found.leaves), len(found.after)) == (9_990, 10)
    assert time.perf_counter() - begun < 2  # 0.05 s on an idle machine
