# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Key sets (RFC 7517) as Slurm reads them: slurm.jwks with the keys of its daemons, jwks.json with those of tokens.

https://slurm.schedmd.com/authentication.html and https://slurm.schedmd.com/jwt.html
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import OperationError

Key = Mapping[str, Any]

_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi"})


def base64url(data: bytes) -> str:
    """Text of bytes as keys and tokens write it."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def from_base64url(text: str) -> bytes:
    """The bytes of such a text."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def shared(kid: str, key: bytes, *, signs: bool) -> dict[str, Any]:
    """A key of slurm.jwks; one of them signs, all of them are believed."""
    entry = {"alg": "HS256", "kty": "oct", "kid": kid, "k": base64url(key)}
    return {**entry, "use": "default"} if signs else entry


def content(entry: Key) -> bytes:
    """The key itself of an entry of slurm.jwks."""
    return from_base64url(str(entry["k"]))


def public(private: Key) -> dict[str, Any]:
    """What jwks.json has of a private key."""
    return {name: value for name, value in private.items() if name not in _PRIVATE}


def written(keys: Iterable[Key]) -> bytes:
    """The text of a key set."""
    return json.dumps({"keys": list(keys)}, separators=(",", ":")).encode()


def read(text: bytes, name: str) -> list[dict[str, Any]]:
    """The keys of a key set; raises OperationError (Malformed), whose message quotes nothing of it."""
    try:
        return [dict(entry) for entry in json.loads(text)["keys"]]
    except (ValueError, TypeError, KeyError):
        raise OperationError(f"{name} is no set of keys.", reason="Malformed", hint="Nothing was changed.") from None
