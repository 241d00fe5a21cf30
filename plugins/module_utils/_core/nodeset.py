# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""A NodeSet as the user writes it, checked: a named group of identical Slurm nodes.

What Slurm must be told (the text of ``slurmd --conf``) is derived here; what Kubernetes must be told is in worker.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from . import keys, names, quantity
from .errors import OperationError
from .fields import Fields
from .gres import Gres, parse_gres
from .pod_options import POD_KEYS, PodOptions, parse_pod_options
from .problems import Problems

KINDS = ("replica", "node")
KEYS = (
    "name", "kind", "replicas", "image", "image_pull_policy", "resources", "cpus", "memory", "reserved_memory",
    "mem_spec_limit", "reserved_cores", "gres", "features", "partition", "extra_conf", "extra_slurmd_args",
    "node_name_prefix", "topology_labels", *POD_KEYS,
)  # fmt: skip

# A StatefulSet's name, its Pods' ordinals and hash label, and our ConfigMap's suffix must fit into 63 characters.
MAX_NAME = 40

# The value stands in single quotes, is read again by a shell, by supervisord (%) and by Slurm (blanks, quotes, #).
_CONF_VALUE = re.compile(r"[A-Za-z0-9_.,:/+@=\[\]()*-]+", re.ASCII)
_ARGUMENT = re.compile(r"[A-Za-z0-9_.,:/+@=\[\]-]+", re.ASCII)
_PREFIX = re.compile(r"[a-z0-9][-a-z0-9]{0,38}", re.ASCII)
_IMAGE = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_./:@]{0,499}", re.ASCII)
_OWN_ARGUMENTS = ("-Z", "-N", "-D", "-F", "-f", "-C", "-c", "-h", "-V", "--conf", "--conf-server", "--systemd")
_ELSEWHERE = {
    "Feature": "features",
    "Features": "features",
    "Gres": "gres",
    "CPUs": "cpus",
    "Procs": "cpus",
    "RealMemory": "memory",
    "MemSpecLimit": "reserved_memory",
    "CoreSpecCount": "reserved_cores",
}
_REFUSED = {
    "Port": "the Service and the probes need slurmd on 6818",
    "State": "a dynamic node's state is Slurm's",
    "NodeAddr": "Slurm takes the Pod's address",
    "NodeHostname": "Slurm takes the Pod's name",
}
_SHAPE = ("Boards", "Sockets", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore")


@dataclass(frozen=True, slots=True)
class NodeSet:
    """A checked NodeSet. Memory is in MiB; None means: what slurmd finds on the machine."""

    name: str
    kind: str
    replicas: int | None
    image: str
    image_pull_policy: str
    resources: Mapping[str, Any]
    cpus: int | None
    memory_mib: int | None
    reserved_memory_mib: int
    reserved_cores: int
    gres: tuple[Gres, ...]
    features: tuple[str, ...]
    partition: Mapping[str, Any] | None
    extra_conf: tuple[tuple[str, str], ...]
    extra_slurmd_args: tuple[str, ...]
    node_name_prefix: str
    topology_labels: tuple[str, ...]
    pod: PodOptions
    path: str

    @property
    def conf(self) -> str:
        """The text of ``slurmd --conf``: keys sorted, so that it changes only when the NodeSet does."""
        settings: dict[str, str] = dict(self.extra_conf)
        settings["Feature"] = ",".join(self.features)
        if self.gres:
            settings["Gres"] = ",".join(item.spec for item in self.gres)
        if self.cpus is not None:
            settings["CPUs"] = str(self.cpus)
        if self.memory_mib is not None:
            settings["RealMemory"] = str(self.memory_mib)
        if self.reserved_memory_mib:
            settings["MemSpecLimit"] = str(self.reserved_memory_mib)
        if self.reserved_cores:
            settings["CoreSpecCount"] = str(self.reserved_cores)
        return " ".join(f"{key}={settings[key]}" for key in sorted(settings, key=str.lower))

    @property
    def gres_spec(self) -> str:
        """The GRES that each node must register, as Slurm writes it."""
        return ",".join(item.spec for item in self.gres)


def parse_nodeset(item: Any, path: str, problems: Problems, image_contract: str) -> NodeSet | None:
    """The NodeSet of a user's dictionary; what is wrong goes to ``problems``. None when it is no dictionary at all."""
    if not isinstance(item, Mapping):
        problems.add(path, "must be a dictionary with at least a name")
        return None
    fields = Fields(item, path, problems, KEYS)
    name = fields.text("name", required=True)
    if name:
        _check(fields, "name", names.dns_label(name, maximum=MAX_NAME))
    if name in names.RESERVED_WORDS:
        problems.add(f"{path}.name", f"{name!r} has a meaning of its own in Slurm")
    kind = fields.choice("kind", KINDS, "replica")
    replicas = fields.integer("replicas", 1, maximum=65533) if kind == "replica" else None
    if kind == "node" and fields.given("replicas"):
        problems.add(f"{path}.replicas", "has no meaning for kind: node (one node on each Node that matches)")
    image = fields.text("image")
    if image and not _IMAGE.fullmatch(image):
        problems.add(f"{path}.image", f"{image!r} is not an image reference")
    resources = _resources(fields)
    cpus, memory, reserved_memory, reserved_cores = _sizes(fields, resources)
    pod = parse_pod_options(fields, kind, image_contract)
    return NodeSet(
        name=name,
        kind=kind,
        replicas=replicas,
        image=image,
        image_pull_policy=_pull_policy(fields),
        resources=resources,
        cpus=cpus,
        memory_mib=memory,
        reserved_memory_mib=reserved_memory,
        reserved_cores=reserved_cores,
        gres=parse_gres(fields.items("gres"), f"{path}.gres", problems),
        features=_features(fields, name),
        partition=_partition(fields),
        extra_conf=_extra_conf(fields),
        extra_slurmd_args=_extra_args(fields),
        node_name_prefix=_prefix(fields, kind),
        topology_labels=_topology_labels(fields),
        pod=pod,
        path=path,
    )


def _check(fields: Fields, key: str, why: str) -> None:
    if why:
        fields.problems.add(fields.at(key), why)


_Number = TypeVar("_Number")


def _quantity(fields: Fields, path: str, value: Any, convert: Callable[[Any], _Number]) -> _Number | None:
    try:
        if isinstance(value, (Mapping, list, tuple)):
            raise OperationError("must be a quantity such as 4, 500m or 16Gi.", reason="InvalidQuantity")
        if quantity.parse(value) < 0:
            raise OperationError("must not be negative.", reason="InvalidQuantity")
        return convert(value)
    except OperationError as error:
        fields.problems.add(path, str(error))
        return None


def _resources(fields: Fields) -> dict[str, Any]:
    resources = fields.mapping("resources")
    path = fields.at("resources")
    for key, amounts in resources.items():
        if key == "claims":
            continue
        if key not in ("requests", "limits") or not isinstance(amounts, Mapping):
            fields.problems.add(f"{path}.{key}", "must be requests or limits: {cpu: ..., memory: ...}")
            continue
        for name, value in amounts.items():
            _quantity(fields, f"{path}.{key}.{name}", value, quantity.parse)
    return resources


def _sizes(fields: Fields, resources: Mapping[str, Any]) -> tuple[int | None, int | None, int, int]:
    """CPUs, memory, reserved memory (both MiB) and reserved cores of a node."""
    limits = resources.get("limits")
    limits = limits if isinstance(limits, Mapping) else {}
    problems = fields.problems
    cpus: int | None = None
    extra = fields.mapping("extra_conf")
    shaped = any(keys.spelled(key, keys.NODE) in _SHAPE for key in extra)
    if fields.raw("cpus", "auto") != "auto":
        cpus = fields.optional_integer("cpus", minimum=1, maximum=65533)
    elif limits.get("cpu") is not None and not shaped:
        cpus = _quantity(fields, f"{fields.at('resources')}.limits.cpu", limits["cpu"], quantity.whole_cpus)
    limit = None
    if limits.get("memory") is not None:
        limit = _quantity(fields, f"{fields.at('resources')}.limits.memory", limits["memory"], quantity.mebibytes)
    memory = limit
    if fields.raw("memory", "auto") != "auto":
        memory = _quantity(fields, fields.at("memory"), fields.raw("memory"), quantity.mebibytes)
        if memory is not None and limit is not None and memory > limit:
            problems.add(
                fields.at("memory"), f"is {memory} MiB, more than the limit of {limit} MiB: jobs would be killed"
            )
    if memory is not None and memory < 1:
        problems.add(fields.at("memory"), "is less than one MiB; write a unit, such as 16Gi")
    reserved = fields.integer("mem_spec_limit", 0)
    if fields.given("reserved_memory"):
        if fields.given("mem_spec_limit"):
            problems.add(fields.at("mem_spec_limit"), "is the same as reserved_memory; give one of them")
        reserved = (
            _quantity(fields, fields.at("reserved_memory"), fields.raw("reserved_memory"), quantity.mebibytes) or 0
        )
    if memory is not None and reserved >= memory > 0:
        problems.add(fields.at("reserved_memory"), f"is {reserved} MiB of {memory} MiB: nothing is left for jobs")
    cores = fields.integer("reserved_cores", 0)
    if cpus is not None and cores >= cpus:
        problems.add(fields.at("reserved_cores"), f"is {cores} of {cpus} CPUs: nothing is left for jobs")
    return cpus, memory, reserved, cores


def _pull_policy(fields: Fields) -> str:
    policy = fields.text("image_pull_policy")
    if policy and policy not in ("Always", "IfNotPresent", "Never"):
        _check(fields, "image_pull_policy", f"must be Always, IfNotPresent or Never, is {policy!r}")
    return policy


def _features(fields: Fields, name: str) -> tuple[str, ...]:
    features = [name]
    for index, feature in enumerate(fields.words("features")):
        why = names.slurm_word(feature)
        if why:
            fields.problems.add(f"{fields.at('features')}[{index}]", why)
        elif feature not in features:
            features.append(feature)
    return tuple(features)


def _partition(fields: Fields) -> dict[str, Any] | None:
    wanted = fields.raw("partition", True)
    if isinstance(wanted, bool):
        return {} if wanted else None
    if isinstance(wanted, Mapping):
        return dict(wanted)
    _check(fields, "partition", "must be true, false or a dictionary such as {name: gpu, default: true}")
    return None


def _extra_conf(fields: Fields) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for key, value in fields.mapping("extra_conf").items():
        path = f"{fields.at('extra_conf')}.{key}"
        spelled = keys.spelled(key, keys.NODE)
        text = ("YES" if value else "NO") if isinstance(value, bool) else str(value)
        if isinstance(value, (list, tuple)):
            text = ",".join(str(item) for item in value)
        if spelled is None:
            fields.problems.add(path, keys.unknown_key(key, keys.NODE))
        elif spelled in _ELSEWHERE:
            fields.problems.add(path, f"is the NodeSet's own option {_ELSEWHERE[spelled]}; set that")
        elif spelled in _REFUSED:
            fields.problems.add(path, f"cannot be set: {_REFUSED[spelled]}")
        elif spelled in found:
            fields.problems.add(path, "is given twice, in two spellings")
        elif value is None:
            continue
        elif not _CONF_VALUE.fullmatch(text):
            fields.problems.add(path, f"must be letters, digits and _.,:/+@=[]()*- (no blanks, no quotes), is {text!r}")
        else:
            found[spelled] = text
    return tuple(sorted(found.items()))


def _extra_args(fields: Fields) -> tuple[str, ...]:
    arguments = fields.words("extra_slurmd_args")
    for index, argument in enumerate(arguments):
        path = f"{fields.at('extra_slurmd_args')}[{index}]"
        if not _ARGUMENT.fullmatch(argument):
            fields.problems.add(path, f"must be letters, digits and _.,:/+@=[]- (a shell reads it), is {argument!r}")
        elif argument.partition("=")[0] in _OWN_ARGUMENTS:
            fields.problems.add(path, f"{argument} is set by the NodeSet itself")
    return tuple(arguments)


def _prefix(fields: Fields, kind: str) -> str:
    prefix = fields.text("node_name_prefix")
    if prefix and kind != "node":
        _check(fields, "node_name_prefix", "is for kind: node (a replica's node is called as its Pod)")
    elif prefix and not _PREFIX.fullmatch(prefix):
        _check(fields, "node_name_prefix", f"must be lower case letters, digits and '-', is {prefix!r}")
    return prefix


def _topology_labels(fields: Fields) -> tuple[str, ...]:
    labels = fields.words("topology_labels")
    for index, label in enumerate(labels):
        why = names.label_key(label)
        if why:
            fields.problems.add(f"{fields.at('topology_labels')}[{index}]", why)
    return tuple(labels)
