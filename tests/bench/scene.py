# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Thousands of simulated Nodes and Pods (kwok) on a real API server, and as many nodes in a real slurmctld."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import hostlist, names
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import CLUSTER, COMPONENT, NODESET
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.config import ENVIRONMENT, resolve
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import ArgumentSpec
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, stages
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import client_of
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient
from tests.live.support.kube import Json, Kube
from tests.live.support.minislurm import NAME, MiniSlurm

SIMULATED = "sim"
TAINT = {"key": "kwok.x-k8s.io/node", "operator": "Exists"}


class Scene:
    """One Slurm cluster of ``size`` nodes in a namespace of its own."""

    def __init__(self, kube: Kube, kubeconfig: str, size: int) -> None:
        self.kube = kube
        self.size = size
        self.namespace = f"bench-{size}"
        self.nodes = [f"kwok-{number:05d}" for number in range(size)]
        self.mini = MiniSlurm(kube, kubeconfig, self.namespace, "26.05", [], max_node_count=10000)
        options = dict.fromkeys(ENVIRONMENT) | {"kubeconfig": kubeconfig}
        self.connection: dict[str, Any] = {**options, "namespace": self.namespace, "name": NAME}
        self.kubernetes = KubernetesClient(lambda: resolve(options))

    @cached_property
    def slurm(self) -> SlurmClient:
        """Its REST API, once it is deployed."""
        return client_of(self.kubernetes, self.connection, Counter())

    def build(self) -> None:
        """Deploy Slurm, give it nodes that need no slurmd, and a ready Pod for each on a Node of the same name."""
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        self.kube.create("/api/v1/namespaces", manifest)
        self.mini.deploy()
        self.slurm.create_nodes(
            f"NodeName={hostlist.compress(self.nodes)} CPUs=64 RealMemory=500000 Feature={SIMULATED} State=EXTERNAL"
        )
        for _pod, outcome in self.kubernetes.map_concurrent(self._create, map(self._pod, self.nodes)):
            if isinstance(outcome, OperationError):
                raise outcome
        self.kube.wait(self._unready, lambda unready: unready == 0, timeout=300, what="all simulated Pods are ready")

    def remove(self) -> None:
        """Take the namespace away; its Pods go in the background."""
        self.kubernetes.close()
        self.kube.delete(f"/api/v1/namespaces/{self.namespace}")

    def _create(self, pod: Json) -> Mapping[str, Any]:
        return self.kubernetes.create(pod, self.namespace)

    def _pod(self, node: str) -> Json:
        labels = {COMPONENT: "worker", CLUSTER: NAME, NODESET: SIMULATED, "app.kubernetes.io/managed-by": names.DOMAIN}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": node, "labels": labels},
            "spec": {
                "nodeName": node,
                "tolerations": [TAINT],
                "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": False,
                "containers": [{"name": "slurmd", "image": self.mini.facts["image"]}],
            },
        }

    def _unready(self) -> int:
        pods = self.kube.items(f"/api/v1/namespaces/{self.namespace}/pods", labelSelector=f"{NODESET}={SIMULATED}")
        return self.size - sum(_is_ready(pod) for pod in pods)

    def run(self, arguments: ArgumentSpec, operation: Any, **params: Any) -> Run:
        """Do what a module does, from plan to wait, without Ansible around it."""
        defaults = {name: option.get("default") for name, option in arguments.options.items()}
        run = Run({**defaults, **self.connection, **params}, "bench")
        work = operation(run)
        try:
            run.actions += work.plan()
            for batch in stages(run.actions):
                work.act(batch)
            work.wait()
        finally:
            run.close()
        return run


def _is_ready(pod: Json) -> bool:
    conditions: Sequence[Json] = pod["status"].get("conditions") or ()
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
