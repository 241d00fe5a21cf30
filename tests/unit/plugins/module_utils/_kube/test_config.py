# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a connection comes from, and which source wins."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.config import resolve
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.connection import Connection


def kubeconfig(
    user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "ns"}},
            {"name": "two", "context": {"cluster": "d", "user": "u"}},
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": "https://one.example.com:6443/", **(cluster or {})}},
            {"name": "d", "cluster": {"server": "https://two.example.com"}},
        ],
        "users": [{"name": "u", "user": {"token": "file-token"} if user is None else user}],
        **more,
    }


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(kubeconfig()))
    return path


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_a_file_named_by_an_option(config_file: Path) -> None:
    connection = resolve({"kubeconfig": str(config_file)}, {})
    assert connection.host == "https://one.example.com:6443"
    assert connection.authorization == "Bearer file-token"
    assert connection.namespace == "ns"
    assert connection.verify
    assert connection.source == f"kubeconfig {config_file}, context one"


def test_a_dictionary() -> None:
    connection = resolve({"kubeconfig": kubeconfig(), "context": "two"}, {})
    assert connection.host == "https://two.example.com"
    assert connection.source == "kubeconfig the given kubeconfig, context two"


def test_text() -> None:
    connection = resolve({"kubeconfig": yaml.safe_dump(kubeconfig())}, {})
    assert connection.host == "https://one.example.com:6443"
    with pytest.raises(OperationError) as caught:
        resolve({"kubeconfig": "s3cret\n: ["}, {})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("variable", ["K8S_AUTH_KUBECONFIG", "KUBECONFIG"])
def test_a_file_named_by_the_environment(config_file: Path, variable: str) -> None:
    assert resolve({}, {variable: str(config_file)}).host == "https://one.example.com:6443"


def test_the_usual_place(tmp_path: Path) -> None:
    (tmp_path / "home" / ".kube").mkdir(parents=True)
    (tmp_path / "home" / ".kube" / "config").write_text(yaml.safe_dump(kubeconfig()))
    assert resolve({}, {}).host == "https://one.example.com:6443"


def test_several_files_are_merged_and_the_first_wins(config_file: Path, tmp_path: Path) -> None:
    other = kubeconfig()
    other["clusters"][0]["cluster"]["server"] = "https://other.example.com"
    other["contexts"].append({"name": "three", "context": {"cluster": "c", "user": "u"}})
    (tmp_path / "second").write_text(yaml.safe_dump(other))
    environ = {"KUBECONFIG": f"{config_file}:{tmp_path}/absent:{tmp_path}/second"}
    assert resolve({"context": "three"}, environ).host == "https://one.example.com:6443"


def test_host_and_token_need_no_file() -> None:
    connection = resolve({"host": "https://h", "api_key": "t"}, {"KUBECONFIG": "/absent"})
    assert connection == Connection("https://h", "options", authorization="Bearer t")


def test_the_environment_of_a_job_runner() -> None:
    environ = {"K8S_AUTH_HOST": "https://h", "K8S_AUTH_API_KEY": "t", "K8S_AUTH_VERIFY_SSL": "no"}
    connection = resolve({}, environ)
    assert (connection.host, connection.authorization, connection.verify) == ("https://h", "Bearer t", False)
    assert connection.source == "environment (K8S_AUTH_HOST)"


def test_a_kubeconfig_option_beats_host_and_token_of_the_environment(config_file: Path) -> None:
    environ = {"K8S_AUTH_HOST": "https://h", "K8S_AUTH_API_KEY": "t", "K8S_AUTH_SSL_CA_CERT": "/ca"}
    connection = resolve({"kubeconfig": str(config_file)}, environ)
    assert connection.host == "https://one.example.com:6443"
    assert connection.authorization == "Bearer file-token"
    assert connection.ca_file is None


def test_a_host_option_beats_a_kubeconfig_of_the_environment(config_file: Path) -> None:
    environ = {"K8S_AUTH_KUBECONFIG": str(config_file), "K8S_AUTH_API_KEY": "t"}
    assert resolve({"host": "https://h"}, environ).host == "https://h"


def test_single_options_replace_what_the_file_says(config_file: Path) -> None:
    options = {
        "kubeconfig": str(config_file),
        "api_key": "mine",
        "validate_certs": False,
        "ca_cert": "/ca.crt",
        "impersonate_user": "ann",
        "impersonate_groups": ["dev"],
    }
    connection = resolve(options, {"K8S_AUTH_IMPERSONATE_USER": "bob"})
    assert connection.authorization == "Bearer mine"
    assert not connection.verify
    assert connection.ca_file == "/ca.crt"
    assert (connection.impersonate_user, connection.impersonate_groups) == ("ann", ("dev",))


