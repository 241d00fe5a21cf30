# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys and certificates: made once, made anew when they no longer fit, readable by their owner only."""

from __future__ import annotations

import os
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.certificates import (
    Authority,
    Identity,
    ensure_service_account_key,
)

SERVER = Identity("server", "server", addresses=(IPv4Address("10.120.0.2"),), names=("localhost",))
CLIENT = Identity("client", "jane", ("admins", "users"))


def load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_nothing_is_made_twice(tmp_path: Path) -> None:
    assert Authority(tmp_path).ensure([SERVER, CLIENT]) == ["server", "client"]
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert Authority(tmp_path).ensure([SERVER, CLIENT]) == []
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "changed",
    [
        replace(SERVER, addresses=(IPv4Address("10.121.0.2"),)),
        replace(SERVER, names=("localhost", "other")),
        replace(SERVER, user="other"),
    ],
)
def test_a_certificate_that_no_longer_fits_is_made_anew(tmp_path: Path, changed: Identity) -> None:
    Authority(tmp_path).ensure([SERVER, CLIENT])
    assert Authority(tmp_path).ensure([changed, CLIENT]) == ["server"]


def test_another_authority_makes_all_anew(tmp_path: Path) -> None:
    Authority(tmp_path).ensure([CLIENT])
    (tmp_path / "ca.key").unlink()
    # The new one has the old one's name, so only its signature tells them apart.
    assert Authority(tmp_path).ensure([CLIENT]) == ["client"]


def test_a_lost_key_is_made_anew(tmp_path: Path) -> None:
    Authority(tmp_path).ensure([CLIENT])
    (tmp_path / "client.key").unlink()
    assert Authority(tmp_path).ensure([CLIENT]) == ["client"]


def test_names_and_groups_are_those_that_kubernetes_reads(tmp_path: Path) -> None:
    Authority(tmp_path).ensure([SERVER, CLIENT])
    assert load(tmp_path / "client.crt").subject.rfc4514_string() == "CN=jane,O=users,O=admins"
    alternatives = load(tmp_path / "server.crt").extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert alternatives.get_values_for_type(x509.DNSName) == ["localhost"]
    assert alternatives.get_values_for_type(x509.IPAddress) == [IPv4Address("10.120.0.2")]
    load(tmp_path / "client.crt").verify_directly_issued_by(load(tmp_path / "ca.crt"))


def test_others_can_read_nothing(tmp_path: Path) -> None:
    os.umask(0)
    Authority(tmp_path / "pki").ensure([CLIENT])
    ensure_service_account_key(tmp_path / "pki")
    for path in [tmp_path / "pki", *(tmp_path / "pki").iterdir()]:
        assert path.stat().st_mode & 0o077 == 0


def test_the_key_of_service_accounts_is_kept(tmp_path: Path) -> None:
    assert ensure_service_account_key(tmp_path)
    before = (tmp_path / "service-accounts.key").read_bytes()
    assert b"BEGIN EC PRIVATE KEY" in before
    assert not ensure_service_account_key(tmp_path)
    assert (tmp_path / "service-accounts.key").read_bytes() == before
