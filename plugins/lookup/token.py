# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E402 (Ansible wants the documentation before the imports)

"""Lookup plugin token."""

from __future__ import annotations

DOCUMENTATION = r"""
name: token
short_description: A token for Slurm's REST API
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Makes a short-lived token for slurmrestd, signed here with the key in the cluster's Secret. The key itself goes
    nowhere, and nothing is run in a Pod.
  - Whoever may read that Secret may speak for every user of Slurm.
extends_documentation_fragment:
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
options:
  _terms:
    description:
      - Users to make tokens for, one each.
    type: list
    elements: str
    required: true
  lifespan:
    description:
      - Seconds for which a token is good.
    type: int
    default: 600
  auth_secret:
    description:
      - Secret with the key C(jwt.key), and C(jwt.jwk) once keys were rotated. By default the name of the cluster with
        C(-auth) appended.
    type: str
notes:
  - A token is a secret. Give tasks that use one C(no_log=true).
  - The modules of this collection make their own tokens.
"""

EXAMPLES = r"""
- name: Ask Slurm's REST API as alice
  ansible.builtin.uri:
    url: http://slurmrestd.example.org:6820/slurm/v0.0.45/jobs/
    headers:
      X-SLURM-USER-TOKEN: "{{ lookup('slurm_ops.kubernetes.token', 'alice', namespace='slurm', lifespan=60) }}"
  no_log: true
"""

RETURN = r"""
_raw:
  description: One token for each user, in their order.
  type: list
  elements: str
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.names import auth_secret
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.config import ENVIRONMENT, resolve
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import signer
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.token import SignedToken


class LookupModule(LookupBase):
    """What Ansible loads."""

    def run(self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any) -> list[str]:
        """Make the tokens."""
        self.set_options(var_options=variables, direct=kwargs)
        lifespan = self.get_option("lifespan")
        users = [str(term) for term in terms]
        if not users or not all(users):
            raise AnsibleLookupError("The lookup slurm_ops.kubernetes.token needs the name of a user.")
        if lifespan < 1:
            raise AnsibleLookupError(f"lifespan is {lifespan}: a token must be good for at least a second.")
        options = {name: self.get_option(name) for name in ENVIRONMENT}
        secret = auth_secret(self.get_option("name"), self.get_option("auth_secret"))
        kubernetes = KubernetesClient(lambda: resolve(options))
        try:
            key = signer(kubernetes, self.get_option("namespace"), secret)
            return [SignedToken(lambda: key, user, lifespan=lifespan).token() for user in users]
        except OperationError as error:
            raise AnsibleLookupError(str(error)) from error
        finally:
            kubernetes.close()
