#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module applyset."""

from __future__ import annotations

DOCUMENTATION = r"""
module: applyset
short_description: Apply, prune and wait for a set of Kubernetes manifests
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Makes the objects of a namespace that belong to one set be what the manifests say, in one go. What is missing is
    created, what differs is changed, and what has left the manifests is deleted.
  - The set is an ApplySet (KEP-3659). A ConfigMap named O(name) remembers which kinds it has members of, and each
    member carries the label C(applyset.kubernetes.io/part-of).
  - Objects are written by server-side apply with the field manager C(slurm_ops.kubernetes), so that fields which others
    manage stay theirs.
  - Before anything is written, everything that differs goes through the API server's dry run. A manifest that it
    would refuse stops the module while nothing is half done.
  - When everything is as it should be, no write call is made and V(changed=false) is returned.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.wait
options:
  name:
    description:
      - Name of the set and of the ConfigMap that is its parent. No manifest may be a ConfigMap of this name.
    type: str
    required: true
  namespace:
    description:
      - Namespace of the parent, and of every manifest that names none.
      - To make the namespace too, add a C(Namespace) to O(manifests).
    type: str
    required: true
  manifests:
    description:
      - What the set consists of. Each item is a manifest, a list of manifests, a C(List) object, or text with one or
        more YAML documents.
      - Fields that are null are left out. C(stringData) of Secrets is turned into C(data).
      - A Pod template with the annotation C(slurm-ops.kubernetes/restart-on) (for example
        C(configmap/NAME,secret/NAME,configmap/NAME/KEY)) gets the annotation C(slurm-ops.kubernetes/content-hash), so
        that its Pods are replaced when the content of these objects changes, whether they are in the set or not.
      - Not logged and not returned, as there may be secrets within.
    type: list
    elements: raw
    default: []
  state:
    description:
      - With V(present), the set is made to be what O(manifests) says.
      - With V(absent), every member is deleted, except volumes (see O(delete_volumes)) and namespaces. O(manifests) is
        not needed.
    type: str
    choices: [present, absent]
    default: present
  prune:
    description:
      - Whether to delete members that are no longer in O(manifests).
      - Namespaces, CustomResourceDefinitions and volumes are never pruned (volumes with O(delete_volumes) are).
    type: bool
    default: true
  delete_volumes:
    description:
      - Whether PersistentVolumeClaims and PersistentVolumes of the set may be deleted too, also those which its
        StatefulSets made.
    type: bool
    default: false
  adopt:
    description:
      - Whether to take over objects that exist under a wanted name and do not belong to the set. They are
        refused as a name clash otherwise, and nothing is changed.
    type: bool
    default: false
  force_conflicts:
    description:
      - Whether to take over fields that another field manager has set to another value. Such a conflict is an error
        otherwise.
    type: bool
    default: false
  recreate:
    description:
      - Whether a StatefulSet may be deleted and made again when a field is to change that the API server does not let
        be changed (C(volumeClaimTemplates), C(serviceName), C(selector), C(podManagementPolicy)).
      - Its Pods and volumes are kept and taken over by the new StatefulSet.
    type: bool
    default: false
notes:
  - A Role in the namespace is enough unless cluster-scoped manifests are given. It needs C(get), C(list), C(create),
    C(patch) and C(delete) on C(configmaps) and on each kind in the manifests, C(get) on Secrets that
    C(slurm-ops.kubernetes/restart-on) names, and for O(wait) to end early also C(list) on C(pods), C(events) and
    C(replicasets), C(get) on C(pods/log) and C(delete) on C(pods).
  - With O(wait), Pods that can only keep a rollout from going on are deleted. Those are Pods of an earlier template
    that cannot start, for which a StatefulSet would wait for ever, and Pods that have been in back-off since before the
    task began. Of workloads with the update strategy C(OnDelete), only Pods in which no container ever ran.
seealso:
  - module: slurm_ops.kubernetes.secret
  - name: KEP-3659
    description: ApplySet, the specification of the labels and annotations.
    link: https://github.com/kubernetes/enhancements/tree/master/keps/sig-cli/3659-kubectl-apply-prune
"""

