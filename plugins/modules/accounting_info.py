#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module accounting_info."""

from __future__ import annotations

DOCUMENTATION = r"""
module: accounting_info
short_description: Read accounts, users, QOS and their limits
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Reads what slurmdbd has of one cluster, in the form that M(slurm_ops.kubernetes.accounting) takes, so that what was
    made by hand can be saved as variables.
  - Limits that are not set, and those that an association has from the account above it, are not in it.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes.info_module
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
  - slurm_ops.kubernetes.slurm
seealso:
  - module: slurm_ops.kubernetes.accounting
"""

EXAMPLES = r"""
- name: Read accounting
  slurm_ops.kubernetes.accounting_info:
    namespace: hpc
  register: accounting

- name: Save it as variables
  ansible.builtin.copy:
    content: "{{ {'slurm_accounts': accounting.accounts, 'slurm_users': accounting.users,
                  'slurm_qos': accounting.qos} | to_nice_yaml }}"
    dest: accounting.yml
    mode: "0644"
"""

RETURN = r"""
accounts:
  description: The accounts, as option C(accounts) of module accounting.
  returned: success
  type: list
  elements: dict
  sample:
    - name: physics
      parent: science
      description: physics
      organization: science
      fairshare: 60
      qos: [high, normal]
      limits: {"grp_tres": {"cpu": 512}}
users:
  description: The users with their associations, as option C(users) of module accounting.
  returned: success
  type: list
  elements: dict
  sample:
    - name: alice
      admin_level: none
      default_account: physics
      accounts: [{"name": "physics", "limits": {"max_jobs": 10}}]
qos:
  description: The QOS, as option C(qos) of module accounting.
  returned: success
  type: list
  elements: dict
  sample:
    - name: normal
      description: Normal QOS default
tres:
  description: Names of what slurmdbd counts, and so of what can be limited.
  returned: success
  type: list
  elements: str
  sample: [billing, cpu, energy, gres/gpu, mem, node]
reason:
  description: One word for why it failed.
  returned: failure
  type: str
  sample: SlurmUnreachable
hint:
  description: What to do next.
  returned: failure
  type: str
  sample: Check the Pods of slurmrestd and their Service.
api_calls:
  description: Calls to each side, and how many of them could change something.
  returned: always
  type: dict
  sample: {"kubernetes": 1, "slurm": 6, "writes": 0, "verbs": {"get": 7}}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 0.2
"""

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import accounting
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import ARGS_CLUSTER, ARGS_KUBERNETES
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import report
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import ARGS_SLURM

ARGUMENTS = ARGS_KUBERNETES + ARGS_CLUSTER + ARGS_SLURM


def main() -> None:
    """Run the module."""
    report(ARGUMENTS, accounting.report)


if __name__ == "__main__":
    main()
