# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module reconcile on a real cluster: every row of its table, two runs at once, and sides that go away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import NodeState, parse

from .support.kube import Json, Kube
from .support.minislurm import NAME, MiniSlurm, is_ready, versions_there

SMALL = {"requests": {"cpu": "20m", "memory": "64Mi"}}


@pytest.fixture(scope="module", params=["26.05", "24.11"])
def mini(
    request: pytest.FixtureRequest, kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]
) -> Iterator[MiniSlurm]:
    """A small cluster: a node on each Node, and two replicas on the second Node."""
    assert request.param in versions_there(kube)
    everywhere = [{"operator": "Exists"}]
    nodesets: list[Json] = [
        {"name": "each", "kind": "node", "node_name_prefix": "e-", "node_selector": {"kubernetes.io/os": "linux"},
         "tolerations": everywhere, "resources": SMALL, "cpus": 2, "memory": "256Mi"},
        {"name": "cpu", "replicas": 2, "resources": SMALL, "cpus": 2, "memory": "256Mi",
         "node_selector": {"kubernetes.io/hostname": "node2"}},
    ]  # fmt: skip
    namespace = _namespaces(f"reconcile-{request.param.replace('.', '')}")
    made = MiniSlurm(kube, kubeconfig, namespace, request.param, nodesets)
    made.deploy()
    made.wait_for_nodes("e-node1", "e-node2", "cpu-0", "cpu-1")
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")


Reconcile = Callable[..., Json]


@pytest.fixture
def reconcile(mini: MiniSlurm, run_module: Callable[..., Json]) -> Reconcile:
    def run(args: Json | None = None, **more: Any) -> Json:
        return run_module("reconcile", {"namespace": mini.namespace, "name": NAME, **(args or {})}, **more)

    return run


def nodes(mini: MiniSlurm) -> dict[str, Json]:
    return {item["name"]: dict(item) for item in mini.client().nodes().items}


def state(mini: MiniSlurm, name: str) -> NodeState:
    return parse(nodes(mini)[name]["state"])


def kinds(result: Json) -> list[tuple[str, str]]:
    return [(action["kind"], action["target"]) for action in result["actions"]]


def foretold_then_done_then_quiet(reconcile: Reconcile, args: Json | None = None) -> Json:
    """Check mode says what then is done; after that nothing is left to do, and nothing is written."""
    foretold = reconcile(args, check=True)
    assert foretold["changed"]
    assert foretold["api_calls"]["writes"] == 0
    done = reconcile(args)
    assert kinds(done) == kinds(foretold)
    assert all(action["done"] for action in done["actions"])
    again = reconcile(args)
    assert not again["changed"], again["actions"]
    assert again["api_calls"]["writes"] == 0
    return done


def test_a_converged_pass_is_six_calls(mini: MiniSlurm, reconcile: Reconcile) -> None:
    found = reconcile()
    assert not found["changed"]
    assert found["drift"] == []
    assert found["counts"]["nodes"] == 4
    tries = len([parser for parser in ("v0.0.45", "v0.0.44", "v0.0.43") if parser > mini.client().parser])
    assert found["api_calls"]["kubernetes"] + found["api_calls"]["slurm"] == 6 + tries
    assert found["api_calls"]["writes"] == 0
