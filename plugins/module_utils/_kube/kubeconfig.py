# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Read kubeconfig files as kubectl does: several at once, relative paths, inline data; plugins go to the library."""

from __future__ import annotations

import base64
import binascii
import logging
import os
from collections.abc import Mapping
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.connection import Connection, basic


def default_files(environ: Mapping[str, str]) -> list[str]:
    """Return the kubeconfig files that are used when none is named."""
    if environ.get("KUBECONFIG"):
        return [os.path.expanduser(path) for path in environ["KUBECONFIG"].split(os.pathsep) if path]
    default = os.path.expanduser("~/.kube/config")
    return [default] if os.path.exists(default) else []


def from_kubeconfig(values: Mapping[str, Any], environ: Mapping[str, str]) -> Connection:
    """Return what the kubeconfig (an option, a variable, or the usual place) says of its context."""
    given = values.get("kubeconfig")
    if isinstance(given, str) and "\n" in given:
        given = _parsed(given, "the given kubeconfig")
    if isinstance(given, Mapping):
        files, config, name = None, _absolute(given, os.getcwd()), "the given kubeconfig"
    else:
        files = [os.path.expanduser(path) for path in given.split(os.pathsep)] if given else default_files(environ)
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
    merged: dict[str, Any] = {"clusters": [], "contexts": [], "users": []}
    found = False
    for path in files:
        try:
            with open(path, encoding="utf-8") as stream:
                text = stream.read()
        except FileNotFoundError:
            continue  # A missing file of a KUBECONFIG list is no error for kubectl either; none at all is, below.
        except OSError as error:
            raise _invalid(path, str(error.strerror), "Check the path and its permissions.") from error
        config = _parsed(text, path)
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


def _parsed(text: str, name: str) -> dict[str, Any]:
    import yaml

    try:
        config = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        # The message of a YAML error quotes the file, which holds credentials: only the place is told.
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1})" if mark else ""
        raise _invalid(name, f"it is not YAML{place}", "") from None
    if not isinstance(config, dict):
        raise _invalid(name, "it is empty or not a mapping", "")
    return config


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
        return basic(user["username"], user["password"])
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
