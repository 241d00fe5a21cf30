# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters for Slurm's host lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import hostlist
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError


def slurm_hostlist_expand(expression: Any) -> list[str]:
    """Names of a host list or of a list of host lists."""
    parts = expression if isinstance(expression, (list, tuple)) else [expression]
    names: list[str] = []
    for part in parts:
        if not isinstance(part, str):
            raise AnsibleFilterError(f"slurm_hostlist_expand takes a string or a list of strings, not {type(part)}.")
        try:
            names.extend(hostlist.expand(part))
        except OperationError as error:
            raise AnsibleFilterError(str(error)) from error
    return names


def slurm_hostlist_compress(names: Any, sort: bool = False, unique: bool = False) -> str:
    """The host list of names."""
    if isinstance(names, (str, Mapping)) or not all(isinstance(name, str) for name in names):
        raise AnsibleFilterError("slurm_hostlist_compress takes a list of names.")
    try:
        return hostlist.compress(names, sort=sort, unique=unique)
    except OperationError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Filter names and functions."""
        return {
            "slurm_hostlist_expand": slurm_hostlist_expand,
            "slurm_hostlist_compress": slurm_hostlist_compress,
        }
