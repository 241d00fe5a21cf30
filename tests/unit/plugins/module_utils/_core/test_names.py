# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of NodeSets and nodes, and the rule that turns a Node's name into a Slurm node's."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import names
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.problems import Problems


@pytest.mark.parametrize("name", ["a", "cpu-0", "a" * 63, "0a"])
def test_dns_labels(name: str) -> None:
    assert names.dns_label(name) == ""


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a.b", "a_b", "a" * 64, "a\n", "é"])
def test_no_dns_labels(name: str) -> None:
    assert repr(name) in names.dns_label(name)


def test_other_kinds_of_names() -> None:
    assert names.dns_subdomain("a.b-c.d") == ""
    assert names.dns_subdomain("a..b")
    assert names.dns_subdomain("a" * 254)
    assert names.slurm_word("h100_80GB.x-1") == ""
    for bad in ("a,b", "a b", "a&b", "a=b", "", "a:b", "a\n", "a" * 65):
        assert names.slurm_word(bad)
    assert names.cluster_name("demo_1") == ""
    assert names.cluster_name("Demo")
    assert names.cluster_name("d" * 41)
    assert names.label_key("example.org/rack") == ""
    assert names.label_key("/rack")
    assert names.label_key("Example.org/rack")
    assert names.file_name("10-check.sh") == ""
    for bad in ("../x", "a/b", ".hidden", "a b", ""):
        assert names.file_name(bad)


def node(name: str, override: str | None = None, **labels: str) -> dict[str, Any]:
    annotations = {names.NODE_NAME_ANNOTATION: override} if override else {}
    return {"metadata": {"name": name, "annotations": annotations, "labels": labels}}


def test_the_rule() -> None:
    problems = Problems()
    nodes = [node("gpu-1.rack.example.org"), node("gpu-2"), node("ip-10-0-0-1.ec2.internal", "big")]
    assert names.map_node_names(nodes, "w-", problems, "nodesets[0]") == {
        "gpu-1.rack.example.org": "w-gpu-1",
        "gpu-2": "w-gpu-2",
        "ip-10-0-0-1.ec2.internal": "big",
    }
    assert not problems


def test_collisions_and_impossible_names_are_refused() -> None:
    problems = Problems()
    taken = {"w-c": "NodeSet other"}
    nodes = [
        node("a.x"),
        node("a.y"),
        node("b" * 63),
        node("c"),
        node("d", "Has.Dot"),
        {"name": "e", "annotations": None},
    ]
    assert names.map_node_names(nodes, "w-", problems, "here", taken) == {"a.x": "w-a", "e": "w-e"}
    text = "\n".join(problems.lines)
    assert "Node a.y: its Slurm node name w-a is also that of Node a.x" in text
    assert "is also that of NodeSet other" in text
    assert "65 characters" in text
    assert "'Has.Dot'" in text
    assert text.count(names.NODE_NAME_ANNOTATION) >= 4
