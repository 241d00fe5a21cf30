# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What state a Pod is in, and whether it would be missed. Pure: Pods as the API server returned them go in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

Object = Mapping[str, Any]

CRASHES = 2  # restarts from which on a container that ended counts as crashing again and again
LOOP = 600.0  # seconds between two ends of it; after so long a run a kubelet starts anew with short pauses, too


def conditions(item: Object) -> dict[str, Object]:
    """Return the object's conditions by type."""
    return {entry["type"]: entry for entry in (item.get("status") or {}).get("conditions") or ()}


def is_ready(pod: Object) -> bool:
    """Whether the Pod is Ready, or has done its work."""
    ready = conditions(pod).get("Ready", {}).get("status") == "True"
    return ready or (pod.get("status") or {}).get("phase") == "Succeeded"


def containers(pod: Object) -> list[Object]:
    """Return the status of each container, init containers first."""
    return [*((pod.get("status") or {}).get("initContainerStatuses") or ()), *_ordinary(pod)]


def _ordinary(pod: Object) -> Sequence[Object]:
    return (pod.get("status") or {}).get("containerStatuses") or ()


def runs(pod: Object, container: str) -> bool:
    """Whether an ordinary container of the Pod runs, so that commands can be run in it."""
    return any(entry["name"] == container and "running" in (entry.get("state") or {}) for entry in _ordinary(pod))


def never_ran(pod: Object) -> bool:
    """Whether no container of the Pod has ever run, so that there is nothing in it to lose."""
    return all(
        not entry.get("restartCount") and not entry.get("lastState") and set(entry.get("state") or {}) <= {"waiting"}
        for entry in _ordinary(pod)
    )


def in_back_off(pod: Object) -> bool:
    """Whether the kubelet waits before it tries a container of the Pod again."""
    pauses = {"ImagePullBackOff", "CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError"}
    return any(
        ((entry.get("state") or {}).get("waiting") or {}).get("reason") in pauses or crashes(entry)
        for entry in containers(pod)
    )


def crashes(entry: Object) -> bool:
    """Whether a container ends again and again: not only once now, after having ended some times last week."""
    state, last = entry.get("state") or {}, (entry.get("lastState") or {}).get("terminated") or {}
    if int(entry.get("restartCount") or 0) < CRASHES:
        return False
    if (state.get("waiting") or {}).get("reason") == "CrashLoopBackOff":
        return True
    # Between two attempts a kubelet may also leave the state at "terminated" and never say CrashLoopBackOff.
    ended = state.get("terminated") or {}
    times = ended.get("finishedAt"), last.get("finishedAt")
    if not ended.get("exitCode") or not all(times):
        return False
    new, old = (datetime.fromisoformat(str(time)) for time in times)
    return (new - old).total_seconds() < LOOP


def has_no_probe(workload: Object) -> bool:
    """Whether the Pods of a workload that runs for ever are Ready as soon as they run, whatever they do then."""
    if workload["kind"] not in ("Deployment", "StatefulSet", "DaemonSet"):
        return False
    spec = ((workload.get("spec") or {}).get("template") or {}).get("spec") or {}
    return not any("readinessProbe" in entry for entry in spec.get("containers") or ())


def crashed_without_probe(pod: Object) -> bool:
    """Whether a container has ended in failure that counts as ready whenever it runs, for want of a readiness probe."""
    spec = pod.get("spec") or {}
    probed = {entry["name"] for entry in spec.get("containers") or () if "readinessProbe" in entry}
    return any(
        entry["name"] not in probed
        and (
            int(entry.get("restartCount") or 0) > 0
            or ((entry.get("state") or {}).get("terminated") or {}).get("exitCode")
        )
        for entry in _ordinary(pod)
    )


def revision_is_old(pod: Object, workload: Object) -> bool:
    """Whether the Pod was made from an earlier template of its StatefulSet or DaemonSet."""
    labels = pod["metadata"].get("labels") or {}
    if workload["kind"] == "StatefulSet":
        newest = (workload.get("status") or {}).get("updateRevision")
        return bool(newest) and labels.get("controller-revision-hash") != newest
    if workload["kind"] == "DaemonSet":
        annotations = workload["metadata"].get("annotations") or {}
        newest = annotations.get("deprecated.daemonset.template.generation")
        return bool(newest) and labels.get("pod-template-generation") != newest
    return False


def is_stuck(pod: Object, workload: Object, old: bool) -> bool:
    """Whether only deleting this Pod, which is in trouble, gets the rollout on (or gets it on without minutes lost).

    A StatefulSet waits for ever for a broken Pod of an old template before it makes one of the new (documented as
    "forced rollback"); and a kubelet in back-off tries again after up to 5 minutes only. ``old``: the Pod is older than
    a minute when this run began, so that this is not a back-off of the rollout that has just begun.
    Of OnDelete workloads (Slurm workers) only Pods in which nothing ever ran: no job is lost with them.
    """
    if is_ready(pod) or pod["metadata"].get("deletionTimestamp"):
        return False
    on_delete = (workload["spec"].get("updateStrategy") or {}).get("type") == "OnDelete"
    if on_delete and not never_ran(pod):
        return False
    if any("running" in (entry.get("state") or {}) for entry in _ordinary(pod)):
        return False
    return revision_is_old(pod, workload) or (old and in_back_off(pod))
