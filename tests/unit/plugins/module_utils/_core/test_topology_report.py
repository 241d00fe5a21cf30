# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What slurmctld shows of a topology, counted and drawn."""

from __future__ import annotations

from xml.etree import ElementTree

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import parse
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.topology import (
    BLOCK,
    TREE,
    Block,
    Switch,
    Topology,
    parse_shown,
    paths,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.topology_report import lines, units
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.topology_svg import picture

# As 26.05 and 24.11 print it.
TREE_SHOWN = """\
SwitchName=root Level=2 LinkSpeed=0 Nodes=n[1-4] Switches=z1
SwitchName=z1 Level=1 LinkSpeed=0 Nodes=n[1-4] Switches=l[1-3]
SwitchName=l1 Level=0 LinkSpeed=0 Nodes=n[1-2]
SwitchName=l2 Level=0 LinkSpeed=1 Nodes=n[3-4]
SwitchName=l3 Level=0 LinkSpeed=0 Nodes=
"""
BLOCKS_SHOWN = """\
BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2
BlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2
BlockName=b1,b2 BlockIndex=2 Nodes=n[1-4] BlockSize=4
"""
TREE_OF_IT = Topology(
    "net",
    TREE,
    switches=(
        Switch("root", children=("z1",)),
        Switch("z1", children=("l1", "l2", "l3")),
        Switch("l1", nodes=("n1", "n2")),
        Switch("l2", nodes=("n3", "n4")),
        Switch("l3"),
    ),
)
STATES = {"n1": parse("IDLE"), "n2": parse("ALLOCATED"), "n3": parse("IDLE+DRAIN"), "n4": parse("MIXED+DRAIN")}


def test_what_slurmctld_shows() -> None:
    assert parse_shown(TREE_SHOWN, "net") == TREE_OF_IT
    # Lines of several blocks are not blocks but what fits together.
    assert parse_shown(BLOCKS_SHOWN, "nvlink") == Topology(
        "nvlink", BLOCK, blocks=(Block("b1", ("n1", "n2")), Block("b2", ("n3", "n4")))
    )
    assert parse_shown("No topology information available\n", "net") is None
    assert paths(TREE_OF_IT)["n3"] == ("root", "z1", "l2")


def test_counts() -> None:
    found = {unit.name: unit for unit in units(TREE_OF_IT, STATES)}
    assert list(found) == ["root", "z1", "l1", "l2", "l3"]
    assert [(unit.depth, unit.free, unit.busy, unit.away) for unit in found.values()] == [
        (0, 1, 2, 1),
        (1, 1, 2, 1),
        (2, 1, 1, 0),
        (2, 0, 1, 1),
        (2, 0, 0, 0),
    ]
    assert found["l1"].plain()["nodes"] == "n[1-2]"


def test_a_node_that_slurm_does_not_list_is_away() -> None:
    top = units(TREE_OF_IT, {})[0]
    assert (top.free, top.away) == (0, 4)


def test_text() -> None:
    assert list(lines(TREE_OF_IT, units(TREE_OF_IT, STATES))) == [
        "net (tree)",
        "  root    4 nodes  1 free  2 busy  1 away",
        "    z1    4 nodes  1 free  2 busy  1 away",
        "      l1  2 nodes  1 free  1 busy  0 away  n[1-2]",
        "      l2  2 nodes  0 free  1 busy  1 away  n[3-4]",
        "      l3  0 nodes  0 free  0 busy  0 away",
    ]


def test_the_picture_is_xml_and_always_the_same() -> None:
    odd = Topology("a<b", TREE, switches=(Switch("s&t", nodes=("n1",)),))
    drawn = [(item, units(item, STATES)) for item in (TREE_OF_IT, odd)]
    svg = picture(drawn, 'the "big" one')
    assert svg == picture(drawn, 'the "big" one')
    texts = [item.text for item in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"l1", "1 of 2 free", "s&t", "a<b (tree)", 'the "big" one'} <= set(texts)
