# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Objects that every sandbox has: rights of its components, the StorageClass and the name service. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .settings import PROVISIONER, Settings

STORAGE_CLASS = "sandbox"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_LABELS = {"app.kubernetes.io/managed-by": "slurm_ops.kubernetes", "app.kubernetes.io/part-of": "sandbox"}
_READ = ("get", "list", "watch")
_WRITE = ("create", "update", "patch", "delete")

Manifest = dict[str, Any]


def _meta(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "labels": dict(_LABELS), **more}


def _rule(groups: str, resources: str, verbs: tuple[str, ...]) -> dict[str, Any]:
    # An empty word is the core group.
    return {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": list(verbs)}


def _role(name: str, rules: list[dict[str, Any]]) -> tuple[str, Manifest]:
    return f"{_RBAC}/clusterroles/{name}", {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": _meta(name),
        "rules": rules,
    }


def _binding(name: str, role: str, user: str) -> tuple[str, Manifest]:
    return f"{_RBAC}/clusterrolebindings/{name}", {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": _meta(name),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }


def manifests(settings: Settings) -> dict[str, Manifest]:
    """Path of each object in the API, and the object."""
    events = _rule(",events.k8s.io", "events", ("create", "update", "patch"))
    result = [
        _binding("slurm-ops:kubelet-api", "system:kubelet-api-admin", "kube-apiserver-kubelet-client"),
        _role(
            "slurm-ops:coredns",
            [
                _rule("", "endpoints,services,pods,namespaces", _READ),
                _rule("discovery.k8s.io", "endpointslices", _READ),
            ],
        ),
        _binding("slurm-ops:coredns", "slurm-ops:coredns", "slurm-ops:coredns"),
        _role(
            "slurm-ops:provisioner",
            [
                _rule("", "persistentvolumes", (*_READ, *_WRITE)),
                _rule("", "persistentvolumeclaims", _READ),
                _rule("storage.k8s.io", "storageclasses", _READ),
                events,
            ],
        ),
        _binding("slurm-ops:provisioner", "slurm-ops:provisioner", "slurm-ops:provisioner"),
        _storage_class(),
        *_name_service(settings),
    ]
    if settings.kwok_nodes:
        result += [
            _role(
                "slurm-ops:kwok",
                [
                    _rule("", "nodes", _READ),
                    _rule("", "nodes/status,pods/status", ("update", "patch")),
                    _rule("", "pods", (*_READ, "update", "patch", "delete")),
                    _rule("coordination.k8s.io", "leases", (*_READ, *_WRITE)),
                    events,
                ],
            ),
            _binding("slurm-ops:kwok", "slurm-ops:kwok", "slurm-ops:kwok"),
        ]
    return dict(result)


def _storage_class() -> tuple[str, Manifest]:
    return f"/apis/storage.k8s.io/v1/storageclasses/{STORAGE_CLASS}", {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": _meta(STORAGE_CLASS, annotations={"storageclass.kubernetes.io/is-default-class": "true"}),
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }


def _name_service(settings: Settings) -> list[tuple[str, Manifest]]:
    """A Service without a selector: CoreDNS runs beside the API server and not in a Pod."""
    namespace = "/namespaces/kube-system"
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta("kube-dns", namespace="kube-system"),
        "spec": {"clusterIP": str(settings.addresses.dns_service), "ports": ports},
    }
    slice_: Manifest = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": _meta("kube-dns-sandbox", namespace="kube-system"),
        "addressType": "IPv4",
        "endpoints": [{"addresses": [str(settings.addresses.hub)], "conditions": {"ready": True}}],
        "ports": ports,
    }
    slice_["metadata"]["labels"]["kubernetes.io/service-name"] = "kube-dns"
    return [
        (f"/api/v1{namespace}/services/kube-dns", service),
        (f"/apis/discovery.k8s.io/v1{namespace}/endpointslices/kube-dns-sandbox", slice_),
    ]


def contains(live: Any, wanted: Any) -> bool:
    """Whether a live object has all that is wanted; what the server added beside it does not count."""
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(key in live and contains(live[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return (
            isinstance(live, list)
            and len(live) == len(wanted)
            and all(contains(one, other) for one, other in zip(live, wanted, strict=True))
        )
    return bool(live == wanted)
