#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module topology."""

from __future__ import annotations

DOCUMENTATION = r"""
module: topology
short_description: Tell Slurm how nodes are connected
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Makes the topology of a cluster, trees of switches and blocks, from labels of Kubernetes Nodes, from a mapping, from
    an output of C(ibnetdiscover), or from a file that you wrote.
  - Refuses, with the name of the switch or node, what slurmctld would refuse, and what it would accept without a word
    and is wrong all the same, such as a node in two blocks or a switch below two others.
  - With O(apply), has a second slurmctld in the controller's Pod judge the file, puts it into place without a restart,
    and tells dynamic nodes their place. Nodes leave a switch that goes before it goes, as slurmctld could not start
    again otherwise. When slurmctld does not take it, the old topology comes back.
  - A node that lacks a label goes under the switch O(topologies[].unplaced), and is reported. A node whose Pod is not
    on a Node at the moment keeps its place.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
  - slurm_ops.kubernetes.slurm
options:
  topologies:
    description:
      - The topologies. Before Slurm 25.05 there can be only one.
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - Its name, by which a partition picks it (C(Topology) of the partition).
        type: str
        required: true
      type:
        description:
          - V(tree) is made of switches, V(block) of groups of nodes that are equally near to each other, V(flat) has no
            structure.
        type: str
        choices: [tree, block, flat]
        default: tree
      default:
        description:
          - Whether it is for partitions that pick none. Without any such, the first one is.
        type: bool
        default: false
      labels:
        description:
          - Labels of Kubernetes Nodes, from the top of the tree down to the leaf switch. A block topology takes the
            last.
        type: list
        elements: str
      mapping:
        description:
          - A mapping of host lists to names from the top down, such as C("gpu-[0-7]") to C([zone1, spine1, leaf1]).
          - The hosts are nodes of Slurm or Kubernetes Nodes.
        type: dict
      mapping_file:
        description:
          - Path of a YAML file with such a mapping.
        type: path
      ibnetdiscover:
        description:
          - Path of an output of C(ibnetdiscover). The hosts are nodes of Slurm or Kubernetes Nodes, by the first word
            of the description of their adapters.
          - Switches that share hosts, or links of one level, become one switch of the tree, called after the first of
            them by name.
        type: path
      nodesets:
        description:
          - Only nodes of these NodeSets are in it. By default all are.
        type: list
        elements: str
      block_sizes:
        description:
          - Sizes of blocks that jobs can ask for, each the first one doubled some times.
        type: list
        elements: int
      root:
        description:
          - Name of the switch at the top of the tree, which joins what would be islands otherwise.
        type: str
        default: root
      unplaced:
        description:
          - Name of the switch or block for nodes whose place is not known.
        type: str
        default: unplaced
      names:
        description:
          - How switches are called. V(value) takes a label's value, which must then be in one place of the tree only.
            V(path) takes the values from the top down, as in C(zone1/rack1).
        type: str
        choices: [value, path]
        default: value
  content:
    description:
      - The text of a whole file instead of O(topologies), C(topology.yaml) or, for a Slurm before 25.05,
        C(topology.conf). It is written anew in this collection's form.
    type: str
  state:
    description:
      - V(absent) takes the topology of the cluster away.
    type: str
    choices: [present, absent]
    default: present
  apply:
    description:
      - Put it into place. With V(false) the text is only returned, and written to O(dest).
    type: bool
    default: false
  dest:
    description:
      - Path of a file for the text, on the machine that the module runs on.
    type: path
  ignore_unknown:
    description:
      - Leave out hosts of a mapping that Slurm does not know, instead of refusing it.
    type: bool
    default: false
  wait_timeout:
    description:
      - Seconds that the controller may take to get the file, and then to read it.
    type: int
    default: 120
  wait_sleep:
    description:
      - Seconds between two looks, at most.
    type: int
    default: 1
notes:
  - The file is a key of the ConfigMap C(<name>-topology), which the roles of this collection mount and never change.
  - A Slurm before 25.05 also needs C(TopologyPlugin) in C(slurm_conf), and its nodes have no place of their own. There
    any change of a node's place is a reconfigure.
  - Runs commands in the controller's Pod, so C(create) on C(pods/exec) is needed.
seealso:
  - module: slurm_ops.kubernetes.topology_info
  - module: slurm_ops.kubernetes.cluster_info
"""

