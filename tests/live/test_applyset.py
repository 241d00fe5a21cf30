# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module applyset on a real cluster: once is enough, check mode tells the truth, failures are told early."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from .support.accounts import kubeconfig_of, make_account
from .support.kube import Kube
from .support.samples import config_map, image_with, workload

Json = dict[str, Any]
Apply = Callable[..., Json]

# What docs and module name as enough.
RULES: list[Json] = [
    {
        "apiGroups": ["", "apps"],
        "resources": ["configmaps", "secrets", "services", "persistentvolumeclaims", "deployments", "statefulsets"],
        "verbs": ["get", "list", "create", "patch", "delete"],
    },
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "delete"]},
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]},
    {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["list"]},
]


@pytest.fixture(scope="session")
def pause(kube: Kube) -> str:
    return image_with(kube, "pause")


@pytest.fixture
def apply(run_module: Callable[..., Json], namespace: str) -> Apply:
    def call(*manifests: Any, check: bool = False, diff: bool = False, env: Any = None, **options: Any) -> Json:
        fails = options.pop("fails", False)
        args = {"name": "set", "namespace": namespace, "manifests": list(manifests), **options}
        return run_module("applyset", args, check=check, diff=diff, fails=fails, env=env)

    return call


def steps(result: Json) -> list[str]:
    return [f"{action['kind']} {action['target']}" for action in result["actions"]]


def everything(kube: Kube, namespace: str) -> dict[str, str]:
    """resourceVersions of all objects that applyset might have written."""
    paths = [f"/api/v1/namespaces/{namespace}/{plural}" for plural in ("configmaps", "secrets", "services")]
    paths += [f"/apis/apps/v1/namespaces/{namespace}/{plural}" for plural in ("deployments", "statefulsets")]
    return {
        f"{path}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
        for path in paths
        for item in kube.items(path)
        if item["metadata"]["name"] != "kube-root-ca.crt"  # made by Kubernetes, a moment after the namespace
    }


def test_once_is_enough_and_check_mode_tells_the_truth(apply: Apply, kube: Kube, namespace: str, pause: str) -> None:
    manifests = [
        config_map(text="one\ntwo\n"),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"k": "v"}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]},
        },
        workload(
            "Deployment",
            pause,
            container={
                "env": [{"name": "EMPTY", "value": ""}],
                "resources": {"requests": {"cpu": "0.001", "memory": "1048576"}},
            },
        ),
        workload(
            "StatefulSet", pause, "db", template={"annotations": {"slurm-ops.kubernetes/restart-on": "configmap/pages"}}
        ),
    ]
    before = everything(kube, namespace)
    predicted = apply(*manifests, wait=True, check=True, diff=True)
    assert everything(kube, namespace) == before
    assert predicted["changed"] is True
    assert predicted["api_calls"]["writes"] == 0

    first = apply(*manifests, wait=True, diff=True)
    assert first["changed"] is True
    assert steps(first) == steps(predicted)
    assert {action["done"] for action in first["actions"]} == {True}
    assert kube.get(f"/apis/apps/v1/namespaces/{namespace}/statefulsets/db")["status"]["readyReplicas"] == 1

    before = everything(kube, namespace)
    second = apply(*manifests, wait=True, diff=True)
    assert second["changed"] is False
    assert second["actions"] == second["diff"] == []
    assert second["api_calls"]["writes"] == 0
    assert set(second["api_calls"]["verbs"]) == {"get", "list"}, "a dry run was needed to see that nothing differs"
    assert everything(kube, namespace) == before
    assert apply(*manifests, wait=True, check=True)["changed"] is False


def test_a_change_shows_as_a_small_diff(apply: Apply, pause: str) -> None:
    apply(config_map(file="one\ntwo\nthree\n"), workload("Deployment", pause))
    changed = [config_map(file="one\n2\nthree\n"), workload("Deployment", pause, replicas=2)]
    predicted = apply(*changed, check=True, diff=True)
    result = apply(*changed, diff=True)
    assert predicted["diff"] == result["diff"]
    page, web = result["diff"]
    assert set(page["before"].splitlines()) ^ set(page["after"].splitlines()) == {"    two", "    2"}
    assert set(web["before"].splitlines()) ^ set(web["after"].splitlines()) == {"  replicas: 1", "  replicas: 2"}
    assert result["actions"][1]["after"] == {"spec.replicas": 2}


