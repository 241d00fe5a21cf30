# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The cluster as the user's variables describe it, checked; nothing here knows how a file or an object looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import hostlist, keys, names
from .errors import OperationError
from .fields import Fields
from .nodeset import NodeSet, parse_nodeset
from .pod_options import pull_secrets
from .problems import Problems
from .versions import Version, parse_version

# How the variable behind each key is called in messages; the filters can rename them.
VARIABLES = {
    key: f"slurm_{key}"
    for key in (
        "accounting", "auth_secret", "cgroup_conf", "cluster_name", "controllers", "epilog", "epilog_slurmctld",
        "extra_files", "gres_conf", "image_contract", "image_pull_policy", "image_pull_secrets", "job_submit_lua",
        "max_node_count", "metrics", "name", "namespace", "nodes", "nodesets", "partitions", "prolog",
        "prolog_slurmctld", "version",
    )
} | {
    "cluster_domain": "slurm_dns_domain",
    "home_claim": "slurm_home_claim",
    "image": "slurm_images.slurmd",
    "slurm_conf": "slurm_conf",
}  # fmt: skip

IMAGE_CONTRACTS = ("slinky", "slurm_ops")
# Parts of object names that the collection itself makes: a NodeSet of such a name would take over that object.
COMPONENTS = ("accounting", "auth", "config", "controller", "database", "directory", "home", "login", "restapi",
              "workers")  # fmt: skip

_PARTITION_WORDS = {
    "default": "Default",
    "max_time": "MaxTime",
    "default_time": "DefaultTime",
    "state": "State",
    "max_nodes": "MaxNodes",
    "min_nodes": "MinNodes",
    "priority_tier": "PriorityTier",
    "oversubscribe": "OverSubscribe",
    "allow_accounts": "AllowAccounts",
    "allow_groups": "AllowGroups",
    "qos": "QOS",
}


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: its nodes as Slurm reads them, and its further keys in their usual spelling."""

    name: str
    nodes: tuple[str, ...]
    settings: tuple[tuple[str, Any], ...]
    path: str

    @property
    def default(self) -> Any:
        """What the user said of Default: None, true/false or YES/NO."""
        return dict(self.settings).get("Default")


@dataclass(frozen=True, slots=True)
class Cluster:
    """All that the files of one cluster are made from."""

    name: str
    namespace: str
    version: Version
    image_contract: str
    cluster_domain: str
    cluster_name: str
    controllers: int
    max_node_count: int
    accounting: bool
    metrics: bool
    nodesets: tuple[NodeSet, ...]
    partitions: tuple[Partition, ...]
    slurm_conf: Mapping[str, Any]
    cgroup_conf: Mapping[str, Any]
    gres_conf: Mapping[str, Any]
    job_submit_lua: str
    scripts: Mapping[str, Mapping[str, str]]
    extra_files: Mapping[str, str]
    nodes: Sequence[Mapping[str, Any]]
    image: str
    image_pull_policy: str
    image_pull_secrets: tuple[Mapping[str, Any], ...]
    home_claim: str
    auth_secret: str
    variables: Mapping[str, str]

    def at(self, key: str) -> str:
        """The name of the variable behind a key."""
        return self.variables.get(key, key)

    def service(self, component: str) -> str:
        """Full DNS name of a component's Service."""
        return f"{self.name}-{component}.{self.namespace}.svc.{self.cluster_domain}"

    @property
    def controller_hosts(self) -> Mapping[str, str]:
        """{host name of a slurmctld: the full DNS name of its Service}; the second waits for the end of the first."""
        hosts = names.controller_pods(self.name)[: self.controllers]
        return {host: self.service(host.removeprefix(f"{self.name}-")) for host in hosts}


