# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What is done through the API server: common objects, labels and addresses of Nodes, simulated Nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from typing import Any
from urllib.parse import quote

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

from . import machine
from .api import MERGE, Api, ApiError
from .archives import architecture
from .manifests import contains, manifests
from .settings import KWOK_ANNOTATION, Settings, kwok_name, node_number

Progress = Callable[[str], None]
Object = dict[str, Any]
_NODES = "/api/v1/nodes"
# There is no bulk write; more connections than this make the API server no faster.
_WRITERS = 16
_KWOK_SELECTOR = quote("type=kwok")


def open_api(settings: Settings, timeout: float = 15.0) -> Api:
    return Api(str(settings.addresses.hub), settings.pki, timeout)


def differing_objects(api: Api, settings: Settings) -> list[str]:
    """Paths of common objects that are missing or differ."""
    wanted = manifests(settings)
    return [path for path, manifest in wanted.items() if not contains(api.find(path), manifest)]


def apply_objects(api: Api, settings: Settings, paths: Sequence[str]) -> None:
    wanted = manifests(settings)
    for path in paths:
        api.apply(path, wanted[path])


def node_patch(settings: Settings, node: Object) -> Object:
    """What is to be changed on a Node: labels, the note which of them are ours, and its range of Pod addresses."""
    name = node["metadata"]["name"]
    live = node["metadata"].get("labels") or {}
    annotations = node["metadata"].get("annotations") or {}
    wanted = settings.labels_of(name)
    ours = [key for key in annotations.get(_OUR_LABELS, "").split(",") if key]
    labels: dict[str, str | None] = {key: value for key, value in wanted.items() if live.get(key) != value}
    labels.update({key: None for key in ours if key not in wanted and key in live})
    patch: Object = {}
    note = ",".join(sorted(wanted))
    if annotations.get(_OUR_LABELS, "") != note:
        patch["metadata"] = {"annotations": {_OUR_LABELS: note or None}}
    if labels:
        patch.setdefault("metadata", {})["labels"] = labels
    if not is_simulated(node) and not node["spec"].get("podCIDR"):
        subnet = str(settings.addresses.node_pods(node_number(name)))
        patch["spec"] = {"podCIDR": subnet, "podCIDRs": [subnet]}
    return patch


_OUR_LABELS = "slurm-ops.kubernetes/sandbox-labels"


def is_simulated(node: Object) -> bool:
    return (node["metadata"].get("annotations") or {}).get(KWOK_ANNOTATION) == "fake"


def patch_nodes(settings: Settings, patches: dict[str, Object]) -> None:
    _spread(settings, [("PATCH", f"{_NODES}/{name}", patch, MERGE) for name, patch in patches.items()])


def node_patches(api: Api, settings: Settings) -> dict[str, Object]:
    """Changes for all Nodes that need one."""
    wanted = set(settings.node_names) | {kwok_name(number) for number in range(settings.kwok_nodes)}
    patches = {n["metadata"]["name"]: node_patch(settings, n) for n in api.items(_NODES)}
    return {name: patch for name, patch in patches.items() if patch and name in wanted}


def simulated_node(settings: Settings, name: str) -> Object:
    """A Node that kwok plays: nothing runs there, and only Pods that tolerate that are put there."""
    capacity = dict(settings.kwok_node.capacity)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {KWOK_ANNOTATION: "fake", "node.alpha.kubernetes.io/ttl": "0"},
            "labels": {
                "kubernetes.io/arch": architecture(),
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "type": "kwok",
            },
        },
        "spec": {"taints": [{"key": KWOK_ANNOTATION, "value": "fake", "effect": "NoSchedule"}]},
        "status": {"allocatable": capacity, "capacity": capacity},
    }


