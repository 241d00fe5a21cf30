# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The signs that a rollout will never end well."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.trouble import INFORMATION
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import trouble

from .pod_samples import container, ended, pod, workload

Object = dict[str, Any]


def event(reason: str, message: str, uid: str = "u1", at: str = "2026-01-01T00:00:00Z", **involved: str) -> Object:
    return {
        "metadata": {"uid": f"e-{at}"},
        "involvedObject": {"uid": uid, **involved},
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    }


LOOPING = {"restartCount": 2, "lastState": ended("2026-01-01T00:00:00Z")}


@pytest.mark.parametrize(
    ("status", "reason", "grace", "words"),
    [
        (container("InvalidImageName", "invalid reference"), "ImageName", 0, "'img:1' is not the name of an image"),
        (container("ErrImageNeverPull"), "ImagePull", 0, "not on the Node"),
        (container("ErrImagePull", "manifest unknown"), "ImagePull", 8, "cannot be pulled (not found)"),
        (container("ImagePullBackOff", "pull access denied"), "ImagePull", 8, "access denied"),
        (
            container("ImagePullBackOff", 'Get "https://r/v2": dial tcp: lookup r: no such host'),
            "ImagePull",
            8,
            "unknown",
        ),
        (
            container("CreateContainerConfigError", 'secret "s" not found'),
            "MissingReference",
            12,
            'secret "s" not found',
        ),
        (container("CreateContainerConfigError", "runAsNonRoot"), "MissingReference", 12, "cannot be made"),
        (container("RunContainerError", "no such file"), "ContainerStart", 12, "cannot be started (no such file)"),
        (container("CrashLoopBackOff", **LOOPING), "CrashLoop", 15, "exit code 3, 2 restarts"),
        (
            container(restartCount=2, state=ended("2026-01-01T00:00:30Z"), lastState=ended("2026-01-01T00:00:00Z")),
            "CrashLoop",
            15,
            "crashes again and again",
        ),
        (
            container(
                "CrashLoopBackOff", restartCount=3, lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
            ),
            "CrashLoop",
            15,
            "more memory than its limit",
        ),
    ],
)
def test_containers(status: Object, reason: str, grace: float, words: str) -> None:
    (found,) = trouble.pod_troubles(pod(status))
    assert (found.reason, found.grace) == (reason, grace)
    assert words in found.text
    assert found.text.startswith("Pod demo/p: ")
    assert found.hint
    assert found.subject == "Pod demo/p"


@pytest.mark.parametrize(
    "status",
    [
        container("ContainerCreating"),
        container("PodInitializing"),
        container("CrashLoopBackOff", restartCount=1),
        container(),
        # It ended five times last week and once now.
        container(restartCount=6, state=ended("2026-01-08T00:00:00Z"), lastState=ended("2026-01-01T00:00:00Z")),
        container(restartCount=3, state=ended("2026-01-01T00:00:30Z", 0), lastState=ended("2026-01-01T00:00:00Z", 0)),
    ],
)
def test_what_may_yet_become_ready_is_no_trouble(status: Object) -> None:
    assert trouble.pod_troubles(pod(status)) == []


def test_init_containers_count_too() -> None:
    init = {**container("ImagePullBackOff", "not found"), "name": "i"}
    sick = pod(
        container("PodInitializing"),
        initContainerStatuses=[init],
        spec={"initContainers": [{"name": "i", "image": "init:1"}]},
    )
    (found,) = trouble.pod_troubles(sick)
    assert "image init:1 cannot be pulled" in found.text


def test_the_log_of_a_crash_is_told() -> None:
    sick = pod(container("CrashLoopBackOff", **LOOPING))
    (found,) = trouble.pod_troubles(sick, log=lambda _pod, name: f"{name}: no such\n database ")
    assert "it said: c: no such database" in found.text


def test_the_same_trouble_keeps_its_key() -> None:
    one = trouble.pod_troubles(pod(container("ErrImagePull", "x")))[0]
    other = trouble.pod_troubles(pod(container("ImagePullBackOff", "Back-off pulling")))[0]
    assert one.key == other.key


def test_ready_and_ending_pods_have_none() -> None:
    ready = pod(container("ErrImagePull"), conditions=[{"type": "Ready", "status": "True"}])
    ending = pod(container("ErrImagePull"), metadata={"deletionTimestamp": "now"})
    assert trouble.pod_troubles(ready) == trouble.pod_troubles(ending) == []


def unscheduled(**spec: Any) -> Object:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes: taint"}
    return pod(node="", conditions=[condition], spec=spec)


def test_no_node_fits() -> None:
    (found,) = trouble.pod_troubles(unscheduled())
    assert (found.reason, found.grace) == ("Unschedulable", 20)
    assert "0/2 nodes: taint" in found.text