def parse_cluster(
    data: Mapping[str, Any],
    problems: Problems,
    *,
    nodesets: Sequence[Any] | None = None,
    variables: Mapping[str, str] | None = None,
) -> Cluster:
    """The Cluster of a user's variables; what is wrong goes to ``problems`` and is replaced by a default."""
    paths = {**VARIABLES, **(variables or {})}
    fields = _RenamedFields(data, paths, problems)
    name = fields.text("name", "slurm", required=True)
    # "-controller-0" and the hash of a ReplicaSet still have to fit behind it.
    fields.check("name", names.dns_label(name, maximum=30))
    namespace = fields.text("namespace", "default", required=True)
    fields.check("namespace", names.dns_label(namespace))
    version = Version(26, 5)
    try:
        version = parse_version(fields.text("version", "26.05", required=True))
    except OperationError as error:
        fields.check("version", str(error))
    image_contract = fields.choice("image_contract", IMAGE_CONTRACTS, "slinky")
    cluster_domain = fields.text("cluster_domain", "cluster.local")
    fields.check("cluster_domain", names.dns_subdomain(cluster_domain))
    cluster_name = fields.text("cluster_name", name)
    fields.check("cluster_name", names.cluster_name(cluster_name))
    parsed = []
    written = fields.items("nodesets") if nodesets is None else list(nodesets)
    for index, item in enumerate(written):
        found = parse_nodeset(item, f"{paths['nodesets']}[{index}]", problems, image_contract)
        if found is not None:
            parsed.append(found)
    cluster = Cluster(
        name=name,
        namespace=namespace,
        version=version,
        image_contract=image_contract,
        cluster_domain=cluster_domain,
        cluster_name=cluster_name,
        controllers=fields.integer("controllers", 1, minimum=1, maximum=names.MAX_CONTROLLERS),
        max_node_count=fields.integer("max_node_count", 1024, minimum=1, maximum=65533),
        accounting=fields.flag("accounting", True),
        metrics=fields.flag("metrics", True),
        nodesets=tuple(parsed),
        partitions=_partitions(fields, parsed, paths, problems),
        slurm_conf=fields.mapping("slurm_conf"),
        cgroup_conf=fields.mapping("cgroup_conf"),
        gres_conf=fields.mapping("gres_conf"),
        job_submit_lua=fields.text("job_submit_lua", multiline=True),
        scripts={kind: fields.scripts(kind) for kind in ("prolog", "epilog", "prolog_slurmctld", "epilog_slurmctld")},
        extra_files=fields.scripts("extra_files"),
        nodes=fields.dictionaries("nodes"),
        image=fields.text("image"),
        image_pull_policy=fields.text("image_pull_policy"),
        image_pull_secrets=pull_secrets(fields),
        home_claim=fields.text("home_claim"),
        auth_secret=fields.text("auth_secret", names.auth_secret(name)),
        variables=paths,
    )
    _check_nodesets(cluster, problems)
    _check_partitions(cluster, problems)
    return cluster


class _RenamedFields(Fields):
    """Fields whose paths are the names of the variables behind the keys."""

    def __init__(self, data: Any, paths: Mapping[str, str], problems: Problems) -> None:
        self._paths = paths
        super().__init__(data, "slurm_cluster_facts", problems, VARIABLES)

    def at(self, key: str) -> str:
        return self._paths.get(key, key)

    def check(self, key: str, why: str) -> None:
        """Notes a problem of a key when there is one."""
        if why:
            self.problems.add(self.at(key), why)

    def scripts(self, key: str) -> dict[str, str]:
        """A dictionary of file names to texts."""
        found = {}
        for name, text in sorted(self.mapping(key).items()):
            why = names.file_name(name)
            if why:
                self.problems.add(f"{self.at(key)}.{name}", why)
            elif not isinstance(text, str) or not text.strip():
                self.problems.add(f"{self.at(key)}.{name}", "must be the text of the file")
            elif "\0" in text:
                self.problems.add(f"{self.at(key)}.{name}", "must not hold NUL characters")
            else:
                found[name] = text if text.endswith("\n") else text + "\n"
        return found


def _partitions(
    fields: Fields, nodesets: Sequence[NodeSet], paths: Mapping[str, str], problems: Problems
) -> tuple[Partition, ...]:
    """The partitions that the user lists, then those that the NodeSets bring."""
    found = []
    for index, item in enumerate(fields.dictionaries("partitions")):
        path = f"{paths['partitions']}[{index}]"
        name = str(item.get("name") or "")
        if not name:
            problems.add(f"{path}.name", "is required")
        wanted = item.get("nodesets"), item.get("nodes")
        if (wanted[0] is None) == (wanted[1] is None):
            problems.add(path, "needs either nodesets (a list of NodeSet names) or nodes (such as ALL)")
        chosen = Fields(item, path, problems, item).words("nodes" if wanted[0] is None else "nodesets")
        if wanted[0] is None and len(chosen) == 1:
            chosen = [word for word in chosen[0].replace(",", " ").split() if word] if "[" not in chosen[0] else chosen
        rest = {key: value for key, value in item.items() if key not in ("name", "nodesets", "nodes")}
        found.append(Partition(name, tuple(chosen), partition_settings(rest, path, problems), path))
    for nodeset in nodesets:
        if nodeset.partition is not None:
            path = f"{nodeset.path}.partition"
            rest = {key: value for key, value in nodeset.partition.items() if key != "name"}
            name = str(nodeset.partition.get("name") or nodeset.name)
            found.append(Partition(name, (nodeset.name,), partition_settings(rest, path, problems), path))
    return tuple(found)


