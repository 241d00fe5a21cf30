# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two made-up NodeSets with a clock: what their controllers, kubelets and slurmds do with a rollout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import CLUSTER, COMPONENT, NODESET
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.workers import HASH

from .._slurm.fake_slurm import Slurm

Object = dict[str, Any]
START = 1_795_258_652


class Kubernetes:
    """Two NodeSets, of three and of two nodes, and a clock. A Pod that is deleted is back after 2 s, ready after 5."""

    warnings = ()

    def __init__(self, slurm: Slurm) -> None:
        self.slurm = slurm
        self.now = 0.0
        self.calls: Counter[str] = Counter()
        self.deleted: list[str] = []
        self.ever_away: list[int] = []
        self.broken = ""  # what waits for ever, in Kubernetes' word
        self.revision = "1"
        self.conf = "Feature=cpu CPUs=2"
        self.generation = 1
        self.observed_at = 0.0  # when the controllers see the newest template
        self.pods: dict[str, Object] = {}
        self.coming: list[tuple[float, str, str]] = []  # (when, Pod, what)
        self.number = 0
        for number in range(3):
            self._make(f"cpu-{number}", "cpu", f"cpu-{number}", "n1")
        for node in ("n1", "n2"):
            self._make("metal", "metal", f"m-{node}", node)
        for name in list(self.pods):
            self._ready(name)
        self.coming.clear()

    # --- what the test does ---------------------------------------------------------------------------------------

    def new_template(self, conf: str = "", broken: str = "") -> None:
        self.revision, self.generation = str(int(self.revision) + 1), self.generation + 1
        self.conf, self.broken = conf or self.conf, broken

    def pause(self, seconds: float) -> None:
        self.now += seconds
        for item in [item for item in self.coming if item[0] <= self.now]:
            self.coming.remove(item)
            if item[2] == "made":
                gone = self.pods.pop(item[1])
                labels = gone["metadata"]["labels"]
                self._make(item[1], labels[NODESET], gone["slurm"], gone["spec"]["nodeName"])
            elif not self.broken:
                self._ready(item[1])
        self.ever_away.append(sum(not self.is_in_service(name) for name in ("cpu-0", "cpu-1", "cpu-2")))

    def is_in_service(self, name: str) -> bool:
        node = self.slurm.nodes.get(name)
        ready = name in self.pods and self.pods[name]["status"]["phase"] == "Running"
        return ready and node is not None and not {"DRAIN", "DOWN"} & set(node["state"])

    # --- controllers, kubelet, slurmd -----------------------------------------------------------------------------

    def _make(self, name: str, nodeset: str, slurm_name: str, on: str) -> None:
        self.number += 1
        name = f"metal-{self.number}" if nodeset == "metal" else name
        waiting = {"waiting": {"reason": self.broken or "ContainerCreating", "message": "no such image"}}
        args = ["-Z", "--conf", f"'{self.conf}'"]
        self.pods[name] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "slurm": slurm_name,
            "metadata": {
                "name": name,
                "namespace": "hpc",
                "uid": f"uid-{self.number}",
                "labels": {COMPONENT: "worker", NODESET: nodeset, HASH: self.revision},
            },
            "spec": {"nodeName": on, "containers": [{"name": "slurmd", "image": "here/slurmd", "args": args}]},
            "status": {"phase": "Pending", "containerStatuses": [{"name": "slurmd", "state": waiting}]},
        }
        self.coming.append((self.now + 3, name, "ready"))

    def _ready(self, name: str) -> None:
        pod = self.pods[name]
        since = f"2026-11-21T10:{int(self.now) // 60:02d}:{int(self.now) % 60:02d}Z"
        pod["status"] = {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "slurmd", "state": {"running": {"startedAt": since}}}],
        }
        node = pod["slurm"]
        before = self.slurm.nodes.get(node)
        declared = dict(word.split("=") for word in self.conf.split())
        kept = before or {"cpus": int(declared["CPUs"])}
        words = ["IDLE", *([word for word in before["state"] if word == "DRAIN"] if before else []), "DYNAMIC_NORM"]
        self.slurm.node(
            node,
            "+".join(words),
            before["reason"] if before else "",
            hostname=name,
            cpus=kept["cpus"],
            features=[pod["metadata"]["labels"][NODESET], *declared["Feature"].split(",")],
            slurmd_start_time={"set": True, "number": START + 10**6 + int(self.now)},
            topology=before.get("topology", "") if before else "",
        )

    # --- the API --------------------------------------------------------------------------------------------------

    def list(self, resource: Any, namespace: str, *, labels: str = "", fields: str = "") -> list[Object]:
        self.calls["list"] += 1
        wanted = dict(part.partition("=")[::2] for part in labels.split(",")).get(NODESET, "")
        if resource.kind == "Pod":
            return [pod for pod in self.pods.values() if not wanted or pod["metadata"]["labels"][NODESET] == wanted]
        if resource.kind == "ControllerRevision":
            return [
                {
                    "revision": int(number),
                    "metadata": {"labels": {HASH: number}, "ownerReferences": [{"uid": "metal-uid"}]},
                }
                for number in ("1", self.revision)
            ]
        if resource.kind == "Event":
            return []
        spec = {"template": {"spec": {"containers": [{"name": "slurmd", "args": ["--conf", self.conf]}]}}}
        is_seen = self.now >= self.observed_at
        update = {
            "updateRevision": self.revision if is_seen else "1",
            "observedGeneration": self.generation - (not is_seen),
        }
        cpu = workload("StatefulSet", "cpu", self.generation, {"replicas": 3, **spec}, update)
        metal = workload("DaemonSet", "metal", self.generation, spec, {"desiredNumberScheduled": 2})
        return [
            item
            for item in (cpu, metal)
            if item["kind"] == resource.kind and (not wanted or item["metadata"]["name"] == wanted)
        ]

    def delete(self, resource: Any, namespace: str, name: str, *, uid: str) -> bool:
        pod = self.pods[name]
        assert pod["metadata"]["uid"] == uid
        node = self.slurm.nodes.get(pod["slurm"])
        assert node is None or not {"MIXED", "ALLOCATED"} & set(node["state"]), "a busy node's Pod was deleted"
        pod["metadata"]["deletionTimestamp"] = "now"
        self.deleted.append(name)
        self.calls["delete"] += 1
        self.coming.append((self.now + 2, name, "made"))
        return True

    def log_tail(self, namespace: str, pod: str, container: str) -> str:
        return ""

    def map_concurrent(
        self, work: Callable[[Any], Any], items: Sequence[Any], workers: int = 16
    ) -> Iterator[tuple[Any, Any]]:
        for item in items:
            yield item, work(item)


def workload(kind: str, name: str, generation: int, spec: Object, status: Object) -> Object:
    metadata = {"name": name, "generation": generation, "uid": f"{name}-uid"}
    metadata["labels"] = {CLUSTER: "slurm", NODESET: name}
    return {
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
        "status": {"observedGeneration": generation, **status},
    }


class Lease:
    """One that nobody else wants."""

    held = True

    def __init__(self, *_args: Any) -> None:
        pass

    def acquire(self, timeout: float) -> None:
        pass

    def keep(self) -> None:
        pass

    def release(self) -> None:
        pass
