# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Accounting as slurmdbd's REST plugin has it: QOS, accounts, users, and associations of users with accounts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .accounting_settings import ASSOCIATION, QOS, Raw, Settings, Tres, read, tres_name
from .values import words

ROOT = "root"  # the account above all others, and the user that slurmdbd makes itself
NORMAL = "normal"  # the QOS that slurmdbd makes itself
ADMIN_LEVELS = {"none": "None", "operator": "Operator", "administrator": "Administrator"}


@dataclass(frozen=True, slots=True)
class Accounting:
    """All of it, of one cluster.

    ``accounts`` have description, organization and, when the cluster has them, parent and settings of the association.
    ``users`` have admin_level and default_account. ``members`` are associations, by (account, user). ``elsewhere`` are
    names of accounts and users that another cluster of the same slurmdbd has associations with. ``owners`` says of the
    numbers of associations, also of those in one partition, which account and user they are of.
    """

    tres: Tres = field(default_factory=dict)
    qos: Mapping[str, Settings] = field(default_factory=dict)
    accounts: Mapping[str, Settings] = field(default_factory=dict)
    users: Mapping[str, Settings] = field(default_factory=dict)
    members: Mapping[tuple[str, str], Settings] = field(default_factory=dict)
    coordinators: Mapping[str, Sequence[str]] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()
    owners: Mapping[int, tuple[str, str]] = field(default_factory=dict)


def accounting(
    cluster: str,
    *,
    tres: Iterable[Raw] = (),
    qos: Iterable[Raw] = (),
    accounts: Iterable[Raw] = (),
    users: Iterable[Raw] = (),
    associations: Iterable[Raw] = (),
) -> Accounting:
    """From the lists of REST. Associations of a user with an account in one partition only are left out."""
    accounts_found: dict[str, dict[str, Any]] = {
        item["name"]: {
            "description": str(item.get("description") or ""),
            "organization": str(item.get("organization") or ""),
        }
        for item in accounts
    }
    users_found = {item["name"]: _user(item) for item in users}
    members: dict[tuple[str, str], Settings] = {}
    elsewhere: set[str] = set()
    owners: dict[int, tuple[str, str]] = {}
    for item in associations:
        account, user = str(item.get("account") or ""), str(item.get("user") or "")
        if item.get("cluster") != cluster:
            elsewhere |= {f"account {account}", f"user {user}"}
            continue
        if user:
            owners[int(item.get("id") or 0)] = (account, user)
        if item.get("partition"):
            continue
        if user:
            members[account, user] = read(ASSOCIATION, item)
            if item.get("is_default"):
                users_found.setdefault(user, _user({}))["default_account"] = account
        else:
            place = {"parent": str(item.get("parent_account") or "")}
            accounts_found.setdefault(account, {}).update(place | read(ASSOCIATION, item))
    return Accounting(
        tres={tres_name(item): int(item["id"]) for item in tres},
        qos={item["name"]: read(QOS, item) for item in qos},
        accounts=accounts_found,
        users=users_found,
        members=members,
        coordinators={item["name"]: _coordinators(item) for item in accounts},
        elsewhere=frozenset(elsewhere),
        owners=owners,
    )


def _user(item: Raw) -> dict[str, Any]:
    level = next((word for word in words(item.get("administrator_level")) if word != "Not Set"), "None")
    return {"admin_level": level.lower(), "default_account": ""}


def _coordinators(item: Raw) -> list[str]:
    """Those of the account itself; of one above it they come with the tree."""
    return [str(entry["name"]) for entry in item.get("coordinators") or () if entry.get("direct", True)]


def association(account: str, user: str, cluster: str, body: Raw, **more: Any) -> dict[str, Any]:
    """An association as REST takes it; that of the account itself has no user.

    With an empty text as user or partition slurmdbd makes one of a user, or in a partition, of that name.
    """
    return {"account": account, "user": user or None, "cluster": cluster, **more, **body}
