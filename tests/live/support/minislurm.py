# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Slurm cluster of the least parts (no database, no directory, no volumes) for tests of the library below the roles.

Its configuration and its worker Pods are what the filters make, so that a real Slurm is the judge of them.
"""

from __future__ import annotations

import base64
import secrets
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.filter.configuration import (
    slurm_features,
    slurm_files,
    slurm_nodesets,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.config import ENVIRONMENT, resolve
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import client_of
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient

from .kube import Json, Kube
from .process import Completed

REGISTRY = "localhost/slurm-ops"
NAME = "slurm"
WORKER_GRACE = 25  # seconds
# What makes Slurm run on any machine: no cgroups to manage, nodes that may claim more than there is.
ANYWHERE = {
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "SlurmdParameters": ["config_overrides"],
    "DefMemPerCPU": 10,
    "SlurmdTimeout": 30,
}
# A NodeSet's nodes, small enough for many on one machine.
SMALL: Json = {"cpus": 2, "memory": "256Mi", "resources": {"requests": {"cpu": "20m"}}}


def versions_there(kube: Kube) -> list[str]:
    """The Slurm versions whose images are on every Node."""
    found: list[set[str]] = []
    for node in kube.items("/api/v1/nodes"):
        images = [name for image in node["status"].get("images") or () for name in image.get("names") or ()]
        found.append({name.rpartition(":")[2] for name in images if name.startswith(f"{REGISTRY}/slurmctld:")})
    return sorted(set.intersection(*found), reverse=True) if found else []


class MiniSlurm:
    """One cluster in one namespace."""

    def __init__(
        self, kube: Kube, kubeconfig: str, namespace: str, version: str, nodesets: list[Json], **facts: Any
    ) -> None:
        self.kube = kube
        self.namespace = namespace
        self.version = version
        self.nodesets = nodesets
        self.facts: Json = {
            "name": NAME,
            "namespace": namespace,
            "version": version,
            "image_contract": "slurm_ops",
            "image": f"{REGISTRY}/slurmd:{version}",
            "accounting": False,
            "nodesets": nodesets,
            "slurm_conf": ANYWHERE,
            "cgroup_conf": {"CgroupPlugin": "disabled"},
            **facts,
        }
        self._kubeconfig = kubeconfig

    def deploy(self) -> None:
        """Apply everything; the workers only when slurmctld is ready, because slurmd asks for it every 10 s only."""
        core, apps = f"/api/v1/namespaces/{self.namespace}", f"/apis/apps/v1/namespaces/{self.namespace}"
        keys = {
            "slurm.key": secrets.token_bytes(1024),
            "jwt.key": secrets.token_bytes(32),
            "jwks.json": b'{"keys": []}',
        }
        data = {name: base64.b64encode(value).decode() for name, value in keys.items()}
        self._apply(f"{core}/secrets", "v1", "Secret", f"{NAME}-auth", data=data)
        files, labels = slurm_files(self.facts), {"slurm-ops.kubernetes/cluster": NAME}
        notes = {"slurm-ops.kubernetes/release": self.version}
        self._apply(f"{core}/configmaps", "v1", "ConfigMap", f"{NAME}-config", labels, notes, data=files)
        # As the roles make them; that of slurmctld stays while its Pod is replaced.
        starting = {"publishNotReadyAddresses": True}
        for name, component, port, more in (
            ("controller-0", "controller", 6817, starting),
            ("workers", "worker", 6818, {**starting, "clusterIP": "None"}),
            ("restapi", "restapi", 6820, {}),
        ):
            spec = {"selector": {"app.kubernetes.io/component": component}, "ports": [{"port": port}], **more}
            self._apply(f"{core}/services", "v1", "Service", f"{NAME}-{name}", spec=spec)
        features = slurm_features(self.version)
        self._workload(apps, "StatefulSet", "controller", self._controller(features))
        self._workload(apps, "Deployment", "restapi", self._restapi(features))
        self.kube.wait(f"{core}/pods/{NAME}-controller-0", is_ready, timeout=120, what="slurmctld is ready")
        self.kube.wait(
            f"{apps}/deployments/{NAME}-restapi",
            lambda item: item["status"].get("readyReplicas"),
            timeout=120,
            what="slurmrestd is ready",
        )
        self.apply_nodesets(self.nodesets)

    def apply_nodesets(self, nodesets: list[Json], nodes: Sequence[Json] = ()) -> None:
        """Apply the ConfigMap and the workload of NodeSets; ``nodes`` are Kubernetes Nodes, for their annotations."""
        core, apps = f"/api/v1/namespaces/{self.namespace}", f"/apis/apps/v1/namespaces/{self.namespace}"
        for nodeset in slurm_nodesets(nodesets, {**self.facts, "nodes": list(nodes)}):
            self._apply(f"{core}/configmaps", "v1", "ConfigMap", nodeset["files_name"], data=nodeset["files"])
            template = {
                "metadata": {"labels": nodeset["labels"], "annotations": nodeset["annotations"]},
                "spec": {**nodeset["pod_spec"], "terminationGracePeriodSeconds": WORKER_GRACE},
            }
            spec = {
                "selector": {"matchLabels": nodeset["selector"]},
                "template": template,
                "updateStrategy": {"type": "OnDelete"},
            }
            if nodeset["kind"] == "replica":
                spec |= {
                    "serviceName": f"{NAME}-workers",
                    "replicas": nodeset["replicas"],
                    "podManagementPolicy": "Parallel",
                }
            plural = f"{nodeset['workload'].lower()}s"
            self._apply(
                f"{apps}/{plural}", "apps/v1", nodeset["workload"], nodeset["name"], labels=nodeset["labels"], spec=spec
            )

    def wait_for_nodes(self, *names: str) -> dict[str, Json]:
        """Wait until Slurm has these nodes, idle and answering, and return what it says of them."""
        client = self.client()

        def known() -> dict[str, Json]:
            return {item["name"]: dict(item) for item in client.nodes().items}

        def all_idle(nodes: dict[str, Json]) -> bool:
            return all(nodes.get(name, {}).get("state", [""])[0] == "IDLE" for name in names)

        found: dict[str, Json] = self.kube.wait(known, all_idle, timeout=120, what=f"nodes {', '.join(names)} are idle")
        return found

    def client(self) -> SlurmClient:
        """A client of this cluster, as modules get one."""
        options = dict.fromkeys(ENVIRONMENT) | {"kubeconfig": self._kubeconfig}
        kubernetes = KubernetesClient(lambda: resolve(options))
        return client_of(kubernetes, {"namespace": self.namespace, "name": NAME}, Counter())

    def run(
        self, command: str, *, on: str = f"{NAME}-controller-0", check: bool = True, timeout: float = 60
    ) -> Completed:
        """Run a shell command in a Pod."""
        completed = self.kube.exec(self.namespace, on, ["sh", "-c", command], timeout=timeout)
        return completed.check() if check else completed

    def scale(self, component: str, replicas: int) -> None:
        """Set the size of slurmctld or slurmrestd."""
        plural = "deployments" if component == "restapi" else "statefulsets"
        path = f"/apis/apps/v1/namespaces/{self.namespace}/{plural}/{NAME}-{component}"
        self.kube.patch(path, {"spec": {"replicas": replicas}})
        self.kube.wait(
            path,
            lambda item: (
                (item["status"].get("readyReplicas") or 0) == replicas
                and (item["status"].get("replicas") or 0) == replicas
            ),
            timeout=90,
            what=f"{component} has {replicas} Pods",
        )

    def _apply(
        self,
        path: str,
        version: str,
        kind: str,
        name: str,
        labels: Json | None = None,
        annotations: Json | None = None,
        **parts: Any,
    ) -> None:
        metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
        self.kube.apply(f"{path}/{name}", {"apiVersion": version, "kind": kind, "metadata": metadata, **parts})

    def _workload(self, apps: str, kind: str, component: str, pod_spec: Json) -> None:
        labels = {"app.kubernetes.io/component": component, "slurm-ops.kubernetes/cluster": NAME}
        spec: Json = {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 1, **pod_spec}},
        }
        if kind == "StatefulSet":
            spec["serviceName"] = f"{NAME}-{component}"
        self._apply(f"{apps}/{kind.lower()}s", "apps/v1", kind, f"{NAME}-{component}", labels=labels, spec=spec)

    def _controller(self, features: Json) -> Json:
        keys = [{"key": name, "path": name, "mode": 0o600} for name in ("slurm.key", "jwt.key", "jwks.json")]
        rotated = [{"key": "slurm.jwks", "path": "slurm.jwks", "mode": 0o600}]
        folders = {"run": "/run", "tmp": "/tmp", "state": "/var/spool/slurmctld", "log": "/var/log/slurm"}
        sources = [
            {"configMap": {"name": f"{NAME}-config"}},
            {"configMap": {"name": f"{NAME}-topology", "optional": True}},
            {"secret": {"name": f"{NAME}-auth", "items": keys}},
            {"secret": {"name": f"{NAME}-auth", "items": rotated, "optional": True}},
        ]
        container = {
            "name": "slurmctld",
            "image": f"{REGISTRY}/slurmctld:{self.version}",
            "readinessProbe": {**features["probes"]["slurmctld"]["readiness"], "periodSeconds": 1},
            "volumeMounts": [
                {"name": "etc", "mountPath": "/etc/slurm"},
                *({"name": name, "mountPath": path} for name, path in folders.items()),
            ],
        }
        return {
            "securityContext": {"runAsUser": 401, "runAsGroup": 401, "fsGroup": 401, "runAsNonRoot": True},
            "containers": [container],
            "volumes": [
                {"name": "etc", "projected": {"defaultMode": 0o750, "sources": sources}},
                *({"name": name, "emptyDir": {}} for name in folders),
            ],
        }

    def _restapi(self, features: Json) -> Json:
        sources = [
            {"configMap": {"name": f"{NAME}-config", "items": [{"key": "slurm.conf", "path": "slurm.conf"}]}},
            {"secret": {"name": f"{NAME}-auth", "items": [{"key": "slurm.key", "path": "slurm.key"}]}},
        ]
        # Without accounting the slurmdbd part of slurmrestd cannot be loaded.
        plugins = features["restd_openapi_plugins"].replace("slurmdbd,", "").replace(",slurmdbd", "")
        container = {
            "name": "slurmrestd",
            "image": f"{REGISTRY}/slurmrestd:{self.version}",
            "args": ["-a", "rest_auth/jwt", "-s", plugins, "0.0.0.0:6820"],
            "env": [
                {"name": "SLURM_JWT", "value": "daemon"},
                {"name": "SLURMRESTD_SECURITY", "value": "disable_unshare_files,disable_unshare_sysv"},
            ],
            "readinessProbe": {"tcpSocket": {"port": 6820}, "periodSeconds": 1},
            "volumeMounts": [{"name": "etc", "mountPath": "/etc/slurm"}],
        }
        return {
            "securityContext": {"runAsUser": 65534, "runAsGroup": 65534, "fsGroup": 65534, "runAsNonRoot": True},
            "containers": [container],
            "volumes": [{"name": "etc", "projected": {"defaultMode": 0o600, "sources": sources}}],
        }


def is_ready(pod: Json | None) -> bool:
    """True for a Pod that is ready."""
    conditions = ((pod or {}).get("status") or {}).get("conditions") or []
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
