# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of which nodes are meant."""

from __future__ import annotations


class ModuleDocFragment:
    """Options that choose nodes; of them at most one is given."""

    DOCUMENTATION = r"""
options:
  nodes:
    description:
      - Names of nodes (of Slurm); host lists such as V(cpu-[0-3]) too. A name that Slurm does not know is refused
        before anything is written.
    type: list
    elements: str
  nodeset:
    description:
      - All nodes of this NodeSet.
    type: str
  kubernetes_nodes:
    description:
      - The nodes whose Pods are on these Nodes (of Kubernetes). Needs the right to list Nodes.
    type: list
    elements: str
  label_selector:
    description:
      - The nodes whose Pods are on Nodes with these labels, as in V(topology.kubernetes.io/rack=r1). Needs the right to
        list Nodes.
    type: str
"""
