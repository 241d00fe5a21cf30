#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module nodeset_rollout."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nodeset_rollout
short_description: Replace the Pods of a NodeSet by such of its new template without harm to jobs
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Worker Pods keep the template that they were made from until this module replaces them. It drains a node, waits
    until nothing runs there, deletes the Pod, waits until the new one is ready and its slurmd has registered what the
    template declares, and gives the node back. As many nodes at a time as O(max_unavailable) allows; a node that is
    back makes room for the next at once.
  - Nodes that are out of service anyway go first, then idle ones, then those whose jobs end first. No job is ended
    unless O(on_running_jobs) says so.
  - A node that somebody else has drained is replaced too once it is empty, and stays drained with that reason. A node
    that a person has set DOWN or FAIL is left alone, since a new slurmd would end that.
  - When O(failure_threshold) nodes did not come back good, no other is touched, and nodes that were drained and have
    their old Pods still are given back.
  - A run that was interrupted goes on where it stopped when it is run again.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
  - slurm_ops.kubernetes.slurm
options:
  nodeset:
    description:
      - Name of the NodeSet.
    type: str
    required: true
  max_unavailable:
    description:
      - How many nodes of the NodeSet may be out of service at once, as a number or as a share such as V(25%) (rounded
        down, but at least one). Nodes that are out of service for other causes count too.
    type: str
    default: "1"
  on_running_jobs:
    description:
      - What becomes of jobs that still run on a node O(drain_timeout) seconds after it was drained. V(wait) leaves them
        alone; the module fails and names them, and the node stays drained. V(requeue) and V(cancel) put them back into
        the queue or cancel them; jobs that cannot be requeued are waited for.
    type: str
    choices: [wait, requeue, cancel]
    default: wait
  drain_timeout:
    description:
      - Seconds that the jobs on each node get to end by themselves.
    type: int
    default: 3600
  ready_timeout:
    description:
      - Seconds that each node gets to come back, from the deletion of its Pod. What can never become ready, such as a
        Pod whose image does not exist, counts as failed earlier.
    type: int
    default: 600
  failure_threshold:
    description:
      - How many nodes may fail to come back good, as a number or as a share, before no other is touched.
    type: str
    default: "1"
  canary:
    description:
      - So many nodes, as a number or as a share, get the new template first. Once they have it, that is all, and the
        result says RV(paused); run again without this option for the others. Not together with O(window).
    type: str
  continue_after_canary:
    description:
      - Go on with the others once those of O(canary) are good.
    type: bool
    default: false
  window:
    description:
      - A maintenance window. Before it begins, the module reserves the nodes that have old Pods from its start to its
        end, so that no job starts there that would not have ended by then, and does no more. Run it again when the
        window has begun; all nodes of the reservation are drained at once then, whatever O(max_unavailable) says, the
        reservation is taken away, and each node is back in service as soon as it is good.
      - What has not begun when the window ends is given back, and the module fails with the reason V(WindowOver).
    type: dict
    suboptions:
      start:
        description:
          - When it begins, in the form of ISO 8601 with a time zone, as in V(2026-11-22T02:00:00+01:00).
        type: str
        required: true
      duration:
        description:
          - How long it is, in minutes.
        type: int
        required: true
  pause:
    description:
      - Seconds that a node must have been back before it makes room for the next.
    type: int
    default: 0
  lock_timeout:
    description:
      - Seconds to wait for another rollout of this NodeSet to end.
    type: int
    default: 60
  wait_sleep:
    description:
      - Seconds between two looks, at most.
    type: int
    default: 2
notes:
  - The drains that it sets have the reason C(k8s:) C(rollout:) and the name of the NodeSet; by that an interrupted run
    is known again.
  - Where CPUs, memory, GRES or features change, the record of a dynamic node is deleted together with its Pod, since
    Slurm keeps the first one. Such a node comes back in service. A record with somebody else's drain is kept.
  - Slurm may show a node that was given back as not responding for up to half a minute. Where that counts, set O(pause)
    to 30.
seealso:
  - module: slurm_ops.kubernetes.nodeset_rollout_info
  - module: slurm_ops.kubernetes.nodeset_scale
  - module: slurm_ops.kubernetes.node_drain
"""

EXAMPLES = r"""
- name: Replace a quarter of the nodes at a time, jobs have until tomorrow
  slurm_ops.kubernetes.nodeset_rollout:
    nodeset: cpu
    max_unavailable: 25%
    drain_timeout: 86400

