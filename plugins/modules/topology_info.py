#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module topology_info."""

from __future__ import annotations

DOCUMENTATION = r"""
module: topology_info
short_description: Show how Slurm sees the connections of its nodes
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Reads the topologies that slurmctld works with, and how many nodes below each switch or block are free, busy or
    away.
  - Returns them as data and as text, and draws a picture if O(svg_dest) is given.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
  - slurm_ops.kubernetes.slurm
options:
  svg_dest:
    description:
      - Path of an SVG file to draw, on the machine that the module runs on. It is the only thing that can change.
    type: path
notes:
  - Runs C(scontrol show topology) in the controller's Pod, so C(create) on C(pods/exec) is needed.
seealso:
  - module: slurm_ops.kubernetes.topology
  - module: slurm_ops.kubernetes.cluster_info
"""

EXAMPLES = r"""
- name: Read the topology
  slurm_ops.kubernetes.topology_info:
    svg_dest: topology.svg
  register: topology

- name: Show it
  ansible.builtin.debug:
    msg: "{{ topology.text.splitlines() }}"
"""

RETURN = r"""
topologies:
  description:
    - The topologies with their switches (or blocks), each followed by what is below it.
    - Of the nodes below a switch, C(free) ones can take a job and have none, on C(busy) ones jobs run, and C(away) ones
      are drained, down or unknown. C(outside) is a host list of nodes that are in none of its switches.
  returned: success
  type: list
  elements: dict
  sample:
    - name: network
      type: tree
      default: true
      block_sizes: []
      outside: ""
      switches:
        - name: root
          depth: 0
          parent:
          leaf: false
          nodes: gpu-[0-7]
          total: 8
          free: 6
          busy: 1
          away: 1
places:
  description: The place of each node as Slurm keeps it; empty for a node that is placed by the file alone.
  returned: success
  type: dict
  sample: {"gpu-0": "network:leaf1"}
text:
  description: All of it as text for people.
  returned: success
  type: str
  sample: "network (tree, default)\n  root     8 nodes  6 free  1 busy  1 away\n"
file:
  description: What the file is called in this version of Slurm.
  returned: success
  type: str
  sample: topology.yaml
content:
  description: The text of the file in the controller's Pod; empty if there is none.
  returned: success
  type: str
  sample: "- topology: network\n"
actions:
  description: C(save) if the picture was drawn anew.
  returned: always
  type: list
  elements: dict
  sample: []
remaining:
  description: What is still to come; always empty unless it failed.
  returned: always
  type: list
  elements: str
  sample: []
reason:
  description: One word for why it failed.
  returned: failure
  type: str
  sample: ControllerUnreachable
hint:
  description: What to do next.
  returned: failure
  type: str
  sample: Check the Pods of slurmrestd and their Service.
api_calls:
  description: Calls to each side, and how many of them could change something.
  returned: always
  type: dict
  sample: {"kubernetes": 5, "slurm": 2, "writes": 0, "verbs": {"get": 7}}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 0.4
"""

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_CLUSTER,
    ARGS_KUBERNETES,
    ArgumentSpec,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import ARGS_SLURM
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.topology_info import TopologyInfo

ARGUMENTS = ARGS_KUBERNETES + ARGS_CLUSTER + ARGS_SLURM + ArgumentSpec({"svg_dest": {"type": "path"}})


def main() -> None:
    """Run the module."""
    run(ARGUMENTS, TopologyInfo)


if __name__ == "__main__":
    main()
