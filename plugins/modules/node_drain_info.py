#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module node_drain_info."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_drain_info
short_description: Read which nodes are drained, by whom, and what holds them
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Lists the nodes that are drained or draining with reason, who set it and since when, and the jobs that still run on
    them with users and the time that they may still take.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes.info_module
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
  - slurm_ops.kubernetes.slurm
  - slurm_ops.kubernetes.targets
notes:
  - Without one of O(nodes), O(nodeset), O(kubernetes_nodes) and O(label_selector) all nodes are looked at.
seealso:
  - module: slurm_ops.kubernetes.node_drain
  - module: slurm_ops.kubernetes.cluster_info
"""

EXAMPLES = r"""
- name: See what is drained
  slurm_ops.kubernetes.node_drain_info:
  register: drains

- name: Say who waits for which jobs
  ansible.builtin.debug:
    msg: "{{ item.name }} ({{ item.reason }}) waits for {{ item.jobs | map(attribute='user') | unique | join(', ') }}"
  loop: "{{ drains.nodes | selectattr('draining') }}"
  loop_control:
    label: "{{ item.name }}"
"""

RETURN = r"""
nodes:
  description:
    - The nodes that are drained or draining. C(by) is V(ours), V(slurm), V(person) or null for no reason; C(reason_at)
      is in seconds since 1970, C(since) the same for people (UTC); C(time_left) is in seconds, null without a limit;
      C(note) says why a node takes no job even without a drain.
  returned: success
  type: list
  elements: dict
  sample:
    - name: cpu-0
      state: draining
      drained: false
      draining: true
      reason: "k8s: disk is replaced"
      by: ours
      reason_user: slurm
      reason_at: 1795258652
      jobs: [{job_id: 7, user: ann, partition: cpu, state: RUNNING, time_left: 12000}]
      note: null
      since: "2026-11-21T10:57:32Z"
      nodeset: cpu
      kubernetes_node: node1
drained:
  description: Names of the nodes that are drained and empty.
  returned: success
  type: list
  elements: str
  sample: [cpu-1]
draining:
  description: Names of the nodes that are drained and not empty yet.
  returned: success
  type: list
  elements: str
  sample: [cpu-0]
by:
  description: How many of them were drained by whom.
  returned: success
  type: dict
  sample: {ours: 1, person: 1, slurm: 0, unknown: 0}
api_calls:
  description: Calls to each side.
  returned: always
  type: dict
  sample: {"kubernetes": 2, "slurm": 3, "writes": 0, "verbs": {"get": 4, "list": 1}}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 0.2
"""

import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import drains, jobs
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_CLUSTER,
    ARGS_KUBERNETES,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.draining import Draining
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, report
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import ARGS_SLURM
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.targets import (
    ARGS_TARGETS,
    Targets,
    read_targets,
)

ARGUMENTS = ARGS_KUBERNETES + ARGS_CLUSTER + ARGS_SLURM + ARGS_TARGETS


def read(run: Run) -> Mapping[str, Any]:
    """Read nodes, jobs and the Pods behind the nodes."""
    draining = Draining(run)
    targets = read_targets(run, draining, pods=True)
    nodes = [node for node in targets.nodes if node.state.drain]
    on = jobs.by_node(draining.jobs()) if nodes else {}
    now = time.time()
    owners = Counter(drains.owner_of(node.reason) or "unknown" for node in nodes)
    return {
        "nodes": [
            {
                **drains.plain(node, on.get(node.name, ()), now),
                "since": _written(node.reason_at),
                "nodeset": _nodeset_of(targets, node.name),
                "kubernetes_node": targets.kubernetes_node_of(node.name),
            }
            for node in nodes
        ],
        "drained": [node.name for node in nodes if node.state.drained],
        "draining": [node.name for node in nodes if not node.state.drained],
        "by": {owner: owners[owner] for owner in (drains.OURS, drains.PERSON, drains.SLURM, "unknown")},
    }


def _written(seconds: int) -> str | None:
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _nodeset_of(targets: Targets, name: str) -> str | None:
    pod = targets.seen.pod_of.get(name)
    return (pod.nodeset or None) if pod else None


def main() -> None:
    """Run the module."""
    report(ARGUMENTS, read)


if __name__ == "__main__":
    main()