@pytest.mark.parametrize("reason", ["TriggeredScaleUp", "Nominated"])
def test_a_node_on_its_way_is_waited_for(reason: str) -> None:
    (found,) = trouble.pod_troubles(unscheduled(), [event(reason, "pod triggered scale-up")])
    assert found.grace == INFORMATION


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("ProvisioningFailed", 'storageclass.storage.k8s.io "nope" not found', "StorageClassMissing"),
        (
            "FailedBinding",
            "no persistent volumes available for this claim and no storage class is set",
            "VolumeUnbound",
        ),
        ("ProvisioningFailed", "failed to provision volume: disk full", "VolumeUnbound"),
    ],
)
def test_volumes_that_do_not_come(reason: str, message: str, expected: str) -> None:
    waiting = unscheduled(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "state-p"}}])
    events = [event(reason, message, "u2", kind="PersistentVolumeClaim", name="state-p")]
    (found,) = trouble.pod_troubles(waiting, events)
    assert found.reason == expected
    assert found.text == f"PersistentVolumeClaim demo/state-p: {message}"


def test_a_claim_that_waits_for_its_first_pod_is_no_trouble() -> None:
    events = [event("WaitForFirstConsumer", "waiting", "u2", kind="PersistentVolumeClaim", name="state-p")]
    assert trouble.claim_troubles(["state-p"], "demo", events) == []


def test_a_volume_that_cannot_be_mounted() -> None:
    starting = pod(container("ContainerCreating"))
    (found,) = trouble.pod_troubles(starting, [event("FailedMount", 'configmap "x" not found')])
    assert found.reason == "VolumeMount"
    assert 'configmap "x" not found' in found.text


def test_what_it_got_over_is_forgotten() -> None:
    events = [event("FailedMount", "x", at="2026-01-01T00:00:00Z"), event("Pulling", "y", at="2026-01-01T00:00:09Z")]
    assert trouble.pod_troubles(pod(container("ContainerCreating")), events) == []


def test_a_failing_probe_is_told_but_no_reason_to_give_up() -> None:
    (found,) = trouble.pod_troubles(pod(container()), [event("Unhealthy", "Readiness probe failed: 503")])
    assert found.grace == INFORMATION
    assert "503" in found.text


def test_the_words_of_a_daemon_are_found_in_its_own_log_or_in_its_sidecar_s() -> None:
    spec = {"initContainers": [{"name": "prepare"}, {"name": "log", "restartPolicy": "Always"}]}
    failing = event("Unhealthy", "Startup probe failed")
    failing["involvedObject"] = {**failing["involvedObject"], "fieldPath": "spec.containers{c}"}
    logs = {"c": "", "log": "fatal: no /dev/gpu1\n"}
    (found,) = trouble.pod_troubles(pod(container(), spec=spec), [failing], lambda _pod, name: logs[name])
    assert "it said: fatal: no /dev/gpu1" in found.text
    logs["c"] = "own words"
    (found,) = trouble.pod_troubles(pod(container(), spec=spec), [failing], lambda _pod, name: logs[name])
    assert "it said: own words" in found.text


QUOTA = 'create Pod w-0 in StatefulSet w failed error: pods "w-0" is forbidden: exceeded quota: q, requested: cpu=2'


@pytest.mark.parametrize(
    ("message", "reason", "words"),
    [
        (QUOTA, "QuotaExceeded", "exceeded quota: q"),
        ('pods "w" is forbidden: violates PodSecurity "restricted:latest": privileged', "PodSecurity", "privileged"),
        (
            'error looking up service account demo/sa: serviceaccount "sa" not found',
            "MissingReference",
            "ServiceAccount sa",
        ),
        ("Pod is invalid: spec.x", "FailedCreate", "spec.x"),
    ],
)
@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "Job"])
def test_pods_that_a_controller_may_not_make(kind: str, message: str, reason: str, words: str) -> None:
    (found,) = trouble.workload_troubles(workload(kind), [event("FailedCreate", message)])
    assert found.reason == reason
    assert words in found.text


def test_a_refusal_before_a_success_is_forgotten() -> None:
    events = [event("FailedCreate", QUOTA), event("SuccessfulCreate", "create Pod", at="2026-01-01T00:00:09Z")]
    assert trouble.workload_troubles(workload("StatefulSet"), events) == []
    assert trouble.workload_troubles(workload("StatefulSet"), [event("FailedCreate", QUOTA, uid="other")]) == []


def test_deployments_say_it_themselves() -> None:
    refused = workload("Deployment", [{"type": "ReplicaFailure", "status": "True", "message": QUOTA}])
    assert trouble.workload_troubles(refused)[0].reason == "QuotaExceeded"
    late = workload("Deployment", [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}])
    assert trouble.workload_troubles(late)[0].reason == "DeadlineExceeded"
    well = workload("Deployment", [{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}])
    assert trouble.workload_troubles(well) == []


def test_failed_jobs_and_pods() -> None:
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}
    (found,) = trouble.workload_troubles(workload("Job", [failed]))
    assert (found.reason, found.grace) == ("JobFailed", 0)
    (found,) = trouble.workload_troubles(workload("Pod", phase="Failed", reason="Evicted", message="low on disk"))
    assert (found.reason, found.grace) == ("PodFailed", 0)
    assert "Evicted low on disk" in found.text
