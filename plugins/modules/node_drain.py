#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module node_drain."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_drain
short_description: Drain nodes, and give them back
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Drains nodes of Slurm with one call for all of them, waits until nothing runs on them, and says which jobs hold them
    and for how long. Running jobs go on unless O(on_running_jobs) says otherwise.
  - Gives back what was drained by this collection. Reasons that it writes begin with C(k8s:).
  - What somebody else has drained counts as drained. It is waited for like the others, but its reason is not
    overwritten, and it is not given back, unless O(force) says so.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
  - slurm_ops.kubernetes.slurm
  - slurm_ops.kubernetes.targets
options:
  state:
    description:
      - With V(drained), no job begins on the nodes, and with O(wait) none runs.
      - With V(undrained), they take jobs again.
    type: str
    choices: [drained, undrained]
    default: drained
  reason:
    description:
      - Why. Written to Slurm with C(k8s:) before it. Required for V(drained). A node that this collection has drained
        already keeps its reason.
    type: str
  reason_pattern:
    description:
      - With O(state=undrained), only nodes whose reason this regular expression is found in, as in V(disk).
    type: str
  cordon:
    description:
      - Also cordon the Nodes that the Pods of the nodes are on, with the annotation C(slurm-ops.kubernetes/cordoned).
      - With O(state=undrained), uncordon those that carry it, unless another node that this collection drained is still
        there. Needs the rights to list and patch Nodes.
    type: bool
    default: false
  force:
    description:
      - With O(state=drained), take over what somebody else has drained, failed or taken down, with O(reason).
      - With O(state=undrained), give back also what somebody else has drained.
    type: bool
    default: false
  on_running_jobs:
    description:
      - What happens to jobs on the nodes when O(wait_timeout) is over.
      - V(wait) does nothing to them. The module fails with RV(reason) V(Timeout), and the nodes stay drained.
      - V(requeue) puts them back into the queue. Jobs that cannot go there (interactive ones, and those submitted with
        C(--no-requeue)) are left alone and told. Before Slurm 26.05, C(scontrol) is run in the controller's Pod.
      - V(cancel) cancels them.
      - After V(requeue) and V(cancel) the nodes get two more minutes to become drained.
    type: str
    choices: [wait, requeue, cancel]
    default: wait
  wait:
    description:
      - Wait until nothing runs on the nodes.
    type: bool
    default: true
  wait_timeout:
    description:
      - Seconds that jobs get to end by themselves. V(0) gives them none.
    type: int
    default: 300
  wait_sleep:
    description:
      - Longest pause, in seconds, between two looks. The first looks follow each other faster.
    type: int
    default: 2
notes:
  - One of O(nodes), O(nodeset), O(kubernetes_nodes) and O(label_selector) is required.
  - While it waits, slurmrestd and slurmctld may restart. A node that somebody gives back meanwhile ends the wait.
  - C(undrained) lifts the drain only. What is DOWN, or was refused by Slurm (INVALID_REG), stays so and is told.
seealso:
  - module: slurm_ops.kubernetes.node_drain_info
  - module: slurm_ops.kubernetes.job_info
"""

EXAMPLES = r"""
- name: Drain two nodes and wait up to an hour for their jobs
  slurm_ops.kubernetes.node_drain:
    nodes: ["cpu-[0-1]"]
    reason: memory is replaced
    wait_timeout: 3600

- name: Empty a rack tonight, whatever runs there, and keep other Pods away too
  slurm_ops.kubernetes.node_drain:
    label_selector: topology.kubernetes.io/rack=r1
    reason: power, ticket 4711
    cordon: true
    wait_timeout: 14400
    on_running_jobs: requeue

- name: Give it back
  slurm_ops.kubernetes.node_drain:
    label_selector: topology.kubernetes.io/rack=r1
    state: undrained
    reason_pattern: ticket 4711
    cordon: true
"""

RETURN = r"""
nodes:
  description:
    - The nodes as they are now, in check mode as they were found, and the jobs that hold them. C(by) is V(ours),
      V(slurm), V(person) or null for no reason; C(time_left) is in seconds, null without a limit; C(note) says why a
      node takes no job even without a drain.
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
      kubernetes_node: null
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
left_alone:
  description: Names of the nodes that somebody else has drained, and that are as they were.
  returned: success
  type: list
  elements: str
  sample: [cpu-7]
actions:
  description:
    - What was done, or in check mode would be, in order. The C(kind) is one of C(drain), C(cordon), C(requeue),
      C(cancel), C(uncordon), C(undrain). In check mode C(requeue) and C(cancel) name the jobs that run now; those that
      end in time are not touched.
  returned: always
  type: list
  elements: dict
  sample:
    - kind: drain
      target: cpu-0
      before: {state: mixed, reason: ""}
      after: {state: drained, reason: "k8s: memory is replaced"}
      why: "k8s: memory is replaced"
      done: true
reason:
  description: One word for why it failed.
  returned: failure
  type: str
  sample: Timeout
remaining:
  description: What is still to come, and the jobs that hold nodes with the time that they may still take.
  returned: always
  type: list
  elements: str
  sample: [job 7 of ann on cpu-0 (3 h 20 min left)]
hint:
  description: What to do next.
  returned: failure
  type: str
  sample: The nodes stay drained, no job begins there. Run again to go on waiting.
api_calls:
  description: Calls to each side, and how many of them could change something.
  returned: always
  type: dict
  sample: {"kubernetes": 1, "slurm": 5, "writes": 1, "verbs": {"get": 5, "update": 1}}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 1.2
"""

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_CLUSTER,
    ARGS_KUBERNETES,
    ArgumentSpec,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.drain import NodeDrain
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import ARGS_SLURM
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.targets import ARGS_TARGETS, BY

ARGUMENTS = (
    ARGS_KUBERNETES
    + ARGS_CLUSTER
    + ARGS_SLURM
    + ARGS_TARGETS
    + ArgumentSpec(
        {
            "state": {"type": "str", "choices": ["drained", "undrained"], "default": "drained"},
            "reason": {"type": "str"},
            "reason_pattern": {"type": "str"},
            "cordon": {"type": "bool", "default": False},
            "force": {"type": "bool", "default": False},
            "on_running_jobs": {"type": "str", "choices": ["wait", "requeue", "cancel"], "default": "wait"},
            "wait": {"type": "bool", "default": True},
            "wait_timeout": {"type": "int", "default": 300},
            "wait_sleep": {"type": "int", "default": 2},
        },
        required_one_of=[BY],
        required_if=[("state", "drained", ["reason"])],
    )
)


def main() -> None:
    """Run the module."""
    run(ARGUMENTS, NodeDrain)


if __name__ == "__main__":
    main()
