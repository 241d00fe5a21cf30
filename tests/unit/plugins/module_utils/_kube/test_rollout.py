# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When an object is ready."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.rollout import missing, outdated, waits_for

Object = dict[str, Any]


def item(api_version: str, kind: str, spec: Object, status: Object, **metadata: Any) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "x", "generation": 2, **metadata},
        "spec": spec,
        "status": {"observedGeneration": 2, **status},
    }


def deployment(wanted: int | None, /, **status: int) -> Object:
    return item("apps/v1", "Deployment", {"replicas": wanted}, status)


def statefulset(wanted: int, strategy: Object | None = None, /, **status: Any) -> Object:
    return item("apps/v1", "StatefulSet", {"replicas": wanted, "updateStrategy": strategy or {}}, status)


def daemonset(strategy: str = "RollingUpdate", **status: int) -> Object:
    return item("apps/v1", "DaemonSet", {"updateStrategy": {"type": strategy}}, status)


def job(spec: Object | None = None, condition: str = "", **status: int) -> Object:
    conditions = [{"type": condition, "status": "True"}] if condition else []
    return item("batch/v1", "Job", spec or {}, {"conditions": conditions, **status})


def pod(phase: str, ready: str) -> Object:
    return item("v1", "Pod", {}, {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]})


PARTITION = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}


@pytest.mark.parametrize(
    ("live", "lacks"),
    [
        (deployment(2, replicas=2, updatedReplicas=2, availableReplicas=2), ""),
        (deployment(0), ""),
        (deployment(None, replicas=1, updatedReplicas=1, availableReplicas=1), ""),
        (deployment(2, observedGeneration=1, replicas=2, updatedReplicas=2, availableReplicas=2), "not yet seen"),
        (deployment(2, replicas=2, updatedReplicas=1, availableReplicas=2), "1 of 2 Pods are of the new version"),
        (deployment(2, replicas=3, updatedReplicas=2, availableReplicas=3), "1 old Pods"),
        (deployment(2, replicas=2, updatedReplicas=2, availableReplicas=1), "1 of 2 Pods are ready"),
        (statefulset(2, replicas=2, readyReplicas=2, updatedReplicas=2), ""),
        (statefulset(0), ""),
        (statefulset(2, replicas=2, readyReplicas=1, updatedReplicas=2), "1 of 2 Pods are ready"),
        (statefulset(2, replicas=2, readyReplicas=2, updatedReplicas=1), "1 of 2 Pods are of the new version"),
        (statefulset(1, replicas=2, readyReplicas=2, updatedReplicas=2), "1 Pods are still to go"),
        (statefulset(2, PARTITION, replicas=2, readyReplicas=2, updatedReplicas=1), ""),
        (statefulset(2, {"type": "OnDelete"}, replicas=2, readyReplicas=2), ""),
        (statefulset(2, {"type": "OnDelete"}, replicas=2, readyReplicas=1), "1 of 2 Pods are ready"),
        (daemonset(desiredNumberScheduled=3, updatedNumberScheduled=3, numberReady=3), ""),
        (daemonset(desiredNumberScheduled=0), ""),
        (daemonset(desiredNumberScheduled=3, updatedNumberScheduled=2, numberReady=3), "2 of 3 Pods are of the new"),
        (daemonset(desiredNumberScheduled=3, updatedNumberScheduled=3, numberReady=2), "2 of 3 Pods are ready"),
        (daemonset("OnDelete", desiredNumberScheduled=3, numberReady=3), ""),
        (daemonset(observedGeneration=1), "not yet seen"),
        (job(condition="Complete"), ""),
        (job({"suspend": True}), ""),
        (job({"completions": 3}, succeeded=1), "1 of 3 completions"),
        (pod("Running", "True"), ""),
        (pod("Succeeded", "False"), ""),
        (pod("Running", "False"), "the Pod is not ready"),
        (pod("Pending", "False"), "the Pod is Pending"),
        (item("v1", "PersistentVolumeClaim", {}, {"phase": "Bound"}), ""),
        (item("v1", "PersistentVolumeClaim", {}, {}), "the volume claim is Pending"),
        (item("v1", "Service", {"type": "ClusterIP"}, {}), ""),
        (item("v1", "Service", {"type": "LoadBalancer"}, {"loadBalancer": {}}), "no load balancer address"),
        (item("v1", "Service", {"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}), ""),
        (item("v1", "ConfigMap", {}, {}), ""),
        (item("v1", "ConfigMap", {}, {}, deletionTimestamp="now"), "being deleted"),
        (
            item("apps/v1", "StatefulSet", {}, {"readyReplicas": 1, "updatedReplicas": 1}, deletionTimestamp="x"),
            "being",
        ),
    ],
)
def test_what_is_missing(live: Object, lacks: str) -> None:
    if lacks:
        assert lacks in missing(live)
    else:
        assert missing(live) == ""


@pytest.mark.parametrize(
    ("live", "count"),
    [
        (statefulset(3, {"type": "OnDelete"}, replicas=3, updatedReplicas=1), 2),
        (statefulset(3, {"type": "OnDelete"}, replicas=3, updatedReplicas=3), 0),
        (statefulset(0, {"type": "OnDelete"}), 0),
        (statefulset(3, replicas=3, updatedReplicas=1), None),
        (daemonset("OnDelete", currentNumberScheduled=4, updatedNumberScheduled=3), 1),
        (daemonset(currentNumberScheduled=4, updatedNumberScheduled=3), None),
        (deployment(2, replicas=2, updatedReplicas=1), None),
        (item("v1", "ConfigMap", {}, {}), None),
    ],
)
def test_pods_that_are_left_as_they_were(live: Object, count: int | None) -> None:
    assert outdated(live) == count


def test_an_object_that_no_controller_has_touched_is_not_ready() -> None:
    new = item("apps/v1", "Deployment", {}, {}, generation=1)
    del new["status"]
    assert missing(new) == "not yet seen by its controller"


def test_which_kinds_become_ready() -> None:
    assert waits_for("apps/v1", "StatefulSet")
    assert waits_for("v1", "PersistentVolumeClaim")
    assert not waits_for("v1", "ConfigMap")
    assert not waits_for("example.com/v1", "StatefulSet")
