# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where kinds live."""

from __future__ import annotations

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import paths


@pytest.mark.parametrize(
    ("api_version", "kind", "expected", "group_kind"),
    [
        ("v1", "ConfigMap", "/api/v1/namespaces/n/configmaps/x", "ConfigMap"),
        ("apps/v1", "StatefulSet", "/apis/apps/v1/namespaces/n/statefulsets/x", "StatefulSet.apps"),
        ("v1", "Namespace", "/api/v1/namespaces/x", "Namespace"),
        (
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/x",
            "ClusterRole.rbac.authorization.k8s.io",
        ),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "/apis/networking.k8s.io/v1/namespaces/n/networkpolicies/x",
            "NetworkPolicy.networking.k8s.io",
        ),
        (
            "autoscaling/v1",
            "HorizontalPodAutoscaler",
            "/apis/autoscaling/v1/namespaces/n/horizontalpodautoscalers/x",
            "HorizontalPodAutoscaler.autoscaling",
        ),
        (
            "monitoring.coreos.com/v1",
            "ServiceMonitor",
            "/apis/monitoring.coreos.com/v1/namespaces/n/servicemonitors/x",
            "ServiceMonitor.monitoring.coreos.com",
        ),
        (
            "security.openshift.io/v1",
            "SecurityContextConstraints",
            "/apis/security.openshift.io/v1/securitycontextconstraints/x",
            "SecurityContextConstraints.security.openshift.io",
        ),
    ],
)
def test_known_kinds(api_version: str, kind: str, expected: str, group_kind: str) -> None:
    resource = paths.known(api_version, kind)
    assert resource is not None
    assert resource.path("n", "x") == expected
    assert resource.group_kind == group_kind
    again = paths.known_group_kind(group_kind)
    assert again is not None
    assert (again.kind, again.plural, again.namespaced) == (resource.kind, resource.plural, resource.namespaced)


def test_collections_and_subresources() -> None:
    pods = paths.known("v1", "Pod")
    assert pods is not None
    assert pods.path() == "/api/v1/pods"
    assert pods.path("n") == "/api/v1/namespaces/n/pods"
    assert pods.path("n", "p", "log") == "/api/v1/namespaces/n/pods/p/log"
    assert pods.path("n/..", "p?x") == "/api/v1/namespaces/n%2F../pods/p%3Fx"


@pytest.mark.parametrize(
    ("api_version", "kind"), [("example.com/v1", "Thing"), ("v1", "Deployment"), ("apps/v1", "Pod")]
)
def test_unknown_kinds(api_version: str, kind: str) -> None:
    assert paths.known(api_version, kind) is None


def test_unknown_group_kinds() -> None:
    assert paths.known_group_kind("Thing.example.com") is None


def test_service_proxy() -> None:
    assert paths.service_proxy("n", "s", 6820, "/slurm/") == "/api/v1/namespaces/n/services/s:6820/proxy/slurm/"
    assert paths.service_proxy("n", "s", "web", scheme="https") == "/api/v1/namespaces/n/services/https:s:web/proxy/"
