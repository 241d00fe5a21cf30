# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module nodeset_scale's work: read both sides, drain before anything goes, verify what came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import drains
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.jobs import Job
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import (
    CLUSTER,
    NODESET,
    Snapshot,
    snapshot,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import (
    DAEMON_SET,
    KUBERNETES_NODE,
    POD,
    STATEFUL_SET,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import scale as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.drain import CANCEL, REQUEUE
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.membership import Place, choose
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.scale import NODE, REPLICA, Pool
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.verify import Declared, findings
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.draining import Draining, patient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, do_each
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.places import (
    is_wanted,
    places_of,
    present_of,
    workers_of,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.wait import Seen, Trouble, wait_until

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
        self._labels = f"{CLUSTER}={run.params['name']},{NODESET}"
        self._pools: Sequence[Pool] = ()
        self._places: dict[str, Sequence[Place]] = {}
        self._seen = Snapshot()

    # --- plan -----------------------------------------------------------------------------------------------------

    def plan(self) -> Sequence[Action]:
        """Read both sides. Without any NodeSet on Kubernetes there is nothing to do, and Slurm may not be there yet."""
        workloads = self._workloads()
        direction = self._params["direction"]
        if direction == "both":
            there = {item["metadata"]["name"] for item in workloads}
            for name in self._wanted.keys() - there:
                raise self._not_there(name)
        if not workloads:
            return ()
        if direction == "in" and not any(self._is_to_shrink(item) for item in workloads):
            # Kubernetes alone can tell that nothing goes. So a site whose Slurm is down can still be repaired.
            return ()
        self._pools = self._pools_of(workloads)
        actions: list[Action] = []
        if direction != "out":
            leaving = any(planner.victims(pool) or pool.removed for pool in self._pools)
            policy = self._params["on_running_jobs"]
            actions += planner.plan_in(self._pools, self._holding() if leaving else (), drains.OWNER, policy)
        planned = {action.target for action in actions if action.kind == "forget"}
        actions += planner.plan_leftovers(self._pools, drains.OWNER, planned)
        if direction != "in":
            actions += planner.plan_out(self._pools, drains.OWNER)
        return actions

    def _is_to_shrink(self, workload: Mapping[str, Any]) -> bool:
        wanted = self._wanted.get(workload["metadata"]["name"])
        if wanted is None:
            return bool(self._params["prune"])
        if workload["kind"] == "DaemonSet":
            return is_wanted(wanted)
        return wanted["replicas"] is not None and wanted["replicas"] < workload["spec"].get("replicas", 1)

    def _workloads(self) -> list[dict[str, Any]]:
        found = [
            item
            for resource in (STATEFUL_SET, DAEMON_SET)
            for item in self._kubernetes.list(resource, self._namespace, labels=self._labels)
        ]
        # What is being deleted is on its way out already.
        return [item for item in found if not item["metadata"].get("deletionTimestamp")]

    def _pools_of(self, workloads: Sequence[Mapping[str, Any]]) -> list[Pool]:
        pods = self._kubernetes.list(POD, self._namespace, labels=self._labels)
        choosing = [
            item
            for item in workloads
            if item["kind"] == "DaemonSet" and is_wanted(self._wanted.get(item["metadata"]["name"], {}))
        ]
        nodes = self._kubernetes.list(KUBERNETES_NODE) if choosing else ()
        self._seen = snapshot(pods=pods, nodes=nodes, slurm_nodes=self._draining.slurm.nodes().items)
        holding = self._holding() if choosing else []
        for item in choosing:
            self._places[item["metadata"]["name"]] = places_of(item, self._seen, holding)
        return [self._pool(item) for item in sorted(workloads, key=lambda item: str(item["metadata"]["name"]))]

    def _pool(self, workload: Mapping[str, Any]) -> Pool:
        name = workload["metadata"]["name"]
        kind = REPLICA if workload["kind"] == "StatefulSet" else NODE
        wanted = self._wanted.get(name)
        places = self._places.get(name)
        membership = None
        if wanted and kind == REPLICA and (wanted["include"] or wanted["exclude"]):
            raise OperationError(
                f"NodeSet {name} is of kind replica, which has no Nodes of its own to include or exclude.",
                reason="InvalidOptions",
            )
        if wanted and places is not None:
            named = wanted["include"] or (), wanted["exclude"] or ()
            membership = choose(name, places, wanted["replicas"], *named)
        size = workload["spec"].get("replicas", 1) if kind == REPLICA else sum(place.member for place in places or ())
        return Pool(
            name=name,
            kind=kind,
            size=size,
            target=wanted["replicas"] if wanted else None,
            workers=tuple(workers_of(name, kind, size, self._seen, places)),
            removed=wanted is None and bool(self._params["prune"]),
            membership=membership,
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
        elif kind in (planner.JOIN, planner.LEAVE):
            self._move(actions)
        elif kind == "forget":
            self._forget(actions)

    def _resize(self, pool: Pool, *, remove: bool) -> None:
        self._wait_drained(pool)
        resource = STATEFUL_SET if pool.kind == REPLICA else DAEMON_SET
        if remove:
            self._kubernetes.delete(resource, self._namespace, pool.name, propagation="Foreground")
        else:
            change = {"spec": {"replicas": pool.target}}
            self._kubernetes.patch(resource, self._namespace, pool.name, change)

    def _move(self, actions: Sequence[Action]) -> None:
        """Label Nodes, or take the label away; the DaemonSet's controller does the rest."""
        pool: Pool = actions[0].subject[0]
        value = pool.name if actions[0].kind == planner.JOIN else None
        if value is None:
            self._wait_drained(pool)

        def label(action: Action) -> None:
            self._kubernetes.patch(KUBERNETES_NODE, None, action.subject[1], {"metadata": {"labels": {NODESET: value}}})

        do_each(self._kubernetes, label, actions)

    def _wait_drained(self, pool: Pool) -> None:
        nodes = [worker.node for worker in planner.victims(pool) if worker.state is not None]
        if not nodes:
            return
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

        def look() -> Seen:
            there = self._look().pod_of
            return Seen([f"Pod {pod.name} is there" for node, pod in there.items() if node in names])

        wait_until(
            patient(look),
            f"The end of the Pods of {len(names)} node(s)",
            timeout=self._params["wait_timeout"],
            interval=self._params["wait_sleep"],
            progress=self._run.progress,
        )
        known = self._seen.slurm_nodes
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
        if not self._waits():
            return
        wait_until(
            patient(self._look_registered),
            f"The registration of {', '.join(sorted(self._wanted))}",
            timeout=self._params["wait_timeout"],
            interval=self._params["wait_sleep"],
            progress=self._run.progress,
        )

    def _waits(self) -> bool:
        return bool(self._params["wait"] and self._params["direction"] != "in" and self._wanted)

    def _look(self) -> Snapshot:
        pods = self._kubernetes.list(POD, self._namespace, labels=self._labels)
        self._seen = snapshot(pods=pods, slurm_nodes=self._draining.slurm.nodes().items)
        return self._seen

    def _look_registered(self) -> Seen:
        workloads, seen = self._workloads(), self._look()
        there = {str(item["metadata"]["name"]): item for item in workloads}
        remaining: list[str] = []
        troubles: list[Trouble] = []
        for name, wanted in self._wanted.items():
            workload = there.get(name)
            if workload is None:
                raise self._not_there(name)
            for finding in findings(self._declared(workload, wanted), *present_of(name, seen)):
                remaining.append(f"{finding.subject}: {finding.text}")
                if finding.final:
                    text = f"{finding.subject}  {finding.text}"
                    troubles.append(Trouble(text, text, GRACE, "NotAsDeclared", finding.hint))
        return Seen(remaining, troubles)

    def _declared(self, workload: Mapping[str, Any], wanted: Mapping[str, Any]) -> Declared:
        membership = next((pool.membership for pool in self._pools if pool.name == wanted["name"]), None)
        nodes: int | None
        if membership:
            nodes = len(membership.after)
        elif workload["kind"] == "StatefulSet":
            nodes = workload["spec"].get("replicas", 1)
        else:
            nodes = (workload.get("status") or {}).get("desiredNumberScheduled")
        return Declared(
            name=f"NodeSet {wanted['name']}",
            nodes=nodes,
            cpus=wanted["cpus"],
            memory_mib=wanted["memory_mib"],
            gres=wanted["gres"] or "",
        )

    def _not_there(self, name: str) -> OperationError:
        return OperationError(
            f"NodeSet {name} is not in namespace {self._namespace}.",
            reason="NotFound",
            hint="Apply it first (role nodeset), or check the names of NodeSet, cluster and namespace.",
        )

    # --- tell -----------------------------------------------------------------------------------------------------

    def result(self) -> Mapping[str, Any]:
        """Return each NodeSet as it was found, and how many of its nodes are there now."""
        if any(action.done for action in self._run.actions) and not self._waits():
            self._look()
        return {"nodesets": [self._told(pool) for pool in self._pools]}

    def _told(self, pool: Pool) -> Mapping[str, Any]:
        nodes, pods = present_of(pool.name, self._seen)
        places = self._places.get(pool.name)
        known = [node for node in nodes if not pods[node.node]]
        desired = len(pool.membership.after) if pool.membership else pool.target
        return {
            "name": pool.name,
            "kind": pool.kind,
            "replicas": pool.size,
            "wanted": pool.target,
            "removed": pool.removed,
            "desired": 0 if pool.removed else desired,
            "current": len(pods),
            "ready": sum(node.state.registered for node in known),
            "drained": sum(node.state.drained for node in nodes),
            "feasible": None if places is None else sum(not place.why_not for place in places),
            "infeasible": [
                {"kubernetes_node": place.name, "why": place.why_not} for place in places or () if place.why_not
            ],
        }
