#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module accounting."""

from __future__ import annotations

DOCUMENTATION = r"""
module: accounting
short_description: Make accounts, users, QOS and their limits what is described
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Reads all of slurmdbd's accounting through slurmrestd, compares it with a description, and writes what differs, each
    kind of thing in as few calls as REST takes.
  - Goes in an order in which nothing is named before it is there. These are QOS, accounts from the top of the tree
    down, users, associations of users with accounts, and defaults.
  - What is not described is left alone, and so is what is not said of a thing that is described, unless O(prune) says
    otherwise.
  - Refuses, before anything is written, accounts, QOS and TRES that do not exist and are not described, and circles.
  - Slurm enforces limits only with C(limits) in C(AccountingStorageEnforce) of slurm.conf, and QOS with C(qos).
  - Associations with one partition only are left alone.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
  - slurm_ops.kubernetes.slurm
options:
  accounts:
    description:
      - The accounts, in any order. An empty list counts as not given, for each of these options.
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - Its name, in lower case. The account V(root) is there already, and can be given limits.
        type: str
        required: true
      parent:
        description:
          - The account above it. By default V(root) for a new account, and what it is for one that is there.
        type: str
      description:
        description:
          - A text. By default the name of a new account.
        type: str
      organization:
        description:
          - A text. By default the name of a new account's parent.
        type: str
      fairshare:
        description:
          - Its shares, a number, or V(parent) to be as the account above it. V(-1) sets it back to 1.
        type: raw
      priority:
        description:
          - Its priority factor. V(-1) takes it away.
        type: raw
      qos:
        description:
          - All QOS that it may use. The last one cannot be taken away over REST, which is refused.
        type: list
        elements: str
      default_qos:
        description:
          - The QOS of jobs that ask for none.
        type: str
      limits:
        description:
          - Limits by sacctmgr's names in lower case.
          - Of jobs, C(grp_jobs), C(grp_jobs_accrue), C(grp_submit_jobs), C(max_jobs), C(max_jobs_accrue),
            C(max_submit_jobs), C(min_prio_threshold), each a number.
          - Of time, C(grp_wall) and C(max_wall), in minutes, or as text such as V(7-00:00:00). Quote V("12:00:00"),
            which is a number to YAML.
          - Of TRES, C(grp_tres), C(grp_tres_mins), C(grp_tres_run_mins), C(max_tres_per_job), C(max_tres_per_node),
            C(max_tres_mins_per_job), each a mapping of names to numbers, or text such as V(cpu=64,mem=512G,gres/gpu=8).
            It is the whole limit. TRES that are not in it are not limited.
          - V(-1) takes a limit away.
        type: dict
  users:
    description:
      - The users, in any order.
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - The login name, in lower case.
        type: str
        required: true
      accounts:
        description:
          - The accounts that the user may use. Each a name, or a mapping of C(name) and any of C(fairshare),
            C(priority), C(qos), C(default_qos) and C(limits), which are those of O(accounts) for this user in this
            account.
        type: list
        elements: raw
      default_account:
        description:
          - The account of jobs that ask for none. By default the first account of a new user, and what it is for one
            that is there.
        type: str
      admin_level:
        description:
          - What the user may do with sacctmgr and scontrol.
        type: str
        choices: [none, operator, administrator]
  groups:
    description:
      - Mapping of accounts to lists of users, added to O(users). Users that are not in O(users) have what is here only.
      - The filter P(slurm_ops.kubernetes.slurm_group_members#filter) makes this from the users of role C(directory).
    type: dict
  qos:
    description:
      - The QOS, in any order. V(normal) is there already.
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - Its name, in lower case.
        type: str
        required: true
      description:
        description:
          - A text.
        type: str
      priority:
        description:
          - Its priority factor.
        type: raw
      flags:
        description:
          - All its flags.
          - Of V(DenyOnLimit), V(EnforceUsageThreshold), V(NoDecay), V(NoReserve), V(OverPartQOS), V(PartitionMaxNodes),
            V(PartitionMinNodes), V(PartitionTimeLimit), V(Relative), V(RequiresReservation), V(UsageFactorSafe).
        type: list
        elements: str
      preempt:
        description:
          - All QOS whose jobs it may preempt.
        type: list
        elements: str
      preempt_mode:
        description:
          - What happens to jobs that are preempted. V(cluster) is what slurm.conf says.
        type: str
        choices: [cluster, cancel, requeue, suspend]
      preempt_exempt_time:
        description:
          - Seconds that a job runs before it can be preempted. V(-1) takes it away.
        type: raw
      grace_time:
        description:
          - Seconds that a preempted job has left.
        type: raw
      usage_factor:
        description:
          - What usage is multiplied with. V(-1) sets it back to 1.
        type: raw
      usage_threshold:
        description:
          - The lowest fair-share with which a job may run. V(-1) takes it away.
        type: raw
      limit_factor:
        description:
          - What limits of associations are multiplied with. V(-1) takes it away.
        type: raw
      limits:
        description:
          - Limits as in O(accounts[].limits), of the names C(grp_jobs), C(grp_jobs_accrue), C(grp_submit_jobs),
            C(max_jobs_per_account), C(max_jobs_per_user), C(max_submit_jobs_per_account), C(max_submit_jobs_per_user),
            C(max_jobs_accrue_per_account), C(max_jobs_accrue_per_user), C(min_prio_threshold), C(grp_wall),
            C(max_wall), C(grp_tres), C(grp_tres_mins), C(grp_tres_run_mins), C(max_tres_per_account),
            C(max_tres_per_job), C(max_tres_per_node), C(max_tres_per_user), C(max_tres_mins_per_job),
            C(max_tres_run_mins_per_account), C(max_tres_run_mins_per_user), C(min_tres_per_job).
        type: dict
  prune:
    description:
      - Whether to remove what is not described of the kinds that are. With O(accounts), accounts; with O(users) or
        O(groups), users and associations; with O(qos), QOS; and limits of what is described that O(accounts[].limits)
        and its like do not have.
      - Never removed are the account and the user V(root), the QOS V(normal), QOS of a partition, what has jobs that
        have not ended, and what another cluster of the same slurmdbd has associations with. RV(kept) says so.
    type: bool
    default: false
seealso:
  - module: slurm_ops.kubernetes.accounting_info
"""

