# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A made-up cluster for reconciliation: raw objects of both sides, and what carrying out a plan does to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import Snapshot, snapshot
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.members import Options
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.reconcile import (
    TO_KUBERNETES,
    TO_SLURM,
    Plan,
    plan,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.to_slurm import RESTARTED

Raw = dict[str, Any]
NOW = 1_800_000_000
LONG_AGO = "2026-01-01T00:00:00Z"
JUST_NOW = "2027-01-15T07:59:50Z"  # ten seconds before NOW
OPTIONS: dict[str, Any] = {"cluster": "hpc/slurm", "now": NOW}
CORDONED = "k8s: cordoned: no reason given"
CONF = "CPUs=4 Feature=cpu Gres=gpu:h100:2 RealMemory=1000"


def slurm(name: str, state: str = "IDLE", reason: str = "", **more: Any) -> Raw:
    return {
        "name": name, "hostname": name, "address": f"10.0.{name}", "state": [*state.split("+"), "DYNAMIC_NORM"],
        "reason": reason, "reason_set_by_user": "ann" if reason else "", "reason_changed_at": 5 if reason else 0,
        "cpus": 4, "real_memory": 1000, "gres": "gpu:h100:2", "alloc_cpus": 0, "features": ["cpu"], **more,
    }  # fmt: skip


def pod(
    name: str, host: str = "n1", *, ready: bool = True, since: str = LONG_AGO, conf: str = CONF, **meta: Any
) -> Raw:
    labels = {"app.kubernetes.io/component": "worker", "slurm-ops.kubernetes/nodeset": meta.pop("nodeset", "cpu")}
    owner = meta.pop("owner", "StatefulSet")
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": since}
    return {
        "metadata": {
            "name": name, "uid": f"uid-{name}", "creationTimestamp": since, "annotations": {},
            "ownerReferences": [{"kind": owner}], **meta, "labels": {**labels, **meta.get("labels", {})},
        },
        "spec": {"nodeName": host, "containers": [{"name": "slurmd", "args": ["-Z", "--conf", f"'{conf}'"]}]},
        "status": {"phase": "Running", "podIP": f"10.0.{name}", "conditions": [condition]},
    }  # fmt: skip


def host(name: str = "n1", *, ready: bool = True, cordoned: bool = False, **more: Any) -> Raw:
    conditions = [{"type": "Ready", "status": "True" if ready else "False", "message": "" if ready else "no kubelet"}]
    conditions += [{"type": kind, "status": "True", "message": text} for kind, text in more.get("bad", {}).items()]
    spec = {"unschedulable": True} if cordoned else {}
    annotations = dict(more.get("annotations", {}))
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec, "status": {"conditions": conditions}}


def nodeset(size: int, name: str = "cpu") -> Raw:
    labels = {"app.kubernetes.io/component": "worker", "slurm-ops.kubernetes/nodeset": name}
    return {"kind": "StatefulSet", "metadata": {"name": name, "labels": labels}, "spec": {"replicas": size}}


class Model:
    """Both sides as raw objects; ``do`` changes them as a real cluster would."""

    def __init__(
        self, slurm_nodes: Iterable[Raw], pods: Iterable[Raw], hosts: Iterable[Raw] = (), sets: Iterable[Raw] = ()
    ) -> None:
        self.slurm = {item["name"]: item for item in slurm_nodes}
        self.pods = {item["metadata"]["name"]: item for item in pods}
        self.hosts = {item["metadata"]["name"]: item for item in hosts}
        self.sets = list(sets)

    def snapshot(self) -> Snapshot:
        return snapshot(
            workloads=self.sets, pods=self.pods.values(), nodes=self.hosts.values(), slurm_nodes=self.slurm.values()
        )

    def do(self, actions: Sequence[Action]) -> None:
        for action in actions:
            getattr(self, f"_{action.kind}")(action)

    def _drain(self, action: Action) -> None:
        node = self.slurm[action.target]
        node["state"] = [word for word in node["state"] if word not in ("DRAIN", "UNDRAIN")] + ["DRAIN"]
        node["reason"], node["reason_set_by_user"] = action.why, "slurm"

    def _undrain(self, action: Action) -> None:
        node = self.slurm[action.target]
        node["state"] = [word for word in node["state"] if word != "DRAIN"]
        node["reason"] = node["reason"] if "DOWN" in node["state"] else ""

    def _forget(self, action: Action) -> None:
        del self.slurm[action.target]

    def _restart(self, action: Action) -> None:
        """slurmd registers what it was told."""
        name = action.subject.name
        item = self.pods[name]
        item["metadata"]["annotations"][RESTARTED] = "now"
        item["status"]["conditions"][0]["lastTransitionTime"] = JUST_NOW
        self.slurm[name] = slurm(name)

    def _protect(self, action: Action) -> None:
        _merge(self.pods[action.subject.name]["metadata"]["labels"], action.subject.labels)

    _unprotect = _protect

    def _show(self, action: Action) -> None:
        change = action.subject
        item = (self.pods if action.target.startswith("Pod ") else self.hosts)[change.name]
        _merge(item["metadata"]["annotations"], change.annotations)
        kept = [
            entry
            for entry in item["status"]["conditions"]
            if entry["type"] not in change.conditions and entry["type"] not in change.gone
        ]
        new = [{"type": kind, "status": "True", "message": text} for kind, text in change.conditions.items()]
        item["status"]["conditions"] = kept + new

    def _cordon(self, action: Action) -> None:
        change = action.subject
        item = self.hosts[change.name]
        _merge(item["metadata"]["annotations"], change.annotations)
        if change.unschedulable is not None:
            item["spec"]["unschedulable"] = change.unschedulable

    _uncordon = _cordon


def _merge(target: dict[str, str], change: Any) -> None:
    for key, value in change.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = value


def planned(model: Model, *, directions: tuple[str, ...] = (TO_SLURM, TO_KUBERNETES), **options: Any) -> Plan:
    only = options.pop("only", ())
    return plan(model.snapshot(), Options(**{**OPTIONS, **options}), directions=directions, only=only)


def kinds(found: Plan) -> list[tuple[str, str]]:
    return [(action.kind, action.target) for action in found.actions]
