#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module secret."""

from __future__ import annotations

DOCUMENTATION = r"""
module: secret
short_description: Make a Kubernetes Secret once and never change or show what is in it
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Makes keys, passwords, SSH host keys and certificates and puts them into a Secret. What is generated goes from this
    module to the API server and nowhere else, never into a result, a diff or a log.
  - Keys of the Secret that exist are kept, whoever made them, so that a Secret of your own can be brought along.
    Keys that are missing are added. Only a given C(value) replaces what is there, when it differs.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes
  - slurm_ops.kubernetes.kubernetes
options:
  name:
    description:
      - Name of the Secret.
    type: str
    required: true
  namespace:
    description:
      - Namespace of the Secret.
    type: str
    required: true
  data:
    description:
      - What the Secret shall hold, as a dictionary whose keys are those of the Secret and whose values are dictionaries
        with one of the following.
      - C(bytes) is a number of random bytes.
      - C(password) is a random password. Its options are C(length), V(32) by default, and C(characters), letters and
        digits by default.
      - C(ssh_host_key) is V(ed25519), V(rsa) or V(ecdsa). The private key is kept under the key, the public key under
        the key with C(.pub) appended.
      - C(tls) makes C(ca.crt), C(tls.crt) and C(tls.key), whatever the key is. The certificate is for servers and is
        signed by a CA of its own, whose key is not kept. Options are C(common_name), C(dns_names), C(ip_addresses), and
        C(days), V(3650) by default.
      - C(text) is text of your own that others may change later. It is put there once.
      - C(value) is text of your own that is put back when it differs.
      - Not logged and not returned.
    type: dict
    default: {}
  type:
    description:
      - Type of the Secret. It cannot be changed later.
    type: str
    default: Opaque
  labels:
    description:
      - Labels to set. Others that the Secret has are kept.
    type: dict
    default: {}
  annotations:
    description:
      - Annotations to set. Others that the Secret has are kept.
    type: dict
    default: {}
  immutable:
    description:
      - With V(true), the Secret is made immutable, so that nobody can change or add keys any more. This cannot be
        undone.
    type: bool
  state:
    description:
      - With V(absent), the Secret is deleted with all that is in it.
    type: str
    choices: [present, absent]
    default: present
notes:
  - A Role with C(get), C(create), C(patch) and C(delete) on C(secrets) is enough.
requirements:
  - cryptography >= 3.4 (for C(ssh_host_key) and C(tls))
seealso:
  - module: slurm_ops.kubernetes.applyset
"""

EXAMPLES = r"""
- name: Make the keys of a Slurm cluster
  slurm_ops.kubernetes.secret:
    name: slurm-auth
    namespace: slurm
    data:
      slurm.key: {bytes: 1024}
      jwt.key: {bytes: 32}

- name: Make the host keys of the login Pods
  slurm_ops.kubernetes.secret:
    name: slurm-login-hostkeys
    namespace: slurm
    data:
      ssh_host_ed25519_key: {ssh_host_key: ed25519}
      ssh_host_rsa_key: {ssh_host_key: rsa}

- name: Make a certificate for the directory
  slurm_ops.kubernetes.secret:
    name: slurm-example-tls
    namespace: slurm
    type: kubernetes.io/tls
    data:
      tls:
        tls:
          common_name: slurm-directory
          dns_names: [slurm-directory, slurm-directory.slurm.svc]
"""

RETURN = r"""
keys:
  description: The keys that the Secret has, or would have in check mode.
  returned: success
  type: list
  elements: str
  sample: [jwt.key, slurm.key]
actions:
  description: What was done, or would be done in check mode. At most one. Values are hidden.
  returned: always
  type: list
  elements: dict
  sample:
    - kind: create
      target: Secret slurm/slurm-auth
      before:
      after: {"jwt.key": "(hidden)", "slurm.key": "(hidden)"}
      why: not there yet
      done: true
remaining:
  description: What is still to be done. Empty on success.
  returned: always
  type: list
  elements: str
  sample: []
api_calls:
  description: How many calls were made to the API server, by verb; C(writes) counts those that could change something.
  returned: always
  type: dict
  sample: {"kubernetes": 3, "slurm": 0, "writes": 1, "verbs": {"create": 1, "dry-run": 1, "get": 1}}
auth_source:
  description: Where the connection and the credentials came from.
  returned: success
  type: str
  sample: in-cluster service account
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 0.034
reason:
  description: One word for what went wrong, for programs.
  returned: failure
  type: str
  sample: Forbidden
hint:
  description: What to do about it.
  returned: failure
  type: str
  sample: Grant the right, or use other credentials.
"""

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import ARGS_KUBERNETES, ArgumentSpec
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.secret import SecretOnce


def main() -> None:
    """Run the module."""
    run(
        ARGS_KUBERNETES
        + ArgumentSpec(
            {
                "name": {"type": "str", "required": True},
                "namespace": {"type": "str", "required": True},
                "data": {"type": "dict", "default": {}},
                "type": {"type": "str", "default": "Opaque"},
                "labels": {"type": "dict", "default": {}},
                "annotations": {"type": "dict", "default": {}},
                "immutable": {"type": "bool"},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            },
            sensitive=["data"],
        ),
        SecretOnce,
    )


if __name__ == "__main__":
    main()
