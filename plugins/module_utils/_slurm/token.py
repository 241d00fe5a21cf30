# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Tokens for slurmrestd: JSON Web Tokens, signed here with the cluster's key, short-lived and renewed.

Slurm has one key for HS256, but as many as one likes for RS256 (file jwks.json). So a cluster whose keys were rotated
signs with RS256: then the old key and the new one are good side by side (docs/decisions/054).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.key_set import base64url, from_base64url

LIFESPAN = 600  # seconds
# A clock that is a little ahead of slurmctld's must not make a token that is not valid yet.
LEEWAY = 30


class TokenSource(Protocol):
    """Where a client gets its token from."""

    def token(self) -> str:
        """A token that is valid for at least a moment longer."""

    def renew(self) -> bool:
        """After a refusal: True when the next token() may be another one."""


class Signer(Protocol):
    """A key that signs."""

    def sign(self, claims: Mapping[str, Any]) -> str:
        """The token of some claims."""


class SharedKey:
    """The one key of HS256: jwt.key, which slurmctld and slurmdbd have too."""

    def __init__(self, key: bytes) -> None:
        if len(key) < 16:
            raise OperationError(
                f"The JWT key has {len(key)} bytes, which is no key.",
                reason="InvalidKey",
                hint="Give the content of jwt.key, 32 random bytes.",
            )
        self._key = key

    def sign(self, claims: Mapping[str, Any]) -> str:
        """The token of some claims."""
        body = _body({"alg": "HS256", "typ": "JWT"}, claims)
        return f"{body}.{base64url(hmac.new(self._key, body.encode('ascii'), hashlib.sha256).digest())}"


class PrivateKey:
    """A key of RS256, as a private JSON Web Key with the name (kid) by which slurmctld knows its public half."""

    def __init__(self, jwk: Mapping[str, Any]) -> None:
        self._jwk = jwk

    def sign(self, claims: Mapping[str, Any]) -> str:
        """The token of some claims."""
        try:
            from cryptography.hazmat.primitives import hashes
            from cryptography.hazmat.primitives.asymmetric import padding, rsa
        except ImportError as error:
            raise OperationError(
                "The Python library cryptography is missing, with which tokens are signed since the keys were rotated.",
                reason="MissingLibrary",
                hint="Install it for the Python that runs the modules.",
            ) from error

        number = {part: _number(self._jwk, part) for part in ("n", "e", "d", "p", "q", "dp", "dq", "qi")}
        public = rsa.RSAPublicNumbers(number["e"], number["n"])
        private = rsa.RSAPrivateNumbers(
            number["p"], number["q"], number["d"], number["dp"], number["dq"], number["qi"], public
        ).private_key()
        body = _body({"alg": "RS256", "typ": "JWT", "kid": str(self._jwk["kid"])}, claims)
        return f"{body}.{base64url(private.sign(body.encode('ascii'), padding.PKCS1v15(), hashes.SHA256()))}"


class SignedToken:
    """Tokens for one Slurm user, signed anew when four fifths of their life are over.

    ``signer`` is asked for the key each time, since it may have been rotated meanwhile.
    """

    def __init__(
        self,
        signer: Callable[[], Signer],
        user: str = "slurm",
        *,
        lifespan: int = LIFESPAN,
        now: Callable[[], float] = time.time,
        claims: Mapping[str, Any] | None = None,
    ) -> None:
        self._signer = signer
        self._user = user
        self._lifespan = lifespan
        self._now = now
        self._claims = dict(claims or {})
        self._token = ""
        self._renew_at = 0.0

    def token(self) -> str:
        """The current token; a new one when it is due. The clock may jump either way."""
        now = self._now()
        if not self._token or now >= self._renew_at or now < self._renew_at - self._lifespan:
            issued = int(now)
            self._token = self._signer().sign(
                {**self._claims, "iat": issued - LEEWAY, "exp": issued + self._lifespan, "sun": self._user}
            )
            self._renew_at = now + self._lifespan * 0.8
        return self._token

    def renew(self) -> bool:
        """Sign anew at the next call: the old one was refused, as a clock jumped or the key was rotated."""
        self._token = ""
        return True


class GivenToken:
    """A token that somebody else made, such as ``scontrol token``."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        """The token as given."""
        return self._token

    def renew(self) -> bool:
        """There is no other."""
        return False


def _body(head: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
    return ".".join(base64url(json.dumps(part, separators=(",", ":")).encode()) for part in (head, claims))


def _number(jwk: Mapping[str, Any], part: str) -> int:
    return int.from_bytes(from_base64url(str(jwk[part])), "big")