- name: See what that would do
  slurm_ops.kubernetes.nodeset_rollout:
    nodeset: cpu
    max_unavailable: 25%
  check_mode: true
  register: plan

- name: Tonight from two to four
  slurm_ops.kubernetes.nodeset_rollout:
    nodeset: cpu
    window: {start: "2026-11-22T02:00:00Z", duration: 120}

- name: One node first
  slurm_ops.kubernetes.nodeset_rollout:
    nodeset: h100
    canary: 1
"""

RETURN = r"""
nodeset:
  description:
    - The NodeSet as it is now, in check mode as it was found. C(updated) and C(outdated) count Pods, C(in_service) the
      nodes that take jobs; C(left_alone) names nodes that a person has set DOWN or FAIL.
  returned: success
  type: dict
  sample:
    name: cpu
    kind: replica
    revision: cpu-6c7f9d5b8
    desired: 2
    updated: 2
    outdated: 0
    in_service: 2
    left_alone: []
    nodes:
      - name: cpu-0
        pod: cpu-0
        kubernetes_node: node1
        revision: cpu-6c7f9d5b8
        updated: true
        in_service: true
        state: idle
        reason: ""
        lacks: null
        jobs: []
batches:
  description:
    - The nodes in the order in which they are taken, those together that go side by side if all jobs end in time.
  returned: success
  type: list
  elements: list
  sample: [[cpu-1], [cpu-0]]
paused:
  description: Whether O(canary) nodes have the new template, or O(window) is still ahead, and others have to wait.
  returned: success
  type: bool
  sample: false
window:
  description: The window, and whether it is C(ahead), C(open) or C(over).
  returned: with O(window)
  type: dict
  sample:
    reservation: k8s-rollout-cpu
    start: "2026-11-22T02:00:00Z"
    end: "2026-11-22T04:00:00Z"
    phase: ahead
actions:
  description:
    - What was done, or in check mode would be, node by node. The C(kind) is one of C(reserve), C(unreserve), C(drain),
      C(requeue), C(cancel), C(forget), C(replace), C(undrain).
  returned: always
  type: list
  elements: dict
  sample:
    - kind: replace
      target: Pod cpu-1
      before: {node: cpu-1}
      after: {node: cpu-1, revision: cpu-6c7f9d5b8}
      why: NodeSet cpu has a new template
      done: true
reason:
  description:
    - One word for why it failed, as in C(RolloutFailed), C(Timeout), C(NoneToSpare), C(WindowOver), C(TemplateChanged),
      C(Locked).
  returned: failure
  type: str
  sample: RolloutFailed
remaining:
  description: The nodes that have their old Pods still, or did not come back.
  returned: always
  type: list
  elements: str
  sample: [cpu-3]
hint:
  description: What to do next.
  returned: failure
  type: str
  sample: Mend the template, apply it, and run again.
api_calls:
  description: Calls to each side, and how many of them could change something.
  returned: always
  type: dict
  sample: {"kubernetes": 4, "slurm": 2, "writes": 0, "verbs": {"list": 3}}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 31.2
"""

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_CLUSTER,
    ARGS_KUBERNETES,
    ArgumentSpec,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.nodeset_rollout import NodeSetRollout
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import ARGS_SLURM

ARGUMENTS = (
    ARGS_KUBERNETES
    + ARGS_CLUSTER
    + ARGS_SLURM
    + ArgumentSpec(
        {
            "nodeset": {"type": "str", "required": True},
            "max_unavailable": {"type": "str", "default": "1"},
            "on_running_jobs": {"type": "str", "choices": ["wait", "requeue", "cancel"], "default": "wait"},
            "drain_timeout": {"type": "int", "default": 3600},
            "ready_timeout": {"type": "int", "default": 600},
            "failure_threshold": {"type": "str", "default": "1"},
            "canary": {"type": "str"},
            "continue_after_canary": {"type": "bool", "default": False},
            "window": {
                "type": "dict",
                "options": {
                    "start": {"type": "str", "required": True},
                    "duration": {"type": "int", "required": True},
                },
            },
            "pause": {"type": "int", "default": 0},
            "lock_timeout": {"type": "int", "default": 60},
            "wait_sleep": {"type": "int", "default": 2},
        },
        mutually_exclusive=[("canary", "window")],
    )
)


def main() -> None:
    """Run the module."""
    run(ARGUMENTS, NodeSetRollout)


if __name__ == "__main__":
    main()
