#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module nodeset_scale."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nodeset_scale
short_description: Bring NodeSets to their size without harm to jobs
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Makes NodeSets smaller by draining the nodes that are to go, waiting until nothing runs on them, lowering the size,
    and deleting the records that Slurm keeps of dynamic nodes.
  - Makes NodeSets larger, waits until every node has registered, and compares what registered (CPUs, memory, GRES) with
    what was declared.
  - Never ends a job unless O(on_running_jobs) says so. A drain by a person is never undone.
  - A run that was interrupted goes on where it stopped when it is run again.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
  - slurm_ops.kubernetes.slurm
options:
  nodesets:
    description:
      - The NodeSets and their sizes.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description:
          - Name of the NodeSet.
        type: str
        required: true
      replicas:
        description:
          - Number of nodes that are wanted. Left out, the size is not touched, as where an autoscaler keeps it.
          - A NodeSet of kind C(node) gets Nodes that it could use and that belong to no other NodeSet, in the order of
            their names, or loses some; not ready ones first, then idle, draining and running ones, of these the ones
            with the lowest C(controller.kubernetes.io/pod-deletion-cost), whose jobs end first, that are newest.
        type: int
      include:
        description:
          - Nodes (of Kubernetes) that a NodeSet of kind C(node) is to have. O(nodesets[].replicas) does not take them.
        type: list
        elements: str
      exclude:
        description:
          - Nodes (of Kubernetes) that a NodeSet of kind C(node) is not to have. Others may take their place for
            O(nodesets[].replicas).
        type: list
        elements: str
      cpus:
        description:
          - CPUs that each node must have registered. Left out, any number will do.
        type: int
      memory_mib:
        description:
          - Memory in MiB that each node must have registered. Left out, any amount will do.
        type: int
      gres:
        description:
          - GRES that each node must have registered, as in V(gpu:h100:8). More is fine.
        type: str
  prune:
    description:
      - With V(true), NodeSets of this cluster that are not in O(nodesets) are drained and removed.
    type: bool
    default: false
  direction:
    description:
      - V(in) only makes smaller, V(out) only makes larger and waits for registration, V(both) does one after the other.
    type: str
    choices: [in, out, both]
    default: both
  on_running_jobs:
    description:
      - What happens when jobs run on nodes that are to go.
      - V(refuse) changes nothing and names the jobs.
      - V(wait) drains and waits for their end, for at most O(wait_timeout); after that the nodes stay drained.
      - V(requeue) and V(cancel) drain and then put the jobs back into the queue or cancel them. Jobs that cannot be
        requeued are waited for. Before Slurm 26.05, C(scontrol) in the controller's Pod requeues.
    type: str
    choices: [refuse, wait, requeue, cancel]
    default: refuse
  wait:
    description:
      - Wait until all nodes have registered. Draining is always waited for.
    type: bool
    default: true
  wait_timeout:
    description:
      - Seconds that each wait may take.
    type: int
    default: 300
  wait_sleep:
    description:
      - Seconds between two looks, at most.
    type: int
    default: 2
notes:
  - A NodeSet of kind C(node) grows and shrinks by the label C(slurm-ops.kubernetes/nodeset) of Nodes, which holds its
    name. Its C(node_selector) must ask for that label, as it does by default. Needs the rights to list and patch Nodes.
  - The record of a node that a person has drained is kept, so that the drain is still there when the node comes back.
  - Drain reasons begin with C(k8s:), by which the collection knows its own drains.
  - Slurm is reached through the API server's Service proxy with a token that is signed by the cluster's own key.
seealso:
  - module: slurm_ops.kubernetes.applyset
  - module: slurm_ops.kubernetes.cluster_info
"""

EXAMPLES = r"""
- name: Two nodes more or less
  slurm_ops.kubernetes.nodeset_scale:
    namespace: slurm
    name: slurm
    nodesets:
      - {name: cpu, replicas: 6}
    on_running_jobs: wait
    wait_timeout: 3600

- name: Eight GPU machines, but not the one that is being repaired
  slurm_ops.kubernetes.nodeset_scale:
    nodesets:
      - {name: h100, replicas: 8, exclude: [gpu-17]}
    on_running_jobs: wait
    wait_timeout: 7200

- name: Make sure that all GPUs have registered
  slurm_ops.kubernetes.nodeset_scale:
    nodesets:
      - {name: h100, gres: "gpu:h100:8"}
    direction: out
"""

RETURN = r"""
nodesets:
  description:
    - The NodeSets. C(replicas) is the size as it was found, C(wanted) the number that was asked for, C(desired) how
      many nodes there are to be; C(current) is how many Pods there are now, C(ready) how many of them are ready and
      registered, C(drained) how many are drained. C(feasible) counts the Nodes that a NodeSet of kind C(node) has or
      could have, C(infeasible) names the others; null and empty where no Nodes are to be chosen.
  returned: success
  type: list
  elements: dict
  sample:
    - name: h100
      kind: node
      replicas: 7
      wanted: 8
      removed: false
      desired: 8
      current: 8
      ready: 8
      drained: 0
      feasible: 9
      infeasible: [{kubernetes_node: gpu-17, why: is cordoned}]
actions:
  description:
    - What was done, or in check mode would be, in order. The C(kind) is one of C(drain), C(requeue), C(cancel),
      C(scale), C(leave), C(remove), C(forget), C(join), C(undrain).
  returned: always
  type: list
  elements: dict
  sample:
    - kind: scale
      target: NodeSet cpu
      before: {replicas: 4}
      after: {replicas: 6}
      why: wanted larger
      done: true
reason:
  description: One word for why it failed, as in C(RunningJobs), C(Timeout), C(NotAsDeclared).
  returned: failure
  type: str
  sample: RunningJobs
remaining:
  description: What is still to come, or the nodes that jobs hold.
  returned: always
  type: list
  elements: str
  sample: [cpu-3]
hint:
  description: What to do next.
  returned: failure
  type: str
  sample: Wait for them, or say what is to happen to them.
api_calls:
  description: Calls to each side, and how many of them could change something.
  returned: always
  type: dict
  sample: {"kubernetes": 4, "slurm": 2, "writes": 0, "verbs": {"list": 3}}
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
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.scale import NodeSetScale
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import ARGS_SLURM

ARGUMENTS = (
    ARGS_KUBERNETES
    + ARGS_CLUSTER
    + ARGS_SLURM
    + ArgumentSpec(
        {
            "nodesets": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "name": {"type": "str", "required": True},
                    "replicas": {"type": "int"},
                    "include": {"type": "list", "elements": "str"},
                    "exclude": {"type": "list", "elements": "str"},
                    "cpus": {"type": "int"},
                    "memory_mib": {"type": "int"},
                    "gres": {"type": "str"},
                },
            },
            "prune": {"type": "bool", "default": False},
            "direction": {"type": "str", "choices": ["in", "out", "both"], "default": "both"},
            "on_running_jobs": {"type": "str", "choices": ["refuse", "wait", "requeue", "cancel"], "default": "refuse"},
            "wait": {"type": "bool", "default": True},
            "wait_timeout": {"type": "int", "default": 300},
            "wait_sleep": {"type": "int", "default": 2},
        }
    )
)


def main() -> None:
    """Run the module."""
    run(ARGUMENTS, NodeSetScale)


if __name__ == "__main__":
    main()
