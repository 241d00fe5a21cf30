# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking at workloads until they are ready: what is called when, and what is mended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import paths
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.rollout import Rollout

from ..clock import Clock

Object = dict[str, Any]


class Cluster:
    """The part of the client that a rollout uses."""

    server_date = "Thu, 01 Jan 2026 01:00:00 GMT"

    def __init__(self) -> None:
        self.workload: Object = statefulset()
        self.pods: list[Object] = []
        self.replica_sets: list[Object] = []
        self.events: list[Object] = []
        self.calls: list[str] = []
        self.forbidden: set[str] = set()

    def _call(self, what: str) -> None:
        self.calls.append(what)
        if what in self.forbidden:
            raise ApiError("no", reason="Forbidden", status=403)

    def list(
        self, resource: paths.Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> Sequence[Object]:
        self._call(f"list {resource.plural}")
        if resource.plural == "events":
            return [event for event in self.events if matches(event, fields)]
        return self.pods if resource.plural == "pods" else self.replica_sets

    def log_tail(self, namespace: str, pod: str, container: str) -> str:
        self._call("log")
        return "last words"

    def resource(self, api_version: str, kind: str) -> paths.Resource:
        found = paths.known(api_version, kind)
        assert found is not None
        return found

    def patch(self, resource: paths.Resource, namespace: str, name: str, change: Object) -> Object:
        self._call(f"patch {resource.plural}/{name}")
        return {"metadata": {"name": name}}

    def delete(self, resource: paths.Resource, namespace: str, name: str, uid: str) -> bool:
        self._call(f"delete {resource.plural}/{name}")
        return True


def matches(event: Object, fields: str) -> bool:
    involved = event["involvedObject"]
    return all(
        involved.get(field.partition("=")[0].partition(".")[2]) == field.partition("=")[2]
        for field in fields.split(",")
    )


def statefulset(ready: int = 0, **more: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "w", "namespace": "demo", "uid": "w1", "generation": 1},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "w"}}, "template": {"spec": probed()}},
        "status": {"observedGeneration": 1, "readyReplicas": ready, "updatedReplicas": ready, "updateRevision": "new"},
        **more,
    }


def probed(*, probe: bool = True) -> Object:
    return {"containers": [{"name": "c", "image": "i:1", **({"readinessProbe": {"x": 1}} if probe else {})}]}


def pod(reason: str, revision: str = "new", made: str = "2026-01-01T00:59:59Z", **status: Any) -> Object:
    state = {"waiting": {"reason": reason}} if reason else {"running": {"startedAt": "x"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "w-0",
            "namespace": "demo",
            "uid": f"p-{revision}",
            "labels": {"controller-revision-hash": revision},
            "creationTimestamp": made,
            "ownerReferences": [{"uid": "w1"}],
        },
        "spec": {"nodeName": "n", **probed()},
        "status": {"containerStatuses": [{"name": "c", "restartCount": 0, "state": state, **status}]},
    }


def refused(at: str) -> Object:
    return {
        "metadata": {"uid": "e1"},
        "involvedObject": {"uid": "w1"},
        "reason": "FailedCreate",
        "message": "exceeded quota: small",
        "lastTimestamp": at,
        "count": 1,
    }


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def watch(cluster: Cluster, clock: Clock, fresh: Sequence[str] = ("StatefulSet demo/w",)) -> Rollout:
    def read() -> list[Mapping[str, Any]]:
        return [cluster.workload] if cluster.workload else []

    return Rollout(cluster, read, ["StatefulSet demo/w"], fresh, clock)  # type: ignore[arg-type]


def look_at(rollout: Rollout, clock: Clock, seconds: float) -> Any:
    clock.now = seconds
    return rollout.look()


def test_what_is_ready_needs_no_close_look(cluster: Cluster, clock: Clock) -> None:
    cluster.workload = statefulset(ready=1)
    assert look_at(watch(cluster, clock), clock, 5).remaining == []
    assert cluster.calls == []


def test_what_is_not_there_is_told(cluster: Cluster, clock: Clock) -> None:
    cluster.workload = {}
    assert look_at(watch(cluster, clock), clock, 0).remaining == ["StatefulSet demo/w: not there"]


def test_a_close_look_is_taken_after_a_second_and_every_two(cluster: Cluster, clock: Clock) -> None:
    cluster.pods = [pod("ErrImagePull")]
    rollout = watch(cluster, clock)
    assert look_at(rollout, clock, 0.5).troubles == []
    assert cluster.calls == []
    assert look_at(rollout, clock, 1.5).troubles[0].reason == "ImagePull"
    count = len(cluster.calls)
    assert look_at(rollout, clock, 2.5).troubles[0].reason == "ImagePull"
    assert len(cluster.calls) == count
    look_at(rollout, clock, 3.6)
    assert len(cluster.calls) > count


def test_only_eight_pods_are_looked_at(cluster: Cluster, clock: Clock) -> None:
    cluster.pods = [pod("ErrImagePull") for _number in range(50)]
    look_at(watch(cluster, clock), clock, 5)
    assert cluster.calls.count("list events") == 1 + 8


def test_pods_of_others_are_left_out(cluster: Cluster, clock: Clock) -> None:
    cluster.pods = [pod("ErrImagePull")]
    cluster.pods[0]["metadata"]["ownerReferences"] = [{"uid": "other"}]
    assert look_at(watch(cluster, clock), clock, 5).troubles == []


