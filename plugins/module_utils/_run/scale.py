# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module nodeset_scale's work: read both sides, drain before anything goes, verify what came."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import drains
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.jobs import Job
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.members import members
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import (
    CLUSTER,
    NODESET,
    SlurmNode,
    Snapshot,
    snapshot,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import scale as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.drain import CANCEL, REQUEUE
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.scale import NODE, REPLICA, Pool, Worker
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.verify import Declared, Registered, findings
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.draining import Draining
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.observe import PODS, WORKLOADS
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.wait import Seen, Trouble, wait_until

STATEFULSET, DAEMONSET, _DEPLOYMENT = WORKLOADS
# What is not as declared gets so long to become so before the wait gives up: a node may still be registering.
GRACE = 20.0


class NodeSetScale:
    """An Operation: see _run/module.py."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._params = run.params
        self._namespace: str = run.params["namespace"]
        self._kubernetes = run.kubernetes
        self._wanted: Mapping[str, Mapping[str, Any]] = {item["name"]: item for item in run.params["nodesets"]}
        self._draining = Draining(run)
        self._pools: Sequence[Pool] = ()

    # --- plan -----------------------------------------------------------------------------------------------------

    def plan(self) -> Sequence[Action]:
        """Read both sides. Without any NodeSet on Kubernetes there is nothing to do, and Slurm may not be there yet."""
        workloads = self._workloads()
        if not workloads:
            return ()
        if self._params["direction"] == "in" and not any(self._is_to_shrink(item) for item in workloads):
            # Kubernetes alone can tell that nothing goes. So a site whose Slurm is down can still be repaired.
            return ()
        self._pools = self._pools_of(workloads, self._read(workloads))
        actions: list[Action] = []
        if self._params["direction"] != "out":
            leaving = any(planner.victims(pool) or pool.removed for pool in self._pools)
            jobs = self._holding() if leaving else ()
            actions += planner.plan_in(self._pools, jobs, drains.OWNER, self._params["on_running_jobs"])
        if self._params["direction"] != "in":
            actions += planner.plan_out(self._pools, drains.OWNER)
        return actions

    def _is_to_shrink(self, workload: Mapping[str, Any]) -> bool:
        wanted = self._wanted.get(workload["metadata"]["name"])
        if wanted is None:
            return bool(self._params["prune"])
        size = workload["spec"].get("replicas", 1) if workload["kind"] == "StatefulSet" else 0
        return wanted["replicas"] is not None and wanted["replicas"] < size

    def _workloads(self) -> list[dict[str, Any]]:
        label = f"{CLUSTER}={self._params['name']},{NODESET}"
        found = [
            item
            for resource in (STATEFULSET, DAEMONSET)
            for item in self._kubernetes.list(resource, self._namespace, labels=label)
        ]
        # What is being deleted is on its way out already.
        return [item for item in found if not item["metadata"].get("deletionTimestamp")]

    def _read(self, workloads: Sequence[Mapping[str, Any]]) -> Snapshot:
        label = f"{CLUSTER}={self._params['name']},{NODESET}"
        return snapshot(
            workloads=workloads,
            pods=self._kubernetes.list(PODS, self._namespace, labels=label),
            slurm_nodes=self._draining.slurm.nodes().items,
        )

    def _pools_of(self, workloads: Sequence[Mapping[str, Any]], seen: Snapshot) -> list[Pool]:
        return [self._pool(item, seen) for item in sorted(workloads, key=lambda item: str(item["metadata"]["name"]))]

    def _pool(self, workload: Mapping[str, Any], seen: Snapshot) -> Pool:
        name = workload["metadata"]["name"]
        kind = REPLICA if workload["kind"] == "StatefulSet" else NODE
        size = workload["spec"].get("replicas", 1) if kind == REPLICA else 0
        wanted = self._wanted.get(name)
        return Pool(
            name=name,
            kind=kind,
            size=size,
            target=wanted["replicas"] if wanted and kind == REPLICA else None,
            workers=tuple(_workers(name, kind, seen)),
            removed=wanted is None and bool(self._params["prune"]),
        )

    def _holding(self) -> list[Job]:
        return [job for job in self._draining.jobs() if job.holding]

    # --- act ------------------------------------------------------------------------------------------------------

    def act(self, actions: Sequence[Action]) -> None:
        """Carry out one step; before a size is lowered, wait until nothing runs on what goes."""
        kind = actions[0].kind
        if kind == "drain":
            self._draining.drain(actions)
        elif kind == "undrain":
            self._draining.undrain(actions)
        elif kind in (CANCEL, REQUEUE):
            self._draining.end_jobs(kind, actions)
        elif kind in ("scale", "remove"):
            self._resize(actions[0].subject, remove=kind == "remove")
            actions[0].done = True
        elif kind == "forget":
            self._forget(actions)

    def _resize(self, pool: Pool, *, remove: bool) -> None:
        leaving = [worker.node for worker in planner.victims(pool) if worker.state is not None]
        if leaving:
            self._wait_drained(pool, leaving)
        resource = STATEFULSET if pool.kind == REPLICA else DAEMONSET
        if remove:
            self._kubernetes.delete(resource, self._namespace, pool.name, propagation="Foreground")
        else:
            change = {"spec": {"replicas": pool.target}}
            self._kubernetes.patch(resource, self._namespace, pool.name, change)

    def _wait_drained(self, pool: Pool, nodes: Sequence[str]) -> None:
        self._draining.wait_drained(
            nodes,
            f"Draining {len(nodes)} node(s) of NodeSet {pool.name}",
            timeout=self._params["wait_timeout"],
            hint="They stay drained, nothing was removed; run again to go on, or with the old size to give them back.",
            may_be_gone=True,
        )

    def _forget(self, actions: Sequence[Action]) -> None:
        """Delete records once their Pods are gone; a slurmd that still runs would register again."""
        names = {action.target for action in actions}
        label = f"{CLUSTER}={self._params['name']},{NODESET}"
        known: Mapping[str, SlurmNode] = {}

        def look() -> Seen:
            nonlocal known
            pods = self._kubernetes.list(PODS, self._namespace, labels=label)
            seen = snapshot(pods=pods, slurm_nodes=self._draining.slurm.nodes().items)
            known = seen.slurm_nodes
            return Seen([f"Pod {pod.name} is there" for node, pod in seen.pod_of.items() if node in names])

        wait_until(
            look,
            f"The end of the Pods of {len(names)} node(s)",
            timeout=self._params["wait_timeout"],
            interval=self._params["wait_sleep"],
            progress=self._run.progress,
        )
        # A drain that a person set meanwhile outlives the Pod.
        kept = [action for action in actions if (node := known.get(action.target)) and planner.is_kept(node)]
        self._draining.drop(kept)
        going = [action for action in actions if action not in kept]
        self._draining.slurm.delete_nodes([action.target for action in going if action.target in known])
        for action in going:
            action.done = True

    # --- wait -----------------------------------------------------------------------------------------------------

    def wait(self) -> None:
        """Wait until every node of the wanted NodeSets has registered, as declared."""
        if not self._params["wait"] or self._params["direction"] == "in" or not self._wanted:
            return
        wait_until(
            self._look_registered,
            f"The registration of {', '.join(sorted(self._wanted))}",
            timeout=self._params["wait_timeout"],
            interval=self._params["wait_sleep"],
            progress=self._run.progress,
        )

    def _look_registered(self) -> Seen:
        workloads = self._workloads()
        seen = self._read(workloads)
        there = {str(item["metadata"]["name"]): item for item in workloads}
        remaining: list[str] = []
        troubles: list[Trouble] = []
        for name, wanted in self._wanted.items():
            workload = there.get(name)
            if workload is None:
                raise OperationError(
                    f"NodeSet {name} is not in namespace {self._namespace}.",
                    reason="NotFound",
                    hint="Apply it first (role nodeset), or check the names of NodeSet, cluster and namespace.",
                )
            for finding in findings(_declared(workload, wanted), *_present(name, seen)):
                remaining.append(f"{finding.subject}: {finding.text}")
                if finding.final:
                    text = f"{finding.subject}  {finding.text}"
                    troubles.append(Trouble(text, text, GRACE, "NotAsDeclared", finding.hint))
        return Seen(remaining, troubles)

    # --- tell -----------------------------------------------------------------------------------------------------

    def result(self) -> Mapping[str, Any]:
        """Return the size of each NodeSet as it was found."""
        return {
            "nodesets": [
                {
                    "name": pool.name,
                    "kind": pool.kind,
                    "replicas": pool.size,
                    "wanted": pool.target,
                    "removed": pool.removed,
                }
                for pool in self._pools
            ]
        }


def _workers(name: str, kind: str, seen: Snapshot) -> list[Worker]:
    """Nodes of a NodeSet: its Pods, and the records that are left of Pods that are gone."""
    found = []
    for node, pod in members(seen, name).items():
        record = seen.slurm_nodes.get(node)
        found.append(
            Worker(
                node=node,
                ordinal=_ordinal(name, node) if kind == REPLICA else None,
                pod=pod or None,
                state=record.state if record else None,
                reason=record.reason if record else "",
                dynamic=record.dynamic if record else True,
            )
        )
    return found


def _ordinal(nodeset: str, node: str) -> int | None:
    match = re.fullmatch(rf"{re.escape(nodeset)}-(\d+)", node)
    return int(match[1]) if match else None


def _declared(workload: Mapping[str, Any], wanted: Mapping[str, Any]) -> Declared:
    status = workload.get("status") or {}
    if workload["kind"] == "StatefulSet":
        nodes = workload["spec"].get("replicas", 1)
    else:
        nodes = status.get("desiredNumberScheduled")
    return Declared(
        name=f"NodeSet {wanted['name']}",
        nodes=nodes,
        cpus=wanted["cpus"],
        memory_mib=wanted["memory_mib"],
        gres=wanted["gres"] or "",
    )


def _present(name: str, seen: Snapshot) -> tuple[list[Registered], dict[str, str]]:
    node_of = {pod.name: node for node, pod in seen.pod_of.items()}
    pods: dict[str, str] = {}
    nodes: list[Registered] = []
    for pod in seen.pods:
        if pod.nodeset != name or pod.deleting:
            continue
        node = node_of.get(pod.name, pod.name)
        pods[node] = "" if pod.ready else pod.problem or "not ready"
        record = seen.slurm_nodes.get(node)
        if record is not None:
            nodes.append(Registered(node, record.state, record.reason, record.cpus, record.memory_mib, record.gres))
    return nodes, pods
