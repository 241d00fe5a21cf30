# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Pods, workloads and Nodes as this collection needs them, made from raw objects of the Kubernetes API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from . import names

Raw = Mapping[str, Any]

COMPONENT = "app.kubernetes.io/component"
CLUSTER = f"{names.DOMAIN}/cluster"
NODESET = f"{names.DOMAIN}/nodeset"
SLURM_NODE = f"{names.DOMAIN}/node"
WORKER = "worker"
SLURMD = "slurmd"  # name of the container


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a Pod or Node; ``since`` is the time of its last change in seconds since 1970."""

    status: str
    reason: str = ""
    message: str = ""
    since: int = 0


@dataclass(frozen=True, slots=True)
class Pod:
    """One Pod of the cluster; ``problem`` is why it is not ready, in Kubernetes' word.

    Times are seconds since 1970. ``slurmd_conf`` is what its slurmd was told to register (the text of ``--conf``),
    ``slurmd_since`` when its container was started, by the Node's clock; 0 when it does not run.
    """

    name: str
    component: str
    nodeset: str
    phase: str
    ready: bool
    deleting: bool
    node: str
    address: str
    image: str
    restarts: int
    problem: str
    slurm_node: str
    host_network: bool
    uid: str = ""
    created: int = 0
    owner_kind: str = ""
    slurmd_conf: str = ""
    slurmd_since: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, Condition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Workload:
    """A StatefulSet, DaemonSet or Deployment of the cluster; ``nodeset`` is empty for the other daemons."""

    name: str
    kind: str
    component: str
    nodeset: str
    desired: int
    current: int
    ready: int
    image: str


@dataclass(frozen=True, slots=True)
class KubernetesNode:
    """One Node."""

    name: str
    ready: bool
    cordoned: bool
    labels: Mapping[str, str]
    taints: tuple[str, ...]
    annotations: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, Condition] = field(default_factory=dict)


def pod(raw: Raw) -> Pod:
    """A Pod object."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels = metadata.get("labels") or {}
    annotations = metadata.get("annotations") or {}
    containers = status.get("containerStatuses") or []
    conditions = _conditions(status)
    ready = "Ready" in conditions and conditions["Ready"].status == "True"
    return Pod(
        name=metadata["name"],
        component=labels.get(COMPONENT, ""),
        nodeset=labels.get(NODESET, ""),
        phase=str(status.get("phase", "")),
        ready=ready,
        deleting=bool(metadata.get("deletionTimestamp")),
        node=str(spec.get("nodeName") or ""),
        address=str(status.get("podIP") or ""),
        image=str((spec.get("containers") or [{}])[0].get("image", "")),
        restarts=sum(int(item.get("restartCount") or 0) for item in containers),
        problem="" if ready else _problem(status, containers, conditions),
        slurm_node=str(labels.get(SLURM_NODE) or annotations.get(SLURM_NODE) or ""),
        host_network=bool(spec.get("hostNetwork")),
        uid=str(metadata.get("uid") or ""),
        created=seconds(metadata.get("creationTimestamp")),
        owner_kind=next((str(item.get("kind")) for item in metadata.get("ownerReferences") or ()), ""),
        slurmd_conf=slurmd_conf(spec),
        slurmd_since=_running_since(containers, SLURMD),
        labels=labels,
        annotations=annotations,
        conditions=conditions,
    )


def workload(raw: Raw) -> Workload:
    """A StatefulSet, DaemonSet or Deployment object."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels = metadata.get("labels") or {}
    kind = str(raw.get("kind", ""))
    containers = spec.get("template", {}).get("spec", {}).get("containers") or [{}]
    if kind == "DaemonSet":
        desired, current, ready = (
            int(status.get(key) or 0) for key in ("desiredNumberScheduled", "currentNumberScheduled", "numberReady")
        )
    else:
        desired = 1 if spec.get("replicas") is None else int(spec["replicas"])
        current, ready = int(status.get("replicas") or 0), int(status.get("readyReplicas") or 0)
    return Workload(
        name=metadata["name"],
        kind=kind,
        component=labels.get(COMPONENT, ""),
        nodeset=labels.get(NODESET, ""),
        desired=desired,
        current=current,
        ready=ready,
        image=str(containers[0].get("image", "")),
    )


def kubernetes_node(raw: Raw) -> KubernetesNode:
    """A Node object."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    conditions = _conditions(status)
    return KubernetesNode(
        name=metadata["name"],
        ready="Ready" in conditions and conditions["Ready"].status == "True",
        cordoned=bool(spec.get("unschedulable")),
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        taints=tuple(
            f"{item.get('key', '')}{'=' + item['value'] if item.get('value') else ''}:{item.get('effect', '')}"
            for item in spec.get("taints") or ()
        ),
        conditions=conditions,
    )


def seconds(timestamp: Any) -> int:
    """Seconds since 1970 of a time as Kubernetes writes it; 0 for none."""
    if not timestamp:
        return 0
    try:
        return int(datetime.fromisoformat(str(timestamp).replace("Z", "+00:00")).timestamp())
    except ValueError:
        return 0


def _conditions(status: Raw) -> dict[str, Condition]:
    return {
        str(item.get("type")): Condition(
            str(item.get("status") or ""),
            str(item.get("reason") or ""),
            str(item.get("message") or ""),
            seconds(item.get("lastTransitionTime")),
        )
        for item in status.get("conditions") or ()
    }


def _running_since(containers: Sequence[Raw], name: str) -> int:
    running = (((item.get("state") or {}).get("running") or {}) for item in containers if item.get("name") == name)
    return next((seconds(item.get("startedAt")) for item in running), 0)


def slurmd_conf(spec: Raw) -> str:
    """The text of --conf among the arguments of slurmd, without the quotes that a shell takes off."""
    for container in spec.get("containers") or ():
        args = container.get("args") or ()
        if container.get("name") == SLURMD and "--conf" in args[:-1]:
            return re.sub(r"^(['\"])(.*)\1$", r"\2", str(args[args.index("--conf") + 1]))
    return ""


def _problem(status: Raw, containers: Sequence[Raw], conditions: Mapping[str, Condition]) -> str:
    for item in [*(status.get("initContainerStatuses") or ()), *containers]:
        waiting = (item.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") and waiting["reason"] not in ("PodInitializing", "ContainerCreating"):
            return str(waiting["reason"])
    scheduled = conditions.get("PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        return f"{scheduled.reason or 'Unschedulable'}: {scheduled.message}".rstrip(": ")
    return str(status.get("reason") or ("NotReady" if status.get("phase") == "Running" else status.get("phase", "")))
