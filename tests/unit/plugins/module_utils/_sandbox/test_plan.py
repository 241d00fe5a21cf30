# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is started, restarted, removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.components import components
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.observe import Observed
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.plan import Kind, Step, plan_processes

from .samples import process, settings

WANTED = components(settings())
NODES = settings().node_names


def healthy(**changes: Any) -> Observed:
    running = {c.name: process(200 + index, *c.argv) for index, c in enumerate(WANTED)}
    holders = {node: process(100 + index, "pause") for index, node in enumerate(NODES)}
    seen = Observed(init=process(50), directory="/state", holders=holders, running=running, interface=True)
    return replace(seen, **changes)


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in healthy().running.items() if key != name}


def short(steps: list[Step]) -> list[tuple[str, str]]:
    return [(step.kind.value, step.target) for step in steps]


def plan(seen: Observed) -> list[tuple[str, str]]:
    return short(plan_processes(WANTED, NODES, seen))


def test_nothing_is_done_to_what_works() -> None:
    assert plan(healthy()) == []


def test_from_nothing_everything_is_made() -> None:
    steps = plan(Observed())
    assert steps[:3] == [("create", "namespaces"), ("create", "node:node1"), ("create", "node:node2")]
    assert steps[3:] == [("start", component.name) for component in WANTED]


def test_leftovers_are_cleaned_first() -> None:
    steps = plan(Observed(interface=True, cgroups=True))
    assert steps[:3] == [("clean", "interface"), ("clean", "cgroups"), ("create", "namespaces")]


@pytest.mark.parametrize("name", ["etcd", "kubelet-node1", "coredns"])
def test_only_what_is_missing_is_started(name: str) -> None:
    assert plan(healthy(running=without(name))) == [("start", name)]


def test_another_argument_list_means_a_restart() -> None:
    running = {**healthy().running, "etcd": process(999, "/old/etcd")}
    assert plan(healthy(running=running)) == [("restart", "etcd")]


def test_who_does_not_answer_is_restarted_and_the_reason_told() -> None:
    steps = plan_processes(WANTED, NODES, healthy(silent={"coredns": "timed out"}))
    assert steps == [Step(Kind.RESTART, "coredns", "does not answer: timed out")]


def test_a_lost_interface_is_connected() -> None:
    assert plan(healthy(interface=False)) == [("connect", "interface")]


def test_a_node_without_its_holder_is_made_again_with_all_its_components() -> None:
    holders = {"node1": healthy().holders["node1"]}
    assert plan(healthy(holders=holders)) == [
        ("create", "node:node2"),
        ("start", "containerd-node2"),
        ("start", "kubelet-node2"),
        ("start", "kube-proxy-node2"),
    ]


def test_a_surplus_node_takes_its_components_with_it() -> None:
    seen = healthy(
        holders={**healthy().holders, "node3": process(110, "pause")},
        running={**healthy().running, "kubelet-node3": process(333, "kubelet")},
    )
    assert plan(seen) == [("remove", "node:node3")]


def test_a_surplus_component_is_stopped() -> None:
    running = {**healthy().running, "kwok": process(333, "kwok")}
    assert plan(healthy(running=running)) == [("stop", "kwok")]


@pytest.mark.parametrize("name", [component.name for component in WANTED])
def test_carrying_out_a_plan_leaves_nothing_to_plan(name: str) -> None:
    steps = plan_processes(WANTED, NODES, healthy(running=without(name)))
    argv = {component.name: component.argv for component in WANTED}
    started = {step.target: process(900, *argv[step.target]) for step in steps}
    assert plan(healthy(running={**without(name), **started})) == []
