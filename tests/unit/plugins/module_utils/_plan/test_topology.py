# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topologies from places of nodes, and the order in which a cluster gets there."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import topology_check
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.problems import Problems
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.topology import (
    BLOCK,
    TREE,
    Switch,
    Topology,
    node_strings,
    parts,
    render,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import topology as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.topology import Live, Shape, plan_changes

SHAPE = Shape("tree", TREE, default=True)
Places = dict[str, Sequence[str]]


def built(places: Places, shape: Shape = SHAPE) -> tuple[Topology, list[str]]:
    problems = Problems()
    made, unplaced = planner.build(shape, places, problems)
    topology_check.check([made], places.keys(), problems)
    assert problems.lines == []
    return made, unplaced


def complaints(places: Places, shape: Shape = SHAPE) -> list[str]:
    problems = Problems()
    planner.build(shape, places, problems)
    return problems.lines


# --- from places to a topology --------------------------------------------------------------------------------------


def test_a_tree_of_labels() -> None:
    made, unplaced = built({"n1": ["z1", "s1", "l1"], "n2": ["z1", "s1", "l2"], "n3": ["z2", "s2", "l3"], "n4": []})
    assert made.switches == (
        Switch("root", children=("unplaced", "z1", "z2")),
        Switch("z1", children=("s1",)),
        Switch("z2", children=("s2",)),
        Switch("s1", children=("l1", "l2")),
        Switch("s2", children=("l3",)),
        Switch("l1", nodes=("n1",)),
        Switch("l2", nodes=("n2",)),
        Switch("l3", nodes=("n3",)),
        Switch("unplaced", nodes=("n4",)),
    )
    assert unplaced == ["n4"]


def test_one_label_missing_is_missing() -> None:
    made, unplaced = built({"n1": ["z1", "", "l1"], "n2": ["z1", "s1", "l1"]})
    assert unplaced == ["n1"]
    assert made.leaf_of() == {"n1": "unplaced", "n2": "l1"}


def test_blocks() -> None:
    shape = Shape("nvlink", BLOCK, True, (2,), unplaced="other")
    made, unplaced = built({"n1": ["d1"], "n2": ["d1"], "n3": ["d2"], "n4": ["d2"], "n5": [""]}, shape)
    assert made.leaf_of() == {"n1": "d1", "n2": "d1", "n3": "d2", "n4": "d2", "n5": "other"}
    assert made.block_sizes == (2,)
    assert unplaced == ["n5"]


def test_a_value_in_two_places_is_refused_with_names() -> None:
    places: Places = {"n1": ["z1", "rack1"], "n2": ["z2", "rack1"]}
    assert "switch rack1: is below z1 for n1 and below z2 for n2" in complaints(places)[0]
    made = built(places, Shape("tree", TREE, True, names=planner.PATH))[0]
    assert made.leaf_of() == {"n1": "z1/rack1", "n2": "z2/rack1"}


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ({"n1": ["a", "a"]}, "switch a: is below the root for n1 and below a for n1"),
        ({"n1": ["root", "l1"]}, "root is the name of the root"),
        ({"n1": ["unplaced"], "n2": []}, "unplaced is for nodes without labels"),
    ],
)
def test_values_that_would_be_two_things(places: Places, words: str) -> None:
    assert any(words in line for line in complaints(places)), complaints(places)


PLACES = st.dictionaries(
    st.from_regex(r"n[0-9]{1,3}", fullmatch=True),
    st.tuples(st.sampled_from(["z1", "z2"]), st.sampled_from(["s1", "s2", ""]), st.sampled_from(["l1", "l2", "l3"])),
    min_size=1,
    max_size=20,
)
PATHS = Shape("tree", TREE, True, names=planner.PATH)


