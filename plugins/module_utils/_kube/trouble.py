# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Why a rollout does not get on: the signs that it will never end well, as sentences with what to do.

Pure: Pods, workloads and Events as the API server returned them go in. What may heal by itself (a registry that
answers late, a Node that is still starting) has a grace; what cannot (a name that is no image's) has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.trouble import INFORMATION, Trouble
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.pods import (
    conditions,
    containers,
    crashes,
    is_ready,
)

Object = Mapping[str, Any]

MOST_LOOKED_AT = 8  # Pods of one workload whose Events are read: if more are in trouble, it is the same for all
AUTOSCALING = ("TriggeredScaleUp", "Nominated")  # cluster-autoscaler, Karpenter: a Node is on its way


def name_of(item: Object) -> str:
    """Return "Kind namespace/name"."""
    metadata = item["metadata"]
    return f"{item['kind']} {metadata.get('namespace')}/{metadata['name']}"


def about(events: Iterable[Object], item: Object) -> list[Object]:
    """Return the Events about one object, the newest last."""
    uid = item["metadata"].get("uid")
    found = [event for event in events if (event.get("involvedObject") or {}).get("uid") == uid]
    return sorted(found, key=_last_seen)


def _last_seen(event: Object) -> str:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next((str(time) for time in times if time), str(event["metadata"].get("creationTimestamp") or ""))


# --- Pods ---------------------------------------------------------------------------------------------------------


def pod_troubles(
    pod: Object, events: Sequence[Object] = (), log: Callable[[Object, str], str] | None = None
) -> list[Trouble]:
    """Return what keeps one Pod from becoming ready. ``log`` gets the last lines of a container."""
    if is_ready(pod) or pod["metadata"].get("deletionTimestamp"):
        return []
    found = [trouble for entry in containers(pod) if (trouble := _container(pod, entry, log))]
    own = about(events, pod)
    if not found:
        found = _scheduling(pod, events, own) or _starting(pod, own)
    return found or _probes(pod, own, log)


def _container(pod: Object, entry: Object, log: Callable[[Object, str], str] | None) -> Trouble | None:
    waiting = (entry.get("state") or {}).get("waiting") or {}
    reason, message = waiting.get("reason", ""), _short(waiting.get("message", ""))
    name, image = entry["name"], _image(pod, entry["name"])
    subject = name_of(pod)

    def trouble(kind: str, text: str, grace: float, code: str, hint: str) -> Trouble:
        return Trouble(f"{kind} {subject} {name}", f"{subject}: {text}", grace, code, hint, subject)

    if reason == "InvalidImageName":
        return trouble("image", f"{image!r} is not the name of an image", 0, "ImageName", "Correct the image's name.")
    if reason == "ErrImageNeverPull":
        hint = "Import it on the Node, or let imagePullPolicy be IfNotPresent."
        return trouble("image", f"image {image} is not on the Node and must not be pulled", 0, "ImagePull", hint)
    if reason in ("ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable"):
        hint = "Check the image's name and tag, imagePullSecrets, and that the Node reaches the registry."
        return trouble("image", f"image {image} cannot be pulled ({_pull_error(message)})", 8, "ImagePull", hint)
    if reason == "CreateContainerConfigError":
        if "not found" in message or "couldn't find key" in message:
            text, hint = f"container {name} needs what is not there ({message})", "Create it, or correct its name."
        else:
            text, hint = f"container {name} cannot be made ({message})", "Correct the Pod template."
        return trouble("config", text, 12, "MissingReference", hint)
    if reason in ("CreateContainerError", "RunContainerError"):
        hint = "Check command, mounts and securityContext of the container."
        return trouble("start", f"container {name} cannot be started ({message})", 12, "ContainerStart", hint)
    if crashes(entry):
        ended = _ended(entry)
        said = _short(log(pod, name), 600) if log else ""
        text = f"container {name} crashes again and again ({ended}, {entry['restartCount']} restarts)"
        text += f"; it said: {said}" if said else ""
        hint = f"See: kubectl -n {pod['metadata']['namespace']} logs {pod['metadata']['name']} -c {name}"
        return trouble("crash", text, 15, "CrashLoop", hint)
    return None


def _image(pod: Object, container: str) -> str:
    spec = pod.get("spec") or {}
    for entry in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        if entry["name"] == container:
            return str(entry.get("image"))
    return "?"


def _pull_error(message: str) -> str:
    """Return the part of the runtime's long message that a person needs."""
    for sign, text in (
        (r"not found|manifest unknown|does not exist", "not found"),
        (r"unauthorized|authentication required|denied|403 Forbidden", "access denied"),
        (r"no such host", "the registry's name is unknown"),
        (r"connection refused|i/o timeout|network is unreachable|no route to host|deadline exceeded", "no connection"),
        (r"certificate|x509", "its certificate is not trusted"),
    ):
        if re.search(sign, message):
            inner = re.search(r"(dial tcp[^\"]*|x509:[^\"]*)\"?$", message)
            return f"{text}: {inner[1]}" if inner else text
    return message or "no reason given"


def _ended(entry: Object) -> str:
    last = (entry.get("state") or {}).get("terminated") or (entry.get("lastState") or {}).get("terminated") or {}
    if last.get("reason") == "OOMKilled":
        return "killed because it used more memory than its limit"
    if last.get("signal"):
        return f"killed by signal {last['signal']}"
    text = f"exit code {last['exitCode']}" if "exitCode" in last else "ended"
    message = _short(str(last.get("message") or "").strip())
    return f"{text}: {message}" if message else text


def _scheduling(pod: Object, events: Sequence[Object], own: Sequence[Object]) -> list[Trouble]:
    """A Pod without a Node: because of its volumes, or because no Node fits."""
    scheduled = conditions(pod).get("PodScheduled", {})
    if (pod.get("spec") or {}).get("nodeName") or scheduled.get("status") != "False":
        return []
    claims = {
        volume["persistentVolumeClaim"]["claimName"]
        for volume in (pod.get("spec") or {}).get("volumes") or ()
        if volume.get("persistentVolumeClaim")
    }
    found = claim_troubles(claims, str(pod["metadata"].get("namespace")), events)
    if found or scheduled.get("reason") != "Unschedulable":
        return found
    subject = name_of(pod)
    coming = any(event.get("reason") in AUTOSCALING for event in own)
    return [
        Trouble(
            f"schedule {subject}",
            f"{subject} finds no Node ({_short(scheduled.get('message', ''), 300)})"
            + ("; a Node is being added" if coming else ""),
            INFORMATION if coming else 20,
            "Unschedulable",
            "Lower its requests, correct nodeSelector, affinity or tolerations, or add Nodes.",
            subject,
        )
    ]


def claim_troubles(claims: Iterable[str], namespace: str, events: Sequence[Object]) -> list[Trouble]:
    """Return why volume claims of these names do not get their volumes."""
    wanted = set(claims)
    newest: dict[str, Object] = {}
    for event in sorted(events, key=_last_seen):
        involved = event.get("involvedObject") or {}
        if involved.get("kind") == "PersistentVolumeClaim" and involved.get("name") in wanted:
            newest[involved["name"]] = event
    found = []
    for name, event in sorted(newest.items()):
        subject, message = f"PersistentVolumeClaim {namespace}/{name}", _short(event.get("message", ""), 300)
        if event.get("reason") == "ProvisioningFailed" and "storageclass" in message and "not found" in message:
            hint = "Give the name of an existing StorageClass (kubectl get storageclass)."
            found.append(Trouble(f"claim {subject}", f"{subject}: {message}", 5, "StorageClassMissing", hint, subject))
        elif event.get("reason") == "FailedBinding":
            hint = "Name a StorageClass, or mark one as the default."
            found.append(Trouble(f"claim {subject}", f"{subject}: {message}", 12, "VolumeUnbound", hint, subject))
        elif event.get("reason") in ("ProvisioningFailed", "ExternalExpanding", "VolumeMismatch"):
            hint = "See what the StorageClass's provisioner logs."
            found.append(Trouble(f"claim {subject}", f"{subject}: {message}", 30, "VolumeUnbound", hint, subject))
    return found


def _starting(pod: Object, own: Sequence[Object]) -> list[Trouble]:
    """A Pod that has a Node but no containers yet: volumes that cannot be mounted, no network."""
    if any("running" in (entry.get("state") or {}) for entry in containers(pod)):
        return []
    signs = {
        "FailedMount": ("cannot mount a volume", "VolumeMount", "Create what is missing, or correct its name."),
        "FailedAttachVolume": ("cannot attach a volume", "VolumeMount", "See the Events of the volume."),
        "FailedCreatePodSandBox": ("gets no sandbox", "PodSandbox", "See the Node's container runtime and network."),
    }
    subject = name_of(pod)
    for event in reversed(own):
        if event.get("reason") in ("Pulling", "Pulled", "Created", "Started"):
            return []  # it got over what there was before
        if event.get("reason") in signs:
            text, code, hint = signs[event["reason"]]
            message = _short(event.get("message", ""), 300)
            return [Trouble(f"mount {subject}", f"{subject} {text} ({message})", 20, code, hint, subject)]
    return []


def _probes(pod: Object, own: Sequence[Object], log: Callable[[Object, str], str] | None) -> list[Trouble]:
    """A Pod that runs but is not ready: worth telling when the time is over, no reason to give up."""
    for event in reversed(own):
        if event.get("reason") == "Unhealthy":
            subject, text = name_of(pod), _short(event.get("message", ""))
            said = _short(_last_words(pod, event, log), 600) if log else ""
            text += f"; it said: {said}" if said else ""
            return [Trouble(f"probe {subject}", f"{subject}: {text}", INFORMATION, "NotReady", "", subject)]
    return []


def _last_words(pod: Object, event: Object, log: Callable[[Object, str], str]) -> str:
    """The log of the container whose probe failed, or of the sidecar that has it (docs/decisions/003)."""
    path = str((event.get("involvedObject") or {}).get("fieldPath") or "")
    probed = re.search(r"\{(.+)\}", path)
    sidecars = [
        entry["name"]
        for entry in (pod.get("spec") or {}).get("initContainers") or ()
        if entry.get("restartPolicy") == "Always"
    ]
    names = [probed[1]] if probed else []
    return next((words for name in [*names, *sidecars] if (words := log(pod, name).strip())), "")


# --- workloads ----------------------------------------------------------------------------------------------------


def workload_troubles(item: Object, events: Sequence[Object] = (), grace: float = 8) -> list[Trouble]:
    """Return what keeps a controller from making Pods, or makes it give up. ``grace`` is for what it may yet manage."""
    found: list[Trouble] = []
    subject, have = name_of(item), conditions(item)

    def add(text: str, seconds: float, reason: str, hint: str) -> None:
        found.append(Trouble(f"{reason} {subject}", f"{subject}: {text}", seconds, reason, hint, subject))

    if item["kind"] == "Deployment":
        failure = have.get("ReplicaFailure", {})
        if failure.get("status") == "True":
            add(*_refused_pods(str(failure.get("message", "")), grace))
        elif have.get("Progressing", {}).get("reason") == "ProgressDeadlineExceeded":
            message = str(have["Progressing"].get("message", ""))
            add(f"its controller has given up ({_short(message)})", grace, "DeadlineExceeded", "See its Pods.")
    elif item["kind"] == "Job":
        failed = have.get("Failed", {})
        if failed.get("status") == "True":
            text = f"the Job failed: {failed.get('reason')}, {_short(failed.get('message', ''))}"
            add(text, 0, "JobFailed", "See the log of its Pods; delete the Job to have it run again.")
    elif item["kind"] == "Pod" and (item.get("status") or {}).get("phase") == "Failed":
        status = item["status"]
        text = f"the Pod failed ({status.get('reason') or 'its containers ended'} {_short(status.get('message', ''))})"
        add(text.replace(" )", ")"), 0, "PodFailed", "Delete it to have it made again.")
    if item["kind"] in ("StatefulSet", "DaemonSet", "Job", "ReplicaSet"):
        last = refusal(item, events)
        if last is not None:
            add(*_refused_pods(str(last.get("message", "")), grace))
    return found


def refusal(item: Object, events: Sequence[Object]) -> Object | None:
    """Return the newest Event that says that a Pod (or a claim) could not be made, unless one was made since."""
    for event in reversed(about(events, item)):
        if event.get("reason") == "SuccessfulCreate":
            return None
        if event.get("reason") == "FailedCreate":
            return event
    return None


def _refused_pods(message: str, grace: float) -> tuple[str, float, str, str]:
    """Return text, grace, reason and hint for a Pod that the API server did not let a controller make."""
    if "exceeded quota" in message:
        quota = message[message.index("exceeded quota") :].removesuffix(" (retried 5 times)")
        return (
            f"its Pods do not fit the namespace's quota ({_short(quota)})",
            grace,
            "QuotaExceeded",
            ("Ask for a larger ResourceQuota, or lower requests, limits or replicas."),
        )
    if "violates PodSecurity" in message:
        violation = message[message.index("violates PodSecurity") :]
        return (
            f"its Pods are not let in ({_short(violation, 400)})",
            grace,
            "PodSecurity",
            ("Meet that level in the Pod template, or label the namespace with a lower one."),
        )
    if "serviceaccount" in message and "not found" in message:
        account = re.search(r'serviceaccounts? "([^"]+)" not found', message)
        name = account[1] if account else "named"
        return f"there is no ServiceAccount {name}", grace, "MissingReference", "Create it, or correct its name."
    return f"its Pods cannot be made ({_short(message, 400)})", grace, "FailedCreate", "Correct the Pod template."


def _short(text: Any, limit: int = 200) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= limit else f"{line[:limit]}..."
