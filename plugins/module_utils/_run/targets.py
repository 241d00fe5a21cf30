# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Which nodes a module is about: named, of a NodeSet, or on some Nodes; found before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import hostlist
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.members import members
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import (
    CLUSTER,
    WORKER,
    KubernetesNode,
    SlurmNode,
    Snapshot,
    snapshot,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import KUBERNETES_NODE, POD
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.drain import require_known
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import ArgumentSpec
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.draining import Draining
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run

BY = ("nodes", "nodeset", "kubernetes_nodes", "label_selector")

# Documented in each module that takes it.
ARGS_TARGETS = ArgumentSpec(
    {
        "nodes": {"type": "list", "elements": "str"},
        "nodeset": {"type": "str"},
        "kubernetes_nodes": {"type": "list", "elements": "str"},
        "label_selector": {"type": "str"},
    },
    mutually_exclusive=[BY],
)


@dataclass(frozen=True, slots=True)
class Targets:
    """The nodes that are meant, and what was read to find them."""

    nodes: Sequence[SlurmNode]
    seen: Snapshot

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [node.name for node in self.nodes]

    def kubernetes_nodes(self) -> list[KubernetesNode]:
        """The Nodes that the worker Pods of the targets are on."""
        on = {self.kubernetes_node_of(name) for name in self.names}
        return [node for node in self.seen.kubernetes_nodes if node.name in on]

    def kubernetes_node_of(self, name: str) -> str | None:
        """The Node that a node's Pod is on."""
        pod = self.seen.pod_of.get(name)
        return pod.node if pod and pod.node else None

    def on_node(self, kubernetes_node: str) -> dict[str, SlurmNode]:
        """All nodes of the cluster that are on a Node."""
        known = self.seen.slurm_nodes
        return {name: known[name] for name, pod in self.seen.pod_of.items() if pod.node == kubernetes_node}


def read_targets(run: Run, draining: Draining, *, pods: bool = False, kubernetes_nodes: bool = False) -> Targets:
    """Read what is needed and find the nodes; none of the options means all nodes.

    Raises OperationError (UnknownNode, NotFound) that names what is not there.
    """
    params = run.params
    by = next((option for option in BY if params[option] is not None), "")
    on_nodes = by in ("kubernetes_nodes", "label_selector")
    namespace, labels = params["namespace"], f"{CLUSTER}={params['name']}"
    seen = snapshot(
        pods=run.kubernetes.list(POD, namespace, labels=labels) if pods or on_nodes or by == "nodeset" else (),
        nodes=run.kubernetes.list(KUBERNETES_NODE) if kubernetes_nodes or on_nodes else (),
        slurm_nodes=draining.listing(),
    )
    if by == "nodes":
        names = hostlist_option(params["nodes"])
        require_known(names, seen.slurm_nodes)
    elif by == "nodeset":
        names = _of_nodeset(run, seen, params["nodeset"])
    elif on_nodes:
        names = _on_nodes(run, seen, _wanted_nodes(run, seen, by))
    else:
        names = sorted(seen.slurm_nodes)
    return Targets([seen.slurm_nodes[name] for name in dict.fromkeys(names)], seen)


def hostlist_option(items: Sequence[str]) -> list[str]:
    """The names of an option that takes host lists. Ansible cuts a text at its commas, also inside of brackets."""
    return hostlist.expand(",".join(items))


def _of_nodeset(run: Run, seen: Snapshot, nodeset: str) -> list[str]:
    found = members(seen, nodeset)
    if not found:
        raise OperationError(
            f"Neither a Pod nor a node belongs to a NodeSet {nodeset}.",
            reason="NotFound",
            hint="Check the names of NodeSet, cluster and namespace; cluster_info lists the NodeSets.",
        )
    return _registered(run, seen, found)


def _wanted_nodes(run: Run, seen: Snapshot, by: str) -> set[str]:
    """Names of Nodes."""
    if by == "label_selector":
        selected = run.kubernetes.list(KUBERNETES_NODE, labels=run.params["label_selector"])
        if not selected:
            run.warn(f"No Node has the labels {run.params['label_selector']}.")
        return {str(item["metadata"]["name"]) for item in selected}
    wanted = set(run.params["kubernetes_nodes"])
    require_known(wanted, {node.name for node in seen.kubernetes_nodes}, "Kubernetes")
    return wanted


def _on_nodes(run: Run, seen: Snapshot, wanted: set[str]) -> list[str]:
    node_of = {pod.name: node for node, pod in seen.pod_of.items()}
    workers: Mapping[str, Any] = {
        node_of.get(pod.name, pod.name): pod
        for pod in seen.pods
        if pod.component == WORKER and pod.node in wanted and not pod.deleting
    }
    empty = sorted(wanted - {pod.node for pod in workers.values()})
    if empty:
        run.warn(f"No worker of this cluster is on {', '.join(empty)}.")
    return _registered(run, seen, workers)


def _registered(run: Run, seen: Snapshot, names: Mapping[str, Any]) -> list[str]:
    """Without the workers that Slurm does not know, of which is told."""
    for name in sorted(names):
        if name not in seen.slurm_nodes:
            run.warn(f"Slurm does not know {name}, whose Pod is there: it has no state to change.")
    return [name for name in sorted(names) if name in seen.slurm_nodes]
