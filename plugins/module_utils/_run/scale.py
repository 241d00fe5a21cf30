# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module nodeset_scale's work: read both sides, drain before anything goes, verify what came."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import hostlist
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import (
    CLUSTER,
    NODESET,
    Snapshot,
    snapshot,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import scale as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.scale import NODE, REPLICA, Job, Pool, Worker
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.verify import Declared, Registered, findings
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.observe import PODS, WORKLOADS
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import client_of
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.wait import Seen, Trouble, wait_until
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.values import words

OWNER = "k8s:"
STATEFULSET, DAEMONSET, _DEPLOYMENT = WORKLOADS
# States in which a job holds its nodes.
HOLDING = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", "SIGNALING", "STAGE_OUT"})
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
        self._slurm_client: SlurmClient | None = None
        self._pools: Sequence[Pool] = ()

    @property
    def _slurm(self) -> SlurmClient:
        if self._slurm_client is None:
            self._slurm_client = client_of(self._kubernetes, self._params, self._run.slurm_calls)
        return self._slurm_client

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
            jobs = self._jobs() if leaving else ()
            actions += planner.plan_in(self._pools, jobs, OWNER, self._params["on_running_jobs"])
        if self._params["direction"] != "in":
            actions += planner.plan_out(self._pools, OWNER)
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
            slurm_nodes=self._slurm.nodes().items,
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

    def _jobs(self) -> list[Job]:
        return [
            Job(int(raw["job_id"]), str(raw.get("user_name") or raw.get("user_id")), frozenset(hostlist.expand(nodes)))
            for raw in self._slurm.jobs().items
            if (nodes := str(raw.get("nodes") or "")) and not HOLDING.isdisjoint(words(raw.get("job_state")))
        ]

    # --- act ------------------------------------------------------------------------------------------------------

    def act(self, actions: Sequence[Action]) -> None:
        """Carry out one step; before a size is lowered, wait until nothing runs on what goes."""
        kind = actions[0].kind
        if kind == "drain":
            for reason in sorted({action.why for action in actions}):
                same = [action.target for action in actions if action.why == reason]
                self._slurm.update_nodes(same, state="DRAIN", reason=reason)
        elif kind == "undrain":
            self._slurm.update_nodes([action.target for action in actions], state="UNDRAIN")
        elif kind in (planner.CANCEL, planner.REQUEUE):
            self._end_jobs(kind, actions)
        elif kind in ("scale", "remove"):
            self._resize(actions[0].subject, remove=kind == "remove")
        elif kind == "forget":
            self._forget([action.target for action in actions])
        for action in actions:
            action.done = True

    def _end_jobs(self, kind: str, actions: Sequence[Action]) -> None:
        running = {job.job_id for job in self._jobs()}
        numbers = [action.subject.job_id for action in actions if action.subject.job_id in running]
        if kind == planner.CANCEL:
            self._slurm.cancel_jobs(numbers)
        elif numbers:
            self._slurm.requeue_jobs(numbers)

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
        """Fails closed: a node that Slurm no longer lists is gone, anything but drained keeps us waiting."""

        def look() -> Seen:
            states = snapshot(slurm_nodes=self._slurm.nodes().items).slurm_nodes
            busy = [node for node in nodes if node in states and not states[node].state.drained]
            if not busy:
                return Seen()
            holders = [job for job in self._jobs() if not job.nodes.isdisjoint(busy)]
            held = [f"job {job.job_id} of {job.user} on {', '.join(sorted(job.nodes & set(busy)))}" for job in holders]
            return Seen(held or [f"{node} is {states[node].state.word}" for node in busy])

        wait_until(
            look,
            f"Draining {len(nodes)} node(s) of NodeSet {pool.name}",
            timeout=self._params["wait_timeout"],
            interval=self._params["wait_sleep"],
            progress=self._run.progress,
        )

    def _forget(self, nodes: Sequence[str]) -> None:
        """Delete records once their Pods are gone; a slurmd that still runs would register again."""
        names = set(nodes)
        label = f"{CLUSTER}={self._params['name']},{NODESET}"

        def look() -> Seen:
            seen = snapshot(
                pods=self._kubernetes.list(PODS, self._namespace, labels=label), slurm_nodes=self._slurm.nodes().items
            )
            return Seen([f"Pod {pod.name} is there" for node, pod in seen.pod_of.items() if node in names])

        wait_until(
            look,
            f"The end of the Pods of {len(nodes)} node(s)",
            timeout=self._params["wait_timeout"],
            interval=self._params["wait_sleep"],
            progress=self._run.progress,
        )
        known = snapshot(slurm_nodes=self._slurm.nodes().items).slurm_nodes
        self._slurm.delete_nodes([node for node in nodes if node in known])

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
    pods = {pod.name: pod for pod in seen.pods if pod.nodeset == name and not pod.deleting}
    node_of = {pod.name: node for node, pod in seen.pod_of.items()}
    members = {node_of.get(pod, pod): pod for pod in pods}
    # The NodeSet's name is a feature of each of its nodes.
    members |= {
        node.name: "" for node in seen.slurm_nodes.values() if name in node.features and node.name not in members
    }
    found = []
    for node, pod in sorted(members.items()):
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
