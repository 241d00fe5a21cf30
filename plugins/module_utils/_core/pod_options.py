# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The part of a NodeSet that goes to Kubernetes as it is: selectors, volumes and so on, checked for clashes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import names, quantity
from .errors import OperationError
from .fields import Fields

POD_KEYS = (
    "node_selector", "affinity", "tolerations", "labels", "annotations", "host_network", "priority_class_name",
    "service_account_name", "image_pull_secrets", "sidecars", "init_containers", "volumes", "volume_mounts",
    "volume_claim_templates", "env", "security_context", "pod_security_context", "termination_grace_period_seconds",
    "shared_memory", "services", "oneshots",
)  # fmt: skip

# Volumes, mounts, containers and variables that the collection makes itself.
OWN_VOLUMES = (
    "slurm-etc", "slurm-files", "slurm-spool", "slurm-log", "slurm-home", "shared-memory", "services", "oneshots",
)  # fmt: skip
OWN_MOUNTS = (
    "/etc/slurm", "/etc/slurm-ops/nodeset", "/etc/slurm-ops/services", "/etc/slurm-ops/oneshots", "/var/spool/slurmd",
    "/var/log/slurm",
)  # fmt: skip
OWN_CONTAINERS = ("slurmd", "log")
# POD_CPUS and the like make the public images rewrite --conf, which says all of it already.
OWN_ENVIRONMENT = ("NODE_NAME", "POD_NAME", "POD_CPUS", "POD_MEMORY", "POD_TOPOLOGY", "SLURMD_OPTIONS")
OWN_LABEL_DOMAINS = (names.DOMAIN, "app.kubernetes.io")
# slurmd needs to change users and to build cgroups. A site that knows what its jobs need can give less.
DEFAULT_SECURITY_CONTEXT = {"privileged": True}

_SERVICE = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}", re.ASCII)
_OWN_SERVICES = ("slurmd", "sshd", "sssd", "sackd")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class PodOptions:
    """Kubernetes' side of a NodeSet, in Kubernetes' own form."""

    node_selector: Mapping[str, str]
    affinity: Mapping[str, Any]
    tolerations: tuple[Mapping[str, Any], ...]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    host_network: bool
    priority_class_name: str
    service_account_name: str
    image_pull_secrets: tuple[Mapping[str, str], ...]
    sidecars: tuple[Mapping[str, Any], ...]
    init_containers: tuple[Mapping[str, Any], ...]
    volumes: tuple[Mapping[str, Any], ...]
    volume_mounts: tuple[Mapping[str, Any], ...]
    volume_claim_templates: tuple[Mapping[str, Any], ...]
    env: tuple[Mapping[str, Any], ...]
    security_context: Mapping[str, Any]
    pod_security_context: Mapping[str, Any]
    termination_grace_period_seconds: int | None
    shared_memory: str
    services: Mapping[str, str]
    oneshots: Mapping[str, str]


def parse_pod_options(fields: Fields, kind: str, image_contract: str) -> PodOptions:
    """The PodOptions of a NodeSet's fields; what is wrong goes to their problems."""
    volumes = _named(fields, "volumes", OWN_VOLUMES)
    claims = _claims(fields, kind)
    containers: set[str] = set(OWN_CONTAINERS)
    return PodOptions(
        node_selector=_labels(fields, "node_selector", own=True),
        affinity=fields.mapping("affinity"),
        tolerations=tuple(fields.dictionaries("tolerations")),
        labels=_labels(fields, "labels"),
        annotations=_labels(fields, "annotations", values=False),
        host_network=fields.flag("host_network", False),
        priority_class_name=_object_name(fields, "priority_class_name"),
        service_account_name=_object_name(fields, "service_account_name"),
        image_pull_secrets=pull_secrets(fields),
        init_containers=_containers(fields, "init_containers", containers),
        sidecars=_containers(fields, "sidecars", containers),
        volumes=volumes,
        volume_mounts=_mounts(fields, [item.get("name") for item in volumes], claims),
        volume_claim_templates=claims,
        env=_env(fields),
        security_context=fields.mapping("security_context")
        if fields.given("security_context")
        else dict(DEFAULT_SECURITY_CONTEXT),
        pod_security_context=fields.mapping("pod_security_context"),
        termination_grace_period_seconds=fields.optional_integer("termination_grace_period_seconds"),
        shared_memory=_shared_memory(fields),
        services=_scripts(fields, "services", image_contract),
        oneshots=_scripts(fields, "oneshots", image_contract),
    )


