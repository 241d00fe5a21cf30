# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E402 (Ansible wants the documentation before the imports)

"""Inventory plugin slurm."""

from __future__ import annotations

DOCUMENTATION = r"""
name: slurm
short_description: The nodes of a live Slurm cluster on Kubernetes
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Lists the nodes of one Slurm cluster as hosts, as Slurm and Kubernetes see them at this moment.
  - Every host is in the group C(slurm_nodes), and in groups by state (C(state_idle), C(state_drained)), NodeSet
    (C(nodeset_cpu)), partition (C(partition_gpu)) and, where Slurm has a topology, by each switch or block above it
    (C(topology_leaf1)). What Ansible does not take in the name of a group becomes an underscore.
  - Every host has the variable C(slurm_node) with all that the module M(slurm_ops.kubernetes.cluster_info) returns of a
    node, and the C(namespace) of its Pod.
  - A side that cannot be read is an error, not an empty inventory.
  - The name of the file must end with C(slurm.yml) or C(slurm.yaml).
extends_documentation_fragment:
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
  - slurm_ops.kubernetes.slurm
  - ansible.builtin.constructed
options:
  plugin:
    description: Must be V(slurm_ops.kubernetes.slurm).
    type: str
    required: true
    choices: [slurm_ops.kubernetes.slurm]
seealso:
  - module: slurm_ops.kubernetes.cluster_info
"""

EXAMPLES = r"""
# live.slurm.yml
plugin: slurm_ops.kubernetes.slurm
namespace: slurm
name: slurm
keyed_groups:
  - prefix: kubernetes_node
    key: slurm_node.kubernetes_node
groups:
  broken: not slurm_node.usable
compose:
  # Tasks for these hosts then run inside the worker Pods.
  ansible_connection: "'kubernetes.core.kubectl'"
  ansible_kubectl_namespace: slurm_node.namespace
  ansible_kubectl_pod: slurm_node.pod
  ansible_kubectl_container: "'slurmd'"
"""

from collections import Counter

from ansible.errors import AnsibleParserError
from ansible.inventory.data import InventoryData
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.inventory import BaseInventoryPlugin, Constructable

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.inventory import hosts
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import Snapshot
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.config import ENVIRONMENT, resolve
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.observe import first_failure, read_sides
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import client_of

OPTIONS = (*ENVIRONMENT, "namespace", "name", "auth_secret", "slurm_url", "slurm_token")


class InventoryModule(BaseInventoryPlugin, Constructable):
    """What Ansible loads."""

    NAME = "slurm_ops.kubernetes.slurm"

    def verify_file(self, path: str) -> bool:
        """Whether the name says that the file is for this plugin."""
        return bool(super().verify_file(path)) and path.endswith(("slurm.yml", "slurm.yaml"))

    def parse(self, inventory: InventoryData, loader: DataLoader, path: str, cache: bool = True) -> None:
        """Read both sides and fill the inventory."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        try:
            snapshot = self._read()
        except OperationError as error:
            raise AnsibleParserError(f"{path}: {error}") from error
        strict = self.get_option("strict")
        for host in hosts(snapshot):
            inventory.add_host(host.name)
            for group in host.groups:
                inventory.add_group(group)
                inventory.add_child(group, host.name)
            variables = {"slurm_node": {**host.node, "namespace": self.get_option("namespace")}}
            inventory.set_variable(host.name, "slurm_node", variables["slurm_node"])
            self._set_composite_vars(self.get_option("compose"), variables, host.name, strict=strict)
            self._add_host_to_composed_groups(self.get_option("groups"), variables, host.name, strict=strict)
            self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, host.name, strict=strict)

    def _read(self) -> Snapshot:
        options = {name: self.get_option(name) for name in OPTIONS}
        kubernetes = KubernetesClient(lambda: resolve(options))
        try:
            sides = read_sides(
                kubernetes,
                lambda: client_of(kubernetes, options, Counter()),
                options["namespace"],
                options["name"],
                kubernetes_nodes=False,
            )
        finally:
            kubernetes.close()
        failure = first_failure(sides)
        if failure is not None:
            raise failure
        return sides.snapshot()
