# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of topologies, there and back, and what is refused in them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import topology
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.problems import Problems
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.topology import (
    BLOCK,
    FLAT,
    TREE,
    Block,
    Switch,
    Topology,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.topology_check import check, sizes_problem

NODES = [f"n{number}" for number in range(1, 9)]
GOOD_TREE = (
    Switch("root", children=("s1", "s2")),
    Switch("s1", nodes=("n1", "n2", "n3", "n4")),
    Switch("s2", nodes=("n5", "n6", "n7", "n8")),
)
GOOD_BLOCKS = (Block("b1", ("n1", "n2", "n3", "n4")), Block("b2", ("n5", "n6", "n7", "n8")))
TREE_TEXT = """\
- topology: tree
  cluster_default: true
  tree:
    switches:
      - switch: root
        children: s[1-2]
      - switch: s1
        nodes: n[1-4]
      - switch: s2
        nodes: n[5-8]
"""


def tree(*switches: Switch, name: str = "tree", default: bool = True) -> Topology:
    return Topology(name, TREE, default, switches=switches)


def blocks(*found: Block, sizes: Sequence[int] = (), default: bool = True) -> Topology:
    return Topology("nvlink", BLOCK, default, blocks=found, block_sizes=tuple(sizes))


def complaints(*topologies: Topology) -> list[str]:
    problems = Problems()
    check(topologies, NODES, problems)
    return problems.lines


# --- text -----------------------------------------------------------------------------------------------------------


def test_the_text_of_a_tree() -> None:
    assert topology.render([tree(*GOOD_TREE)], yaml=True) == TREE_TEXT


def test_several_topologies_there_and_back() -> None:
    several = (
        tree(*GOOD_TREE),
        blocks(*GOOD_BLOCKS, sizes=(4, 8), default=False),
        Topology("123", FLAT),
        Topology("yes", TREE, switches=(Switch("1"), Switch("null", nodes=("007",)))),
    )
    assert topology.from_data(yaml.safe_load(topology.render(several, yaml=True))) == several


NAMES = st.from_regex(r"[a-z0-9]{1,3}[0-9]{0,3}", fullmatch=True)


@given(st.dictionaries(NAMES, st.sets(NAMES, min_size=1, max_size=8), min_size=1, max_size=6))
def test_any_leaves_there_and_back(leaves: dict[str, set[str]]) -> None:
    found = tuple(Switch(name, nodes=tuple(sorted(nodes))) for name, nodes in leaves.items())
    (again,) = topology.from_data(yaml.safe_load(topology.render([tree(*found)], yaml=True)))
    assert [(item.name, set(item.nodes)) for item in again.switches] == [(item.name, set(item.nodes)) for item in found]
    (again,) = topology.parse_conf(topology.render([tree(*found)], yaml=False), "tree")
    assert [(item.name, set(item.nodes)) for item in again.switches] == [(item.name, set(item.nodes)) for item in found]


def test_topology_conf() -> None:
    assert topology.render([tree(*GOOD_TREE)], yaml=False) == (
        "SwitchName=root Switches=s[1-2]\nSwitchName=s1 Nodes=n[1-4]\nSwitchName=s2 Nodes=n[5-8]\n"
    )
    text = topology.render([blocks(*GOOD_BLOCKS, sizes=(4, 8))], yaml=False)
    assert text == "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8\n"
    assert topology.parse_conf(text, "nvlink") == (blocks(*GOOD_BLOCKS, sizes=(4, 8)),)
    assert topology.parse_conf("# nothing\n") == ()
    with pytest.raises(OperationError, match=r"25\.05"):
        topology.render([tree(*GOOD_TREE), blocks(*GOOD_BLOCKS)], yaml=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("topology: a", "not a list"),
        ("- tree: {}", "entry 1 has no name"),
        ("- topology: a", "and has none"),
        ("- {topology: a, tree: {}, block: {}}", "and has tree, block"),
        ("- {topology: a, torus3d: {}}", "torus3d"),
        ("- {topology: a, flat: true, cluster: true}", "cluster"),
        ("- {topology: a, tree: {switches: {}}}", "no list of switch"),
        ("- {topology: a, tree: {switches: [{nodes: n1}]}}", "without a name"),
        ("- {topology: a, tree: {switches: [{switch: s, node: n1}]}}", "switch s of topology a has node"),
        ("- {topology: a, tree: {switches: [{switch: s, nodes: [n1]}]}}", "nodes of s must be a host list"),
        ("- {topology: a, block: {block_sizes: '4,8', blocks: []}}", "block_sizes of topology a"),
        ("- {topology: a, block: {sizes: [4], blocks: []}}", "block of topology a has sizes"),
    ],
)
def test_files_that_slurmctld_would_misread(text: str, words: str) -> None:
    with pytest.raises(OperationError) as raised:
        topology.from_data(yaml.safe_load(text))
    assert raised.value.reason == "InvalidTopology"
    assert words in str(raised.value)


def test_an_empty_list_is_never_written() -> None:
    with pytest.raises(OperationError):
        topology.render([], yaml=True)