EXAMPLES = r"""
- name: Two accounts, their users and a QOS
  slurm_ops.kubernetes.accounting:
    namespace: hpc
    qos:
      - name: high
        priority: 100
        limits: {max_jobs_per_user: 2}
    accounts:
      - {name: science, fairshare: 60, limits: {grp_tres: {cpu: 512, gres/gpu: 32}}}
      - {name: physics, parent: science, qos: [normal, high]}
    users:
      - name: alice
        accounts: [physics]
        admin_level: operator
      - name: bob
        accounts:
          - {name: physics, limits: {max_submit_jobs: 100, max_wall: "2-00:00:00"}}

- name: Users by groups, and nobody else
  slurm_ops.kubernetes.accounting:
    namespace: hpc
    groups:
      physics: [alice, bob]
      chemistry: [carol]
    prune: true
"""

RETURN = r"""
kept:
  description: What O(prune) does not remove though it is not described, with the reason.
  returned: success
  type: dict
  sample: {"account old": "has jobs"}
actions:
  description:
    - What was done, or would be done in check mode, in order. C(create), C(change) and C(remove) of C(qos), C(account),
      C(user) and C(association). Before and after have what changes only.
  returned: always
  type: list
  elements: dict
  sample:
    - kind: change
      target: association bob in physics
      before: {"max_submit_jobs": null}
      after: {"max_submit_jobs": 100}
      why: not as described
      done: true
remaining:
  description: What is still to be done; empty unless it failed.
  returned: always
  type: list
  elements: str
  sample: []
reason:
  description: One word for why it failed.
  returned: failure
  type: str
  sample: InvalidVariables
hint:
  description: What to do next.
  returned: failure
  type: str
  sample: Nothing was sent to the cluster.
api_calls:
  description: Calls to each side, and how many of them could change something.
  returned: always
  type: dict
  sample: {"kubernetes": 1, "slurm": 9, "writes": 3, "verbs": {"get": 7, "update": 3}}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 0.3
"""

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.accounting import AccountingChange
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_CLUSTER,
    ARGS_KUBERNETES,
    ArgumentSpec,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import ARGS_SLURM

NAME = {"type": "str", "required": True}
TEXT = {"type": "str"}
WORDS = {"type": "list", "elements": "str"}
RAW = {"type": "raw"}  # a number or text; checked with all other variables, so that all faults are told at once

ACCOUNT = {
    "name": NAME,
    "parent": TEXT,
    "description": TEXT,
    "organization": TEXT,
    "fairshare": RAW,
    "priority": RAW,
    "qos": WORDS,
    "default_qos": TEXT,
    "limits": {"type": "dict"},
}
USER = {
    "name": NAME,
    "accounts": {"type": "list", "elements": "raw"},
    "default_account": TEXT,
    "admin_level": {"type": "str", "choices": ["none", "operator", "administrator"]},
}
QOS = {
    "name": NAME,
    "description": TEXT,
    "priority": RAW,
    "flags": WORDS,
    "preempt": WORDS,
    "preempt_mode": {"type": "str", "choices": ["cluster", "cancel", "requeue", "suspend"]},
    "preempt_exempt_time": RAW,
    "grace_time": RAW,
    "usage_factor": RAW,
    "usage_threshold": RAW,
    "limit_factor": RAW,
    "limits": {"type": "dict"},
}

ARGUMENTS = (
    ARGS_KUBERNETES
    + ARGS_CLUSTER
    + ARGS_SLURM
    + ArgumentSpec(
        {
            "accounts": {"type": "list", "elements": "dict", "options": ACCOUNT},
            "users": {"type": "list", "elements": "dict", "options": USER},
            "groups": {"type": "dict"},
            "qos": {"type": "list", "elements": "dict", "options": QOS},
            "prune": {"type": "bool", "default": False},
        }
    )
)


def main() -> None:
    """Run the module."""
    run(ARGUMENTS, AccountingChange)


if __name__ == "__main__":
    main()
