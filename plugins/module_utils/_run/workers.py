# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The workers of NodeSets as both sides have them, and which of their Pods are of the newest template."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import jobs, names
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.jobs import Job
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.kubernetes_objects import Pod, slurmd_conf
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import (
    CLUSTER,
    NODESET,
    WORKER,
    SlurmNode,
    Snapshot,
    snapshot,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import (
    CONTROLLER_REVISION,
    DAEMON_SET,
    POD,
    STATEFUL_SET,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.rollout import (
    Picture,
    Worker,
    is_others,
    reason_of,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.scale import NODE, REPLICA
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.verify import (
    is_refused,
    not_as_declared,
    unregistered,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.draining import Draining
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.places import free_at
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.wait import Seen, wait_until

HASH = "controller-revision-hash"  # label of Pods and of the revisions of DaemonSets
PATIENCE = 60.0  # seconds that a controller gets to see a new template

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Workers:
    """One NodeSet at one moment. ``pods`` are raw, by name; ``on`` gives the jobs on a node."""

    name: str
    kind: str
    revision: str
    picture: Picture
    pods: Mapping[str, Raw]
    records: Mapping[str, SlurmNode]
    on: Mapping[str, Sequence[Job]]

    def revision_of(self, worker: Worker) -> str | None:
        """The revision that a worker's Pod was made from."""
        return _hash(self.pods[worker.pod]) if worker.pod in self.pods else None


class WorkersReader:
    """Reads NodeSets in a few calls, whatever their size; remembers which node was on which Node."""

    def __init__(self, run: Run, draining: Draining) -> None:
        self._run = run
        self._draining = draining
        self._namespace: str = run.params["namespace"]
        self._on_node: dict[tuple[str, str], str] = {}  # (NodeSet, Node): node

    def read(self, nodeset: str | None = None) -> list[Workers]:
        """All NodeSets, or one. Raises OperationError (NotFound) if there is no such."""
        labels = f"{CLUSTER}={self._run.params['name']},{NODESET}{f'={nodeset}' if nodeset else ''}"
        workloads = self._observed(labels)
        if nodeset and not workloads:
            raise OperationError(
                f"NodeSet {nodeset} is not in namespace {self._namespace}.",
                reason="NotFound",
                hint="Check the names of NodeSet, cluster and namespace; cluster_info lists the NodeSets.",
            )
        if not workloads:
            return []  # Slurm may not be there yet
        kubernetes = self._run.kubernetes
        pods = kubernetes.list(POD, self._namespace, labels=labels)
        is_daemon = any(item["kind"] == "DaemonSet" for item in workloads)
        revisions = kubernetes.list(CONTROLLER_REVISION, self._namespace, labels=labels) if is_daemon else ()
        # Slurm last: what it knows then is at least as new as the Pods.
        seen = snapshot(pods=pods, slurm_nodes=self._draining.slurm.nodes().items)
        busy = any(seen.slurm_nodes[node].state.busy for node in seen.pod_of)
        on = jobs.by_node(self._draining.jobs()) if busy else {}
        raw = {str(item["metadata"]["name"]): item for item in pods}
        return [self._workers(item, _revision(item, revisions), seen, raw, on) for item in workloads]

    def _observed(self, labels: str) -> list[Raw]:
        """The workloads, once their controllers have seen the newest template: before, the revision is the old one."""
        found: list[Raw] = []

        def look() -> Seen:
            found[:] = [
                item
                for resource in (STATEFUL_SET, DAEMON_SET)
                for item in self._run.kubernetes.list(resource, self._namespace, labels=labels)
                if not item["metadata"].get("deletionTimestamp")
            ]
            return Seen([f"{item['kind']} {item['metadata']['name']}" for item in found if not _is_observed(item)])

        wait_until(look, "The controller's look at the new template", timeout=PATIENCE, interval=1.0)
        return sorted(found, key=lambda item: str(item["metadata"]["name"]))

    def _workers(
        self, workload: Raw, revision: str, seen: Snapshot, raw: Mapping[str, Raw], on: Mapping[str, Sequence[Job]]
    ) -> Workers:
        name = str(workload["metadata"]["name"])
        kind = REPLICA if workload["kind"] == "StatefulSet" else NODE
        desired = _desired(workload)
        conf = slurmd_conf(workload["spec"]["template"].get("spec") or {})
        found: dict[str, Worker] = {}
        for node, pod in self._pods_of(name, kind, seen).items():
            if kind == NODE or (names.ordinal(name, pod.name) or 0) < desired:
                is_updated = _hash(raw[pod.name]) == revision
                found[node] = _worker(name, node, pod, seen.slurm_nodes.get(node), is_updated, conf, on.get(node, ()))
        for node in self._without_pod(name, kind, desired, seen):
            known = seen.slurm_nodes.get(node)
            is_begun = known is not None and known.state.drain and known.reason == reason_of(name)
            if node not in found and (len(found) < desired or is_begun):
                state, reason = (known.state, known.reason) if known else (None, "")
                found[node] = Worker(node, lacks="it has no Pod", state=state, reason=reason)
        picture = Picture(name, desired, tuple(found.values()))
        return Workers(name, kind, revision, picture, raw, seen.slurm_nodes, on)

    def _without_pod(self, nodeset: str, kind: str, desired: int, seen: Snapshot) -> Iterator[str]:
        """Nodes that are to have a Pod, also when there is none at the moment."""
        if kind == REPLICA:
            yield from (f"{nodeset}-{number}" for number in range(desired))
            return
        have = {pod.node for pod in seen.pods if pod.nodeset == nodeset}
        yield from (node for (name, on), node in self._on_node.items() if name == nodeset and on not in have)
        # What an interrupted run has drained, whose Pod has not registered yet.
        for node, record in seen.slurm_nodes.items():
            if record.state.drain and record.reason == reason_of(nodeset):
                yield node

    def _pods_of(self, nodeset: str, kind: str, seen: Snapshot) -> dict[str, Pod]:
        """{node: its Pod}. The Pod of a DaemonSet has a new name each time, and its node the old one."""
        node_of = {pod.name: node for node, pod in seen.pod_of.items()}
        mine = [pod for pod in seen.pods if pod.component == WORKER and pod.nodeset == nodeset]
        found: dict[str, Pod] = {}
        for pod in sorted(mine, key=lambda pod: (not pod.deleting, pod.name)):
            place = (nodeset, pod.node)
            if kind == NODE and pod.node and pod.name in node_of:
                self._on_node[place] = node_of[pod.name]
            found[node_of.get(pod.name) or self._on_node.get(place) or pod.name] = pod
        return found


def _worker(
    nodeset: str, node: str, pod: Pod, record: SlurmNode | None, is_updated: bool, conf: str, on_node: Sequence[Job]
) -> Worker:
    lacks = unregistered(pod, record)
    is_final = bool(lacks and pod.ready and record and is_refused(record.state))
    if is_updated and record and not lacks:
        lacks = "; ".join(not_as_declared(pod, record))
        is_final = bool(lacks)
    found = Worker(
        node=node,
        pod=pod.name,
        uid=pod.uid,
        updated=is_updated,
        deleting=pod.deleting,
        lacks=lacks,
        final=is_final,
        state=record.state if record else None,
        reason=record.reason if record else "",
        free_at=free_at(on_node),
        kubernetes_node=pod.node,
    )
    changes = not is_updated and pod.slurmd_conf != conf and record is not None and record.dynamic
    # What somebody else has drained keeps its record, in which that drain is.
    return dataclasses.replace(found, anew=changes and not is_others(found, reason_of(nodeset)))


def _hash(pod: Raw) -> str:
    return str((pod["metadata"].get("labels") or {}).get(HASH, ""))


def _is_observed(workload: Raw) -> bool:
    observed = (workload.get("status") or {}).get("observedGeneration") or 0
    return int(observed) >= int(workload["metadata"].get("generation") or 0)


def _desired(workload: Raw) -> int:
    if workload["kind"] == "DaemonSet":
        return int((workload.get("status") or {}).get("desiredNumberScheduled") or 0)
    replicas = workload["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def _revision(workload: Raw, revisions: Iterable[Raw]) -> str:
    """The hash of the newest template. A DaemonSet does not tell; its newest revision does."""
    if workload["kind"] == "StatefulSet":
        return str((workload.get("status") or {}).get("updateRevision") or "")
    uid = workload["metadata"].get("uid")
    own = [
        item
        for item in revisions
        if any(owner.get("uid") == uid for owner in item["metadata"].get("ownerReferences") or ())
    ]
    newest = max(own, key=lambda item: int(item.get("revision") or 0), default=None)
    return _hash(newest) if newest else ""
