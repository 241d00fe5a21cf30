# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Where each kind lives in the API: fixed paths for the kinds we know, so that no discovery call is needed for them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of one API version, as REST paths."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def group(self) -> str:
        """The API group: empty for core kinds."""
        return self.api_version.rpartition("/")[0]

    @property
    def group_kind(self) -> str:
        """Kind and group as ApplySets write them: ``Secret``, ``StatefulSet.apps``."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def group_resource(self) -> str:
        """Plural and group as RBAC and error messages write them: ``secrets``, ``statefulsets.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path of the collection (of a namespace, or of all) or, with a name, of one object."""
        parts = [version_path(self.api_version)]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{quote(namespace, safe='')}")
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


def version_path(api_version: str) -> str:
    """Return ``/api/v1`` or ``/apis/GROUP/VERSION``."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def service_proxy(namespace: str, service: str, port: int | str, path: str = "", scheme: str = "") -> str:
    """Return the path by which the API server forwards to a Service's port; ``scheme`` is "https" or nothing."""
    target = f"{scheme}:{service}:{port}" if scheme else f"{service}:{port}"
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/services/{target}/proxy/{path.lstrip('/')}"


# group -> preferred version and kinds; a kind is "Kind:plural", cluster-scoped kinds carry a leading "/".
# Versions matter only where a kind is known by group alone (an ApplySet's contains-group-kinds).
_KNOWN = {
    "": (
        "v1",
        (
            "ConfigMap:configmaps Secret:secrets Service:services ServiceAccount:serviceaccounts Pod:pods Event:events "
            "PersistentVolumeClaim:persistentvolumeclaims Endpoints:endpoints LimitRange:limitranges "
            "ResourceQuota:resourcequotas PodTemplate:podtemplates ReplicationController:replicationcontrollers "
            "/Namespace:namespaces /Node:nodes /PersistentVolume:persistentvolumes"
        ),
    ),
    "apps": (
        "v1",
        (
            "Deployment:deployments StatefulSet:statefulsets DaemonSet:daemonsets ReplicaSet:replicasets "
            "ControllerRevision:controllerrevisions"
        ),
    ),
    "batch": ("v1", "Job:jobs CronJob:cronjobs"),
    "rbac.authorization.k8s.io": (
        "v1",
        "Role:roles RoleBinding:rolebindings /ClusterRole:clusterroles /ClusterRoleBinding:clusterrolebindings",
    ),
    "policy": ("v1", "PodDisruptionBudget:poddisruptionbudgets"),
    "networking.k8s.io": ("v1", "NetworkPolicy:networkpolicies Ingress:ingresses /IngressClass:ingressclasses"),
    "storage.k8s.io": (
        "v1",
        "/StorageClass:storageclasses /CSIDriver:csidrivers /VolumeAttachment:volumeattachments",
    ),
    "scheduling.k8s.io": ("v1", "/PriorityClass:priorityclasses"),
    "coordination.k8s.io": ("v1", "Lease:leases"),
    "discovery.k8s.io": ("v1", "EndpointSlice:endpointslices"),
    "autoscaling": ("v2", "HorizontalPodAutoscaler:horizontalpodautoscalers"),
    "apiextensions.k8s.io": ("v1", "/CustomResourceDefinition:customresourcedefinitions"),
    "monitoring.coreos.com": (
        "v1",
        "ServiceMonitor:servicemonitors PodMonitor:podmonitors PrometheusRule:prometheusrules",
    ),
    "route.openshift.io": ("v1", "Route:routes"),
    "security.openshift.io": ("v1", "/SecurityContextConstraints:securitycontextconstraints"),
}

_TABLE: dict[tuple[str, str], tuple[str, str, bool]] = {}
for _group, (_version, _kinds) in _KNOWN.items():
    for _entry in _kinds.split():
        _kind, _plural = _entry.lstrip("/").split(":")
        _TABLE[_group, _kind] = (_version, _plural, not _entry.startswith("/"))


def known(api_version: str, kind: str) -> Resource | None:
    """Return the resource of a kind that we know, in the version that was asked for; None for anybody else's."""
    entry = _TABLE.get((api_version.rpartition("/")[0], kind))
    return Resource(api_version, kind, entry[1], entry[2]) if entry else None


def known_group_kind(group_kind: str) -> Resource | None:
    """Return the resource for ``Kind.group`` in the version that we prefer; None for a kind that we do not know."""
    kind, _dot, group = group_kind.partition(".")
    entry = _TABLE.get((group, kind))
    if entry is None:
        return None
    return Resource(f"{group}/{entry[0]}" if group else entry[0], kind, entry[1], entry[2])
