#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module nodeset_rollout_info."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nodeset_rollout_info
short_description: Read which worker Pods are of the newest template, and which are not yet
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Counts, for each NodeSet, the Pods that are of its newest template and those that are of an older one, and lists the
    nodes with their revisions, states and jobs.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes.info_module
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
  - slurm_ops.kubernetes.slurm
options:
  nodeset:
    description:
      - Only this NodeSet.
    type: str
seealso:
  - module: slurm_ops.kubernetes.nodeset_rollout
  - module: slurm_ops.kubernetes.cluster_info
"""

EXAMPLES = r"""
- name: See which NodeSets have old Pods
  slurm_ops.kubernetes.nodeset_rollout_info:
  register: rollout

- name: Name them
  ansible.builtin.debug:
    msg: "{{ rollout.nodesets | selectattr('outdated') | map(attribute='name') | join(', ') or 'none' }}"
"""

RETURN = r"""
nodesets:
  description:
    - The NodeSets by name. C(updated) and C(outdated) count Pods, C(in_service) the nodes that take jobs; C(left_alone)
      names nodes with old Pods that a person has set DOWN or FAIL; C(lacks) says what keeps a node from being at work.
  returned: success
  type: list
  elements: dict
  sample:
    - name: cpu
      kind: replica
      revision: cpu-6c7f9d5b8
      desired: 1
      updated: 0
      outdated: 1
      in_service: 1
      left_alone: []
      nodes:
        - name: cpu-0
          pod: cpu-0
          kubernetes_node: node1
          revision: cpu-598c7d4f66
          updated: false
          in_service: true
          state: allocated
          reason: ""
          lacks: null
          jobs: [{job_id: 7, user: ann, partition: cpu, state: RUNNING, time_left: 12000}]
outdated:
  description: How many Pods are of an older template, in all NodeSets together.
  returned: success
  type: int
  sample: 1
api_calls:
  description: Calls to each side.
  returned: always
  type: dict
  sample: {"kubernetes": 4, "slurm": 3, "writes": 0, "verbs": {"get": 4, "list": 3}}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 0.2
"""

import time
from collections.abc import Mapping
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_CLUSTER,
    ARGS_KUBERNETES,
    ArgumentSpec,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.draining import Draining
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, report
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.rollout_report import told
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import ARGS_SLURM
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.workers import WorkersReader

ARGUMENTS = ARGS_KUBERNETES + ARGS_CLUSTER + ARGS_SLURM + ArgumentSpec({"nodeset": {"type": "str"}})


def read(run: Run) -> Mapping[str, Any]:
    """Read the NodeSets with their workers."""
    found = WorkersReader(run, Draining(run)).read(run.params["nodeset"])
    now = time.time()
    nodesets = [told(item, now) for item in found]
    return {"nodesets": nodesets, "outdated": sum(item["outdated"] for item in nodesets)}


def main() -> None:
    """Run the module."""
    report(ARGUMENTS, read)


if __name__ == "__main__":
    main()
