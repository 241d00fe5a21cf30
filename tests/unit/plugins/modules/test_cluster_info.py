# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module cluster_info on made-up sides: what it reads, in how many calls, and what it does when one is missing."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError
from ansible_collections.slurm_ops.kubernetes.plugins.modules import cluster_info

LABELS = {"app.kubernetes.io/component": "worker", "slurm-ops.kubernetes/nodeset": "cpu"}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
OBJECTS: dict[str, list[dict[str, Any]]] = {
    "StatefulSet": [
        {"metadata": {"name": "cpu", "labels": LABELS}, "spec": {"replicas": 1}, "status": {"replicas": 1}}
    ],
    "Pod": [{"metadata": {"name": "cpu-0", "labels": LABELS}, "spec": {"nodeName": "node1"}, "status": READY}],
    "Node": [{"metadata": {"name": "node1", "labels": {"rack": "r1", "other": "x"}}}],
}
SLURM: dict[str, dict[str, Any]] = {
    "ping/": {
        "pings": [{"hostname": "c-0", "responding": True, "primary": True}],
        "meta": {"slurm": {"release": "26.05.5"}},
    },
    "nodes/": {
        "nodes": [{"name": "cpu-0", "hostname": "cpu-0", "state": ["IDLE"], "version": "26.05.5"}],
        "last_update": 1,
    },
    "partitions/": {"partitions": [{"name": "cpu"}], "last_update": 1},
    "jobs/state/": {"jobs": [{"job_id": "1", "state": ["RUNNING"]}]},
}


class Reply:
    def __init__(self, status: int, content: Any) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {}
        self.body = json.dumps(content).encode()


class Kubernetes:
    """As much of a KubernetesClient as the module uses."""

    def __init__(self, missing: Mapping[str, Exception] | None = None) -> None:
        self.missing = dict(missing or {})
        self.calls: Counter[str] = Counter()
        self.selectors: list[str] = []

    def list(self, resource: Any, namespace: str | None = None, *, labels: str = "", cached: bool = False) -> Any:
        self.calls["list"] += 1
        self.selectors.append(labels)
        if resource.kind in self.missing:
            raise self.missing[resource.kind]
        assert (namespace is None) == (resource.kind == "Node")
        return [{"kind": resource.kind, **item} for item in OBJECTS.get(resource.kind, [])]

    def get(self, resource: Any, namespace: str, name: str) -> Any:
        self.calls["get"] += 1
        assert (resource.kind, namespace, name) == ("Secret", "hpc", "slurm-auth")
        if "Secret" in self.missing:
            return None
        return {"data": {"jwt.key": base64.b64encode(bytes(32)).decode()}}

    def exchange(self, method: str, path: str, **more: Any) -> Reply:
        self.calls[more["verb"]] += 1
        prefix = "/api/v1/namespaces/hpc/services/slurm-restapi:6820/proxy/slurm/v0.0.45/"
        assert path.startswith(prefix)
        assert more["headers"]["X-SLURM-USER-TOKEN"].count(".") == 2
        assert more["idempotent"] is False
        if "slurmrestd" in self.missing:
            return Reply(503, {"kind": "Status", "message": 'no endpoints available for service "slurm-restapi"'})
        return Reply(200, SLURM[path.removeprefix(prefix)])


class Run:
    """As much of a Run as the module uses."""

    def __init__(self, kubernetes: Kubernetes, **params: Any) -> None:
        self.kubernetes = kubernetes
        self.slurm_calls: Counter[str] = Counter()
        self.params = {
            "namespace": "hpc",
            "name": "slurm",
            "labels": [],
            "annotations": [],
            "conditions": ["Ready"],
            "kubernetes_nodes": True,
            "fail_on_unreadable": True,
            **params,
        }


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)


def read(kubernetes: Kubernetes, **params: Any) -> tuple[Mapping[str, Any], Run]:
    run = Run(kubernetes, **params)
    return cluster_info.read(run), run  # type: ignore[arg-type]


def test_both_sides() -> None:
    found, run = read(Kubernetes(), labels=["rack"])
    assert [item["name"] for item in found["nodesets"]] == ["cpu"]
    assert found["nodes"][0]["kubernetes_node"] == "node1"
    assert found["kubernetes_nodes"][0]["labels"] == {"rack": "r1"}
    assert found["jobs"]["by_state"] == {"RUNNING": 1}
    assert found["versions"] == {"slurmrestd": "26.05.5", "data_parser": "v0.0.45", "slurmd": {"26.05.5": 1}}
    assert found["controllers"] == [{"hostname": "c-0", "primary": True, "responding": True}]
    assert found["readable"] == {"kubernetes": True, "kubernetes_nodes": True, "slurm": True}
    assert found["unreadable"] == []
    assert run.kubernetes.calls == {"list": 5, "get": 1}
    assert run.slurm_calls == {"get": 4}
    assert set(run.kubernetes.selectors) == {"", "slurm-ops.kubernetes/cluster=slurm"}


def test_what_is_returned_is_what_is_documented() -> None:
    documented = yaml.safe_load(cluster_info.RETURN)
    found, _run = read(Kubernetes(), labels=["rack"])
    assert set(documented) == {*found, "api_calls", "duration"}
    for key in ("nodesets", "nodes", "kubernetes_nodes", "partitions", "controllers"):
        assert set(documented[key]["sample"][0]) == set(found[key][0]), key


def test_a_missing_slurm_fails_or_is_told() -> None:
    with pytest.raises(OperationError) as caught:
        read(Kubernetes({"slurmrestd": Exception()}))
    assert "no endpoints available" in str(caught.value)
    found, _run = read(Kubernetes({"slurmrestd": Exception()}), fail_on_unreadable=False)
    assert found["readable"] == {"kubernetes": True, "kubernetes_nodes": True, "slurm": False}
    assert found["unreadable"][0]["side"] == "slurm"
    assert found["nodes"][0]["known_to_slurm"] is None


def test_a_missing_key_is_told() -> None:
    with pytest.raises(OperationError) as caught:
        read(Kubernetes({"Secret": Exception()}))
    assert caught.value.reason == "NoKey"


def test_an_account_that_may_not_list_nodes_is_enough() -> None:
    forbidden = ApiError("nodes is forbidden", status=403, reason="Forbidden")
    found, _run = read(Kubernetes({"Node": forbidden}))
    assert found["readable"] == {"kubernetes": True, "kubernetes_nodes": False, "slurm": True}
    assert found["unreadable"] == [{"side": "kubernetes_nodes", "reason": "Forbidden", "msg": "nodes is forbidden"}]
    assert found["nodesets"]
    assert read(Kubernetes({"Node": forbidden}), kubernetes_nodes=False)[0]["unreadable"] == []


def test_a_missing_kubernetes_does_not_hide_slurm() -> None:
    refused = ApiError("pods is forbidden", status=403, reason="Forbidden")
    with pytest.raises(OperationError) as caught:
        read(Kubernetes({"Pod": refused}))
    assert caught.value is refused
    found, _run = read(Kubernetes({"Pod": refused}), fail_on_unreadable=False)
    assert found["readable"] == {"kubernetes": False, "kubernetes_nodes": True, "slurm": True}
    assert [item["name"] for item in found["nodes"]] == ["cpu-0"]


def test_defects_are_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        read(Kubernetes({"Pod": ZeroDivisionError()}), fail_on_unreadable=False)
