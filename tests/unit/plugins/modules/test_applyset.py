# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module applyset from its options to its result, against a small API server in memory."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from ansible_collections.slurm_ops.kubernetes.plugins.modules import applyset

from ..module_utils._kube.fake_api import Answer, Asked, FakeApi, status
from ..module_utils._kube.fake_cluster import FakeCluster
from .run_module import run_module

Object = dict[str, Any]
Run = Callable[..., Object]

PASSWORD = "correct horse battery staple"


def config_map(name: str = "pages", **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {"a": "1"}}


def secret(name: str = "keys", value: str = PASSWORD) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"password": value}}


def workload(kind: str = "Deployment", name: str = "web", restart_on: str = "", **spec: Any) -> Object:
    annotations = {"slurm-ops.kubernetes/restart-on": restart_on} if restart_on else None
    template = {"metadata": {"labels": {"app": name}, "annotations": annotations}, "spec": {"containers": []}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": {"template": template, **spec}}


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fresh"}}


@pytest.fixture
def run(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*manifests: Any, check: bool = False, diff: bool = False, **options: Any) -> Object:
        args = {
            "host": api.url,
            "api_key": "the-token-of-the-test",
            "name": "set",
            "namespace": "demo",
            "manifests": list(manifests),
        }
        return run_module(applyset.main, capsys, {**args, **options}, check=check, diff=diff)

    return call


def targets(result: Object, done: bool | None = None) -> list[str]:
    return [
        f"{action['kind']} {action['target']}" for action in result["actions"] if done is None or action["done"] is done
    ]


def test_the_first_run_changes_and_the_second_writes_nothing(run: Run, cluster: FakeCluster, api: FakeApi) -> None:
    manifests = [config_map(), secret(), workload(restart_on="configmap/pages")]
    first = run(*manifests, wait=True)
    assert first["changed"] is True
    assert targets(first, done=True) == [
        "create ConfigMap demo/set",
        "create Secret demo/keys",
        "create ConfigMap demo/pages",
        "create Deployment demo/web",
    ]
    versions = cluster.versions()
    connections = api.connections
    second = run(*manifests, wait=True)
    assert second["changed"] is False
    assert second["actions"] == []
    assert second["api_calls"]["writes"] == 0
    assert set(second["api_calls"]["verbs"]) == {"get", "list"}
    assert cluster.versions() == versions
    assert api.connections == connections + 1
    assert second["auth_source"] == "options"
    assert [item["kind"] for item in second["resources"]] == ["Secret", "ConfigMap", "Deployment"]


def test_check_mode_predicts_the_same_and_writes_nothing(run: Run, cluster: FakeCluster) -> None:
    versions = cluster.versions()
    predicted = run(config_map(), secret(), check=True, diff=True)
    assert cluster.versions() == versions
    assert predicted["changed"] is True
    assert predicted["api_calls"]["writes"] == 0
    done = run(config_map(), secret(), diff=True)
    assert targets(predicted, done=False) == targets(done, done=True)
    assert predicted["diff"] == done["diff"]


def test_a_change_is_one_update_with_a_small_diff(run: Run, cluster: FakeCluster) -> None:
    run(config_map(a="1", b="2"), secret())
    result = run(config_map(a="1", b="3"), secret(), diff=True)
    assert targets(result, done=True) == ["update ConfigMap demo/pages"]
    assert (result["actions"][0]["before"], result["actions"][0]["after"]) == ({"data.b": "2"}, {"data.b": "3"})
    (diff,) = result["diff"]
    before, after = (yaml.safe_load(diff[side]) for side in ("before", "after"))
    assert {**before, "data": after["data"]} == after
    for noise in ("managedFields", "resourceVersion", "uid", "creationTimestamp", "status", "slurm-ops.kubernetes"):
        assert noise not in diff["before"] + diff["after"]
    stored = cluster.get("configmaps", "pages")
    assert stored is not None
    assert stored["data"] == {"a": "1", "b": "3"}


def test_a_key_that_left_the_manifest_goes(run: Run, cluster: FakeCluster) -> None:
    run(config_map(a="1", b="2"))
    assert run(config_map(a="1"))["changed"] is True
    stored = cluster.get("configmaps", "pages")
    assert stored is not None
    assert stored["data"] == {"a": "1"}
    assert run(config_map(a="1"))["changed"] is False


def test_what_somebody_changed_by_hand_is_put_right(run: Run, cluster: FakeCluster) -> None:
    run(config_map(a="1"))
    stored = cluster.get("configmaps", "pages")
    assert stored is not None
    stored["data"]["a"] = "by hand"
    result = run(config_map(a="1"))
    assert result["actions"][0]["before"] == {"data.a": "by hand"}
    assert run(config_map(a="1"))["changed"] is False


def test_what_left_the_manifests_is_pruned(run: Run, cluster: FakeCluster) -> None:
    run(config_map(), secret(), config_map("other"))
    result = run(config_map())
    assert targets(result, done=True) == [
        "prune ConfigMap demo/other",
        "prune Secret demo/keys",
        "update ConfigMap demo/set",
    ]
    assert cluster.get("secrets", "keys") is None
    assert run(config_map())["changed"] is False


def test_what_left_the_manifests_stays_without_prune(run: Run, cluster: FakeCluster) -> None:
    run(config_map(), secret())
    assert run(config_map(), prune=False)["changed"] is False
    assert cluster.get("secrets", "keys")
    assert targets(run(config_map())) == ["prune Secret demo/keys", "update ConfigMap demo/set"]


def test_pods_roll_when_content_changes(run: Run, cluster: FakeCluster) -> None:
    def content_hash() -> str:
        stored = cluster.get("deployments", "web")
        assert stored is not None
        return str(stored["spec"]["template"]["metadata"]["annotations"]["slurm-ops.kubernetes/content-hash"])

    cluster.put("secrets", "demo", secret("theirs") | {"data": {"k": "AAAA"}})
    web = workload(restart_on="configmap/pages,secret/theirs,configmap/absent")
    run(config_map(a="1"), web)
    first = content_hash()
    result = run(config_map(a="2"), web)
    assert targets(result) == ["update ConfigMap demo/pages", "update Deployment demo/web"]
    second = content_hash()
    assert second != first
    cluster.put("secrets", "demo", secret("theirs") | {"data": {"k": "BBBB"}})
    assert targets(run(config_map(a="2"), web)) == ["update Deployment demo/web"]
    assert content_hash() != second
    assert run(config_map(a="2"), web)["changed"] is False


def test_absent_removes_the_set_but_keeps_volumes(run: Run, cluster: FakeCluster) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "home"}, "spec": {}}
    run(config_map(), secret(), claim)
    result = run(state="absent", wait=True)
    assert targets(result, done=True) == [
        "delete ConfigMap demo/pages",
        "delete Secret demo/keys",
        "delete ConfigMap demo/set",
    ]
    assert {plural for plural, _namespace, _name in cluster.objects} == {"namespaces", "persistentvolumeclaims"}
    assert run(state="absent")["changed"] is False
    # The volume is still known as one of the set's.
    assert run(claim)["changed"] is True
    assert targets(run(state="absent", delete_volumes=True)) == [
        "delete PersistentVolumeClaim demo/home",
        "delete ConfigMap demo/set",
    ]


