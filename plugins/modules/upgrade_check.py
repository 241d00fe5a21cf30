#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module upgrade_check."""

from __future__ import annotations

DOCUMENTATION = r"""
module: upgrade_check
short_description: See what another release of Slurm means for a cluster, and whether it is possible
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Asks every daemon of a running cluster for its version, and tells which ones have to be replaced, in the order that
    Slurm needs, for the release that is wanted. What has been done already is no step any more.
  - Fails (C(NotReady)), with all reasons at once, when the new release cannot read what the old one wrote, when a
    daemon would go back, when an image holds another release than it should, or when the volume of the database or of
    StateSaveLocation is too full for a conversion.
  - With O(images) it looks into them. A Pod with a container of each is made on slurmctld's Node, tells the versions,
    and is gone again; the slurmctld in it judges O(files), as M(slurm_ops.kubernetes.slurm_config) has them judged.
    An image that cannot be pulled, and a key or plugin that the new release no longer has, are so known before
    anything is touched.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes.info_module
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
    details:
      - Nothing of the cluster is changed. The Pod that looks into the images is made in check mode too.
options:
  slurm_version:
    description:
      - The release that is wanted, such as V(26.05).
    type: str
    required: true
  images:
    description:
      - The new images by daemon. Without them only what runs is looked at. Needs O(files).
    type: dict
    suboptions:
      slurmctld: {description: [Image of slurmctld.], type: str, required: true}
      slurmdbd: {description: [Image of slurmdbd.], type: str, required: true}
      slurmrestd: {description: [Image of slurmrestd.], type: str, required: true}
      slurmd: {description: [Image of the nodes.], type: str, required: true}
      login: {description: [Image of the login Pods.], type: str, required: true}
  nodeset_images:
    description:
      - Images of NodeSets that have their own, by the name of the NodeSet. They may hold an older release, as long as
        the new slurmctld serves it.
    type: dict
    default: {}
  files:
    description:
      - All files of the configuration for the new release, as the filter P(slurm_ops.kubernetes.slurm_files#filter)
        makes them.
    type: dict
  auth_secret:
    description:
      - Secret with the keys of the cluster. Default is C(<name>-auth).
    type: str
  image_pull_policy:
    description:
      - When images of the Pod are pulled.
    type: str
    default: IfNotPresent
  image_pull_secrets:
    description:
      - Secrets for the registry, as a Pod lists them.
    type: list
    elements: dict
    default: []
  pod_spec:
    description:
      - Further fields of the spec of the Pod, such as C(tolerations).
    type: dict
    default: {}
  wait_timeout:
    description:
      - Seconds that pulling the images may take.
    type: int
    default: 600
notes:
  - Runs commands in Pods and makes a Job, so C(create) on C(pods/exec) and C(jobs) is needed.
  - Compares releases (26.05), not maintenance versions (26.05.3), which the playbook site replaces like any image.
seealso:
  - module: slurm_ops.kubernetes.backup
  - module: slurm_ops.kubernetes.nodeset_rollout
  - module: slurm_ops.kubernetes.cluster_info
"""

EXAMPLES = r"""
- name: See which daemons are older than 26.05
  slurm_ops.kubernetes.upgrade_check:
    slurm_version: "26.05"
  register: upgrade

- name: Name them
  ansible.builtin.debug:
    msg: "{{ upgrade.steps | map(attribute='name') | join(', ') or 'none' }}"
"""

RETURN = r"""
release:
  description: The release that is wanted.
  returned: success
  type: str
  sample: "26.05"
oldest:
  description: The oldest release that runs in the cluster, to which the configuration has to keep until the end.
  returned: success
  type: str
  sample: "24.11"
untouched:
  description: Whether slurmdbd and slurmctld are still of an older release, so that a backup now is a way back.
  returned: success
  type: bool
  sample: true
steps:
  description:
    - What is to be done, in order. The C(kind) is one of C(slurmdbd), C(slurmctld), C(slurmrestd), C(nodeset),
      C(login), C(configuration).
  returned: success
  type: list
  elements: dict
  sample:
    - kind: slurmdbd
      name: slurmdbd
      before: 24.11.5
      after: 26.05.5
      why: converts the database; jobs go on, and accounting of them waits
notes:
  description: What else is to be known.
  returned: success
  type: list
  elements: str
  sample: ["jobs that run: 3; they go on"]
parts:
  description: Every part with the versions that run, {version (Pods or nodes)}, and what its new image holds.
  returned: success
  type: list
  elements: dict
  sample:
    - {name: NodeSet cpu, kind: nodeset, running: {"24.11.5": 2}, image_holds: 26.05.5}
rooms:
  description: Volumes with the bytes that a conversion writes beside what is there, and those that are free.
  returned: success
  type: list
  elements: dict
  sample:
    - {where: the volume of the database, needs: 9437184, free: 19327352832}
reason:
  description: One word for why it failed, as in C(NotReady), C(Refused), C(NotFound).
  returned: failure
  type: str
  sample: NotReady
remaining:
  description: What stands in the way.
  returned: failure
  type: list
  elements: str
  sample: ["slurmd: its image holds Slurm 25.11.2, not 26.05; correct its tag"]
hint:
  description: What to do next.
  returned: failure
  type: str
  sample: Nothing was changed.
api_calls:
  description: Calls to each side. Slurm is reached in its Pods.
  returned: always
  type: dict
  sample: {"kubernetes": 24, "slurm": 0, "writes": 2, "verbs": {"get": 16, "list": 6, "create": 1, "delete": 1}}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 5.1
"""

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_CLUSTER,
    ARGS_KUBERNETES,
    ArgumentSpec,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import report
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.upgrade import UpgradeCheck

IMAGES = ("slurmctld", "slurmdbd", "slurmrestd", "slurmd", "login")
ARGUMENTS = (
    ARGS_KUBERNETES
    + ARGS_CLUSTER
    + ArgumentSpec(
        {
            "slurm_version": {"type": "str", "required": True},
            "images": {"type": "dict", "options": {name: {"type": "str", "required": True} for name in IMAGES}},
            "nodeset_images": {"type": "dict", "default": {}},
            "files": {"type": "dict"},
            "auth_secret": {"type": "str", "no_log": False},
            "image_pull_policy": {"type": "str", "default": "IfNotPresent"},
            "image_pull_secrets": {"type": "list", "elements": "dict", "default": [], "no_log": False},
            "pod_spec": {"type": "dict", "default": {}},
            "wait_timeout": {"type": "int", "default": 600},
        },
        required_together=[("images", "files")],
        sensitive=["files"],
    )
)


def main() -> None:
    """Run the module."""
    report(ARGUMENTS, lambda run: UpgradeCheck(run).read())


if __name__ == "__main__":
    main()
