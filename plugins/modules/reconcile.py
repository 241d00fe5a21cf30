#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module reconcile."""

from __future__ import annotations

DOCUMENTATION = r"""
module: reconcile
short_description: Make Slurm and Kubernetes agree about nodes, in both directions
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Drains nodes in Slurm whose Node is cordoned, not ready or unhealthy, or whose worker Pod is not ready or being
    deleted, and resumes them when that has passed. Restarts a slurmd that Slurm does not know, makes a record anew that
    does not match its Pod, and deletes records that neither a Pod nor a Node stands behind.
  - Shows on Pods and Nodes what was drained in Slurm by a person or by Slurm itself, and protects busy workers from
    eviction.
  - Never undoes or overwrites a drain whose reason is not its own, and never ends a job.
  - Changes nothing when either side cannot be read.
  - One pass, or with O(watch) a resident one that wakes up when something changes.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
  - slurm_ops.kubernetes.slurm
options:
  directions:
    description:
      - V(kubernetes_to_slurm) drains, resumes, restarts and deletes records. V(slurm_to_kubernetes) writes conditions,
        annotations, labels and, with O(cordon), cordons.
    type: list
    elements: str
    choices: [kubernetes_to_slurm, slurm_to_kubernetes]
    default: [kubernetes_to_slurm, slurm_to_kubernetes]
  only:
    description:
      - Apply only these rules. Empty means all.
    type: list
    elements: str
    choices: [drain, undrain, registration, restart, forget, size, protect, pods, nodes, cordon]
    default: []
  nodesets:
    description:
      - Names of the NodeSets to reconcile. Empty means all.
    type: list
    elements: str
    default: []
  ignore_nodesets:
    description:
      - Names of NodeSets to leave alone.
    type: list
    elements: str
    default: []
  conditions:
    description:
      - Types of Node conditions which, when true, mean that a Node should take no jobs, as in V(KernelDeadlock) of the
        node problem detector.
    type: list
    elements: str
    default: []
  cordon:
    description:
      - Whether to cordon a Node when all of its Slurm nodes were drained in Slurm, and to uncordon it when they are
        resumed. A cordon by anybody else is left alone.
    type: bool
    default: false
  grace:
    description:
      - Seconds that a new worker Pod may take to be ready and known to Slurm before it is worth a drain or a restart.
    type: int
    default: 60
  max_actions:
    description:
      - How many nodes may be taken out of service at once, as a number or as a share such as V(25%). A plan that takes
        more is refused as a whole. By default there is no limit.
    type: str
  fail_on_drift:
    description:
      - Fail when the sides differ, and change nothing.
    type: bool
    default: false
  lock_timeout:
    description:
      - Seconds to wait for another run to end. The lock is a Lease called like the cluster with C(-reconcile) appended;
        one that was left by a run that was killed is taken over after 30 seconds.
      - A run that finds nothing to do takes no lock.
    type: int
    default: 60
  watch:
    description:
      - Stay for O(duration) seconds and make a pass whenever a Pod, Node or Slurm node changes.
      - While a side cannot be read or another run holds the lock, nothing is written, and it is tried again. A run that
        ends like that has failed.
      - The last 1000 actions are returned, and all are counted.
    type: bool
    default: false
  duration:
    description:
      - Seconds to stay with O(watch).
    type: int
    default: 3600
  interval:
    description:
      - With O(watch), seconds after which a pass is made even if nothing seems to have changed.
    type: int
    default: 60
  poll:
    description:
      - With O(watch), seconds between two questions to Slurm whether a node changed, which cost next to nothing when
        none did.
    type: int
    default: 5
notes:
  - Drain reasons begin with C(k8s:) and one of C(cordoned), C(not ready), C(condition), C(pod) and C(registration).
    Other reasons that begin with C(k8s:) belong to other modules of the collection and are left alone too.
  - Sizes of NodeSets are only compared; M(slurm_ops.kubernetes.nodeset_scale) sets them.
  - Beside the rights that the other modules need, the account needs C(list) and C(watch) on Nodes, C(patch) on
    C(pods/status), and for V(slurm_to_kubernetes) C(patch) on C(nodes) and C(nodes/status).
seealso:
  - module: slurm_ops.kubernetes.cluster_info
  - module: slurm_ops.kubernetes.nodeset_scale
"""