def test_volumes_can_be_removed_later(run: Run, cluster: FakeCluster) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "home"}, "spec": {}}
    run(claim)
    run(state="absent")
    assert targets(run(state="absent", delete_volumes=True)) == ["delete PersistentVolumeClaim demo/home"]


# --- namespaces ---------------------------------------------------------------------------------------------------


def test_a_namespace_of_the_set_is_made_first(run: Run, cluster: FakeCluster) -> None:
    result = run(config_map(), NAMESPACE, namespace="fresh")
    assert targets(result) == ["create Namespace fresh", "create ConfigMap fresh/set", "create ConfigMap fresh/pages"]
    assert run(config_map(), NAMESPACE, namespace="fresh")["changed"] is False
    run(namespace="fresh", state="absent")
    assert cluster.get("namespaces", "fresh", "")


def test_check_mode_predicts_in_a_namespace_that_is_still_to_come(run: Run, cluster: FakeCluster) -> None:
    result = run(config_map(), workload(), namespace="fresh", check=True, diff=True)
    assert targets(result) == [
        "create ConfigMap fresh/set",
        "create ConfigMap fresh/pages",
        "create Deployment fresh/web",
    ]
    assert "a: '1'" in result["diff"][1]["after"]
    assert cluster.get("configmaps", "pages", "fresh") is None


