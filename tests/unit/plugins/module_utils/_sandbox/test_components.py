# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is started, and that its arguments tell its configuration."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox import render
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.addresses import AddressPlan
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.components import (
    HUB,
    Component,
    components,
    identities,
)

from .samples import settings


def by_name(**changes: Any) -> dict[str, Component]:
    return {component.name: component for component in components(settings(**changes))}


def test_every_component_is_there_once() -> None:
    names = [component.name for component in components(settings())]
    assert len(names) == len(set(names))
    assert set(names) == {
        *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "coredns", "provisioner"),
        *(f"{kind}-node{n}" for kind in ("containerd", "kubelet", "kube-proxy") for n in (1, 2)),
    }


def test_kwok_runs_only_if_there_is_something_to_simulate() -> None:
    assert "kwok" in by_name(kwok_nodes=1)
    assert "kwok" not in by_name(kwok_nodes=0)


@pytest.mark.parametrize(("simulated", "seconds"), [(200, 40), (1000, 200), (5000, 1000)])
def test_many_simulated_nodes_say_less_often_that_they_live(simulated: int, seconds: int) -> None:
    found = by_name(kwok_nodes=simulated)
    assert f"--node-lease-duration-seconds={seconds}" in found["kwok"].argv
    assert f"--node-monitor-grace-period={seconds + 10}s" in found["kube-controller-manager"].argv


def test_a_component_is_named_after_its_program() -> None:
    # observe.py tells components from what they leave behind by this.
    assert all(c.name.startswith(c.program) for c in components(settings(kwok_nodes=1)))


def test_nothing_starts_before_what_it_needs_answers() -> None:
    stages = {name: component.stage for name, component in by_name().items()}
    assert stages["etcd"] == stages["containerd-node1"] < stages["kube-apiserver"] < stages["kubelet-node1"]


def test_places() -> None:
    assert by_name()["etcd"].place == HUB
    assert by_name()["kubelet-node2"].place == "node2"


@pytest.mark.parametrize("name", ["kubelet-node1", "kube-proxy-node1", "containerd-node1", "coredns", "provisioner"])
def test_another_configuration_is_another_argument_list(name: str) -> None:
    assert by_name()[name].argv == by_name()[name].argv
    changed = by_name(addresses=AddressPlan(IPv4Network("10.121.0.0/16")), runtime=Path("/other"))
    assert by_name()[name].argv != changed[name].argv


def test_files_that_arguments_name_are_written() -> None:
    for component in components(settings(kwok_nodes=1)):
        written = {str(path) for path in component.files}
        for argument in component.argv[1:]:
            path = argument.partition("=")[2] or argument
            if path.startswith(str(settings().run)) and "." in path.rpartition("/")[2]:
                assert path in written


def test_no_secret_is_in_arguments_or_files() -> None:
    for component in components(settings()):
        text = " ".join([*component.argv, *component.files.values()])
        assert "PRIVATE KEY" not in text
        assert "client-key-data" not in text


def test_kubelets_share_nothing() -> None:
    one = json.loads(render.kubelet_configuration(settings(), "node1"))
    other = json.loads(render.kubelet_configuration(settings(), "node2"))
    for key in ("address", "cgroupRoot", "containerRuntimeEndpoint", "healthzBindAddress", "resolvConf"):
        assert one[key] != other[key]


def test_kubelets_never_delete_images_nor_change_the_machine() -> None:
    configuration = json.loads(render.kubelet_configuration(settings(), "node1"))
    assert configuration["imageGCHighThresholdPercent"] == 100
    assert set(configuration["evictionHard"]) == {"memory.available"}
    assert configuration["oomScoreAdj"] == 0
    assert configuration["failCgroupV1"] is False


def test_names_of_the_cluster_are_not_denied_by_the_rule_for_all_others() -> None:
    cluster, rest = render.corefile(settings()).split("\n.:53 {")
    assert "kubernetes cluster.local" in cluster
    assert "template" not in cluster
    assert "NXDOMAIN" in rest


def test_each_node_gets_addresses_from_its_own_range() -> None:
    ranges = [
        json.loads(render.network_configuration(settings(), node))["plugins"][0]["ipam"]["ranges"]
        for node in settings().node_names
    ]
    assert ranges == [[[{"subnet": "10.120.129.0/24"}]], [[{"subnet": "10.120.130.0/24"}]]]


def test_identities() -> None:
    found = {identity.file: identity for identity in identities(settings())}
    assert found["admin"].groups == ("system:masters",)
    assert (found["kubelet-node2"].user, found["kubelet-node2"].groups) == ("system:node:node2", ("system:nodes",))
    server = found["kube-apiserver"]
    assert {"kubernetes", "kubernetes.default.svc", "localhost"} <= set(server.names)
    assert {str(a) for a in server.addresses} == {"10.120.0.2", "127.0.0.1", "10.120.64.1"}
    assert len({identity.user for identity in found.values()}) == len(found)
