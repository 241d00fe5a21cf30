# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""From options, environment, kubeconfig and in-cluster account to one resolved connection.

Precedence: option > K8S_AUTH_* > kubeconfig (KUBECONFIG, ~/.kube/config) > the Pod's own service account.
An ordinary kubeconfig (token, certificate, password) is read here; what needs code of its own (exec plugins,
auth-provider) is done by the ``kubernetes`` library, imported only then: its import alone takes 0.15 s, which every
task of a play would pay. See docs/decisions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.connection import Connection, basic
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.kubeconfig import (
    default_files,
    from_kubeconfig,
)

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"

# Option name -> environment variable, both exactly as kubernetes.core has them.
ENVIRONMENT = {
    "kubeconfig": "K8S_AUTH_KUBECONFIG",
    "context": "K8S_AUTH_CONTEXT",
    "host": "K8S_AUTH_HOST",
    "api_key": "K8S_AUTH_API_KEY",
    "username": "K8S_AUTH_USERNAME",
    "password": "K8S_AUTH_PASSWORD",
    "client_cert": "K8S_AUTH_CERT_FILE",
    "client_key": "K8S_AUTH_KEY_FILE",
    "ca_cert": "K8S_AUTH_SSL_CA_CERT",
    "validate_certs": "K8S_AUTH_VERIFY_SSL",
    "proxy": "K8S_AUTH_PROXY",
    "no_proxy": "K8S_AUTH_NO_PROXY",
    "impersonate_user": "K8S_AUTH_IMPERSONATE_USER",
    "impersonate_groups": "K8S_AUTH_IMPERSONATE_GROUPS",
}
# A cluster named by one of these, as an option, makes the other way of naming one in the environment moot:
# a play that says ``kubeconfig`` must not end up with the host that a job runner put into K8S_AUTH_HOST.
DIRECT = ("host", "api_key", "username", "password", "client_cert", "client_key", "ca_cert")
FILE = ("kubeconfig", "context")


def resolve(options: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Connection:
    """Return the connection that options and environment ask for. Raises OperationError with what is missing."""
    environ = os.environ if environ is None else environ
    given = {name: options.get(name) for name in ENVIRONMENT if options.get(name) is not None}
    ignored: tuple[str, ...] = ()
    if "kubeconfig" in given:
        ignored = DIRECT
    elif "host" in given:
        ignored = FILE
    values: dict[str, Any] = {}
    for name, variable in ENVIRONMENT.items():
        if name in given:
            values[name] = given[name]
        elif environ.get(variable) and name not in ignored:
            values[name] = environ[variable]
    values["validate_certs"] = _boolean(values.get("validate_certs"))
    if isinstance(values.get("impersonate_groups"), str):
        values["impersonate_groups"] = [group for group in values["impersonate_groups"].split(",") if group]

    direct = "host" in values and any(name in values for name in ("api_key", "username", "client_cert"))
    if direct and "kubeconfig" not in given:
        base = Connection(host=values["host"], source="options" if "host" in given else "environment (K8S_AUTH_HOST)")
    elif "kubeconfig" in values or "context" in values or default_files(environ):
        base = from_kubeconfig(values, environ)
    elif environ.get("KUBERNETES_SERVICE_HOST") and os.path.exists(f"{SERVICE_ACCOUNT}/token"):
        base = _in_cluster(environ)
    elif "host" in values:
        base = Connection(host=values["host"], source="options" if "host" in given else "environment (K8S_AUTH_HOST)")
    else:
        raise OperationError(
            "No Kubernetes cluster is configured.",
            reason="NoConfiguration",
            hint="Give kubeconfig (or host and api_key), set K8S_AUTH_KUBECONFIG or KUBECONFIG, "
            "or run inside a Pod with a service account.",
        )
    return _override(base, values, environ)


def _boolean(value: Any) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    return str(value).strip().lower() not in ("0", "no", "n", "false", "off", "f")


def _override(base: Connection, values: Mapping[str, Any], environ: Mapping[str, str]) -> Connection:
    """Let single options replace what the kubeconfig (or the Pod) said."""
    changes: dict[str, Any] = {}
    if "host" in values:
        changes["host"] = values["host"]
    if "api_key" in values:
        changes["authorization"] = f"Bearer {values['api_key']}"
    elif "username" in values and "password" in values:
        changes["authorization"] = basic(values["username"], values["password"])
    if "ca_cert" in values:
        changes |= {"ca_file": _expand(values["ca_cert"]), "ca_data": None}
    if "client_cert" in values:
        changes |= {"cert_file": _expand(values["client_cert"]), "cert_data": None}
        if "client_key" not in values:
            changes |= {"key_file": None, "key_data": None}
    if "client_key" in values:
        changes |= {"key_file": _expand(values["client_key"]), "key_data": None}
    if values["validate_certs"] is not None:
        changes["verify"] = values["validate_certs"]
    if "impersonate_user" in values:
        changes["impersonate_user"] = values["impersonate_user"]
    if "impersonate_groups" in values:
        changes["impersonate_groups"] = tuple(values["impersonate_groups"])
    proxy = values.get("proxy") or base.proxy or _environment_proxy(changes.get("host", base.host), environ)
    no_proxy = values.get("no_proxy") or environ.get("NO_PROXY") or environ.get("no_proxy")
    changes |= {"proxy": proxy, "no_proxy": no_proxy}
    current = {name: getattr(base, name) for name in Connection.__dataclass_fields__}
    connection = Connection(**(current | changes))
    if not connection.host.startswith(("http://", "https://")):
        raise OperationError(
            f"The API server's address {connection.host!r} ({connection.source}) is not a URL.",
            reason="InvalidConfiguration",
            hint="Write it as https://NAME:PORT.",
        )
    return connection


def _environment_proxy(host: str, environ: Mapping[str, str]) -> str | None:
    names = ("HTTPS_PROXY", "https_proxy") if host.startswith("https:") else ("http_proxy",)
    return next((environ[name] for name in names if environ.get(name)), None)


def _expand(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


def _in_cluster(environ: Mapping[str, str]) -> Connection:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    with open(f"{SERVICE_ACCOUNT}/token", encoding="utf-8") as stream:
        token = stream.read().strip()
    with open(f"{SERVICE_ACCOUNT}/namespace", encoding="utf-8") as stream:
        namespace = stream.read().strip()
    return Connection(
        host=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        source="in-cluster service account",
        ca_file=f"{SERVICE_ACCOUNT}/ca.crt",
        authorization=f"Bearer {token}",
        namespace=namespace,
    )