def _named(fields: Fields, key: str, own: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    for index, item in enumerate(fields.dictionaries(key)):
        path = f"{fields.at(key)}[{index}].name"
        name = item.get("name")
        why = names.dns_label(name) if isinstance(name, str) else "is required"
        if why:
            fields.problems.add(path, why)
        elif name in own:
            fields.problems.add(path, f"{name!r} is a name that the NodeSet itself uses; take another")
        elif name in seen:
            fields.problems.add(path, f"{name!r} is there twice")
        seen.add(str(name))
        found.append(item)
    return tuple(found)


def _claims(fields: Fields, kind: str) -> tuple[dict[str, Any], ...]:
    claims = fields.dictionaries("volume_claim_templates")
    path = fields.at("volume_claim_templates")
    if claims and kind == "node":
        fields.problems.add(path, "is for kind: replica (a DaemonSet has no claims of its own); use volumes")
    for index, item in enumerate(claims):
        metadata = item.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        if not isinstance(name, str) or names.dns_label(name) or not isinstance(item.get("spec"), Mapping):
            fields.problems.add(f"{path}[{index}]", "needs metadata.name and spec, as in a StatefulSet")
        elif name in OWN_VOLUMES:
            fields.problems.add(f"{path}[{index}]", f"{name!r} is a name that the NodeSet itself uses; take another")
    return tuple(claims)


def _containers(fields: Fields, key: str, seen: set[str]) -> tuple[dict[str, Any], ...]:
    found = fields.dictionaries(key)
    for index, item in enumerate(found):
        path = f"{fields.at(key)}[{index}]"
        name = item.get("name")
        why = names.dns_label(name) if isinstance(name, str) else "is required"
        if why:
            fields.problems.add(f"{path}.name", why)
        elif name in seen:
            fields.problems.add(f"{path}.name", f"{name!r} is also the name of another container")
        if not isinstance(item.get("image"), str) or not item["image"]:
            fields.problems.add(f"{path}.image", "is required")
        seen.add(str(name))
    return tuple(found)


def _mounts(fields: Fields, volumes: list[Any], claims: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    known = {*volumes, *OWN_VOLUMES}
    for claim in claims:
        metadata = claim.get("metadata")
        known.add(metadata.get("name") if isinstance(metadata, Mapping) else None)
    own = (*OWN_MOUNTS, "/dev/shm") if fields.given("shared_memory") else OWN_MOUNTS
    mounts = fields.dictionaries("volume_mounts")
    seen: set[str] = set()
    for index, item in enumerate(mounts):
        path = f"{fields.at('volume_mounts')}[{index}]"
        where = str(item.get("mountPath") or "")
        if item.get("name") not in known:
            fields.problems.add(f"{path}.name", f"{item.get('name')!r} is no volume of this NodeSet")
        if not where.startswith("/"):
            fields.problems.add(f"{path}.mountPath", "must be an absolute path")
        elif where.rstrip("/") in own or where.rstrip("/") in seen:
            fields.problems.add(f"{path}.mountPath", f"{where} is mounted already")
        seen.add(where.rstrip("/"))
    return tuple(mounts)


def _env(fields: Fields) -> tuple[dict[str, Any], ...]:
    written = fields.raw("env", {})
    if isinstance(written, Mapping):
        found = [{"name": name, "value": value} for name, value in fields.texts("env").items()]
    else:
        found = fields.dictionaries("env")
    seen: set[str] = set()
    for item in found:
        name = item.get("name")
        path = f"{fields.at('env')}.{name}"
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            fields.problems.add(path, "must be a name of letters, digits and '_'")
        elif name in OWN_ENVIRONMENT:
            fields.problems.add(path, "is set by the NodeSet itself; use cpus, memory, reserved_*, extra_slurmd_args")
        elif name in seen:
            fields.problems.add(path, "is there twice")
        seen.add(str(name))
    return tuple(found)


def _labels(fields: Fields, key: str, *, own: bool = False, values: bool = True) -> dict[str, str]:
    found = fields.texts(key)
    for name, value in found.items():
        path = f"{fields.at(key)}.{name}"
        why = names.label_key(name)
        if why:
            fields.problems.add(path, why)
        elif not own and name.partition("/")[0] in OWN_LABEL_DOMAINS:
            fields.problems.add(path, "is set by the collection itself")
        if values and not _LABEL_VALUE.fullmatch(value):
            fields.problems.add(path, f"{value!r} is not a label value")
    return found


def _object_name(fields: Fields, key: str) -> str:
    name = fields.text(key)
    why = names.dns_subdomain(name) if name else ""
    if why:
        fields.problems.add(fields.at(key), why)
    return name


def pull_secrets(fields: Fields) -> tuple[dict[str, str], ...]:
    """image_pull_secrets as Kubernetes wants them, from names or {name: ...}."""
    found = []
    for index, item in enumerate(fields.items("image_pull_secrets")):
        name = item.get("name") if isinstance(item, Mapping) else item
        if not isinstance(name, str) or names.dns_subdomain(name):
            fields.problems.add(f"{fields.at('image_pull_secrets')}[{index}]", "must be the name of a Secret")
        else:
            found.append({"name": name})
    return tuple(found)


def _shared_memory(fields: Fields) -> str:
    size = fields.text("shared_memory")
    try:
        if size and quantity.whole_bytes(size) <= 0:
            raise OperationError("must be more than nothing.", reason="InvalidQuantity")
    except OperationError as error:
        fields.problems.add(fields.at("shared_memory"), str(error))
    return size


def _scripts(fields: Fields, key: str, image_contract: str) -> dict[str, str]:
    found = {}
    path = fields.at(key)
    written = fields.mapping(key)
    if written and image_contract != "slurm_ops":
        fields.problems.add(
            path,
            f"needs images of the contract slurm_ops (s6), the contract here is {image_contract}; use sidecars",
        )
    for name, text in sorted(written.items()):
        if not _SERVICE.fullmatch(name):
            fields.problems.add(f"{path}.{name}", "must be lower case letters, digits, '-' and '_', at most 40")
        elif name in _OWN_SERVICES:
            fields.problems.add(f"{path}.{name}", "is a service that the image runs itself")
        elif not isinstance(text, str) or not text.startswith("#!") or "\0" in text:
            fields.problems.add(f"{path}.{name}", "must be the text of a script, beginning with #!")
        else:
            found[name] = text if text.endswith("\n") else text + "\n"
    return found