def test_a_real_run_without_its_namespace_fails_before_anything_is_done(run: Run) -> None:
    result = run(config_map(), namespace="fresh")
    assert result["failed"] is True
    assert result["reason"] == "NamespaceMissing"
    assert "there is no namespace 'fresh'" in result["msg"]
    assert "Nothing was changed." in result["msg"]


def test_an_existing_namespace_is_not_taken_over(run: Run, cluster: FakeCluster) -> None:
    cluster.put("namespaces", "", NAMESPACE, labels={"team": "x"})
    run(config_map(), {**NAMESPACE, "metadata": {"name": "fresh", "labels": {"a": "b"}}}, namespace="fresh")
    stored = cluster.get("namespaces", "fresh", "")
    assert stored is not None
    assert stored["metadata"]["labels"] == {"team": "x", "a": "b"}


# --- secrets ------------------------------------------------------------------------------------------------------


def test_secrets_are_never_shown(run: Run) -> None:
    encoded = base64.b64encode(PASSWORD.encode()).decode()
    results = [
        run(secret(), check=True, diff=True),
        run(secret(), diff=True),
        run(secret(value=PASSWORD + "2"), diff=True),
        run(yaml.safe_dump(secret()), diff=True),
        run(state="absent", diff=True),
        run({**secret(), "data": {"x": PASSWORD}}),
        run({**secret(), "stringData": {"x": 12345678}}),
        run(secret(), unknown_option=True),
    ]
    text = json.dumps(results)
    assert PASSWORD not in text
    assert encoded[:20] not in text
    assert "12345678" not in text
    assert results[2]["diff"][0]["after"].count("(hidden, changed)") == 1
    assert "ApplySet" not in str(results[-1])
    assert results[-1]["failed"] is True
    assert all(
        result["invocation"]["module_args"]["manifests"] == "(not shown: may hold secrets)" for result in results
    )


def test_a_kubeconfig_as_data_is_not_shown(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": api.url}}],
        "users": [{"name": "u", "user": {"token": PASSWORD}}],
    }
    result = run_module(applyset.main, capsys, {"kubeconfig": config, "name": "set", "namespace": "demo"})
    assert PASSWORD not in json.dumps(result)
    assert result["auth_source"] == "kubeconfig the given kubeconfig, context c"


# --- what goes wrong ----------------------------------------------------------------------------------------------


def test_an_object_of_somebody_else_is_not_touched(run: Run, cluster: FakeCluster) -> None:
    cluster.put("configmaps", "demo", config_map(a="theirs"))
    versions = cluster.versions()
    result = run(secret(), config_map(a="ours"))
    assert result["reason"] == "NameClash"
    assert "ConfigMap demo/pages exists and was made by somebody" in result["msg"]
    assert cluster.versions() == versions
    adopted = run(secret(), config_map(a="ours"), adopt=True)
    assert "update ConfigMap demo/pages" in targets(adopted)


def test_two_sets_do_not_take_each_other_s_objects(run: Run) -> None:
    run(config_map(), name="one")
    result = run(config_map(), name="two")
    assert result["reason"] == "NameClash"
    assert "belongs to the ApplySet" in result["msg"]


def test_the_set_s_own_configmap_is_not_a_member(run: Run) -> None:
    assert run(config_map("set"))["reason"] == "NameClash"


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ({"kind": "ConfigMap"}, "no apiVersion"),
        ("a: [", "not YAML"),
        ("just text", "text, but not of a manifest"),
        ({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}, "The cluster has no kind Thing"),
    ],
)
def test_malformed_manifests(run: Run, manifest: Any, words: str) -> None:
    result = run(config_map(), manifest)
    assert result["failed"] is True
    assert words in result["msg"]
    assert result["api_calls"]["writes"] == 0


