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
          - Number of nodes that are wanted. Left out, the size is not touched, as for NodeSets of kind C(node), or
            where an autoscaler keeps it.
        type: int
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
      - V(requeue) and V(cancel) drain and then put the jobs back into the queue or cancel them. Requeueing needs Slurm
        26.05.
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

- name: Make sure that all GPUs have registered
  slurm_ops.kubernetes.nodeset_scale:
    nodesets:
      - {name: h100, gres: "gpu:h100:8"}
    direction: out
"""

RETURN = r"""
nodesets:
  description: The NodeSets as they were found.
  returned: success
  type: list
  elements: dict
  sample: [{"name": "cpu", "kind": "replica", "replicas": 4, "wanted": 6, "removed": false}]
actions:
  description:
    - What was done, or in check mode would be, in order. The C(kind) is one of C(drain), C(requeue), C(cancel),
      C(scale), C(remove), C(forget), C(undrain).
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