def partition_settings(item: Mapping[str, Any], path: str, problems: Problems) -> tuple[tuple[str, Any], ...]:
    """A partition's keys in Slurm's spelling, sorted; State=UP and MaxTime=INFINITE unless said otherwise."""
    settings: dict[str, Any] = {"State": "UP", "MaxTime": "INFINITE"}
    seen: dict[str, str] = {}
    for key, value in item.items():
        spelled = _PARTITION_WORDS.get(str(key)) or keys.spelled(str(key), keys.PARTITION)
        if spelled is None or spelled == "Nodes":
            problems.add(f"{path}.{key}", keys.unknown_key(str(key), keys.PARTITION))
        elif spelled in seen:
            problems.add(f"{path}.{key}", f"is the same as {seen[spelled]}")
        elif value is not None:
            seen[spelled] = str(key)
            settings[spelled] = value
    return tuple(sorted(settings.items()))


def _check_nodesets(cluster: Cluster, problems: Problems) -> None:
    seen: dict[str, str] = {}
    replicas = {item.name: item for item in cluster.nodesets if item.kind == "replica"}
    for nodeset in cluster.nodesets:
        path = f"{nodeset.path}.name"
        if nodeset.name in seen:
            problems.add(path, f"{nodeset.name} is also the name of {seen[nodeset.name]}")
        seen.setdefault(nodeset.name, nodeset.path)
        if nodeset.name in (cluster.name, *(f"{cluster.name}-{part}" for part in COMPONENTS)):
            problems.add(path, f"{nodeset.name} is the name of another part of this cluster")
        head, dash, tail = nodeset.name.rpartition("-")
        if dash and tail.isdigit() and head in replicas:
            problems.add(path, f"{nodeset.name} is also a node of NodeSet {head}")
    total = sum(nodeset.replicas or 0 for nodeset in cluster.nodesets) + len(static_nodes(cluster.slurm_conf))
    if total > cluster.max_node_count:
        problems.add(
            cluster.at("max_node_count"),
            f"is {cluster.max_node_count}, but the NodeSets have {total} nodes; slurmctld does not start like that",
        )


def static_nodes(slurm_conf: Mapping[str, Any]) -> set[str]:
    """Names on NodeName lines that a user added to slurm.conf (nodes outside Kubernetes)."""
    found: set[str] = set()
    for key, records in slurm_conf.items():
        if key.lower() == "nodename" and isinstance(records, (list, tuple)):
            for record in records:
                expression = record.get("NodeName", "") if isinstance(record, Mapping) else ""
                found.update(_expanded(str(expression)))
    return found


def _expanded(expression: str) -> list[str]:
    try:
        return hostlist.expand(expression)
    except OperationError:
        # Reported where the line is rendered; here it only means that no name is known.
        return []


def _all_static(expression: str, static: set[str]) -> bool:
    nodes = _expanded(expression)
    return bool(nodes) and static.issuperset(nodes)


def _check_partitions(cluster: Cluster, problems: Problems) -> None:
    known = {nodeset.name for nodeset in cluster.nodesets}
    static = static_nodes(cluster.slurm_conf)
    seen: dict[str, str] = {}
    defaults = []
    listed = ", ".join(sorted(known)) or "there is none"
    for partition in cluster.partitions:
        name = partition.name
        why = names.slurm_word(name) if name else ""
        if name.lower() in names.RESERVED_WORDS - {"all"}:
            why = f"{name!r} has a meaning of its own in Slurm"
        if why:
            problems.add(f"{partition.path}.name", why)
        if name.lower() in seen:
            problems.add(partition.path, f"partition {name} is also defined by {seen[name.lower()]}")
        seen.setdefault(name.lower(), partition.path)
        if str(partition.default).upper() in ("TRUE", "YES"):
            defaults.append(partition)
        for word in partition.nodes:
            if word not in known and word.upper() != "ALL" and not _all_static(word, static):
                problems.add(
                    partition.path,
                    f"names {word!r}, which is neither ALL nor a NodeSet ({listed});"
                    " slurmctld does not start with a partition of unknown nodes",
                )
    for partition in defaults[1:]:
        problems.add(partition.path, f"is a default partition, and so is {defaults[0].name}; there can be one")
