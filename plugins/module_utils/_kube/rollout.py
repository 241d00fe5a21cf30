# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Is this object ready, and if not, what is missing? Pure: an object as the API server returned it goes in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Object = Mapping[str, Any]


def missing(item: Object) -> str:
    """Return what an object still lacks to be ready, in words; empty if it is ready or of a kind that just exists."""
    if item["metadata"].get("deletionTimestamp"):
        return "being deleted"
    judge = _JUDGES.get((str(item["apiVersion"]).rpartition("/")[0], item["kind"]))
    return judge(item) if judge else ""


def waits_for(api_version: str, kind: str) -> bool:
    """Return whether objects of a kind become ready some time after they were made."""
    return (api_version.rpartition("/")[0], kind) in _JUDGES


def outdated(item: Object) -> int | None:
    """Return how many Pods are of an older template, where the strategy leaves them; None where it replaces them."""
    if ((item.get("spec") or {}).get("updateStrategy") or {}).get("type") != "OnDelete":
        return None
    total, updated = _COUNTS[item["kind"]]
    return max(0, _count(item, total) - _count(item, updated))


def _not_seen(item: Object) -> bool:
    """Whether the controller has not yet looked at the newest specification: its counts are of the old one."""
    return int((item.get("status") or {}).get("observedGeneration") or 0) < int(item["metadata"].get("generation") or 0)


def _replicas(item: Object) -> int:
    value = (item.get("spec") or {}).get("replicas")
    return 1 if value is None else int(value)


def _count(item: Object, name: str) -> int:
    return int((item.get("status") or {}).get(name) or 0)


def _deployment(item: Object) -> str:
    wanted = _replicas(item)
    if _not_seen(item):
        return "not yet seen by its controller"
    if _count(item, "updatedReplicas") < wanted:
        return f"{_count(item, 'updatedReplicas')} of {wanted} Pods are of the new version"
    if _count(item, "replicas") > _count(item, "updatedReplicas"):
        return f"{_count(item, 'replicas') - _count(item, 'updatedReplicas')} old Pods are still to go"
    if _count(item, "availableReplicas") < wanted:
        return f"{_count(item, 'availableReplicas')} of {wanted} Pods are ready"
    return ""


def _statefulset(item: Object) -> str:
    wanted = _replicas(item)
    if _not_seen(item):
        return "not yet seen by its controller"
    if _count(item, "readyReplicas") < wanted:
        return f"{_count(item, 'readyReplicas')} of {wanted} Pods are ready"
    if _count(item, "replicas") > wanted:
        return f"{_count(item, 'replicas') - wanted} Pods are still to go"
    strategy = item["spec"].get("updateStrategy") or {}
    # OnDelete: old Pods stay until somebody deletes them, which is not a rollout that one could wait for.
    if strategy.get("type") != "OnDelete":
        updated = max(0, wanted - int((strategy.get("rollingUpdate") or {}).get("partition") or 0))
        if _count(item, "updatedReplicas") < updated:
            return f"{_count(item, 'updatedReplicas')} of {updated} Pods are of the new version"
    return ""


def _daemonset(item: Object) -> str:
    wanted = _count(item, "desiredNumberScheduled")
    if _not_seen(item):
        return "not yet seen by its controller"
    on_delete = (item["spec"].get("updateStrategy") or {}).get("type") == "OnDelete"
    if not on_delete and _count(item, "updatedNumberScheduled") < wanted:
        return f"{_count(item, 'updatedNumberScheduled')} of {wanted} Pods are of the new version"
    if _count(item, "numberReady") < wanted:
        return f"{_count(item, 'numberReady')} of {wanted} Pods are ready"
    return ""


def _job(item: Object) -> str:
    if any(entry.get("type") == "Complete" and entry.get("status") == "True" for entry in _conditions(item)):
        return ""
    if item["spec"].get("suspend"):
        return ""
    wanted = item["spec"].get("completions") or 1
    return f"{_count(item, 'succeeded')} of {wanted} completions"


def _pod(item: Object) -> str:
    phase = (item.get("status") or {}).get("phase", "Pending")
    if phase == "Succeeded" or any(
        entry.get("type") == "Ready" and entry.get("status") == "True" for entry in _conditions(item)
    ):
        return ""
    return f"the Pod is {'not ready' if phase == 'Running' else phase}"


def _claim(item: Object) -> str:
    phase = (item.get("status") or {}).get("phase", "Pending")
    return "" if phase == "Bound" else f"the volume claim is {phase}"


def _service(item: Object) -> str:
    if item["spec"].get("type") != "LoadBalancer":
        return ""
    ingress = ((item.get("status") or {}).get("loadBalancer") or {}).get("ingress")
    return "" if ingress else "it has no load balancer address"


def _conditions(item: Object) -> list[Object]:
    return list((item.get("status") or {}).get("conditions") or ())


_COUNTS = {
    "StatefulSet": ("replicas", "updatedReplicas"),
    "DaemonSet": ("currentNumberScheduled", "updatedNumberScheduled"),
}

_JUDGES: dict[tuple[str, str], Callable[[Object], str]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _statefulset,
    ("apps", "DaemonSet"): _daemonset,
    ("batch", "Job"): _job,
    ("", "Pod"): _pod,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Service"): _service,
}
