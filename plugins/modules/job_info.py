#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module job_info."""

from __future__ import annotations

DOCUMENTATION = r"""
module: job_info
short_description: Read the jobs of a Slurm cluster
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Reads the jobs that slurmctld knows with one call, returns those that match, with a few fields each, and counts
    them. Jobs that ended some minutes ago are known to accounting only.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes.info_module
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
  - slurm_ops.kubernetes.slurm
options:
  job_ids:
    description:
      - Numbers of jobs. A number that slurmctld does not know is no error.
    type: list
    elements: int
  users:
    description:
      - Names of users.
    type: list
    elements: str
  partitions:
    description:
      - Names of partitions. Jobs that name several match with any of them.
    type: list
    elements: str
  states:
    description:
      - States such as V(RUNNING) or V(PENDING), in any case.
    type: list
    elements: str
  nodes:
    description:
      - Names of nodes or host lists. Jobs match that are on any of them now.
    type: list
    elements: str
notes:
  - A job must match all filters that are given.
seealso:
  - module: slurm_ops.kubernetes.node_drain_info
"""

EXAMPLES = r"""
- name: See what runs on two nodes
  slurm_ops.kubernetes.job_info:
    nodes: ["cpu-[0-1]"]
  register: running

- name: Wait until a user has nothing in the queue
  slurm_ops.kubernetes.job_info:
    users: [ann]
    states: [pending, running]
  register: found
  until: not found.jobs
  retries: 60
  delay: 10
"""

RETURN = r"""
jobs:
  description:
    - The jobs that match, by number. Times are in seconds since 1970, C(time_limit) in minutes and C(time_left) in
      seconds, null for not known or no end. C(states) are the state and its flags; C(reason) is why a job is pending.
  returned: success
  type: list
  elements: dict
  sample:
    - job_id: 7
      name: train
      user: ann
      account: physics
      partition: cpu
      state: RUNNING
      states: [RUNNING]
      reason: None
      nodes: cpu-[0-1]
      submitted: 1795258600
      started: 1795258652
      ends: 1795262252
      time_limit: 60
      time_left: 1200
      requeueable: true
summary:
  description: How many match, by state, by user and by partition.
  returned: success
  type: dict
  sample: {total: 1, by_state: {RUNNING: 1}, by_user: {ann: 1}, by_partition: {cpu: 1}}
api_calls:
  description: Calls to each side.
  returned: always
  type: dict
  sample: {"kubernetes": 1, "slurm": 2, "writes": 0, "verbs": {"get": 3}}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 0.2
"""

import time
from collections.abc import Mapping
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import jobs
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_CLUSTER,
    ARGS_KUBERNETES,
    ArgumentSpec,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.draining import Draining
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, report
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import ARGS_SLURM
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.targets import hostlist_option

ARGUMENTS = (
    ARGS_KUBERNETES
    + ARGS_CLUSTER
    + ARGS_SLURM
    + ArgumentSpec(
        {
            "job_ids": {"type": "list", "elements": "int"},
            "users": {"type": "list", "elements": "str"},
            "partitions": {"type": "list", "elements": "str"},
            "states": {"type": "list", "elements": "str"},
            "nodes": {"type": "list", "elements": "str"},
        }
    )
)


def read(run: Run) -> Mapping[str, Any]:
    """Read and filter."""
    params = run.params
    nodes = None if params["nodes"] is None else hostlist_option(params["nodes"])
    wanted = jobs.Filter(
        job_ids=_set(params["job_ids"]),
        users=_set(params["users"]),
        partitions=_set(params["partitions"]),
        states=None if params["states"] is None else frozenset(state.upper() for state in params["states"]),
        nodes=_set(nodes),
    )
    found = [job for job in Draining(run).jobs() if wanted.matches(job)]
    now = time.time()
    return {
        "jobs": [jobs.full(job, now) for job in sorted(found, key=lambda job: job.job_id)],
        "summary": jobs.summary(found),
    }


def _set(values: Any) -> frozenset[Any] | None:
    return None if values is None else frozenset(values)


def main() -> None:
    """Run the module."""
    report(ARGUMENTS, read)


if __name__ == "__main__":
    main()
