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
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.versions import PORTS
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import paths
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import ArgumentSpec
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.token import (
    GivenToken,
    SignedToken,
    TokenSource,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.transport import (
    Answer,
    DirectTransport,
    Transport,
)

KEY = "jwt.key"
PROXY = "proxy"


class ServiceProxy:
    """A Transport whose requests travel through the Kubernetes API server; it adds the Kubernetes credentials."""

    def __init__(self, kubernetes: KubernetesClient, namespace: str, service: str) -> None:
        self._kubernetes = kubernetes
        self._namespace = namespace
        self._service = service
        self._path = paths.service_proxy(namespace, service, PORTS["slurmrestd"]).rstrip("/")

    @property
    def where(self) -> str:
        """Namespace and Service."""
        return f"Service {self._namespace}/{self._service}"

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Answer:
        """Make one attempt; what may be tried again is for the SlurmClient to say."""
        reply = self._kubernetes.exchange(
            method,
            self._path + path,
            verb=PROXY,
            target=self.where,
            body=body,
            headers=headers,
            timeout=timeout,
            idempotent=False,
        )
        # Counted once, on Slurm's side.
        self._kubernetes.calls.pop(PROXY, None)
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


# Documented in each module that reaches Slurm.
ARGS_SLURM = ArgumentSpec(
    {
        "auth_secret": {"type": "str", "no_log": False},
        "slurm_url": {"type": "str"},
        "slurm_token": {"type": "str", "no_log": True},
    }
)


def client_of(kubernetes: KubernetesClient, params: Mapping[str, Any], calls: Counter[str]) -> SlurmClient:
    """The Slurm client that a module's options (ARGS_CLUSTER, ARGS_SLURM) ask for.

    Reads the key's Secret unless a token is given; nothing else is done until the client is used.
    """
    namespace, name = params["namespace"], params["name"]
    tokens: TokenSource
    if params.get("slurm_token"):
        tokens = GivenToken(params["slurm_token"])
    else:
        tokens = SignedToken(jwt_key(kubernetes, namespace, params.get("auth_secret") or f"{name}-auth"))
    transport: Transport
    if params.get("slurm_url"):
        transport = DirectTransport(params["slurm_url"])
    else:
        transport = ServiceProxy(kubernetes, namespace, f"{name}-restapi")
    return SlurmClient(transport, tokens, calls=calls)
