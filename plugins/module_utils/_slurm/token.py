# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Tokens for slurmrestd: JSON Web Tokens (HS256), signed here with the cluster's key, short-lived and renewed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

LIFESPAN = 600  # seconds
# A clock that is a little ahead of slurmctld's must not make a token that is not valid yet.
LEEWAY = 30


class TokenSource(Protocol):
    """Where a client gets its token from."""

    def token(self) -> str:
        """A token that is valid for at least a moment longer."""

    def renew(self) -> bool:
        """After a refusal: True when the next token() may be another one."""


def sign(claims: Mapping[str, Any], key: bytes) -> str:
    """The token of some claims."""
    if len(key) < 16:
        raise OperationError(
            f"The JWT key has {len(key)} bytes, which is no key.",
            reason="InvalidKey",
            hint="Give the content of jwt.key, 32 random bytes.",
        )
    head = _encode({"alg": "HS256", "typ": "JWT"})
    body = f"{head}.{_encode(claims)}"
    signature = hmac.new(key, body.encode("ascii"), hashlib.sha256).digest()
    return f"{body}.{_base64(signature)}"


class SignedToken:
    """Tokens for one Slurm user, signed anew when four fifths of their life are over."""

    def __init__(
        self,
        key: bytes,
        user: str = "slurm",
        *,
        lifespan: int = LIFESPAN,
        now: Callable[[], float] = time.time,
        claims: Mapping[str, Any] | None = None,
    ) -> None:
        self._key = key
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
            self._token = sign(
                {**self._claims, "iat": issued - LEEWAY, "exp": issued + self._lifespan, "sun": self._user}, self._key
            )
            self._renew_at = now + self._lifespan * 0.8
        return self._token

    def renew(self) -> bool:
        """Sign anew at the next call: the old one was refused, perhaps because a clock jumped."""
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


def _encode(data: Mapping[str, Any]) -> str:
    return _base64(json.dumps(data, separators=(",", ":")).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
