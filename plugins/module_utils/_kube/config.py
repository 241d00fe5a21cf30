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

import base64
import binascii
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

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


@dataclass(frozen=True, slots=True)
class Connection:
    """Everything that is needed to talk to one API server; ``source`` says where it came from, without secrets."""

    host: str
    source: str
    verify: bool = True
    ca_file: str | None = None
    ca_data: bytes | None = field(default=None, repr=False)
    cert_file: str | None = None
    key_file: str | None = None
    cert_data: bytes | None = field(default=None, repr=False)
    key_data: bytes | None = field(default=None, repr=False)
    server_name: str | None = None
    authorization: str | None = field(default=None, repr=False)
    impersonate_user: str | None = None
    impersonate_groups: tuple[str, ...] = ()
    proxy: str | None = None
    no_proxy: str | None = None
    namespace: str | None = None


def resolve(options: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> Connection:
    """Return the connection that options and environment ask for. Raises OperationError with what is missing."""
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
    elif "kubeconfig" in values or "context" in values or _default_files(environ):
        base = _from_kubeconfig(values, environ)
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
        changes["authorization"] = _basic(values["username"], values["password"])
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


def _basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


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


# --- kubeconfig ---------------------------------------------------------------------------------------------------


def _default_files(environ: Mapping[str, str]) -> list[str]:
    if environ.get("KUBECONFIG"):
        return [os.path.expanduser(path) for path in environ["KUBECONFIG"].split(os.pathsep) if path]
    default = os.path.expanduser("~/.kube/config")
    return [default] if os.path.exists(default) else []


def _from_kubeconfig(values: Mapping[str, Any], environ: Mapping[str, str]) -> Connection:
    given = values.get("kubeconfig")
    if isinstance(given, Mapping):
        files, config, name = None, _absolute(given, os.getcwd()), "the given kubeconfig"
    else:
        files = [os.path.expanduser(path) for path in given.split(os.pathsep)] if given else _default_files(environ)
        if not files:
            raise OperationError(
                "A context is named, but there is no kubeconfig.",
                reason="NoConfiguration",
                hint="Give kubeconfig, or set K8S_AUTH_KUBECONFIG or KUBECONFIG.",
            )
        config, name = _merge(files), os.pathsep.join(files)
    context_name = values.get("context") or config.get("current-context")
    if not context_name:
        raise _invalid(name, "it has no current-context", "Give context.")
    context = _named(config, "contexts", context_name, "context", name)
    cluster = _named(config, "clusters", context.get("cluster"), "cluster", name)
    user = _named(config, "users", context["user"], "user", name) if context.get("user") else {}
    if not cluster.get("server"):
        raise _invalid(name, f"the cluster of context {context_name!r} has no server", "")

    plugin = _from_library(config, context_name, name) if {"exec", "auth-provider"} & set(user) else {}
    return Connection(
        host=cluster["server"].rstrip("/"),
        source=f"kubeconfig {name}, context {context_name}" + (f", {plugin['by']}" if plugin else ""),
        verify=not cluster.get("insecure-skip-tls-verify", False),
        ca_file=cluster.get("certificate-authority"),
        ca_data=_decoded(cluster, "certificate-authority-data", name),
        cert_file=plugin.get("cert_file") or user.get("client-certificate"),
        key_file=plugin.get("key_file") or user.get("client-key"),
        cert_data=None if plugin.get("cert_file") else _decoded(user, "client-certificate-data", name),
        key_data=None if plugin.get("key_file") else _decoded(user, "client-key-data", name),
        server_name=cluster.get("tls-server-name"),
        authorization=_authorization(user, name) or plugin.get("authorization"),
        impersonate_user=user.get("as"),
        impersonate_groups=tuple(user.get("as-groups") or ()),
        proxy=cluster.get("proxy-url"),
        namespace=context.get("namespace"),
    )


def _invalid(name: str, what: str, hint: str) -> OperationError:
    return OperationError(f"Cannot use kubeconfig {name}: {what}.", reason="InvalidConfiguration", hint=hint)


def _merge(files: list[str]) -> dict[str, Any]:
    """Read the files as kubectl does: the first to name a thing wins, relative paths are relative to their file."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    merged: dict[str, Any] = {"clusters": [], "contexts": [], "users": []}
    found = False
    for path in files:
        try:
            with open(path, encoding="utf-8") as stream:
                config = yaml.load(stream, Loader=loader)  # the safe loader, in C where there is one
        except FileNotFoundError:
            continue  # A missing file of a KUBECONFIG list is no error for kubectl either; none at all is, below.
        except OSError as error:
            raise _invalid(path, str(error.strerror), "Check the path and its permissions.") from error
        except yaml.YAMLError as error:
            # The message of a YAML error quotes the file, which holds credentials: only the place is told.
            mark = getattr(error, "problem_mark", None)
            place = f" (line {mark.line + 1})" if mark else ""
            raise _invalid(path, f"it is not YAML{place}", "") from None
        if not isinstance(config, dict):
            raise _invalid(path, "it is empty or not a mapping", "")
        found = True
        config = _absolute(config, os.path.dirname(os.path.abspath(path)))
        for section in ("clusters", "contexts", "users"):
            names = {item.get("name") for item in merged[section]}
            merged[section] += [item for item in config.get(section) or [] if item.get("name") not in names]
        merged.setdefault("current-context", config.get("current-context") or None)
        if merged["current-context"] is None:
            del merged["current-context"]
    if not found:
        raise OperationError(
            f"There is no kubeconfig at {os.pathsep.join(files)}.",
            reason="NoConfiguration",
            hint="Check the option kubeconfig and the variables K8S_AUTH_KUBECONFIG and KUBECONFIG.",
        )
    return merged


def _absolute(config: Mapping[str, Any], directory: str) -> dict[str, Any]:
    """Return the kubeconfig with paths made absolute, so that it means the same from any directory."""
    result = dict(config)
    for section, entry, keys in (
        ("clusters", "cluster", ("certificate-authority",)),
        ("users", "user", ("client-certificate", "client-key", "tokenFile")),
    ):
        items = []
        for item in config.get(section) or []:
            body = dict(item.get(entry) or {})
            for key in keys:
                if body.get(key):
                    body[key] = os.path.normpath(os.path.join(directory, os.path.expanduser(body[key])))
            command = body.get("exec", {}).get("command", "") if section == "users" else ""
            if "/" in command and not os.path.isabs(command):
                body["exec"] = body["exec"] | {"command": os.path.normpath(os.path.join(directory, command))}
            items.append({**item, entry: body})
        result[section] = items
    return result


def _named(config: Mapping[str, Any], section: str, name: str | None, entry: str, file: str) -> dict[str, Any]:
    for item in config.get(section) or []:
        if item.get("name") == name:
            return dict(item.get(entry) or {})
    known = ", ".join(sorted(str(item.get("name")) for item in config.get(section) or [])) or "none"
    raise _invalid(file, f"it has no {entry} {name!r}", f"It has: {known}.")


def _decoded(entry: Mapping[str, Any], key: str, file: str) -> bytes | None:
    if not entry.get(key):
        return None
    try:
        return base64.b64decode("".join(entry[key].split()), validate=True)
    except (binascii.Error, ValueError):
        raise _invalid(file, f"its {key} is not base64", "") from None


def _authorization(user: Mapping[str, Any], file: str) -> str | None:
    if user.get("token"):
        return f"Bearer {user['token']}"
    if user.get("tokenFile"):
        try:
            with open(user["tokenFile"], encoding="utf-8") as stream:
                return f"Bearer {stream.read().strip()}"
        except OSError as error:
            raise _invalid(file, f"cannot read its tokenFile {user['tokenFile']}: {error.strerror}", "") from error
    if user.get("username") and user.get("password"):
        return _basic(user["username"], user["password"])
    return None


def _from_library(config: dict[str, Any], context: str, name: str) -> dict[str, Any]:
    """Let the ``kubernetes`` library run the exec plugin or refresh the auth-provider's token."""
    from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.library import library

    kubernetes = library()
    configuration = kubernetes.client.Configuration()
    said = _Said()
    logging.getLogger().addHandler(said)
    try:
        kubernetes.config.load_kube_config_from_dict(
            config, context=context, client_configuration=configuration, persist_config=False
        )
    except Exception as error:  # noqa: BLE001 (it raises many types: its own, OSError of the command, OAuth errors)
        said.messages.append(str(error))
    finally:
        logging.getLogger().removeHandler(said)
    # A plugin that fails is no exception for the library: it logs that and goes on without credentials.
    if not (configuration.api_key or configuration.cert_file) or said.messages:
        raise OperationError(
            f"The credentials of kubeconfig {name}, context {context}, cannot be had: {'; '.join(said.messages)}.",
            reason="AuthenticationPlugin",
            hint="Run the same by hand (kubectl --context ... get namespaces) and log in again if it asks for that.",
        )
    keys = configuration.api_key
    return {
        "by": "exec plugin or auth-provider",
        # 'authorization' up to release 34 or so, 'BearerToken' since.
        "authorization": keys.get("BearerToken") or keys.get("authorization"),
        "cert_file": configuration.cert_file,
        "key_file": configuration.key_file,
    }


class _Said(logging.Handler):
    """Keeps what the library logs as errors."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
