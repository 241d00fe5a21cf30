# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filter slurm_backup_schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.backup_schedule import facts
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError


def slurm_backup_schedule(variables: Any) -> dict[str, Any]:
    """What the CronJob of role backup is made of, from the role's variables."""
    try:
        return facts(variables)
    except OperationError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"slurm_backup_schedule": slurm_backup_schedule}
