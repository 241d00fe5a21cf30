# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""slurmrestd through the API server's Service proxy, with a token signed by the key in the cluster's Secret.

One kubeconfig (or service account) is all that is needed to reach both sides.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.names import auth_secret
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.versions import PORTS
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import paths
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import SECRET
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import ArgumentSpec
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.token import (
    GivenToken,
    PrivateKey,
    SharedKey,
    SignedToken,
    Signer,
    TokenSource,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.transport import (
    Answer,
    DirectTransport,
    Transport,
)

KEY = "jwt.key"
# Once keys were rotated tokens are signed with this one: a private JSON Web Key.
SIGNING_KEY = "jwt.jwk"
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


def signer(kubernetes: KubernetesClient, namespace: str, secret: str) -> Signer:
    """What signs tokens for a cluster; raises OperationError (NoKey) that says which Secret should hold its key."""
    found = kubernetes.get(SECRET, namespace, secret)
    data = (found or {}).get("data") or {}
    name = SIGNING_KEY if data.get(SIGNING_KEY) else KEY
    if not data.get(name):
        missing = f"has no {KEY}" if found else "does not exist"
        raise OperationError(
            f"Secret {namespace}/{secret} {missing}, so no token for slurmrestd can be made.",
            reason="NoKey",
            hint="Check the name of the Slurm cluster and its namespace.",
        )
    try:
        key = base64.b64decode(data[name], validate=True)
        return PrivateKey(json.loads(key)) if name == SIGNING_KEY else SharedKey(key)
    except ValueError as error:
        raise OperationError(f"{name} in Secret {namespace}/{secret} is no key.", reason="NoKey") from error


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

    Reads the key's Secret unless a token is given, and again when tokens are renewed; nothing else is done until the
    client is used.
    """
    namespace, name = params["namespace"], params["name"]
    tokens: TokenSource
    if params.get("slurm_token"):
        tokens = GivenToken(params["slurm_token"])
    else:
        secret = auth_secret(name, params.get("auth_secret"))
        first = iter([signer(kubernetes, namespace, secret)])
        tokens = SignedToken(lambda: next(first, None) or signer(kubernetes, namespace, secret))
    transport: Transport
    if params.get("slurm_url"):
        transport = DirectTransport(params["slurm_url"])
    else:
        transport = ServiceProxy(kubernetes, namespace, f"{name}-restapi")
    return SlurmClient(transport, tokens, calls=calls)