def test_a_manifest_that_does_not_fit_stops_all_before_anything_is_written(
    apply: Apply, kube: Kube, namespace: str, pause: str
) -> None:
    before = everything(kube, namespace)
    wrong = workload("Deployment", pause, container={"env": [{"name": "A", "value": 1}]}, replica=2)
    also = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web_"}, "spec": {"ports": [{"port": 80}]}}
    result = apply(config_map(), wrong, also, fails=True)
    assert result["reason"] == "Invalid"
    assert ".spec.replica: field not declared in schema" in result["msg"]
    assert 'metadata.name: Invalid value: "web_"' in result["msg"]
    assert everything(kube, namespace) == before


def test_what_left_the_manifests_is_pruned_and_what_is_changed_by_hand_put_right(
    apply: Apply, kube: Kube, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    apply(config_map("one", a="1", b="2"), config_map("two"))
    kube.create(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}})
    kube.patch(f"{path}/one", {"data": {"a": "by hand"}})
    result = apply(config_map("one", a="1"), fails=True)
    assert result["reason"] == "FieldConflict"
    result = apply(config_map("one", a="1"), force_conflicts=True)
    assert steps(result) == [f"update ConfigMap {namespace}/one", f"prune ConfigMap {namespace}/two"]
    assert kube.get(f"{path}/one")["data"] == {"a": "1"}
    assert {item["metadata"]["name"] for item in kube.items(path)} == {"kube-root-ca.crt", "one", "set", "theirs"}


def test_objects_of_others_are_not_touched(apply: Apply, kube: Kube, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    kube.apply(f"{path}/pages", config_map(a="theirs"))
    before = everything(kube, namespace)
    result = apply(config_map("first"), config_map(a="ours"), fails=True)
    assert result["reason"] == "NameClash"
    assert f"ConfigMap {namespace}/pages exists and was made by live-test" in result["msg"]
    assert everything(kube, namespace) == before
    assert apply(config_map("first"), config_map(a="ours"), adopt=True, force_conflicts=True)["changed"] is True


def test_pods_roll_when_content_changes(apply: Apply, kube: Kube, namespace: str, pause: str) -> None:
    def pod() -> str:
        return str(kube.get(f"/api/v1/namespaces/{namespace}/pods/web-0")["metadata"]["uid"])

    web = workload(
        "StatefulSet", pause, template={"annotations": {"slurm-ops.kubernetes/restart-on": "configmap/pages"}}
    )
    apply(config_map(a="1"), web, wait=True)
    first = pod()
    result = apply(config_map(a="2"), web, wait=True)
    assert steps(result) == [f"update ConfigMap {namespace}/pages", f"update StatefulSet {namespace}/web"]
    assert pod() != first


def test_a_fixed_field_is_changed_without_losing_the_pod(apply: Apply, kube: Kube, namespace: str, pause: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/web-0"
    apply(workload("StatefulSet", pause), wait=True)
    uid = kube.get(path)["metadata"]["uid"]
    result = apply(workload("StatefulSet", pause, serviceName="other"), fails=True)
    assert result["reason"] == "Immutable"
    assert "spec.serviceName cannot be changed in a StatefulSet" in result["msg"]
    result = apply(workload("StatefulSet", pause, serviceName="other"), recreate=True, wait=True)
    assert steps(result) == [f"recreate StatefulSet {namespace}/web"]
    assert kube.get(path)["metadata"]["uid"] == uid


def test_absent_waits_until_all_is_gone(apply: Apply, kube: Kube, namespace: str, pause: str) -> None:
    apply(config_map(), workload("Deployment", pause), wait=True)
    assert apply(state="absent", check=True)["changed"] is True
    result = apply(state="absent", wait=True)
    assert len(result["actions"]) == 3
    assert everything(kube, namespace) == {}
    assert not kube.items(f"/api/v1/namespaces/{namespace}/pods")
    assert apply(state="absent")["changed"] is False


def test_secrets_do_not_show_even_with_vvv(run_playbook: Callable[..., Any], namespace: str, tmp_path: Path) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}
    args = {"name": "set", "namespace": namespace}
    tasks = [
        {"slurm_ops.kubernetes.applyset": {**args, "manifests": [{**secret, "stringData": {"k": value}}]}}
        for value in ("open-sesame-1", "open-sesame-2")
    ]
    play = {"hosts": "localhost", "gather_facts": False, "tasks": tasks}
    result = run_playbook([play], diff=True, inventory="/dev/null", env={"ANSIBLE_VERBOSITY": "3"})
    assert len(result.changed) == 2
    assert "(hidden, changed)" in result.output
    assert "open-sesame" not in result.output
    assert "b3Blbi1zZXNhbWU" not in result.output


# --- early failure, and that a second run repairs -----------------------------------------------------------------


def test_a_bad_image_fails_early_and_a_good_one_repairs(apply: Apply, pause: str) -> None:
    bad = workload("StatefulSet", "localhost/live/no-such-image:1")
    begun = time.monotonic()
    result = apply(bad, wait=True, fails=True)
    assert time.monotonic() - begun < 40
    assert result["reason"] == "ImagePull"
    assert "localhost/live/no-such-image:1 cannot be pulled" in result["msg"]
    assert result["remaining"]
    # Kubernetes itself would wait for ever for the broken Pod before it makes a new one.
    result = apply(workload("StatefulSet", pause), wait=True)
    assert [step.split("/")[0].split()[:2] for step in steps(result)][:1] == [["update", "StatefulSet"]]


def test_a_name_that_is_no_image_s_fails_at_once(apply: Apply) -> None:
    begun = time.monotonic()
    result = apply(workload("Deployment", "Not An Image"), wait=True, fails=True)
    assert time.monotonic() - begun < 20
    assert result["reason"] == "ImageName"


def test_a_crash_is_told_with_its_last_words(apply: Apply, kube: Kube) -> None:
    command = {"command": ["sh", "-c", "echo the database is not there; exit 3"]}
    result = apply(workload("StatefulSet", image_with(kube, "mariadb"), container=command), wait=True, fails=True)
    assert result["reason"] == "CrashLoop"
    assert "exit code 3" in result["msg"]
    assert "the database is not there" in result["msg"]
    assert result["duration"] < 90


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        ({"pod": {"nodeSelector": {"no": "such"}}}, "Unschedulable", "finds no Node"),
        ({"container": {"envFrom": [{"configMapRef": {"name": "absent"}}]}}, "MissingReference", '"absent" not found'),
        ({"pod": {"serviceAccountName": "nobody"}}, "MissingReference", "no ServiceAccount nobody"),
        (
            {
                "volumeClaimTemplates": [
                    {
                        "metadata": {"name": "state"},
                        "spec": {
                            "storageClassName": "no-such-class",
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Mi"}},
                        },
                    }
                ]
            },
            "StorageClassMissing",
            'storageclass.storage.k8s.io "no-such-class" not found',
        ),
    ],
    ids=["node", "reference", "account", "storage-class"],
)
def test_what_can_never_become_ready_is_named(apply: Apply, pause: str, change: Json, reason: str, words: str) -> None:
    result = apply(workload("StatefulSet", pause, **change), wait=True, fails=True)
    assert result["reason"] == reason
    assert words in result["msg"]
    assert result["duration"] < 60


