# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How what the Pods say becomes a picture. That they say it is a live test."""

from __future__ import annotations

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.upgrade import Part, Room
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import upgrade as under_test

IMAGES = {name: f"registry/{name}:26.05" for name in ("slurmctld", "slurmdbd", "slurmrestd", "slurmd", "login")}


def test_nodes_of_no_nodeset_are_told_by_their_features() -> None:
    text = """\
cpu-0|24.11.5|cpu
cpu-0|24.11.5|cpu
cpu-1|26.05.5|fast,cpu
gpu-0|24.11.5|gpu
away||cpu
old1|25.05.1|(null)
"""
    assert under_test._outside(text, ["cpu", "gpu"]) == [Part("outside", "nodes outside", (("25.05.1", 1),))]
    assert under_test._outside(text.replace("old1|25.05.1", "old1|N/A"), ["cpu", "gpu"]) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("700\n/dev/vda1 1000 300 600 34% /var/lib\n", [Room("there", 700, 600)]),
        ("/dev/vda1 1000 300 600 34% /var/lib\n", []),
        ("", []),
    ],
)
def test_room_is_read_from_df(text: str, found: list[Room]) -> None:
    assert under_test._rooms("there", text) == found


@pytest.mark.parametrize(
    ("part", "image"),
    [
        (Part("slurmctld", "slurmctld"), IMAGES["slurmctld"]),
        (Part("login", "login"), IMAGES["login"]),
        (Part("nodeset", "NodeSet login"), IMAGES["slurmd"]),
        (Part("nodeset", "NodeSet gpu"), "registry/own:1"),
        (Part("outside", "nodes outside"), ""),
    ],
)
def test_the_image_that_a_part_is_to_have(part: Part, image: str) -> None:
    assert under_test._image_of(part, IMAGES, {"gpu": "registry/own:1"}) == image
