# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outputs of ibnetdiscover, made up in its format, and the trees that come of them."""

from __future__ import annotations

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import fabric
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError


def output(switches: dict[str, list[str]], hosts: dict[str, list[str]], names: dict[str, str] | None = None) -> str:
    """The text for {switch: other switches} and {host: the switch of each of its adapters}."""
    lines = ["#", "# Topology file: generated on Sat Nov 21 10:00:00 2026", "#"]
    for number, (name, others) in enumerate(switches.items(), 1):
        text = (names or {}).get(name, f"MF0;{name}:MQM9700/U1")
        lines += ["", "vendid=0x2c9", "devid=0xd2f2", f"switchguid=0xb83f{number:04x}(b83f{number:04x})"]
        lines.append(f'Switch\t41 "S-{name}"\t\t# "{text}" enhanced port 0 lid {number} lmc 0')
        lines += [f'[{port}]\t"S-{other}"[{port}]\t\t# "MF0;{other}:MQM9700/U1" lid 3 4xNDR'
                  for port, other in enumerate(others, 1)]  # fmt: skip
    for host, leaves in hosts.items():
        for rail, leaf in enumerate(leaves):
            lines += ["", "vendid=0x2c9", f'Ca\t1 "H-{host}-{rail}"\t\t# "{host} mlx5_{rail}"']
            lines.append(
                f'[1](b83fd20300{rail:02x}) \t"S-{leaf}"[{rail + 1}]\t\t# lid 9 lmc 0 "MF0;{leaf}" lid 3 4xNDR'
            )
    return "\n".join(lines) + "\n"


FAT_TREE = output(
    {"leaf1": ["spine1", "spine2"], "leaf2": ["spine1", "spine2"], "spine1": [], "spine2": []},
    {"a": ["leaf1"], "b": ["leaf1"], "c": ["leaf2"]},
)
RAILS = output(
    {"leaf1": ["spine1"], "leaf2": ["spine1"], "leaf3": ["spine1"], "leaf4": ["spine1"], "spine1": []},
    {"a": ["leaf1", "leaf2"], "b": ["leaf2", "leaf1"], "c": ["leaf3", "leaf4"]},
)
PODS = output(
    {
        "l1": ["s1"], "l2": ["s1"], "l3": ["s2"], "l4": ["s2"],
        "s1": ["core1", "core2"], "s2": ["core2", "core1"], "core1": [], "core2": [],
    },
    {"a": ["l1"], "b": ["l2"], "c": ["l3"], "d": ["l4"]},
)  # fmt: skip
ISLANDS = output({"l1": ["s1"], "l2": [], "s1": []}, {"a": ["l1"], "b": ["l2"]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FAT_TREE, {"a": ("spine1", "leaf1"), "b": ("spine1", "leaf1"), "c": ("spine1", "leaf2")}),
        (RAILS, {"a": ("spine1", "leaf1"), "b": ("spine1", "leaf1"), "c": ("spine1", "leaf3")}),
        (
            PODS,
            {
                "a": ("core1", "s1", "l1"),
                "b": ("core1", "s1", "l2"),
                "c": ("core1", "s2", "l3"),
                "d": ("core1", "s2", "l4"),
            },
        ),
        (ISLANDS, {"a": ("s1", "l1"), "b": ("l2",)}),
    ],
    ids=["two levels", "a leaf for each rail", "three levels", "islands"],
)
def test_paths(text: str, expected: dict[str, tuple[str, ...]]) -> None:
    assert fabric.paths(fabric.parse(text), expected.keys()) == expected


def test_a_storage_server_on_a_spine_counts_for_nothing() -> None:
    text = FAT_TREE + output({}, {"storage": ["spine1"]})
    found = fabric.paths(fabric.parse(text), ["a", "b", "c", "missing"])
    assert found == {"a": ("spine1", "leaf1"), "b": ("spine1", "leaf1"), "c": ("spine1", "leaf2")}


def test_switches_without_names_of_their_own() -> None:
    names = {"leaf1": "Quantum Mellanox Technologies", "leaf2": "MF0;twin:MQM9700/U1", "spine1": "MF0;twin:MQM9700/U1"}
    text = output({"leaf1": ["spine1"], "leaf2": ["spine1"], "spine1": []}, {"a": ["leaf1"], "b": ["leaf2"]}, names)
    assert fabric.paths(fabric.parse(text), ["a", "b"]) == {"a": ("S-spine1", "S-leaf1"), "b": ("S-spine1", "S-leaf2")}


def test_something_else_is_refused() -> None:
    with pytest.raises(OperationError) as raised:
        fabric.parse("hello\n")
    assert raised.value.reason == "InvalidFabric"