def test_a_full_quota_is_named_and_a_larger_one_repairs(apply: Apply, kube: Kube, namespace: str, pause: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": {"pods": "0"}},
    }
    kube.create(path, quota)
    kube.wait(f"{path}/small", lambda live: live and live.get("status", {}).get("hard"), what="the quota is counted")
    web = workload("StatefulSet", pause)
    result = apply(web, wait=True, fails=True)
    assert result["reason"] == "QuotaExceeded"
    assert "exceeded quota: small" in result["msg"]
    kube.patch(f"{path}/small", {"spec": {"hard": {"pods": "5"}}})
    result = apply(web, wait=True)
    assert result["duration"] < 60


def test_pod_security_is_named(apply: Apply, kube: Kube, namespace: str, pause: str) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kube.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})
    result = apply(workload("StatefulSet", pause), wait=True, fails=True)
    assert result["reason"] == "PodSecurity"
    assert "allowPrivilegeEscalation" in result["msg"]


def test_a_long_wait_says_what_it_waits_for(run_playbook: Callable[..., Any], namespace: str, pause: str) -> None:
    slow = workload("StatefulSet", pause, container={"readinessProbe": {"tcpSocket": {"port": 9}}})
    args = {"name": "set", "namespace": namespace, "manifests": [slow], "wait": True, "wait_timeout": 13}
    play = {"hosts": "localhost", "gather_facts": False, "tasks": [{"slurm_ops.kubernetes.applyset": args}]}
    env = {"ANSIBLE_CALLBACKS_ENABLED": "record,slurm_ops.kubernetes.progress"}
    result = run_playbook([play], inventory="/dev/null", fails=True, env=env)
    line = next(line for line in result.output.splitlines() if line.startswith("  ... "))
    assert f"StatefulSet {namespace}/web: 0 of 1 Pods are ready" in line
    failed = result.failed[0].result
    assert failed["reason"] == "Timeout"
    assert "did not end in 13 s" in failed["msg"]
    assert "Readiness probe failed" in failed["msg"]