def test_data_and_relative_paths_of_the_file(tmp_path: Path) -> None:
    user = {"client-certificate-data": base64.b64encode(b"CERT").decode(), "client-key": "keys/client.key"}
    config = kubeconfig(user, {"certificate-authority": "ca.crt", "tls-server-name": "inner"})
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    connection = resolve({"kubeconfig": str(tmp_path / "config")}, {})
    assert connection.cert_data == b"CERT"
    assert connection.key_file == str(tmp_path / "keys" / "client.key")
    assert connection.ca_file == str(tmp_path / "ca.crt")
    assert connection.server_name == "inner"


def test_a_token_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-a-file\n")
    (tmp_path / "config").write_text(yaml.safe_dump(kubeconfig({"tokenFile": "token"})))
    assert resolve({"kubeconfig": str(tmp_path / "config")}, {}).authorization == "Bearer from-a-file"


def test_user_name_and_password() -> None:
    connection = resolve({"kubeconfig": kubeconfig({"username": "ann", "password": "pw"})}, {})
    assert connection.authorization == "Basic " + base64.b64encode(b"ann:pw").decode()


def test_a_plugin_is_run_by_the_kubernetes_library(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    credential = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "T"}}'
    plugin.write_text(f"#!{sys.executable}\nprint('''{credential}''')\n")
    plugin.chmod(0o755)
    user = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "interactiveMode": "Never"}
    }
    (tmp_path / "config").write_text(yaml.safe_dump(kubeconfig(user)))
    connection = resolve({"kubeconfig": str(tmp_path / "config")}, {})
    assert connection.authorization == "Bearer T"
    assert connection.source.endswith("exec plugin or auth-provider")


def test_a_plugin_that_fails_is_told_with_its_reason() -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/absent/plugin"}}
    with pytest.raises(OperationError) as caught:
        resolve({"kubeconfig": kubeconfig(user)}, {})
    assert caught.value.reason == "AuthenticationPlugin"
    assert "/absent/plugin" in caught.value.msg


def test_in_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.config.SERVICE_ACCOUNT"
    monkeypatch.setattr(name, str(tmp_path))
    (tmp_path / "token").write_text("pod-token\n")
    (tmp_path / "namespace").write_text("mine")
    connection = resolve({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"})
    assert connection.host == "https://10.0.0.1:443"
    assert connection.authorization == "Bearer pod-token"
    assert connection.ca_file == f"{tmp_path}/ca.crt"
    assert connection.source == "in-cluster service account"
    assert resolve({}, {"KUBERNETES_SERVICE_HOST": "fd00::1"}).host == "https://[fd00::1]:443"


@pytest.mark.parametrize(
    ("options", "environ", "reason", "words"),
    [
        ({}, {}, "NoConfiguration", "No Kubernetes cluster is configured"),
        ({"kubeconfig": "/absent/file"}, {}, "NoConfiguration", "/absent/file"),
        ({"context": "x"}, {}, "NoConfiguration", "A context is named"),
        ({"kubeconfig": kubeconfig(), "context": "nine"}, {}, "InvalidConfiguration", "It has: one, two"),
        ({"kubeconfig": {}}, {}, "InvalidConfiguration", "no current-context"),
        ({"kubeconfig": kubeconfig(users=[])}, {}, "InvalidConfiguration", "no user 'u'"),
        ({"kubeconfig": kubeconfig({"client-key-data": "%"})}, {}, "InvalidConfiguration", "client-key-data"),
        ({"kubeconfig": kubeconfig({"tokenFile": "/absent/token"})}, {}, "InvalidConfiguration", "/absent/token"),
        ({"host": "example.com", "api_key": "t"}, {}, "InvalidConfiguration", "not a URL"),
    ],
)
def test_what_is_missing_is_told(options: dict[str, Any], environ: dict[str, str], reason: str, words: str) -> None:
    with pytest.raises(OperationError) as caught:
        resolve(options, environ)
    assert caught.value.reason == reason
    assert words in str(caught.value)


def test_a_broken_file_is_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("users:\n- token: s3cret\n  : [")
    with pytest.raises(OperationError) as caught:
        resolve({"kubeconfig": str(tmp_path / "config")}, {})
    assert "not YAML (line 3)" in caught.value.msg
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "environ", "expected"),
    [
        ({"proxy": "http://p:1"}, {"HTTPS_PROXY": "http://q:2"}, "http://p:1"),
        ({}, {"HTTPS_PROXY": "http://q:2"}, "http://q:2"),
        ({}, {"K8S_AUTH_PROXY": "http://r:3"}, "http://r:3"),
        ({}, {}, None),
    ],
)
def test_proxies(options: dict[str, Any], environ: dict[str, str], expected: str | None) -> None:
    assert resolve({"host": "https://h", "api_key": "t", **options}, environ).proxy == expected


def test_secrets_do_not_show_in_a_connection_s_text() -> None:
    connection = resolve({"kubeconfig": kubeconfig({"token": "s3cret", "client-key-data": "czNjcmV0"})}, {})
    assert "s3cret" not in repr(connection)
