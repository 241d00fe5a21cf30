# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tokens: what is in them, that they verify, and when they are made anew."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.keys import token_key
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.token import (
    GivenToken,
    PrivateKey,
    SharedKey,
    SignedToken,
)

from ..clock import Clock

KEY = bytes(range(32))


def opened(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    head, claims, signature = token.split(".")
    expected = hmac.new(KEY, f"{head}.{claims}".encode(), hashlib.sha256).digest()
    assert base64.urlsafe_b64decode(signature + "==") == expected
    return json.loads(base64.urlsafe_b64decode(head + "==")), json.loads(base64.urlsafe_b64decode(claims + "=="))


def test_known_token() -> None:
    # RFC 7519's way, with a key and claims of our own, checked with scontrol's plugin on a live cluster.
    head, claims = opened(SharedKey(KEY).sign({"sun": "root", "exp": 1}))
    assert head == {"alg": "HS256", "typ": "JWT"}
    assert claims == {"sun": "root", "exp": 1}


def test_a_token_lives_shortly_and_is_renewed_in_time() -> None:
    clock = Clock(1_000_000.0)
    source = SignedToken(lambda: SharedKey(KEY), now=clock, lifespan=600)
    first = source.token()
    claims = opened(first)[1]
    assert claims["sun"] == "slurm"
    assert claims["exp"] == 1_000_600
    assert claims["iat"] < 1_000_000
    clock.now += 470
    assert source.token() == first
    clock.now += 20
    second = source.token()
    assert second != first
    assert opened(second)[1]["exp"] == 1_001_090


def test_a_clock_that_goes_back_makes_a_new_token() -> None:
    clock = Clock(1_000_000.0)
    source = SignedToken(lambda: SharedKey(KEY), now=clock)
    source.token()
    clock.now -= 5000
    assert opened(source.token())[1]["exp"] == 995_600


def test_a_refused_token_is_made_anew_but_a_given_one_is_not() -> None:
    clock = Clock(1_000_000.0)
    source = SignedToken(lambda: SharedKey(KEY), "alice", now=clock, claims={"uid": 7})
    first = source.token()
    clock.now += 1
    assert source.renew()
    assert source.token() != first
    assert opened(source.token())[1] == {"uid": 7, "iat": 999_971, "exp": 1_000_601, "sun": "alice"}
    given = GivenToken("x")
    assert not given.renew()
    assert given.token() == "x"


def test_a_key_that_is_none_is_refused() -> None:
    with pytest.raises(OperationError) as caught:
        SharedKey(b"short")
    assert caught.value.reason == "InvalidKey"


def test_a_key_that_was_rotated_signs_the_next_token() -> None:
    clock = Clock()
    keys = iter([SharedKey(KEY[::-1]), SharedKey(KEY)])
    source = SignedToken(lambda: next(keys), now=clock)
    source.token()
    assert source.renew()
    assert opened(source.token())[0]["alg"] == "HS256"


def test_tokens_of_a_rotated_key_are_signed_with_rs256_and_name_it() -> None:
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    jwk = token_key("one")
    head, claims, signature = PrivateKey(jwk).sign({"sun": "root"}).split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "RS256", "typ": "JWT", "kid": "one"}

    def number(part: str) -> int:
        return int.from_bytes(base64.urlsafe_b64decode(jwk[part] + "=="), "big")

    public = rsa.RSAPublicNumbers(number("e"), number("n")).public_key()
    signed = base64.urlsafe_b64decode(signature + "==")
    public.verify(signed, f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256())