def test_a_refusal_is_found_before_anything_is_written(run: Run, cluster: FakeCluster) -> None:
    def before(asked: Asked) -> Answer | None:
        if asked.method == "PATCH" and asked.path.endswith("/web"):
            return status(422, "Invalid", "no", causes=[{"field": "spec.selector", "message": "Required value"}])
        return None

    cluster.before = before
    result = run(config_map(), secret(), workload())
    assert result["reason"] == "Invalid"
    assert "Deployment demo/web: the API server refuses it: spec.selector: Required value" in result["msg"]
    assert result["changed"] is False
    assert result["api_calls"]["writes"] == 0


def test_a_failure_halfway_tells_what_was_done(run: Run, cluster: FakeCluster) -> None:
    def before(asked: Asked) -> Answer | None:
        if asked.method == "PATCH" and asked.path.endswith("/web") and "dryRun" not in asked.query:
            return status(403, "Forbidden", "exceeded quota: q, requested: x=1")
        return None

    cluster.before = before
    result = run(config_map(), workload(), workload(name="zzz"))
    assert result["reason"] == "QuotaExceeded"
    assert result["changed"] is True
    assert "Done: create ConfigMap demo/set, create ConfigMap demo/pages." in result["msg"]
    assert "Not done: create Deployment demo/web, create Deployment demo/zzz." in result["msg"]
    assert result["remaining"] == ["create Deployment demo/web", "create Deployment demo/zzz"]
    cluster.before = lambda _asked: None
    assert targets(run(config_map(), workload(), workload(name="zzz"))) == result["remaining"]


def test_a_missing_right_is_named(run: Run, cluster: FakeCluster) -> None:
    message = 'User "ci" cannot get resource "configmaps" in API group "" in the namespace "demo"'
    cluster.before = lambda _asked: status(403, "Forbidden", message)
    result = run(config_map())
    assert result["reason"] == "Forbidden"
    assert "ci may not get configmaps in namespace demo" in result["msg"]
    assert "Role in namespace demo" in result["hint"]


def test_a_fixed_field_and_recreate(run: Run, cluster: FakeCluster) -> None:
    run(workload("StatefulSet", serviceName="old"))
    stored = cluster.get("statefulsets", "web")
    assert stored is not None
    refused = run(workload("StatefulSet", serviceName="new"))
    assert refused["reason"] == "Immutable"
    assert "spec.serviceName cannot be changed" in refused["msg"]
    result = run(workload("StatefulSet", serviceName="new"), recreate=True, wait=True)
    assert targets(result, done=True) == ["recreate StatefulSet demo/web"]
    again = cluster.get("statefulsets", "web")
    assert again is not None
    assert again["spec"]["serviceName"] == "new"
    assert again["metadata"]["uid"] != stored["metadata"]["uid"]
    assert run(workload("StatefulSet", serviceName="new"), recreate=True)["changed"] is False


def test_a_wait_that_takes_too_long_tells_what_is_missing(run: Run, cluster: FakeCluster) -> None:
    web = workload(replicas=2)
    run(web)
    stored = cluster.get("deployments", "web")
    assert stored is not None
    stored["status"]["availableReplicas"] = 1
    result = run(web, wait=True, wait_timeout=1)
    assert result["reason"] == "Timeout"
    assert result["remaining"] == ["Deployment demo/web: 1 of 2 Pods are ready"]
    assert result["changed"] is False


def test_many_objects_go_side_by_side(run: Run, api: FakeApi) -> None:
    result = run(*[config_map(f"n-{number}") for number in range(40)])
    assert result["api_calls"]["writes"] == 41
    assert all(action["done"] for action in result["actions"])
    assert api.connections > 1


def test_a_defect_is_told_as_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: Any) -> None:
        raise ZeroDivisionError("oops")

    name = "ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.applyset.plan"
    monkeypatch.setattr(name, broken)
    result = run(config_map())
    assert result["reason"] == "Unexpected"
    assert "Unexpected ZeroDivisionError: oops" in result["msg"]
