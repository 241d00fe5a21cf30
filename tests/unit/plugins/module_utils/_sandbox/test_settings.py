# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that follow from a sandbox's name, and settings that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.settings import (
    check_name,
    interface_name,
    kwok_name,
    node_name,
    node_number,
)

from .samples import settings


@pytest.mark.parametrize("name", ["a", "default", "0-1", "a" * 32])
def test_good_names(name: str) -> None:
    check_name(name)
    assert len(interface_name(name)) <= 15


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a/b", "..", "a b", "a\n", "a" * 33])
def test_bad_names(name: str) -> None:
    with pytest.raises(OperationError) as caught:
        check_name(name)
    assert caught.value.reason == "InvalidName"


def test_long_names_keep_their_own_interface() -> None:
    assert interface_name("default") == "so-default"
    assert interface_name("very-long-name-1") != interface_name("very-long-name-2")


def test_sockets_have_short_paths() -> None:
    longest = settings(name="a" * 32, nodes=127)
    assert len(str(longest.containerd_socket("node127"))) < 80
    # What a kubelet puts below its root directory.
    assert len(str(longest.node_run("node127") / "kubelet/pod-resources/kubelet.sock.tmp")) < 108


@pytest.mark.parametrize("changes", [{"nodes": 0}, {"nodes": 128}, {"kwok_nodes": -1}, {"name": "A"}])
def test_impossible_settings(changes: dict[str, Any]) -> None:
    with pytest.raises(OperationError):
        settings(**changes)


def test_labels_of_all_matching_patterns_are_merged_and_the_last_wins() -> None:
    labels = {"*": {"zone": "a", "kind": "any"}, "node[23]": {"zone": "b"}, "kwok-*": {"x": "y"}}
    labelled = settings(node_labels=labels)
    assert labelled.labels_of("node1") == {"zone": "a", "kind": "any"}
    assert labelled.labels_of("node3") == {"zone": "b", "kind": "any"}
    assert labelled.labels_of("kwok-00001") == {"zone": "a", "kind": "any", "x": "y"}


def test_numbers_and_names_of_nodes() -> None:
    assert node_number(node_name(12)) == 12
    assert settings(nodes=3).node_names == ("node1", "node2", "node3")
    assert kwok_name(7) == "kwok-00007"