EXAMPLES = r"""
- name: Apply the accounting daemon and wait until it serves
  slurm_ops.kubernetes.applyset:
    name: slurm-accounting-set
    namespace: slurm
    manifests: "{{ lookup('ansible.builtin.template', 'slurmdbd.yaml.j2') | from_yaml_all }}"
    wait: true
    wait_timeout: 300

- name: Two objects of which one replaces its Pods when the other changes
  slurm_ops.kubernetes.applyset:
    name: web
    namespace: demo
    manifests:
      - apiVersion: v1
        kind: ConfigMap
        metadata:
          name: web-pages
        data:
          index.html: Hello
      - apiVersion: apps/v1
        kind: Deployment
        metadata:
          name: web
        spec:
          selector:
            matchLabels:
              app: web
          template:
            metadata:
              labels:
                app: web
              annotations:
                slurm-ops.kubernetes/restart-on: configmap/web-pages
            spec:
              containers:
                - name: web
                  image: registry.example.com/web:1

- name: Remove the set, but keep its volumes
  slurm_ops.kubernetes.applyset:
    name: web
    namespace: demo
    state: absent
    wait: true
"""

RETURN = r"""
actions:
  description: What was done, or would be done in check mode, in order.
  returned: always
  type: list
  elements: dict
  contains:
    kind:
      description: One of V(create), V(update), V(recreate), V(prune), V(delete).
      type: str
    target:
      description: Kind, namespace and name of the object.
      type: str
    before:
      description: The fields that change, with their old values; V(present) or nothing for a whole object.
      type: raw
    after:
      description: The fields that change, with their new values; V(present) or V(absent) for a whole object.
      type: raw
    why:
      description: The reason in words.
      type: str
    done:
      description: Whether it was done. Always V(false) in check mode.
      type: bool
  sample:
    - kind: update
      target: StatefulSet slurm/slurm-controller
      before: {"spec.template.spec.containers[slurmctld].image": "slurmctld:26.05"}
      after: {"spec.template.spec.containers[slurmctld].image": "slurmctld:26.11"}
      why: differs from the manifest
      done: true
resources:
  description:
    - The objects of the set. Where the update strategy is C(OnDelete), C(outdated) counts the Pods that it leaves with
      an older template, at the end of the wait, or without one before anything was changed.
  returned: success
  type: list
  elements: dict
  sample:
    - api_version: apps/v1
      kind: StatefulSet
      namespace: slurm
      name: cpu
      outdated: 1
remaining:
  description: What is still to be done or to become ready. Empty on success.
  returned: always
  type: list
  elements: str
  sample: ["StatefulSet slurm/slurm-controller: 0 of 1 Pods are ready"]
api_calls:
  description: How many calls were made to the API server, by verb; C(writes) counts those that could change something.
  returned: always
  type: dict
  sample: {"kubernetes": 6, "slurm": 0, "writes": 0, "verbs": {"get": 1, "list": 5}}
auth_source:
  description: Where the connection and the credentials came from.
  returned: success
  type: str
  sample: kubeconfig /home/ann/.kube/config, context production
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 0.214
reason:
  description: One word for what went wrong, for programs.
  returned: failure
  type: str
  sample: ImagePull
hint:
  description: What to do about it.
  returned: failure
  type: str
  sample: Check the name and the tag of the image.
"""

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.applyset import ApplySet
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_KUBERNETES,
    ARGS_WAIT,
    ArgumentSpec,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import run


def main() -> None:
    """Run the module."""
    run(
        ARGS_KUBERNETES
        + ARGS_WAIT
        + ArgumentSpec(
            {
                "name": {"type": "str", "required": True},
                "namespace": {"type": "str", "required": True},
                "manifests": {"type": "list", "elements": "raw", "default": []},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                "prune": {"type": "bool", "default": True},
                "delete_volumes": {"type": "bool", "default": False},
                "adopt": {"type": "bool", "default": False},
                "force_conflicts": {"type": "bool", "default": False},
                "recreate": {"type": "bool", "default": False},
            },
            sensitive=["manifests"],
        ),
        ApplySet,
    )


if __name__ == "__main__":
    main()
