# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module secret from its options to its result, against a small API server in memory."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.modules import secret

from ..module_utils._kube.fake_api import Answer, Asked, FakeApi, status
from ..module_utils._kube.fake_cluster import FakeCluster
from .run_module import run_module

Object = dict[str, Any]
Run = Callable[..., Object]

DATA = {"key": {"bytes": 64}, "password": {"password": {"length": 20}}, "own": {"value": "open sesame"}}


@pytest.fixture
def run(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(data: Object | None = None, *, check: bool = False, diff: bool = False, **options: Any) -> Object:
        args = {
            "host": api.url,
            "api_key": "the-token-of-the-test",
            "name": "auth",
            "namespace": "demo",
            "data": data or {},
        }
        return run_module(secret.main, capsys, {**args, **options}, check=check, diff=diff)

    return call


def stored(cluster: FakeCluster) -> dict[str, bytes]:
    item = cluster.get("secrets", "auth")
    assert item is not None
    return {key: base64.b64decode(value) for key, value in item["data"].items()}


def test_it_is_made_once(run: Run, cluster: FakeCluster) -> None:
    first = run(DATA, labels={"a": "b"})
    assert first["changed"] is True
    assert first["keys"] == ["key", "own", "password"]
    made = stored(cluster)
    assert len(made["key"]) == 64
    assert len(made["password"]) == 20
    assert made["own"] == b"open sesame"
    versions = cluster.versions()
    second = run(DATA, labels={"a": "b"})
    assert second["changed"] is False
    assert second["api_calls"] == {"kubernetes": 1, "slurm": 0, "writes": 0, "verbs": {"get": 1}}
    assert cluster.versions() == versions


def test_check_mode_writes_nothing(run: Run, cluster: FakeCluster) -> None:
    result = run(DATA, check=True, diff=True)
    assert result["changed"] is True
    assert result["keys"] == ["key", "own", "password"]
    assert result["api_calls"]["writes"] == 0
    assert cluster.get("secrets", "auth") is None


def test_check_mode_in_a_namespace_that_is_still_to_come(run: Run) -> None:
    assert run(DATA, namespace="fresh", check=True)["changed"] is True
    result = run(DATA, namespace="fresh")
    assert result["reason"] == "NamespaceMissing"


def test_missing_keys_are_added_and_others_kept(run: Run, cluster: FakeCluster) -> None:
    cluster.put(
        "secrets",
        "demo",
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {"name": "auth"},
            "data": {"key": "bWluZQ=="},
        },
    )
    assert run(DATA)["changed"] is True
    made = stored(cluster)
    assert made["key"] == b"mine"
    assert len(made["password"]) == 20


def test_a_given_value_is_updated(run: Run, cluster: FakeCluster) -> None:
    run(DATA)
    before = stored(cluster)
    result = run({**DATA, "own": {"value": "close sesame"}}, diff=True)
    assert result["changed"] is True
    assert stored(cluster) == {**before, "own": b"close sesame"}
    assert "own: (hidden, changed)" in result["diff"][0]["after"]


def test_it_can_be_removed(run: Run, cluster: FakeCluster) -> None:
    run(DATA)
    assert run(DATA, state="absent", check=True)["changed"] is True
    assert cluster.get("secrets", "auth")
    result = run(state="absent")
    assert result["changed"] is True
    assert result["keys"] == []
    assert cluster.get("secrets", "auth") is None
    assert run(state="absent")["changed"] is False


def test_what_somebody_else_adds_meanwhile_is_not_written_over(run: Run, cluster: FakeCluster) -> None:
    run({"key": {"bytes": 8}})

    def before(asked: Asked) -> Answer | None:
        if asked.method == "PATCH" and "dryRun" not in asked.query:
            item = cluster.get("secrets", "auth")
            assert item is not None
            item["data"]["own"] = "dGhlaXJz"
            item["metadata"]["resourceVersion"] = "999"
        return None

    cluster.before = before
    result = run(DATA)
    assert result["reason"] == "Conflict"
    assert stored(cluster)["own"] == b"theirs"
    cluster.before = lambda _asked: None
    assert run({"key": {"bytes": 8}, "password": {"password": None}})["changed"] is True


def test_a_missing_right_is_found_by_the_dry_run(run: Run, cluster: FakeCluster) -> None:
    message = 'secrets is forbidden: User "ci" cannot create resource "secrets" in API group "" in the namespace "demo"'
    cluster.before = lambda asked: status(403, "Forbidden", message) if asked.method == "POST" else None
    for check in (True, False):
        result = run(DATA, check=check)
        assert result["reason"] == "Forbidden"
        assert "ci may not create secrets in namespace demo" in result["msg"]
        assert result["api_calls"]["writes"] == 0


def test_nothing_secret_is_shown(run: Run, cluster: FakeCluster) -> None:
    results = [
        run(DATA, check=True, diff=True),
        run(DATA, diff=True),
        run({**DATA, "own": {"value": "close sesame"}, "more": {"bytes": 9}}, diff=True),
        run({"own": {"value": "open sesame", "bytes": 1}}),
        run(DATA, type="kubernetes.io/tls"),
        run(DATA, unknown="x"),
        run(state="absent", diff=True),
    ]
    text = json.dumps(results)
    for value in ("open sesame", "close sesame"):
        assert value not in text
        assert base64.b64encode(value.encode()).decode() not in text


def test_nothing_secret_is_logged(run: Run, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    monkeypatch.setattr(
        "ansible.module_utils.basic.AnsibleModule._log_to_syslog", lambda _self, text: logged.append(text)
    )
    monkeypatch.setattr("ansible.module_utils.basic.has_journal", False)
    run(DATA)
    assert logged
    assert "name=auth" in logged[0]
    assert "sesame" not in " ".join(logged)
