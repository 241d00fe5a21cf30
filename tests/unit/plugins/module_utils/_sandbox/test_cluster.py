# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes: labels, addresses, readiness, simulated ones; and whether a live object has what is wanted."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.cluster import (
    node_patch,
    simulated_changes,
    simulated_node,
    surplus_nodes,
    unready,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.manifests import contains, manifests

from .samples import settings

NOTE = "slurm-ops.kubernetes/sandbox-labels"


def node(name: str = "node1", ready: str = "True", at: str = "2026-01-01T00:00:10Z", **metadata: Any) -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": at, "message": "because"}
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"podCIDR": "10.120.129.0/24"},
        "status": {"conditions": [condition]},
    }


def simulated(name: str) -> dict[str, Any]:
    return node(name, annotations={"kwok.x-k8s.io/node": "fake"})


class FakeApi:
    def __init__(self, *nodes: dict[str, Any]) -> None:
        self.nodes = list(nodes)

    def items(self, _path: str) -> list[dict[str, Any]]:
        return self.nodes


@pytest.mark.parametrize(
    ("labels", "live", "note", "expected"),
    [
        ({}, {"own": "x"}, "", {}),
        ({"rack": "a"}, {}, "", {"annotations": {NOTE: "rack"}, "labels": {"rack": "a"}}),
        ({"rack": "a"}, {"rack": "a"}, "rack", {}),
        ({"rack": "b"}, {"rack": "a"}, "rack", {"labels": {"rack": "b"}}),
        ({}, {"rack": "a", "own": "x"}, "rack", {"annotations": {NOTE: None}, "labels": {"rack": None}}),
        ({"row": "1"}, {"rack": "a"}, "rack", {"annotations": {NOTE: "row"}, "labels": {"row": "1", "rack": None}}),
        ({}, {"rack": "a"}, "", {}),  # somebody else's label stays
    ],
)
def test_labels_become_those_wanted_and_ours_only(
    labels: dict[str, str], live: dict[str, str], note: str, expected: dict[str, Any]
) -> None:
    seen = node(labels=live, annotations={NOTE: note} if note else {})
    assert node_patch(settings(node_labels={"node1": labels}), seen).get("metadata", {}) == expected


def test_a_new_node_gets_its_addresses() -> None:
    seen = node("node2")
    del seen["spec"]["podCIDR"]
    assert node_patch(settings(), seen)["spec"] == {"podCIDR": "10.120.130.0/24", "podCIDRs": ["10.120.130.0/24"]}


@pytest.mark.parametrize(
    ("nodes", "problems"),
    [
        ([node("node1"), node("node2")], {}),
        ([node("node1")], {"node2": "has not registered"}),
        ([node("node1"), node("node2", ready="False")], {"node2": "because"}),
        ([node("node1"), node("node2", at="2025-12-31T23:59:59Z")], {"node2": "has not reported yet"}),
        ([node("node1", at="2025-01-01T00:00:00Z"), node("node2")], {}),  # its kubelet was not started in this run
        ([node("node1"), node("node2"), node("node3", ready="False")], {}),
    ],
)
def test_readiness(nodes: list[dict[str, Any]], problems: dict[str, str]) -> None:
    new_year = 1767225600.0
    assert unready(nodes, ["node1", "node2"], {"node2": new_year}) == problems


@pytest.mark.parametrize(
    ("wanted", "live", "create", "delete"),
    [
        (0, [], [], []),
        (2, [], ["kwok-00000", "kwok-00001"], []),
        (2, ["kwok-00000", "kwok-00001"], [], []),
        (2, ["kwok-00001", "kwok-00002"], ["kwok-00000"], ["kwok-00002"]),
        (0, ["kwok-00000"], [], ["kwok-00000"]),
    ],
)
def test_simulated_nodes_are_numbered_without_holes(
    wanted: int, live: list[str], create: list[str], delete: list[str]
) -> None:
    api: Any = FakeApi(*map(simulated, live), node("node1", labels={"type": "kwok"}))
    assert simulated_changes(api, settings(kwok_nodes=wanted)) == (create, delete)


def test_only_real_nodes_are_surplus() -> None:
    api: Any = FakeApi(node("node1"), node("node3"), simulated("kwok-00000"))
    assert surplus_nodes(api, settings()) == ["node3"]


def test_simulated_nodes_are_tainted_and_have_capacity() -> None:
    made = simulated_node(settings(), "kwok-00003")
    assert made["spec"]["taints"] == [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]
    assert made["status"]["capacity"]["cpu"] == "64"
    assert made["metadata"]["annotations"]["kwok.x-k8s.io/node"] == "fake"


@pytest.mark.parametrize(
    ("live", "wanted", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({}, {"a": None}, False),
        (None, {"a": 1}, False),
        ({"a": [{"b": 1, "server": 2}]}, {"a": [{"b": 1}]}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": {"b": {"c": "d"}}}, {"a": {"b": {}}}, True),
    ],
)
def test_contains(live: Any, wanted: Any, expected: bool) -> None:
    assert contains(live, wanted) is expected


def test_every_manifest_lies_where_its_path_says() -> None:
    for path, manifest in manifests(settings(kwok_nodes=1)).items():
        assert path.endswith("/" + manifest["metadata"]["name"])
        assert f"/{manifest['apiVersion']}/" in path


def test_one_storage_class_is_the_default() -> None:
    classes = [m for m in manifests(settings()).values() if m["kind"] == "StorageClass"]
    assert [c["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] for c in classes] == ["true"]


def test_components_may_not_do_everything() -> None:
    roles = [m for m in manifests(settings(kwok_nodes=1)).values() if m["kind"] == "ClusterRole"]
    for role in roles:
        for rule in role["rules"]:
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
            assert "secrets" not in rule["resources"]
