# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""slurmrestd through the API server's Service proxy, with a token signed by the key in the cluster's Secret.

One kubeconfig (or service account) is all that is needed to reach both sides.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Mapping

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.versions import PORTS
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import paths
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.token import SignedToken
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.transport import Answer

KEY = "jwt.key"


class ServiceProxy:
    """A Transport whose requests travel through the Kubernetes API server; it adds the Kubernetes credentials."""

    def __init__(self, kubernetes: KubernetesClient, namespace: str, service: str) -> None:
        self._kubernetes = kubernetes
        self._namespace = namespace
        self._service = service
        self._path = paths.service_proxy(namespace, service, PORTS["slurmrestd"])

    @property
    def where(self) -> str:
        """Namespace and Service."""
        return f"Service {self._namespace}/{self._service}"

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Answer:
        """Make one attempt; what may be tried again is for the SlurmClient to say."""
        reply = self._kubernetes.exchange(
            method,
            self._path + path,
            verb="proxy",
            target=self.where,
            body=body,
            headers=headers,
            timeout=timeout,
            idempotent=False,
        )
        return Answer(reply.status, reply.headers, reply.body)


def jwt_key(kubernetes: KubernetesClient, namespace: str, secret: str) -> bytes:
    """The JWT key of a cluster; raises OperationError (NoKey) that says which Secret should hold it."""
    found = kubernetes.get(paths.Resource("v1", "Secret", "secrets", True), namespace, secret)
    encoded = ((found or {}).get("data") or {}).get(KEY)
    if not encoded:
        missing = f"has no {KEY}" if found else "does not exist"
        raise OperationError(
            f"Secret {namespace}/{secret} {missing}, so no token for slurmrestd can be made.",
            reason="NoKey",
            hint="Check the name of the Slurm cluster and its namespace.",
        )
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise OperationError(f"{KEY} in Secret {namespace}/{secret} is not base64.", reason="NoKey") from error


def slurm_client(
    kubernetes: KubernetesClient,
    namespace: str,
    name: str,
    calls: Counter[str],
    *,
    secret: str = "",
    user: str = "slurm",
) -> SlurmClient:
    """The client of one cluster; one read for its key, nothing else until it is used."""
    key = jwt_key(kubernetes, namespace, secret or f"{name}-auth")
    return SlurmClient(ServiceProxy(kubernetes, namespace, f"{name}-restapi"), SignedToken(key, user), calls=calls)
