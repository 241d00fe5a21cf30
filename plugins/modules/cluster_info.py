#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module cluster_info."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_info
short_description: Read both sides of a Slurm cluster on Kubernetes at once
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Reads NodeSets, nodes, the Pods and Nodes behind them, daemons, partitions, and how many jobs there are, with a
    fixed number of calls whatever the size of the cluster.
  - Slurm is asked through slurmrestd, which is reached through the API server's Service proxy with a token that is
    signed here with the key in the cluster's Secret. One kubeconfig is all that is needed. With O(slurm_url),
    slurmrestd is asked directly.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes.info_module
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
  - slurm_ops.kubernetes.slurm
options:
  labels:
    description:
      - Labels of Nodes to return.
    type: list
    elements: str
    default: []
  annotations:
    description:
      - Annotations of Nodes to return.
    type: list
    elements: str
    default: []
  conditions:
    description:
      - Conditions of Nodes and of worker Pods to return, by type, as V(Ready), V(DiskPressure) or those that
        M(slurm_ops.kubernetes.reconcile) writes.
    type: list
    elements: str
    default: []
  kubernetes_nodes:
    description:
      - Whether to read the Nodes. An account that may not list Nodes is told so in RV(unreadable), and the rest is read
        all the same.
    type: bool
    default: true
  fail_on_unreadable:
    description:
      - Whether to fail when Kubernetes or Slurm cannot be read.
      - With V(false), what could be read is returned, and RV(readable) says of each side whether it could be. A side
        that was not read returns empty lists, which says nothing of what is there.
    type: bool
    default: true
notes:
  - A Role with C(list) on C(pods), C(statefulsets), C(daemonsets) and C(deployments), C(get) on the Secret, and C(get)
    and C(create) on C(services/proxy) is enough for everything but RV(kubernetes_nodes).
seealso:
  - module: slurm_ops.kubernetes.applyset
"""

EXAMPLES = r"""
- name: Look at the cluster
  slurm_ops.kubernetes.cluster_info:
  register: cluster

- name: Say which nodes cannot take jobs
  ansible.builtin.debug:
    msg: "{{ item.name }} is {{ item.word }}: {{ item.reason or item.pod_problem }}"
  loop: "{{ cluster.nodes | rejectattr('usable') }}"
  loop_control:
    label: "{{ item.name }}"

- name: See in which rack each Node is, even while Slurm is down
  slurm_ops.kubernetes.cluster_info:
    namespace: slurm
    name: slurm
    labels: [topology.kubernetes.io/rack]
    fail_on_unreadable: false
  register: cluster
"""

RETURN = r"""
nodesets:
  description: The NodeSets and how many of their nodes are where they should be.
  returned: success
  type: list
  elements: dict
  sample:
    - name: cpu
      kind: replica
      desired: 2
      current: 2
      ready: 2
      registered: 2
      usable: 1
      states: {drained: 1, idle: 1}
      nodes: cpu-[0-1]
      image: registry.example.org/slurmd:26.05
nodes:
  description: Slurm's nodes with the Pods behind them, then worker Pods that Slurm does not know. C(pod_conditions)
    are those asked for.
  returned: success
  type: list
  elements: dict
  sample:
    - name: cpu-0
      nodeset: cpu
      known_to_slurm: true
      state: [IDLE, DRAIN, DYNAMIC_NORM]
      word: drained
      drained: true
      draining: false
      responding: true
      usable: false
      reason: "k8s: cordon: disk"
      reason_user: slurm
      reason_at: 1795258652
      cpus: 4
      allocated_cpus: 0
      memory_mib: 16000
      gres: gpu:h100:8
      gres_used: gpu:h100:0
      features: [cpu]
      partitions: [cpu]
      address: 10.244.2.35
      hostname: cpu-0
      version: 26.05.5
      topology: ""
      dynamic: true
      pod: cpu-0
      pod_ready: true
      pod_problem: null
      pod_conditions: {}
      kubernetes_node: node1
kubernetes_nodes:
  description: The Nodes of the Kubernetes cluster, with the labels, annotations and conditions asked for. C(since) is
    the time of a condition's last change in seconds since 1970.
  returned: success
  type: list
  elements: dict
  sample:
    - name: node1
      ready: true
      cordoned: false
      taints: []
      labels: {topology.kubernetes.io/rack: r1}
      annotations: {}
      conditions:
        Ready: {status: "True", reason: KubeletReady, message: kubelet is posting ready status, since: 1795258652}
daemons:
  description: slurmctld, slurmdbd, slurmrestd, login Pods, the database and whatever else belongs to the cluster.
  returned: success
  type: list
  elements: dict
  sample:
    - name: slurm-controller
      component: controller
      desired: 1
      ready: 1
      image: registry.example.org/slurmctld:26.05
      restarts: 0
      pods:
        - name: slurm-controller-0
          ready: true
          phase: Running
          kubernetes_node: node1
          restarts: 0
          problem: null
partitions:
  description: Partitions. C(max_time) is in minutes, null for no end.
  returned: success
  type: list
  elements: dict
  sample:
    - name: cpu
      state: UP
      default: true
      nodes: cpu-[0-1]
      total_nodes: 2
      max_time: null
jobs:
  description: How many jobs slurmctld knows, by state.
  returned: success
  type: dict
  sample: {total: 3, by_state: {PENDING: 2, RUNNING: 1}}
versions:
  description: Versions of slurmrestd, of its data_parser that is used, and of slurmd on how many nodes.
  returned: success
  type: dict
  sample: {slurmrestd: 26.05.5, data_parser: v0.0.45, slurmd: {26.05.5: 2}}
controllers:
  description: What each slurmctld answered to a ping.
  returned: success
  type: list
  elements: dict
  sample:
    - hostname: slurm-controller-0
      primary: true
      responding: true
readable:
  description: Whether each side could be read.
  returned: success
  type: dict
  sample: {kubernetes: true, kubernetes_nodes: true, slurm: true}
unreadable:
  description: Why a side could not be read.
  returned: success
  type: list
  elements: dict
  sample:
    - side: slurm
      reason: SlurmUnreachable
      msg: Cannot ping slurmctld ...
api_calls:
  description: Calls made to each side.
  returned: always
  type: dict
  sample: {kubernetes: 5, slurm: 4}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 0.2
"""

from collections.abc import Mapping
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_CLUSTER,
    ARGS_KUBERNETES,
    ArgumentSpec,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, report
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.observe import (
    first_failure,
    read_sides,
    result,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import ARGS_SLURM, client_of

ARGUMENTS = (
    ARGS_KUBERNETES
    + ARGS_CLUSTER
    + ARGS_SLURM
    + ArgumentSpec(
        {
            "labels": {"type": "list", "elements": "str", "default": []},
            "annotations": {"type": "list", "elements": "str", "default": []},
            "conditions": {"type": "list", "elements": "str", "default": []},
            "kubernetes_nodes": {"type": "bool", "default": True},
            "fail_on_unreadable": {"type": "bool", "default": True},
        }
    )
)


def read(run: Run) -> Mapping[str, Any]:
    """Read both sides."""
    params = run.params
    sides = read_sides(
        run.kubernetes,
        lambda: client_of(run.kubernetes, params, run.slurm_calls),
        params["namespace"],
        params["name"],
        kubernetes_nodes=params["kubernetes_nodes"],
    )
    failure = first_failure(sides)
    if failure is not None and params["fail_on_unreadable"]:
        raise failure
    return result(sides, **{part: params[part] for part in ("labels", "annotations", "conditions")})


def main() -> None:
    """Run the module."""
    report(ARGUMENTS, read)


if __name__ == "__main__":
    main()
