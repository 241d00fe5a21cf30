# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Who is in which group, from the users and groups of role directory, as the accounts of module accounting."""

from __future__ import annotations

from typing import Any

from .fields import Fields
from .problems import Problems


def group_members(users: Any, groups: Any = (), accounts: Any = None) -> dict[str, list[str]]:
    """{account: users in their order}. Without ``accounts`` ({group: account}) every group is an account of its name.

    Raises OperationError (InvalidVariables) when the lists have not the form of directory_users and directory_groups.
    """
    problems = Problems()
    given = Fields(
        {"users": users, "groups": groups, "accounts": accounts}, "", problems, ("users", "groups", "accounts")
    )
    renamed = given.texts("accounts") if accounts is not None else None
    found: dict[str, dict[str, None]] = {}

    def add(group: str, name: str) -> None:
        account = group if renamed is None else renamed.get(group)
        if account and name:
            found.setdefault(account, {})[name] = None

    for item in given.dictionaries("users"):
        member_of = item.get("groups")
        names = [item.get("group"), *(member_of if isinstance(member_of, list) else ())]
        for group in dict.fromkeys(str(name) for name in names if name):
            add(group, str(item.get("name") or ""))
    for item in given.dictionaries("groups"):
        members = item.get("members")
        for name in members if isinstance(members, list) else ():
            add(str(item.get("name") or ""), str(name))
    problems.raise_if_any("Members of groups")
    return {account: list(names) for account, names in found.items()}
