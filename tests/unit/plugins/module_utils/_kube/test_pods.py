# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Pods hold a rollout up, and would not be missed."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import pods

from .pod_samples import container, ended, pod, workload

Object = dict[str, Any]


def statefulset(strategy: str = "RollingUpdate") -> Object:
    item = workload("StatefulSet", updateRevision="new")
    item["spec"] = {"updateStrategy": {"type": strategy}}
    return item


def of_revision(name: str, *statuses: Object) -> Object:
    return pod(*statuses, metadata={"labels": {"controller-revision-hash": name}})


NEVER = container("ImagePullBackOff")
CRASHED = container("CrashLoopBackOff", restartCount=4, lastState=ended("2026-01-01T00:00:00Z"))


@pytest.mark.parametrize(
    ("sick", "workload_of_it", "old", "expected"),
    [
        (of_revision("old", NEVER), statefulset(), False, True),  # the StatefulSet would wait for it for ever
        (of_revision("old", CRASHED), statefulset(), False, True),
        (of_revision("new", NEVER), statefulset(), False, False),  # the rollout that has just begun
        (of_revision("new", NEVER), statefulset(), True, True),  # in back-off since before
        (of_revision("new", CRASHED), statefulset(), True, True),
        (of_revision("old", container()), statefulset(), True, False),  # runs: perhaps only slow
        (of_revision("old", NEVER), statefulset("OnDelete"), False, True),  # nothing ever ran in it
        (of_revision("old", CRASHED), statefulset("OnDelete"), True, False),  # a worker: for people to decide
        (of_revision("old", container()), statefulset("OnDelete"), True, False),
    ],
)
def test_which_pods_hold_a_rollout_up(sick: Object, workload_of_it: Object, old: bool, expected: bool) -> None:
    assert pods.is_stuck(sick, workload_of_it, old) is expected


def test_revisions_of_daemonsets() -> None:
    item = workload("DaemonSet")
    item["metadata"]["annotations"] = {"deprecated.daemonset.template.generation": "4"}
    assert pods.revision_is_old(pod(metadata={"labels": {"pod-template-generation": "3"}}), item)
    assert not pods.revision_is_old(pod(metadata={"labels": {"pod-template-generation": "4"}}), item)
    assert not pods.revision_is_old(pod(), workload("Deployment"))


def test_crashes_that_only_a_probe_would_show() -> None:
    crashed = container(restartCount=1)
    assert pods.crashed_without_probe(pod(crashed))
    probed = {"containers": [{"name": "c", "image": "i", "readinessProbe": {}}]}
    assert not pods.crashed_without_probe(pod(crashed, spec=probed))
    assert not pods.crashed_without_probe(pod(container()))


def test_workloads_whose_readiness_nobody_tells() -> None:
    item = workload("StatefulSet")
    item["spec"] = {"template": {"spec": {"containers": [{"name": "a"}]}}}
    assert pods.has_no_probe(item)
    item["spec"]["template"]["spec"]["containers"].append({"name": "b", "readinessProbe": {}})
    assert not pods.has_no_probe(item)
    assert not pods.has_no_probe(workload("Job"))
