# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is measured, each against a peer or the raw cost in the same run."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import hostlist
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.problems import Problems
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import CLUSTER
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.topology import render
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.topology import Shape, build
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.drain import NodeDrain
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.reconcile import Reconcile
from ansible_collections.slurm_ops.kubernetes.plugins.modules.node_drain import ARGUMENTS as DRAIN_ARGUMENTS
from ansible_collections.slurm_ops.kubernetes.plugins.modules.reconcile import ARGUMENTS as RECONCILE_ARGUMENTS
from tests.live.support.minislurm import NAME

from .measure import Row, Work, computing, in_turn, seconds
from .scene import Scene

DRAINED_AT_ONCE = 1000
ONE_BY_ONE = 100  # nodes drained one by one, and multiplied: 1,000 in a loop would only take longer
NAMES = 100_000
AT_REST = 2.0  # Slurm's clock has seconds: what changed within one is read as a whole


def planning() -> Iterator[Row]:
    """Pure computing: no cluster."""
    nodes = [f"node{number:06d}" for number in range(NAMES)]
    text = hostlist.compress(nodes)
    # As they come from a cluster in which every third is away: many ranges.
    holes = [name for number, name in enumerate(nodes) if number % 3]
    for what, work in (
        (f"expand a host list of {NAMES:,} names", lambda: hostlist.expand(text)),
        (f"compress {NAMES:,} names", lambda: hostlist.compress(nodes)),
        (f"compress {len(holes):,} names in {NAMES // 3:,} ranges", lambda: hostlist.compress(holes)),
    ):
        ours = computing(work)
        yield Row(what, ours, None, "", "under 0.3 s", ours < 0.3)
    places = {
        name: (f"zone{number // 20000}", f"spine{number // 2000}", f"leaf{number // 40}")
        for number, name in enumerate(nodes)
    }

    def plan() -> None:
        problems = Problems()
        topology, _unplaced = build(Shape("default", "tree"), places, problems)
        problems.raise_if_any("The topology")
        render([topology], yaml=True)

    ours = computing(plan, 3)
    yield Row(f"plan and write the topology of {NAMES:,} nodes", ours, None, "", "under 2 s", ours < 2)


def reconciling(scene: Scene) -> Iterator[Row]:
    """A pass over a cluster on which both sides agree, against the bare requests it needs."""
    run = scene.run(RECONCILE_ARGUMENTS, Reconcile)  # whatever there is to do is done here
    run = scene.run(RECONCILE_ARGUMENTS, Reconcile)
    if run.actions:
        raise AssertionError(f"Not converged: {[action.result() for action in run.actions[:3]]}")
    calls = sum(run.kubernetes_calls.values()) + sum(run.slurm_calls.values())

    def read() -> None:
        for path in (
            f"/apis/apps/v1/namespaces/{scene.namespace}/statefulsets?labelSelector={CLUSTER}%3D{NAME}",
            f"/apis/apps/v1/namespaces/{scene.namespace}/daemonsets?labelSelector={CLUSTER}%3D{NAME}",
        ):
            json.loads(scene.kubernetes.exchange("GET", path, verb="get", target="raw").body)
        for path in (f"/api/v1/namespaces/{scene.namespace}/pods?labelSelector={CLUSTER}%3D{NAME}&", "/api/v1/nodes?"):
            token = ""
            while True:
                page = f"{path}limit=500&continue={token}"
                answer = json.loads(scene.kubernetes.exchange("GET", page, verb="get", target="raw").body)
                token = answer["metadata"].get("continue", "")
                if not token:
                    break
        scene.slurm.nodes()

    ours, other = in_turn(lambda: scene.run(RECONCILE_ARGUMENTS, Reconcile), read)
    what = f"a pass over {scene.size:,} nodes that agree ({calls} calls, pages counted)"
    yield Row(what, ours, other, "the bare reads", "at most 1.5 times", ours <= 1.5 * other)


def draining(scene: Scene) -> Iterator[Row]:
    """Draining 1,000 nodes: by one call and by the module as a whole, against scontrol and REST node by node."""
    nodes = scene.nodes[:DRAINED_AT_ONCE]
    target = [hostlist.compress(nodes)]

    def give_back() -> None:
        scene.slurm.update_nodes(nodes, state="UNDRAIN")
        time.sleep(AT_REST)

    def at_once() -> None:
        scene.slurm.update_nodes(nodes, state="DRAIN", reason="bench")

    def module() -> None:
        scene.run(DRAIN_ARGUMENTS, NodeDrain, state="drained", nodes=target, reason="bench", wait=False)

    def median(work: Work) -> float:
        times = []
        for _run in range(5):
            times.append(seconds(work))
            give_back()
        return statistics.median(times)

    change, whole = median(at_once), median(module)
    some = nodes[:ONE_BY_ONE]
    command = f"for n in {' '.join(some)}; do scontrol update nodename=$n state=drain reason=bench || exit 1; done"
    looped = seconds(lambda: scene.mini.run(command, timeout=300)) * len(nodes) / len(some)
    give_back()

    def each() -> None:
        for node in some:
            scene.slurm.update_nodes([node], state="DRAIN", reason="bench")

    called = seconds(each) * len(nodes) / len(some)
    give_back()
    these = f"{len(nodes):,} of {scene.size:,} nodes"
    for what, ours, times in (
        (f"drain {these}: the change", change, 20),
        (f"drain {these}: the module as a whole, with all reads before and after", whole, 1),
    ):
        for other, peer in ((looped, "scontrol in a loop"), (called, "a REST call for each node")):
            wanted = f"at least {times} times faster" if times > 1 else "faster"
            yield Row(what, ours, other, peer, wanted, other >= times * ours)