# --- rights and connections ---------------------------------------------------------------------------------------


def test_a_role_in_the_namespace_is_enough(
    apply: Apply, kube: Kube, kubeconfig: str, namespace: str, pause: str, tmp_path: Path
) -> None:
    token = make_account(kube, namespace, "ci", RULES)
    connection = {"kubeconfig": kubeconfig_of(kubeconfig, token, tmp_path / "config")}
    manifests = [config_map(), workload("Deployment", pause)]
    assert apply(*manifests, wait=True, **connection)["changed"] is True
    assert apply(*manifests, wait=True, **connection)["changed"] is False
    bad = apply(workload("StatefulSet", "localhost/live/no-such-image:1"), wait=True, fails=True, **connection)
    assert bad["reason"] == "ImagePull"
    assert bad.get("warnings", []) == []
    assert apply(state="absent", wait=True, **connection)["changed"] is True


def test_missing_rights_are_named(
    apply: Apply, kube: Kube, kubeconfig: str, namespace: str, pause: str, tmp_path: Path
) -> None:
    token = make_account(kube, namespace, "ci", [RULES[0] | {"resources": ["configmaps"]}])
    connection = {"kubeconfig": kubeconfig_of(kubeconfig, token, tmp_path / "config")}
    result = apply(config_map(), workload("Deployment", pause), fails=True, **connection)
    assert result["reason"] == "Forbidden"
    assert (
        f"system:serviceaccount:{namespace}:ci may not list deployments.apps in namespace {namespace}" in result["msg"]
    )
    assert 'resources: ["deployments"]' in result["hint"]
    assert result["changed"] is False
    elsewhere = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{namespace}-more"}}
    result = apply(elsewhere, fails=True, **connection)
    assert result["reason"] == "Forbidden"
    assert "namespaces" in result["msg"]


def test_without_the_right_to_look_closer_the_wait_still_ends(
    apply: Apply, kube: Kube, kubeconfig: str, namespace: str, tmp_path: Path
) -> None:
    token = make_account(kube, namespace, "ci", RULES[:1])
    connection = {"kubeconfig": kubeconfig_of(kubeconfig, token, tmp_path / "config")}
    bad = workload("StatefulSet", "localhost/live/no-such-image:1")
    result = apply(bad, wait=True, wait_timeout=8, fails=True, **connection)
    assert result["reason"] == "Timeout"
    assert any("list pods" in warning for warning in result["warnings"])


def test_a_token_that_is_no_longer_valid(
    apply: Apply, kube: Kube, kubeconfig: str, namespace: str, tmp_path: Path
) -> None:
    token = make_account(kube, namespace, "ci", RULES)
    connection = {"kubeconfig": kubeconfig_of(kubeconfig, token, tmp_path / "config")}
    kube.delete(f"/api/v1/namespaces/{namespace}/serviceaccounts/ci")
    begun = time.monotonic()
    result = apply(config_map(), fails=True, **connection)
    assert result["reason"] == "Unauthorized"
    assert "wrong or expired" in result["msg"]
    assert "config, context" in result["msg"]
    assert token not in str(result)
    assert time.monotonic() - begun < 20


def test_a_server_that_is_not_there(apply: Apply) -> None:
    begun = time.monotonic()
    result = apply(config_map(), host="https://127.0.0.1:9", api_key="the-token", validate_certs=False, fails=True)
    assert result["reason"] == "Unreachable"
    assert "https://127.0.0.1:9 cannot be reached: Connection refused" in result["msg"]
    assert time.monotonic() - begun < 30


def test_a_certificate_that_is_not_trusted(apply: Apply, kubeconfig: str) -> None:
    config = yaml.safe_load(Path(kubeconfig).read_text(encoding="utf-8"))
    for cluster in config["clusters"]:
        cluster["cluster"].pop("certificate-authority-data", None)
        cluster["cluster"].pop("certificate-authority", None)
        cluster["cluster"].pop("insecure-skip-tls-verify", None)
    result = apply(config_map(), kubeconfig=config, fails=True)
    assert result["reason"] == "TlsFailure"
    assert "is not trusted" in result["msg"]
