# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Where an API server is, how to know it, and who we are to it."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Connection:
    """Everything that is needed to talk to one API server; ``source`` says where it came from, without secrets."""

    host: str
    source: str
    verify: bool = True
    ca_file: str | None = None
    ca_data: bytes | None = field(default=None, repr=False)
    cert_file: str | None = None
    key_file: str | None = None
    cert_data: bytes | None = field(default=None, repr=False)
    key_data: bytes | None = field(default=None, repr=False)
    server_name: str | None = None
    authorization: str | None = field(default=None, repr=False)
    impersonate_user: str | None = None
    impersonate_groups: tuple[str, ...] = ()
    proxy: str | None = None
    no_proxy: str | None = None
    namespace: str | None = None


def basic(username: str, password: str) -> str:
    """Return the Authorization header for a user name and a password."""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