EXAMPLES = r"""
- name: Make both sides agree
  slurm_ops.kubernetes.reconcile:
    namespace: slurm
    name: slurm
    conditions: [KernelDeadlock, GpuUnhealthy]
    max_actions: 25%

- name: Fail when they do not
  slurm_ops.kubernetes.reconcile:
    fail_on_drift: true

- name: Stay for an hour and follow what happens
  slurm_ops.kubernetes.reconcile:
    watch: true
    duration: 3600
    max_actions: 25%
"""

RETURN = r"""
actions:
  description:
    - What was done, or in check mode would be, in order. The C(kind) is one of C(drain), C(undrain), C(forget),
      C(restart), C(protect), C(unprotect), C(show), C(cordon), C(uncordon).
  returned: always
  type: list
  elements: dict
  sample:
    - kind: drain
      target: cpu-0
      before: {state: idle}
      after: {state: drained, reason: "k8s: cordoned: disk"}
      why: "k8s: cordoned: disk"
      done: true
drift:
  description: In what the sides differed at the last look, in words; also what this module does not mend.
  returned: success
  type: list
  elements: str
  sample: ["cpu-0: to be drained: k8s: cordoned: disk"]
counts:
  description: How many nodes are reconciled, and how many actions there were of each kind.
  returned: success
  type: dict
  sample: {nodes: 4, drain: 1}
passes:
  description: How often both sides were read.
  returned: success
  type: int
  sample: 2
interruptions:
  description: With O(watch), when a side could not be read or a plan not be carried out, in seconds after the start.
  returned: success
  type: list
  elements: dict
  sample: [{after: 12.5, reason: SlurmUnreachable, msg: Cannot read nodes ...}]
reason:
  description: One word for why it failed, as in C(Locked), C(TooManyNodes), C(Drift), C(SlurmUnreachable).
  returned: failure
  type: str
  sample: Locked
remaining:
  description: The nodes, differences or lock holder that are in the way.
  returned: always
  type: list
  elements: str
  sample: [cpu-3]
hint:
  description: What to do next.
  returned: failure
  type: str
  sample: Wait for its end.
api_calls:
  description: Calls to each side, and how many of them could change something.
  returned: always
  type: dict
  sample: {"kubernetes": 4, "slurm": 2, "writes": 0, "verbs": {"list": 3}}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 0.3
"""

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.reconcile import RULES, TO_KUBERNETES, TO_SLURM
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_CLUSTER,
    ARGS_KUBERNETES,
    ArgumentSpec,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.reconcile import Reconcile
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import ARGS_SLURM

ARGUMENTS = (
    ARGS_KUBERNETES
    + ARGS_CLUSTER
    + ARGS_SLURM
    + ArgumentSpec(
        {
            "directions": {
                "type": "list",
                "elements": "str",
                "choices": [TO_SLURM, TO_KUBERNETES],
                "default": [TO_SLURM, TO_KUBERNETES],
            },
            "only": {"type": "list", "elements": "str", "choices": list(RULES), "default": []},
            "nodesets": {"type": "list", "elements": "str", "default": []},
            "ignore_nodesets": {"type": "list", "elements": "str", "default": []},
            "conditions": {"type": "list", "elements": "str", "default": []},
            "cordon": {"type": "bool", "default": False},
            "grace": {"type": "int", "default": 60},
            "max_actions": {"type": "str"},
            "fail_on_drift": {"type": "bool", "default": False},
            "lock_timeout": {"type": "int", "default": 60},
            "watch": {"type": "bool", "default": False},
            "duration": {"type": "int", "default": 3600},
            "interval": {"type": "int", "default": 60},
            "poll": {"type": "int", "default": 5},
        }
    )
)


def main() -> None:
    """Run the module."""
    run(ARGUMENTS, Reconcile)


if __name__ == "__main__":
    main()
