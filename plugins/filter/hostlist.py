# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters for Slurm's host lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import hostlist
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError


def slurm_hostlist_expand(expression: Any) -> list[str]:
    """Names of a host list or of a list of host lists."""
    names: list[str] = []
    for part in [expression] if isinstance(expression, str) else _words("slurm_hostlist_expand", expression):
        try:
            names.extend(hostlist.expand(part))
        except OperationError as error:
            raise AnsibleFilterError(str(error)) from error
    return names


def slurm_hostlist_compress(names: Any, sort: bool = False, unique: bool = False) -> str:
    """The host list of names."""
    words = _words("slurm_hostlist_compress", names)
    try:
        return hostlist.compress(words, sort=sort, unique=unique)
    except OperationError as error:
        raise AnsibleFilterError(str(error)) from error


def _words(name: str, given: Any) -> list[str]:
    """A list of strings; also from what map() and select() give, which can be read once only."""
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise AnsibleFilterError(f"{name} takes a list of strings, not {type(given).__name__}.")
    words = list(given)
    for word in words:
        if not isinstance(word, str):
            raise AnsibleFilterError(f"{name} takes a list of strings; {word!r} is none.")
    return words


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Filter names and functions."""
        return {
            "slurm_hostlist_expand": slurm_hostlist_expand,
            "slurm_hostlist_compress": slurm_hostlist_compress,
        }