EXAMPLES = r"""
- name: A tree of the labels of Nodes
  slurm_ops.kubernetes.topology:
    topologies:
      - name: network
        labels: [topology.kubernetes.io/zone, example.org/spine, example.org/leaf]
    apply: true

- name: NVLink domains for the GPUs, nothing for the others
  slurm_ops.kubernetes.topology:
    topologies:
      - {name: plain, type: flat, default: true}
      - name: nvlink
        type: block
        labels: [example.org/nvlink-domain]
        nodesets: [gb200]
        block_sizes: [16, 32]
    apply: true

- name: Only see what an InfiniBand fabric would give
  slurm_ops.kubernetes.topology:
    topologies:
      - {name: infiniband, ibnetdiscover: fabric.txt}
    dest: topology.yaml
"""

RETURN = r"""
content:
  description: The text of the file; empty when there is to be none.
  returned: success
  type: str
  sample: "- topology: network\n  cluster_default: true\n  tree:\n    switches:\n"
file:
  description: What the file is called in this version of Slurm.
  returned: success
  type: str
  sample: topology.yaml
topologies:
  description: What the topologies have.
  returned: success
  type: list
  elements: dict
  sample:
    - {name: network, type: tree, default: true, switches: 4, leaves: {leaf1: "gpu-[0-7]"}, nodes: 8}
unplaced:
  description: Host list of nodes whose place is not known, by topology.
  returned: success
  type: dict
  sample: {network: "gpu-[6-7]"}
kept:
  description: Host list of nodes that keep their place because their Kubernetes Node cannot be told now.
  returned: success
  type: str
  sample: gpu-5
notes:
  description: What is no mistake but worth knowing, such as blocks of different sizes. Also told as warnings.
  returned: success
  type: list
  elements: str
  sample: ["topology nvlink: blocks b2 have fewer nodes than the block size 16"]
actions:
  description:
    - What was done, or in check mode would be, in order. The C(kind) is one of C(save), C(leave), C(write), C(remove),
      C(reconfigure), C(place).
  returned: always
  type: list
  elements: dict
  sample:
    - kind: place
      target: gpu-[0-7]
      before: ""
      after: network:leaf1
      why: its place in the topology
      done: true
reason:
  description: One word for why it failed, as in C(InvalidVariables), C(Refused), C(NotMounted), C(PluginNotSet).
  returned: failure
  type: str
  sample: Refused
remaining:
  description: What is still to come, or the options that are wrong.
  returned: always
  type: list
  elements: str
  sample: []
hint:
  description: What to do next.
  returned: failure
  type: str
  sample: Nothing was changed. Correct the options.
api_calls:
  description: Calls to each side, and how many of them could change something.
  returned: always
  type: dict
  sample: {"kubernetes": 6, "slurm": 2, "writes": 0, "verbs": {"get": 5}}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 1.9
"""

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_CLUSTER,
    ARGS_KUBERNETES,
    ArgumentSpec,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import ARGS_SLURM
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.topology import TopologyChange

ARGUMENTS = (
    ARGS_KUBERNETES
    + ARGS_CLUSTER
    + ARGS_SLURM
    + ArgumentSpec(
        {
            "topologies": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "name": {"type": "str", "required": True},
                    "type": {"type": "str", "choices": ["tree", "block", "flat"], "default": "tree"},
                    "default": {"type": "bool", "default": False},
                    "labels": {"type": "list", "elements": "str"},
                    "mapping": {"type": "dict"},
                    "mapping_file": {"type": "path"},
                    "ibnetdiscover": {"type": "path"},
                    "nodesets": {"type": "list", "elements": "str"},
                    "block_sizes": {"type": "list", "elements": "int"},
                    "root": {"type": "str", "default": "root"},
                    "unplaced": {"type": "str", "default": "unplaced"},
                    "names": {"type": "str", "choices": ["value", "path"], "default": "value"},
                },
            },
            "content": {"type": "str"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "apply": {"type": "bool", "default": False},
            "dest": {"type": "path"},
            "ignore_unknown": {"type": "bool", "default": False},
            "wait_timeout": {"type": "int", "default": 120},
            "wait_sleep": {"type": "int", "default": 1},
        },
        mutually_exclusive=[("topologies", "content")],
        required_if=[("state", "present", ("topologies", "content"), True)],
    )
)


def main() -> None:
    """Run the module."""
    run(ARGUMENTS, TopologyChange)


if __name__ == "__main__":
    main()
