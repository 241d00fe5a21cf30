# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small manifests for tests, with images that the cluster's Nodes have."""

from __future__ import annotations

from typing import Any

import yaml

from .kube import Kube
from .playbook import CHECKOUT

Json = dict[str, Any]

# Where no Node has a fitting image (a cluster with a registry), one that can be pulled.
_PULLED = {"pause": "registry.k8s.io/pause:3.10", "mariadb": "docker.io/library/mariadb:11"}
# A NodeSet for site: nodes cpu-0 and cpu-1.
CPU: Json = {
    "name": "cpu",
    "replicas": 2,
    "partition": {"default": True},
    "cpus": 2,
    "memory": "1Gi",
    "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}},
}


def sandbox_slurm_conf() -> Json:
    """slurm_conf as the sandbox's inventory has it; an extra variable replaces it as a whole."""
    text = (CHECKOUT / "inventories/sandbox/group_vars/slurm_clusters/sandbox.yml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text)["slurm_conf"])


def image_with(kube: Kube, word: str) -> str:
    """An image whose name has this word in it: "pause" does nothing for ever, "mariadb" has a shell."""
    for node in kube.items("/api/v1/nodes"):
        for image in node["status"].get("images", ()):
            for name in image.get("names") or ():
                if word in name and "@" not in name:
                    return str(name)
    return _PULLED[word]


def config_map(name: str = "pages", **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {"a": "1"}}


def workload(kind: str, image: str, name: str = "web", **more: Any) -> Json:
    """A StatefulSet or Deployment of one Pod; ``container``, ``pod``, ``template`` and other fields of its spec."""
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}},
        **more.pop("container", {}),
    }
    pod = {"terminationGracePeriodSeconds": 0, "containers": [container], **more.pop("pod", {})}
    template = {"metadata": {"labels": {"app": name}, **more.pop("template", {})}, "spec": pod}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template, **more}
    if kind == "StatefulSet":
        spec.setdefault("serviceName", name)
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