def test_strings_of_nodes() -> None:
    strings = topology.node_strings([tree(*GOOD_TREE), blocks(*GOOD_BLOCKS[:1]), Topology("all", FLAT)])
    assert strings["n1"] == "tree:s1,nvlink:b1"
    assert strings["n8"] == "tree:s2"
    assert topology.parts("tree:z1:l9,nvlink:b1") == [("tree", ("z1", "l9")), ("nvlink", ("b1",))]
    assert topology.parts("") == []


# --- what is wrong --------------------------------------------------------------------------------------------------


def test_nothing_is_wrong_with_good_ones() -> None:
    assert complaints(tree(*GOOD_TREE), blocks(*GOOD_BLOCKS, sizes=(4, 8), default=False)) == []


LEAF = Switch("s1", nodes=tuple(NODES))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([tree(LEAF, LEAF)], "switch s1: is there twice"),
        ([tree(GOOD_TREE[0], GOOD_TREE[1], Switch("s2", nodes=("n4", "n5")))], "n4 is in switch s1 and in switch s2"),
        ([tree(*GOOD_TREE[1:])], "2 islands, with the tops s[1-2]"),
        ([tree(Switch("a", children=("b",)), Switch("b", children=("a",)))], "a,b are below each other in a circle"),
        ([tree(LEAF, Switch("a", children=("b",)), Switch("b", children=("a",)))], "a,b are below each other"),
        ([tree(Switch("a", children=("a",)))], "switch a: is its own child"),
        ([tree(Switch("root", children=("s1", "s9")), LEAF)], "its child s9 does not exist"),
        (
            [
                tree(
                    Switch("root", children=("a", "b")),
                    Switch("a", children=("s1",)),
                    Switch("b", children=("s1",)),
                    LEAF,
                )
            ],
            "switch s1: is below both a and b",
        ),
        ([tree(Switch("root", children=("s1", "s2")), LEAF, Switch("s2"))], "switch s2: has neither nodes nor child"),
        ([tree(Switch("root", nodes=("n1",), children=("s1",)), LEAF)], "both nodes and child switches"),
        ([tree(Switch("s1", nodes=("n1", "x1", "x2")))], "Slurm does not know x[1-2]"),
        ([tree(Switch("s:1", nodes=("n1",)))], "Slurm gives a meaning to ':'"),
        ([tree(Switch("s,1", nodes=("n1",)))], "Slurm gives a meaning to ':'"),
        ([tree(Switch("s" * 65, nodes=("n1",)))], "at most 64"),
        ([tree()], "has no switch"),
        ([tree(LEAF), tree(LEAF, default=False)], "topology tree: is there twice"),
        ([tree(LEAF), tree(LEAF, name="two")], "is set for tree, two"),
        ([tree(LEAF, default=False)], "is set for no topology"),
        ([tree(LEAF, name="default"), tree(LEAF, name="b", default=False)], "of the name default"),
        ([tree(Switch("s1", nodes=("n1", "n1")))], "n1 is twice in switch s1"),
        ([blocks(Block("b1", ("n1",)), Block("b2", ("n1",)))], "n1 is in block b1 and in block b2"),
        ([blocks(Block("b1", ("n1",)), Block("b1", ("n2",)))], "block b1: is there twice"),
        ([blocks(Block("b1", ("n1",)), Block("b2"))], "block b2: has no node"),
        ([blocks()], "has no block"),
        ([blocks(*GOOD_BLOCKS, sizes=(8,))], "8 is more than the largest block has (4 nodes)"),
        ([blocks(*GOOD_BLOCKS, sizes=(4, 16))], "16 is more than all blocks together have"),
        ([blocks(*GOOD_BLOCKS, sizes=(4, 12))], "12 is not 4 doubled"),
        ([blocks(*GOOD_BLOCKS, sizes=(4, 4))], "4 comes after 4"),
        ([blocks(Block("b1", ("x1",)))], "Slurm does not know x1"),
    ],
)
def test_what_is_refused(found: list[Topology], words: str) -> None:
    lines = complaints(*found)
    assert any(words in line for line in lines), lines


@pytest.mark.parametrize("sizes", [(), (1,), (4, 8, 16), (18, 36), (4, 4 * 2**15)])
def test_sizes_that_slurmctld_takes(sizes: tuple[int, ...]) -> None:
    assert sizes_problem(sizes) == ""


@pytest.mark.parametrize("sizes", [(0,), (-1,), (4, 6), (8, 4), (4, 4 * 2**16)])
def test_sizes_that_it_does_not_take(sizes: tuple[int, ...]) -> None:
    assert sizes_problem(sizes)


def test_uneven_blocks_are_told() -> None:
    notes = check([blocks(Block("b1", tuple(NODES[:5])), Block("b2", tuple(NODES[5:])), sizes=(4,))], NODES, Problems())
    assert notes == [
        "topology nvlink: blocks b2 have fewer nodes than the block size 4",
        "topology nvlink: blocks b1 have more nodes than the block size 4",
    ]
