# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter slurm_group_members: groups of a directory as accounts."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.slurm_ops.kubernetes.plugins.filter.slurm_group_members import FilterModule

USERS = [
    {"name": "alice", "uid": 10001, "groups": ["hpc", "admins"]},
    {"name": "bob", "uid": 10002, "group": "hpc"},
    {"name": "carol", "uid": 10003, "group": "admins", "groups": ["admins"]},
]
members = FilterModule().filters()["slurm_group_members"]


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ((), {"hpc": ["alice", "bob"], "admins": ["alice", "carol"]}),
        (([], {"hpc": "physics"}), {"physics": ["alice", "bob"]}),
        (([], {"hpc": "all", "admins": "all"}), {"all": ["alice", "bob", "carol"]}),
        (([{"name": "hpc", "gid": 1, "members": ["dave", "bob"]}], {"hpc": "hpc"}), {"hpc": ["alice", "bob", "dave"]}),
    ],
)
def test_members(more: tuple[Any, ...], found: dict[str, list[str]]) -> None:
    assert members(USERS, *more) == found


def test_what_is_no_list_is_refused() -> None:
    with pytest.raises(AnsibleFilterError, match="users: must be a list"):
        members("alice")
