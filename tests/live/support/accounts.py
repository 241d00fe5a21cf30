# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ServiceAccounts with few rights, and kubeconfigs for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from .kube import Kube

Json = dict[str, Any]


def make_account(kube: Kube, namespace: str, name: str, rules: Sequence[Json]) -> str:
    """Make a ServiceAccount with a Role of these rules, and return a token of it."""
    core = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    group = "rbac.authorization.k8s.io"
    metadata = {"name": name}
    kube.create(core, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": list(rules)}
    kube.create(f"{rbac}/roles", role)
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        "subjects": [subject],
    }
    kube.create(f"{rbac}/rolebindings", binding)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    return str(kube.create(f"{core}/{name}/token", request)["status"]["token"])


def kubeconfig_of(original: str, token: str, path: Path) -> str:
    """Write a kubeconfig that reaches the same cluster with this token, and return its path."""
    config = yaml.safe_load(Path(original).read_text(encoding="utf-8"))
    context = next(item for item in config["contexts"] if item["name"] == config["current-context"])
    config["users"] = [{"name": context["context"]["user"], "user": {"token": token}}]
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return str(path)
