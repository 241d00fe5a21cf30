# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS and proxies."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.connection import Connection
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import Unreachable
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.transport import proxy_for
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.keys import certificate

from .fake_api import Answer, FakeApi, serving

Pair = dict[str, bytes]


def pair(*names: str, addresses: tuple[str, ...] = ()) -> Pair:
    return certificate({"common_name": names[0], "dns_names": list(names), "ip_addresses": list(addresses), "days": 1})


@contextmanager
def serving_tls(keys: Pair, tmp_path: Path, client_ca: bytes | None = None) -> Iterator[FakeApi]:
    (tmp_path / "server.crt").write_bytes(keys["tls.crt"])
    (tmp_path / "server.key").write_bytes(keys["tls.key"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=client_ca.decode())
    with serving(Answer(200, {"ok": True})) as api:
        api._server.socket = context.wrap_socket(api._server.socket, server_side=True)
        api.url = api.url.replace("http:", "https:")
        yield api


def ask(connection: Connection) -> object:
    return KubernetesClient(lambda: connection, deadline=3).request("GET", "/version")


def test_a_certificate_of_the_right_ca_and_name(tmp_path: Path) -> None:
    keys = pair("api", addresses=("127.0.0.1",))
    with serving_tls(keys, tmp_path) as api:
        assert ask(Connection(api.url, "test", ca_data=keys["ca.crt"])) == {"ok": True}


def test_a_ca_in_a_file_and_another_server_name(tmp_path: Path) -> None:
    keys = pair("api.example.com")
    (tmp_path / "ca.crt").write_bytes(keys["ca.crt"])
    with serving_tls(keys, tmp_path) as api:
        connection = Connection(api.url, "test", ca_file=str(tmp_path / "ca.crt"), server_name="api.example.com")
        assert ask(connection) == {"ok": True}


def test_another_ca_is_refused_at_once(tmp_path: Path) -> None:
    with serving_tls(pair("api", addresses=("127.0.0.1",)), tmp_path) as api, pytest.raises(Unreachable) as caught:
        ask(Connection(api.url, "test", ca_data=pair("other")["ca.crt"]))
    assert caught.value.reason == "TlsFailure"
    assert "not trusted" in caught.value.msg
    assert "ca_cert" in caught.value.hint


def test_another_name_is_refused(tmp_path: Path) -> None:
    keys = pair("api.example.com")
    with serving_tls(keys, tmp_path) as api, pytest.raises(Unreachable) as caught:
        ask(Connection(api.url, "test", ca_data=keys["ca.crt"]))
    assert caught.value.reason == "TlsFailure"
    assert "127.0.0.1" in caught.value.msg


def test_verification_can_be_switched_off(tmp_path: Path) -> None:
    with serving_tls(pair("api.example.com"), tmp_path) as api:
        assert ask(Connection(api.url, "test", verify=False)) == {"ok": True}


def test_a_client_certificate_from_data(tmp_path: Path) -> None:
    keys, ours = pair("api", addresses=("127.0.0.1",)), pair("client")
    with serving_tls(keys, tmp_path) as api:
        connection = Connection(
            api.url, "test", ca_data=keys["ca.crt"], cert_data=ours["tls.crt"], key_data=ours["tls.key"]
        )
        assert ask(connection) == {"ok": True}
    assert not list(tmp_path.glob("**/key.pem"))


def test_plain_http_where_tls_is_expected(tmp_path: Path) -> None:
    with serving(Answer()) as api, pytest.raises(Unreachable) as caught:
        ask(Connection(api.url.replace("http:", "https:"), "test", verify=False))
    assert "does not speak TLS" in caught.value.msg


def test_a_ca_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(OperationError) as caught:
        ask(Connection("https://127.0.0.1:1", "test", ca_data=b"nonsense"))
    assert caught.value.reason == "InvalidConfiguration"


def test_a_missing_client_certificate() -> None:
    with pytest.raises(OperationError) as caught:
        ask(Connection("https://127.0.0.1:1", "test", verify=False, cert_file="/absent.crt", key_file="/absent.key"))
    assert "/absent.crt" in caught.value.msg


@pytest.mark.parametrize(
    ("host", "no_proxy", "expected"),
    [
        ("https://api.example.com", None, "http://p"),
        ("https://api.example.com", "example.com", None),
        ("https://api.example.com:6443", ".example.com,other", None),
        ("https://api.example.com", "*.example.com", None),
        ("https://api.example.com", "ample.com", "http://p"),
        ("https://api.example.com", "", "http://p"),
    ],
)
def test_no_proxy(host: str, no_proxy: str | None, expected: str | None) -> None:
    assert proxy_for(Connection(host, "test", proxy="http://p", no_proxy=no_proxy)) == expected


def test_the_proxy_is_used() -> None:
    with serving(Answer(200, {"ok": True})) as api:
        assert ask(Connection("http://kubernetes.invalid", "test", proxy=api.url)) == {"ok": True}
    assert api.asked[0].headers["Host"] == "kubernetes.invalid"