def test_without_rights_it_goes_on_and_says_so(cluster: Cluster, clock: Clock) -> None:
    cluster.forbidden = {"list pods", "list events"}
    rollout = watch(cluster, clock)
    assert look_at(rollout, clock, 5).remaining == ["StatefulSet demo/w: 0 of 1 Pods are ready"]
    look_at(rollout, clock, 9)
    assert cluster.calls == ["list events", "list pods"]
    assert rollout.blind_spots == ["list events", "list pods"]


def test_a_broken_pod_of_an_old_template_is_deleted_once(cluster: Cluster, clock: Clock) -> None:
    cluster.pods = [pod("ErrImagePull", "old")]
    rollout = watch(cluster, clock)
    assert look_at(rollout, clock, 5).troubles == []
    assert look_at(rollout, clock, 9).troubles == []  # of an old template: no reason to give up
    assert cluster.calls.count("delete pods/w-0") == 1
    (action,) = rollout.repairs
    assert (action.kind, action.target, action.done) == ("delete", "Pod demo/w-0", True)
    assert "cannot be pulled" in action.why


def test_a_pod_that_was_in_back_off_before_is_made_anew(cluster: Cluster, clock: Clock) -> None:
    cluster.pods = [pod("ImagePullBackOff", made="2026-01-01T00:50:00Z")]
    rollout = watch(cluster, clock, fresh=())
    look_at(rollout, clock, 5)
    assert "delete pods/w-0" in cluster.calls


def test_a_pod_of_this_run_is_not(cluster: Cluster, clock: Clock) -> None:
    cluster.pods = [pod("ImagePullBackOff", made="2026-01-01T00:58:30Z")]
    rollout = watch(cluster, clock)
    assert look_at(rollout, clock, 80).troubles[0].reason == "ImagePull"
    assert "delete pods/w-0" not in cluster.calls


def test_a_refusal_from_before_is_tried_again_and_the_new_answer_counts(cluster: Cluster, clock: Clock) -> None:
    cluster.events = [refused("2026-01-01T00:00:00Z")]
    rollout = watch(cluster, clock, fresh=())
    assert look_at(rollout, clock, 5).troubles == []
    assert "patch statefulsets/w" in cluster.calls
    assert look_at(rollout, clock, 9).troubles == []
    cluster.events = [refused("2026-01-01T00:59:59Z")]
    assert look_at(rollout, clock, 13).troubles[0].reason == "QuotaExceeded"
    assert cluster.calls.count("patch statefulsets/w") == 1
    assert [action.kind for action in rollout.repairs] == ["retry"]


def test_a_refusal_of_what_this_run_made_counts_at_once(cluster: Cluster, clock: Clock) -> None:
    cluster.events = [refused("2026-01-01T00:00:00Z")]
    assert look_at(watch(cluster, clock), clock, 5).troubles[0].reason == "QuotaExceeded"
    assert "patch statefulsets/w" not in cluster.calls


def test_the_log_of_a_crash_is_read_once_for_each_restart(cluster: Cluster, clock: Clock) -> None:
    cluster.pods = [pod("CrashLoopBackOff", restartCount=2)]
    rollout = watch(cluster, clock)
    assert "last words" in look_at(rollout, clock, 5).troubles[0].text
    look_at(rollout, clock, 9)
    assert cluster.calls.count("log") == 1


def test_what_has_no_probe_must_stay_ready(cluster: Cluster, clock: Clock) -> None:
    cluster.workload = statefulset(ready=1)
    cluster.workload["spec"]["template"]["spec"] = probed(probe=False)
    rollout = watch(cluster, clock)
    assert look_at(rollout, clock, 1).remaining
    assert look_at(rollout, clock, 3).remaining
    assert look_at(rollout, clock, 4).remaining == []
    assert look_at(watch(cluster, clock, fresh=()), clock, 4).remaining == []


def test_what_crashed_without_a_probe_must_stay_ready_longer(cluster: Cluster, clock: Clock) -> None:
    cluster.pods = [pod("", restartCount=1)]
    cluster.pods[0]["spec"] |= probed(probe=False)
    rollout = watch(cluster, clock)
    look_at(rollout, clock, 2)
    cluster.workload = statefulset(ready=1)
    assert look_at(rollout, clock, 4).remaining
    assert look_at(rollout, clock, 13).remaining
    assert look_at(rollout, clock, 15).remaining == []


def test_of_a_deployment_only_pods_of_the_newest_template_count(cluster: Cluster, clock: Clock) -> None:
    cluster.workload = statefulset(kind="Deployment")
    cluster.workload["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "2"}

    def replica_set(uid: str, revision: str) -> Object:
        annotations = {"deployment.kubernetes.io/revision": revision}
        return {"metadata": {"uid": uid, "annotations": annotations, "ownerReferences": [{"uid": "w1"}]}}

    cluster.replica_sets = [replica_set("rs1", "1"), replica_set("rs2", "2")]
    old, new = pod("ErrImagePull", "a"), pod("ContainerCreating", "b")
    old["metadata"]["ownerReferences"] = [{"uid": "rs1"}]
    new["metadata"]["ownerReferences"] = [{"uid": "rs2"}]
    cluster.pods = [old, new]

    rollout = Rollout(cluster, lambda: [cluster.workload], ["Deployment demo/w"], (), clock)  # type: ignore[arg-type]
    assert look_at(rollout, clock, 5).troubles == []
    new["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] = "ErrImagePull"
    assert look_at(rollout, clock, 9).troubles[0].reason == "ImagePull"
