# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys, passwords and certificates that others can use."""

from __future__ import annotations

import datetime
import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.keys import make


def test_bytes() -> None:
    one, other = (make("bytes", "k", {"count": 1024})["k"] for _turn in range(2))
    assert len(one) == 1024
    assert one != other


def test_passwords() -> None:
    made = make("password", "p", {"length": 200, "characters": "abc"})
    assert set(made["p"].decode()) == set("abc")
    assert len(made["p"]) == 200


@pytest.mark.parametrize(
    ("kind", "word"), [("ed25519", "ssh-ed25519"), ("rsa", "ssh-rsa"), ("ecdsa", "ecdsa-sha2-nistp256")]
)
def test_ssh_host_keys(kind: str, word: str) -> None:
    made = make("ssh_host_key", "h", {"type": kind})
    assert set(made) == {"h", "h.pub"}
    assert made["h"].startswith(b"-----BEGIN OPENSSH PRIVATE KEY-----")
    private = serialization.load_ssh_private_key(made["h"], None)
    public = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    assert made["h.pub"] == public + b"\n"
    assert public.startswith(word.encode())
    assert make("ssh_host_key", "h", {"type": "rsa"}, made["h"]) == made


def test_a_private_key_that_is_none() -> None:
    with pytest.raises(OperationError) as caught:
        make("ssh_host_key", "h", {"type": "rsa"}, b"s3cret")
    assert caught.value.reason == "Incomplete"
    assert "s3cret" not in str(caught.value)


def test_certificates() -> None:
    arguments = {"common_name": "n", "dns_names": ["n", "n.demo.svc"], "ip_addresses": ["10.0.0.1"], "days": 30}
    made = make("tls", "any", arguments)
    ca, server = (x509.load_pem_x509_certificate(made[name]) for name in ("ca.crt", "tls.crt"))
    server.verify_directly_issued_by(ca)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["n", "n.demo.svc"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("10.0.0.1")]
    assert ca.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not server.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    left = server.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    assert datetime.timedelta(days=29) < left < datetime.timedelta(days=31)
    key = serialization.load_pem_private_key(made["tls.key"], None)
    assert key.public_key() == server.public_key()


def test_an_address_that_is_none() -> None:
    with pytest.raises(OperationError):
        make("tls", "t", {"common_name": "n", "dns_names": [], "ip_addresses": ["nonsense"], "days": 1})