@given(PLACES, st.randoms())
def test_the_order_of_nodes_makes_no_difference(places: Places, random: st.DataObject) -> None:
    shuffled = list(places.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert built(places, PATHS) == built(dict(shuffled), PATHS)


# --- changes --------------------------------------------------------------------------------------------------------


def shown(*topologies: Topology) -> dict[str, Topology]:
    return {item.name: item for item in topologies}


def live(topology: Topology | None, strings: Mapping[str, str] | None = None) -> Live:
    if topology is None:
        return Live(None, (), strings or {}, {})
    places = node_strings([topology]) if strings is None else strings
    return Live(render([topology], yaml=True), [topology], places, shown(topology))


def change(before: Live, wanted: Topology | None) -> list[Action]:
    text = render([wanted], yaml=True) if wanted else None
    return plan_changes(before, [wanted] if wanted else [], text, "ConfigMap")


def kinds(actions: Sequence[Action]) -> list[tuple[str, str, object, object]]:
    return [(action.kind, action.target, action.before, action.after) for action in actions]


WRITTEN = [("write", "ConfigMap", None, None), ("reconfigure", "slurmctld", None, None)]
OLD = built({"n1": ["s1", "l1"], "n2": ["s1", "l2"]})[0]
WITHOUT_N1 = Topology("tree", TREE, switches=(Switch("s1", children=("l1", "l2")), Switch("l1"), Switch("l2", ("n2",))))


def test_nothing_to_do() -> None:
    assert change(live(OLD), OLD) == []


def test_a_first_topology() -> None:
    actions = change(live(None, {"n1": "", "n2": ""}), OLD)
    assert kinds(actions) == [*WRITTEN, ("place", "n1", "", "tree:l1"), ("place", "n2", "", "tree:l2")]


def test_a_place_that_is_there_already_is_taken_after_the_file() -> None:
    wanted = built({"n1": ["s1", "l2"], "n2": ["s1", "l2"], "n3": ["s1", "l1"]})[0]
    before = live(OLD, {**node_strings([OLD]), "n3": "tree:l1"})
    assert kinds(change(before, wanted)) == [*WRITTEN, ("place", "n1", "tree:l1", "tree:l2")]


def test_a_switch_that_goes_is_left_before_the_file_changes() -> None:
    wanted = built({"n1": ["s1", "l2"], "n2": ["s1", "l2"]})[0]
    assert kinds(change(live(OLD), wanted)) == [("leave", "n1", "tree:l1", "tree:l2"), *WRITTEN]


def test_a_switch_that_goes_for_one_that_comes() -> None:
    wanted = built({"n1": ["s1", "l9"], "n2": ["s1", "l2"]})[0]
    assert kinds(change(live(OLD), wanted)) == [
        ("leave", "n1", "tree:l1", ""),
        *WRITTEN,
        ("place", "n1", "", "tree:l9"),
    ]


def test_a_switch_above_that_goes_is_left_too() -> None:
    wanted = built({"n1": ["s2", "l1"], "n2": ["s2", "l2"]})[0]
    before = live(OLD, {"n1": "tree:s1:l1", "n2": "tree:l2"})
    assert kinds(change(before, wanted)) == [("leave", "n1", "tree:s1:l1", "tree:l1"), *WRITTEN]


def test_the_whole_topology_goes() -> None:
    actions = change(live(OLD), None)
    assert kinds(actions) == [
        ("leave", "n1", "tree:l1", ""),
        ("leave", "n2", "tree:l2", ""),
        ("remove", "ConfigMap", None, None),
        ("reconfigure", "slurmctld", None, None),
    ]


def test_a_file_that_slurmctld_has_not_read() -> None:
    stale = Live(render([OLD], yaml=True), [OLD], {}, {})
    (action,) = change(stale, OLD)
    assert (action.kind, action.why) == (
        "reconfigure",
        "it does not work with the file that is there: it has no topology tree",
    )
    lacking = Live(render([OLD], yaml=True), [OLD], {}, {"tree": WITHOUT_N1})
    assert "l1 of topology tree lacks n1" in change(lacking, OLD)[0].why


def test_nodes_that_rest_hides_make_no_difference() -> None:
    more = Topology("tree", TREE, switches=(Switch("l1", ("n1", "ghost")), Switch("l2", ("n2",))))
    assert change(Live(render([OLD], yaml=True), [OLD], node_strings([OLD]), {"tree": more}), OLD) == []
    swapped = Topology("tree", TREE, switches=(Switch("l1", ("n1", "n2")), Switch("l2")))
    assert "l1 of topology tree has n2 too" in planner.difference({"tree": swapped}, [OLD])


def test_a_node_that_only_has_to_be_told_needs_no_reconfigure() -> None:
    before = Live(render([OLD], yaml=True), [OLD], {"n1": "", "n2": "tree:l2"}, {"tree": WITHOUT_N1})
    assert kinds(change(before, OLD)) == [("place", "n1", "", "tree:l1")]


def apply(before: Live, actions: Sequence[Action], wanted: Topology) -> Live:
    """What the actions make of a cluster; a slurmctld that would not start again fails the test."""
    strings, topology, text = dict(before.strings), list(before.topologies), before.text
    for action in actions:
        if action.kind in ("leave", "place"):
            leaves = {leaf.name for leaf in topology[0].leaves()} if topology else set()
            assert all(path[-1] in leaves for name, path in parts(action.after))
            strings.update(dict.fromkeys(action.subject, action.after))
        elif action.kind == "write":
            topology, text = [wanted], action.diff[1] if action.diff else None
            units = wanted.units()
            for string in strings.values():
                assert all(units.issuperset(path) for name, path in parts(string)), "slurmctld cannot start again"
    return Live(text, topology, strings, shown(*topology))


@given(PLACES, PLACES)
def test_any_change_is_safe_and_leaves_nothing_to_do(first: Places, second: Places) -> None:
    old, new = built(first, PATHS)[0], built(second, PATHS)[0]
    before = live(old, {node: node_strings([old]).get(node, "") for node in {*first, *second}})
    after = apply(before, change(before, new), new)
    assert change(after, new) == []


# --- size -----------------------------------------------------------------------------------------------------------


def test_a_hundred_thousand_nodes() -> None:
    places: Places = {
        f"gpu-{number}": [f"z{number // 20000}", f"s{number // 2000}", f"l{number // 100}"] for number in range(100_000)
    }
    begun = time.perf_counter()
    made = built(places)[0]
    text = render([made], yaml=True)
    actions = change(live(None, dict.fromkeys(places, "")), made)
    spent = time.perf_counter() - begun
    print(f"{spent:.2f} s")
    assert len(made.switches) == 1 + 5 + 50 + 1000
    assert "nodes: gpu-[0-99]\n" in text
    assert len(actions) == 2 + 1000
    assert spent < 10  # 1 s on a free machine; others may be at work beside it
