# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters of roles login and directory: the edge between Ansible and what is tested in module_utils/_core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.slurm_ops.kubernetes.plugins.filter import slurm_directory, slurm_login

DIRECTORY: dict[str, Any] = {
    "slurm_name": "slurm",
    "directory_groups": [{"name": "hpc", "gid": 10000}],
    "directory_users": [{"name": "alice", "uid": 10001, "groups": ["hpc"]}],
}
LOGIN: dict[str, Any] = {
    "slurm_name": "slurm",
    "login_ldap_uri": ["ldaps://ldap.example.org"],
    "login_ldap_search_base": "dc=example,dc=org",
}


def named(module: Any, name: str) -> Callable[..., Any]:
    filters = module.FilterModule().filters()
    assert list(filters) == [name]
    found: Callable[..., Any] = filters[name]
    return found


def test_slurm_directory() -> None:
    assert "uid=alice" in named(slurm_directory, "slurm_directory")(DIRECTORY)["entries"]


def test_slurm_login() -> None:
    assert "[domain/ldap]" in named(slurm_login, "slurm_login")(LOGIN)["sssd"]["sssd.conf"]


@pytest.mark.parametrize(
    ("module", "name", "variables", "text"),
    [
        (slurm_directory, "slurm_directory", DIRECTORY | {"directory_schema": "x"}, "directory_schema: must be one of"),
        (slurm_login, "slurm_login", LOGIN | {"login_ldap_uri": []}, "login_ldap_uri: is required"),
        (slurm_login, "slurm_login", "text", "must be a dictionary"),
    ],
)
def test_mistakes_become_filter_errors(module: Any, name: str, variables: Any, text: str) -> None:
    with pytest.raises(AnsibleFilterError, match=text):
        named(module, name)(variables)
