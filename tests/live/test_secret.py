# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module secret on a real cluster: made once, never changed, never shown."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .support.accounts import kubeconfig_of, make_account
from .support.kube import Kube

Json = dict[str, Any]
Make = Callable[..., Json]

DATA = {
    "slurm.key": {"bytes": 1024},
    "password": {"password": {"length": 24}},
    "own": {"value": "open-sesame"},
    "ssh_host_ed25519_key": {"ssh_host_key": "ed25519"},
    "tls": {"tls": {"common_name": "directory", "dns_names": ["directory", "directory.demo.svc"]}},
}


@pytest.fixture
def make(run_module: Callable[..., Json], namespace: str) -> Make:
    def call(data: Json | None = None, *, check: bool = False, diff: bool = False, **options: Any) -> Json:
        fails = options.pop("fails", False)
        args = {"name": "auth", "namespace": namespace, "data": data or {}, **options}
        return run_module("secret", args, check=check, diff=diff, fails=fails)

    return call


def stored(kube: Kube, namespace: str) -> dict[str, bytes]:
    live = kube.get(f"/api/v1/namespaces/{namespace}/secrets/auth")
    return {key: base64.b64decode(value) for key, value in live["data"].items()}


def test_it_is_made_once(make: Make, kube: Kube, namespace: str, tmp_path: Path) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets/auth"
    predicted = make(DATA, check=True)
    assert predicted["changed"] is True
    assert kube.find(path) is None
    first = make(DATA, labels={"a": "b"})
    assert first["changed"] is True
    assert first["keys"] == predicted["keys"]
    made = stored(kube, namespace)
    assert len(made["slurm.key"]) == 1024
    assert len(made["password"]) == 24
    assert made["own"] == b"open-sesame"
    assert made["ssh_host_ed25519_key.pub"].startswith(b"ssh-ed25519 ")
    (tmp_path / "pem").write_bytes(made["tls.key"] + made["tls.crt"])
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tmp_path / "pem")
    version = kube.get(path)["metadata"]["resourceVersion"]
    second = make(DATA, labels={"a": "b"})
    assert second["changed"] is False
    assert second["api_calls"] == {"kubernetes": 1, "slurm": 0, "writes": 0, "verbs": {"get": 1}}
    assert kube.get(path)["metadata"]["resourceVersion"] == version


def test_your_own_keys_are_kept_and_missing_ones_added(make: Make, kube: Kube, namespace: str) -> None:
    own = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "auth"}, "stringData": {"slurm.key": "mine"}}
    kube.create(f"/api/v1/namespaces/{namespace}/secrets", own)
    result = make({"slurm.key": {"bytes": 1024}, "jwt.key": {"bytes": 32}})
    assert result["changed"] is True
    assert result["actions"][0]["why"] == "jwt.key missing"
    made = stored(kube, namespace)
    assert made["slurm.key"] == b"mine"
    assert len(made["jwt.key"]) == 32


def test_a_value_is_updated_and_the_secret_removed(make: Make, kube: Kube, namespace: str) -> None:
    make(DATA)
    before = stored(kube, namespace)
    assert make({**DATA, "own": {"value": "other"}})["changed"] is True
    assert stored(kube, namespace) == {**before, "own": b"other"}
    assert make(state="absent")["changed"] is True
    assert make(state="absent")["changed"] is False


def test_immutable_is_for_ever(make: Make) -> None:
    make({"a": {"bytes": 8}}, immutable=True)
    assert make({"a": {"bytes": 8}}, immutable=True)["changed"] is False
    result = make({"a": {"bytes": 8}, "b": {"bytes": 8}}, fails=True)
    assert result["reason"] == "Immutable"


def test_check_mode_in_a_namespace_that_is_still_to_come(make: Make, namespace: str) -> None:
    assert make(DATA, namespace=f"{namespace}-not", check=True)["changed"] is True
    result = make(DATA, namespace=f"{namespace}-not", fails=True)
    assert result["reason"] == "NamespaceMissing"
    assert "Nothing was changed." in result["msg"]


def test_a_role_in_the_namespace_is_enough(
    make: Make, kube: Kube, kubeconfig: str, namespace: str, tmp_path: Path
) -> None:
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create", "patch", "delete"]}]
    token = make_account(kube, namespace, "ci", rules)
    connection = {"kubeconfig": kubeconfig_of(kubeconfig, token, tmp_path / "config")}
    assert make({"a": {"bytes": 8}}, **connection)["changed"] is True
    assert make({"a": {"bytes": 8}, "b": {"bytes": 8}}, **connection)["changed"] is True
    assert make(state="absent", **connection)["changed"] is True


def test_missing_rights_are_named_before_anything_is_made(
    make: Make, kube: Kube, kubeconfig: str, namespace: str, tmp_path: Path
) -> None:
    token = make_account(kube, namespace, "ci", [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}])
    connection = {"kubeconfig": kubeconfig_of(kubeconfig, token, tmp_path / "config")}
    for check in (True, False):
        result = make(DATA, check=check, fails=True, **connection)
        assert result["reason"] == "Forbidden"
        assert "may not create secrets" in result["msg"]
        assert result["api_calls"]["writes"] == 0


def test_nothing_secret_shows_even_with_vvv(run_playbook: Callable[..., Any], kube: Kube, namespace: str) -> None:
    args = {"name": "auth", "namespace": namespace}
    tasks = [
        {"slurm_ops.kubernetes.secret": {**args, "data": DATA}},
        {"slurm_ops.kubernetes.secret": {**args, "data": {**DATA, "own": {"value": "close-sesame"}}}},
    ]
    play = {"hosts": "localhost", "gather_facts": False, "tasks": tasks}
    result = run_playbook([play], diff=True, inventory="/dev/null", env={"ANSIBLE_VERBOSITY": "3"})
    assert len(result.changed) == 2
    for key, value in stored(kube, namespace).items():
        if key.endswith((".pub", ".crt")):
            continue
        assert base64.b64encode(value).decode()[:16] not in result.output, key
        assert value.decode("latin-1")[:16] not in result.output, key
    assert "sesame" not in result.output