def simulated_changes(api: Api, settings: Settings) -> tuple[list[str], list[str]]:
    """Names of simulated Nodes to create, and to delete: the list ends up as kwok-00000 ... without holes."""
    nodes = api.items(f"{_NODES}?labelSelector={_KWOK_SELECTOR}")
    live = {node["metadata"]["name"] for node in nodes if is_simulated(node)}
    wanted = [kwok_name(number) for number in range(settings.kwok_nodes)]
    return [name for name in wanted if name not in live], sorted(live - set(wanted))


def change_simulated(settings: Settings, create: Sequence[str], delete: Sequence[str]) -> None:
    json = "application/json"
    _spread(settings, [("POST", _NODES, simulated_node(settings, name), json) for name in create])
    _spread(settings, [("DELETE", f"{_NODES}/{name}", None, json) for name in delete])


def delete_nodes(api: Api, names: Sequence[str]) -> None:
    """Nodes that are no longer there; their Pods are removed by Kubernetes itself."""
    for name in names:
        api.call("DELETE", f"{_NODES}/{name}")


def surplus_nodes(api: Api, settings: Settings) -> list[str]:
    """Real Nodes that are known but not wanted."""
    names = [node["metadata"]["name"] for node in api.items(_NODES) if not is_simulated(node)]
    return [name for name in names if name not in settings.node_names]


_Call = tuple[str, str, Any, str]


def _spread(settings: Settings, calls: Sequence[_Call]) -> None:
    """Make many calls over several connections; the first failure is raised once all of them have ended."""

    def work(part: Sequence[_Call]) -> None:
        with closing(open_api(settings, 60)) as api:
            for method, path, body, content in part:
                api.call(method, path, body, content)

    if calls:
        parts = [calls[start::_WRITERS] for start in range(min(_WRITERS, len(calls)))]
        with ThreadPoolExecutor(max_workers=_WRITERS) as pool:
            for future in [pool.submit(work, part) for part in parts]:
                future.result()


def unready(nodes: Sequence[Object], wanted: Sequence[str], begun: Mapping[str, float]) -> dict[str, str]:
    """Wanted Nodes that are not ready, and why. A report from before its kubelet has ``begun`` is an old one."""
    problems = dict.fromkeys(wanted, "has not registered")
    for node in nodes:
        name = node["metadata"]["name"]
        if name not in problems:
            continue
        condition = next((c for c in node["status"].get("conditions") or [] if c["type"] == "Ready"), None)
        if condition is None or _seconds(condition["lastHeartbeatTime"]) < int(begun.get(name, 0)):
            problems[name] = "has not reported yet"
        elif condition["status"] != "True":
            problems[name] = str(condition.get("message") or condition.get("reason"))
        else:
            del problems[name]
    return problems


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


def await_nodes(api: Api, settings: Settings, begun: Mapping[str, float], progress: Progress) -> None:
    """Wait until all real Nodes are ready; ``begun`` tells when the kubelets of this run were started."""
    deadline = time.monotonic() + settings.wait_timeout
    report = time.monotonic() + 10
    problems: dict[str, str] = {}
    for nodes in _polls(api, deadline):
        problems = unready(nodes, settings.node_names, begun)
        if not problems:
            return
        if time.monotonic() > report:
            progress(f"waiting for {len(problems)} of {settings.nodes} nodes: {next(iter(problems.values()))}")
            report = time.monotonic() + 10
    remaining = []
    for name, problem in problems.items():
        log = settings.logs / f"kubelet-{name}.log"
        remaining += [f"{name}: {problem}; end of {log}:", *machine.tail(log)]
    raise OperationError(
        f"{len(problems)} of {settings.nodes} nodes were not ready in {settings.wait_timeout:.0f} s.",
        reason="NodesNotReady",
        remaining=remaining,
        hint="Nothing was undone; state=present goes on from here.",
    )


def _polls(api: Api, deadline: float) -> Iterator[list[Object]]:
    while True:
        try:
            # Simulated ones may be thousands.
            yield api.items(f"{_NODES}?labelSelector={quote('type!=kwok')}")
        except ApiError as error:
            if error.status < 500:
                raise
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)
