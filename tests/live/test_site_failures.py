# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wrong input: a clear error in bounded time, and nothing half-broken that a second run does not repair."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from .support.kube import Kube
from .support.playbook import CHECKOUT, PlaybookResult

SMALL = {
    "slurm_nodesets": [{"name": "cpu", "replicas": 1, "cpus": 1, "memory": "500Mi"}],
    "directory_enabled": False,
    "login_enabled": False,
}


def elsewhere(namespace: str, **more: Any) -> dict[str, Any]:
    """Variables of a small cluster in a namespace of its own."""
    return {**SMALL, "slurm_namespace": namespace, "slurm_name": "small", "slurm_wait_timeout": 60, **more}


def message(result: PlaybookResult) -> str:
    assert result.failed, result.output
    return str(result.failed[-1].result.get("msg"))


def test_an_image_that_cannot_be_pulled_fails_early_and_heals(
    namespace: str, run_playbook: Callable[..., PlaybookResult]
) -> None:
    begun = time.monotonic()
    broken = run_playbook(
        "site",
        extra_vars=elsewhere(namespace, slurm_images={"mariadb": "localhost/nobody/nothing:1"}, slurm_wait_timeout=300),
        fails=True,
    )
    assert time.monotonic() - begun < 60
    assert "localhost/nobody/nothing:1" in message(broken)
    assert "slurm-database" in message(broken) or "small-database" in message(broken)
    run_playbook("site", extra_vars=elsewhere(namespace), tags="cluster,database")


def test_a_missing_storage_class_is_named(namespace: str, run_playbook: Callable[..., PlaybookResult]) -> None:
    broken = run_playbook(
        "site",
        extra_vars=elsewhere(namespace, database_storage_class="no-such-class"),
        tags="cluster,database",
        fails=True,
    )
    assert "no-such-class" in message(broken)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"slurm_nodesets": [{"name": "cpu", "replica": 3}]}, ["slurm_nodesets[0]", "replica", "replicas"]),
        ({"slurm_nodesets": [{"name": "cpu"}, {"name": "cpu"}]}, ["cpu"]),
        ({"slurm_nodesets": [{"name": "Not_A_Label"}]}, ["slurm_nodesets[0]"]),
        ({"slurm_nodesets": [{"name": "cpu", "gres": ["gpu:h100"]}]}, ["slurm_nodesets[0].gres[0]", "count"]),
        ({"slurm_conf": {"Epilog": "x\nSlurmUser=root"}}, ["Epilog"]),
        ({"slurm_conf": {"ClusterName": "other"}}, ["ClusterName"]),
        ({"slurm_partitions": [{"name": "p", "nodesets": ["nope"]}]}, ["nope"]),
        ({"slurm_version": "17.02"}, ["17.02"]),
        (
            {"slurm_image_contract": "slinky", "slurm_nodesets": [{"name": "cpu", "services": {"x": "#!/bin/sh"}}]},
            ["services"],
        ),
    ],
)
def test_malformed_variables_are_refused_before_anything_is_sent(
    kube: Kube, namespace: str, run_playbook: Callable[..., PlaybookResult], variables: dict[str, Any], words: list[str]
) -> None:
    refused = run_playbook("site", extra_vars=elsewhere(namespace, **variables), fails=True)
    for word in words:
        assert word in message(refused)
    assert (
        kube.items(f"/api/v1/namespaces/{namespace}/configmaps", fieldSelector="metadata.name!=kube-root-ca.crt") == []
    )


def test_an_object_of_somebody_else_is_not_taken_over(
    kube: Kube, namespace: str, run_playbook: Callable[..., PlaybookResult]
) -> None:
    theirs = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "small-config"},
        "data": {"precious": "yes"},
    }
    kube.create(f"/api/v1/namespaces/{namespace}/configmaps", theirs)
    refused = run_playbook("site", extra_vars=elsewhere(namespace), fails=True)
    assert "small-config" in message(refused)
    assert kube.get(f"/api/v1/namespaces/{namespace}/configmaps/small-config")["data"] == {"precious": "yes"}


def test_an_unreachable_api_is_said_soon(run_playbook: Callable[..., PlaybookResult], tmp_path: Any) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "x"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    begun = time.monotonic()
    refused = run_playbook("site", extra_vars={"slurm_kubeconfig": str(path)}, fails=True)
    assert time.monotonic() - begun < 40
    assert "127.0.0.1:1" in message(refused)


def test_a_refused_token_is_said_without_showing_it(
    kubeconfig: str, run_playbook: Callable[..., PlaybookResult], tmp_path: Any
) -> None:
    with open(kubeconfig, encoding="utf-8") as file:
        config = yaml.safe_load(file)
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": "an-expired-token"}}]
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    refused = run_playbook("site", extra_vars={"slurm_kubeconfig": str(path)}, fails=True)
    assert "401" in message(refused) or "expired" in message(refused)
    assert "an-expired-token" not in refused.output


def account(kube: Kube, namespace: str, rules: list[dict[str, Any]]) -> str:
    """A ServiceAccount that has these rules in the namespace and nothing else; returns its token."""
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    kube.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "operator"}})
    kube.create(f"{rbac}/roles", {"metadata": {"name": "operator"}, "rules": rules})
    kube.create(
        f"{rbac}/rolebindings",
        {
            "metadata": {"name": "operator"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operator"},
            "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": namespace}],
        },
    )
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    return str(
        kube.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/operator/token", request)["status"]["token"]
    )


def kubeconfig_with(kubeconfig: str, token: str, path: Any) -> str:
    with open(kubeconfig, encoding="utf-8") as file:
        config = yaml.safe_load(file)
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return str(path)


def test_the_documented_role_is_enough(
    kube: Kube, kubeconfig: str, namespace: str, run_playbook: Callable[..., PlaybookResult], tmp_path: Any
) -> None:
    rules = yaml.safe_load((CHECKOUT / "roles/cluster/files/operator-rules.yaml").read_text(encoding="utf-8"))["rules"]
    config = kubeconfig_with(kubeconfig, account(kube, namespace, rules), tmp_path / "kubeconfig")
    variables = elsewhere(namespace, slurm_kubeconfig=config, cluster_create_namespace=False, slurm_wait_timeout=180)
    run_playbook("site", extra_vars=variables)
    again = run_playbook("site", extra_vars=variables)
    assert [str(task) for task in again.changed] == []


def test_a_missing_right_is_named(
    kube: Kube, kubeconfig: str, namespace: str, run_playbook: Callable[..., PlaybookResult], tmp_path: Any
) -> None:
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    config = kubeconfig_with(kubeconfig, account(kube, namespace, rules), tmp_path / "kubeconfig")
    refused = run_playbook(
        "site", extra_vars=elsewhere(namespace, slurm_kubeconfig=config, cluster_create_namespace=False), fails=True
    )
    assert "operator" in message(refused)
    assert any(word in message(refused) for word in ("statefulsets", "services", "configmaps"))


def test_all_but_workers_and_login_pass_the_restricted_level(
    kube: Kube, namespace: str, run_playbook: Callable[..., PlaybookResult]
) -> None:
    kube.patch(
        f"/api/v1/namespaces/{namespace}",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
        kind="merge",
    )
    variables = elsewhere(
        namespace, slurm_nodesets=[], directory_enabled=True, cluster_create_namespace=False, slurm_wait_timeout=120
    )
    run_playbook("site", extra_vars=variables)
    pods = kube.items(f"/api/v1/namespaces/{namespace}/pods")
    assert {pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in pods} == {
        "database", "accounting", "controller", "restapi", "directory",
    }  # fmt: skip
