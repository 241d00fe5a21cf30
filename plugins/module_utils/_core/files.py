# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The files in /etc/slurm of a cluster: what the collection needs, our defaults, and what the user adds.

Three kinds of keys: those that only the collection can set (another value is refused, with the variable to use),
lists (what the user gives is added), and everything else (the user's value wins).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import keys, slurm_conf
from .cluster import Cluster
from .gres import AUTO_DETECT
from .problems import Problems
from .slurm_conf import Line
from .topology import CONF
from .versions import KEYS_SINCE, NEWEST
from .worker import LOG_PATH, NODESET_GRES_CONF

OWN_FILES = ("slurm.conf", "cgroup.conf", "gres.conf", NODESET_GRES_CONF, "job_submit.lua", "slurmdbd.conf",
             "slurm.key", "slurm.jwks", "jwt.key", "jwks.json")  # fmt: skip

# Where a user finds what to set instead of a key that is ours.
_INSTEAD = {
    "AccountingStorageHost": "accounting",
    "AccountingStoragePort": "accounting",
    "AccountingStorageType": "accounting",
    "ClusterName": "cluster_name",
    "MaxNodeCount": "max_node_count",
    "PartitionName": "partitions",
    "SlurmctldHost": "controllers",
}
_SCRIPT_KEYS = {
    "prolog": "Prolog",
    "epilog": "Epilog",
    "prolog_slurmctld": "PrologSlurmctld",
    "epilog_slurmctld": "EpilogSlurmctld",
}


def files(cluster: Cluster, problems: Problems) -> dict[str, str]:
    """{file name: text} of everything that slurmctld reads and hands to the other daemons."""
    result = {
        "slurm.conf": slurm_conf.render(slurm_conf_lines(cluster, problems)),
        "cgroup.conf": slurm_conf.render(_cgroup_lines(cluster, problems)),
        "gres.conf": slurm_conf.render(_gres_lines(cluster, problems)),
        # Each worker Pod mounts its NodeSet's devices here; slurmctld reads gres.conf too and waits for the file.
        NODESET_GRES_CONF: "# The devices of each NodeSet are in the NodeSet's own copy of this file.\n",
    }
    if cluster.job_submit_lua:
        result["job_submit.lua"] = cluster.job_submit_lua
    for kind in _SCRIPT_KEYS:
        for name, text in cluster.scripts[kind].items():
            result[script_name(kind, name)] = text
            if not text.startswith("#!"):
                problems.add(f"{cluster.at(kind)}.{name}", "must begin with #!, such as #!/bin/sh")
    for name, text in cluster.extra_files.items():
        if name in OWN_FILES or name in result:
            problems.add(f"{cluster.at('extra_files')}.{name}", "is a file that the collection itself makes")
        result.setdefault(name, text)
    if _needs_topology_conf(cluster):
        # slurmctld starts with an empty file and not without one; module topology puts its own over it.
        result.setdefault(CONF, "# Nothing is known of the topology yet: run the playbook topology.\n")
    return dict(sorted(result.items()))


def _needs_topology_conf(cluster: Cluster) -> bool:
    """Before 25.05 a TopologyPlugin of these kinds wants a topology.conf."""
    plugins = [str(value) for key, value in cluster.slurm_conf.items() if str(key).lower() == "topologyplugin"]
    return not cluster.version.at_least(25, 5) and plugins[:1] in (["topology/tree"], ["topology/block"])


def script_name(kind: str, name: str) -> str:
    """The file of a prolog or epilog script."""
    return f"{kind.replace('_', '-')}-{name}"


def slurm_conf_lines(cluster: Cluster, problems: Problems) -> list[Line]:
    """slurm.conf, in a fixed order: general, plugins, accounting, scripts, the user's, NodeSets, partitions."""
    required, lists, defaults = _ours(cluster)
    settings: dict[str, str] = {**required, **{key: ",".join(words) for key, words in lists.items()}, **defaults}
    records: list[Line] = []
    path = cluster.at("slurm_conf")
    for key, value in _known(cluster, cluster.slurm_conf, path, keys.SLURM_CONF, problems).items():
        at = f"{path}.{key}"
        if key in ("NodeName", "NodeSet", "DownNodes"):
            records += _records(key, value, at, problems)
            continue
        if key in _INSTEAD and key not in required:
            problems.add(at, f"cannot be set here; set {cluster.at(_INSTEAD[key])}")
            continue
        text = _text(value, at, problems)
        if text is None:
            continue
        if key in required:
            if text != required[key]:
                instead = f"; set {cluster.at(_INSTEAD[key])}" if key in _INSTEAD else ""
                problems.add(at, f"must be {required[key]}, as the collection sets it{instead}")
        elif key in lists:
            settings[key] = slurm_conf.union(lists[key], text, at, problems.add)
        else:
            settings[key] = text
    lines = [Line((("SlurmctldHost", f"{host}({address})"),)) for host, address in cluster.controller_hosts.items()]
    lines += [Line(((key, value),)) for key, value in settings.items()]
    lines += _script_lines(cluster)
    lines += records
    lines += [Line((("NodeSet", item.name), ("Feature", item.name))) for item in cluster.nodesets]
    return lines + _partition_lines(cluster, problems)


def _ours(cluster: Cluster) -> tuple[dict[str, str], dict[str, list[str]], dict[str, str]]:
    """What must be, what must be in a list, and what is so unless the user says otherwise."""
    modern = cluster.version.at_least(25, 11)
    required = {
        "ClusterName": cluster.cluster_name,
        "SlurmctldPort": "6817",
        "SlurmdPort": "6818",
        "SlurmUser": "slurm",
        "SlurmdUser": "root",
        "StateSaveLocation": "/var/spool/slurmctld",
        "SlurmdSpoolDir": "/var/spool/slurmd",
        "SlurmctldPidFile": "/run/slurmctld/slurmctld.pid",
        "SlurmdPidFile": "/run/slurm/slurmd.pid",
        # A supervised daemon is silent without a file; the Pods read these (docs/decisions/003).
        "SlurmctldLogFile": f"{LOG_PATH}/slurmctld.log",
        "SlurmdLogFile": f"{LOG_PATH}/slurmd.log",
        "MaxNodeCount": str(cluster.max_node_count),
        "AuthType": "auth/slurm",
        # auth/slurm alone leaves cred/munge, with which every job fails.
        "CredType": "cred/slurm",
        # Dynamic nodes exist with no other selection plugin.
        "SelectType": "select/cons_tres",
    }
    lists = {
        # Identity travels with the request, so that neither slurmctld nor the nodes need to know the user.
        "AuthInfo": ["use_client_ids"],
        "AuthAltTypes": ["auth/jwt"],
        "AuthAltParameters": ["jwt_key=/etc/slurm/jwt.key", "jwks=/etc/slurm/jwks.json", "use_jwt_client_ids"],
        "SlurmctldParameters": ["enable_configless", *(["reconfig_on_restart"] if modern else [])],
        "LaunchParameters": ["enable_nss_slurm"],
    }
    gres = sorted({item.name for nodeset in cluster.nodesets for item in nodeset.gres})
    if gres:
        lists["GresTypes"] = gres
    if cluster.job_submit_lua:
        lists["JobSubmitPlugins"] = ["lua"]
    defaults = {
        "SelectTypeParameters": "CR_Core_Memory",
        "DefMemPerCPU": str(_memory_per_cpu(cluster)),
        "ReturnToService": "2",
        "MailProg": "/bin/true",
    }
    if cluster.controllers > 1:
        # So long the second one waits for a sign of the first; Slurm's own is two minutes.
        defaults["SlurmctldTimeout"] = "30"
    if cluster.metrics and modern:
        defaults["MetricsType"] = "metrics/openmetrics"
    if cluster.accounting:
        required["AccountingStorageType"] = "accounting_storage/slurmdbd"
        required["AccountingStorageHost"] = cluster.service("accounting")
        required["AccountingStoragePort"] = "6819"
        if gres:
            lists["AccountingStorageTRES"] = [f"gres/{name}" for name in gres]
    else:
        required["AccountingStorageType"] = "accounting_storage/none"
    return required, lists, defaults


def _memory_per_cpu(cluster: Cluster) -> int:
    """MiB for each CPU of a job that names no memory; without it the job would take all memory of its node."""
    shares = []
    for nodeset in cluster.nodesets:
        if nodeset.cpus and nodeset.memory_mib:
            usable = nodeset.memory_mib - nodeset.reserved_memory_mib
            shares.append(max(1, usable // nodeset.cpus))
        else:
            shares.append(1024)
    return min(shares, default=1024)


def _known(
    cluster: Cluster, written: Mapping[str, Any], path: str, known: frozenset[str], problems: Problems
) -> dict[str, Any]:
    """The user's keys in their usual spelling, without those that Slurm would refuse."""
    found: dict[str, Any] = {}
    for key, value in sorted(written.items(), key=lambda item: str(item[0]).lower()):
        at = f"{path}.{key}"
        spelled = keys.spelled(key, known)
        since = KEYS_SINCE.get(key.lower())
        if slurm_conf.key_problem(key):
            problems.add(at, slurm_conf.key_problem(key))
        elif spelled is None and (cluster.version.pair <= NEWEST or key.lower() == "include"):
            problems.add(at, keys.unknown_key(key, known))
        elif since and cluster.version.pair < since:
            problems.add(at, f"is not known to Slurm {cluster.version} (it came with {since[0]}.{since[1]:02d})")
        elif (spelled or key) in found:
            problems.add(at, "is given twice, in two spellings")
        elif value is not None:
            found[spelled or key] = value
    return found


def _text(value: Any, path: str, problems: Problems) -> str | None:
    try:
        return slurm_conf.value_text(value)
    except ValueError as error:
        problems.add(path, str(error))
        return None


def _records(key: str, value: Any, path: str, problems: Problems) -> list[Line]:
    lines = []
    for index, record in enumerate(value if isinstance(value, (list, tuple)) else [value]):
        try:
            lines.append(slurm_conf.record_line(key, record))
        except ValueError as error:
            problems.add(f"{path}[{index}]", str(error).lstrip(": "))
    return lines


def _script_lines(cluster: Cluster) -> list[Line]:
    lines = []
    for kind, key in _SCRIPT_KEYS.items():
        # Without a path a script is handed to the nodes by slurmctld; what slurmctld runs itself needs one.
        folder = "/etc/slurm/" if kind.endswith("slurmctld") else ""
        lines += [Line(((key, folder + script_name(kind, name)),)) for name in cluster.scripts[kind]]
    return lines


def _partition_lines(cluster: Cluster, problems: Problems) -> list[Line]:
    lines = []
    silent = [item for item in cluster.partitions if item.default is None]
    chosen = any(str(item.default).upper() in ("TRUE", "YES") for item in cluster.partitions)
    # A job that names no partition needs one: the first, unless the user has said something of it.
    first = silent[0].name if silent and not chosen else ""
    for partition in cluster.partitions:
        pairs = [("PartitionName", partition.name), ("Nodes", ",".join(partition.nodes))]
        settings = dict(partition.settings)
        if partition.name == first:
            settings["Default"] = True
        for key, value in sorted(settings.items()):
            text = _text(value, f"{partition.path}.{key}", problems)
            if text is not None:
                pairs.append((key, text))
        lines.append(Line(tuple(pairs)))
    return lines


def _cgroup_lines(cluster: Cluster, problems: Problems) -> list[Line]:
    # No systemd in a container: slurmd makes its own scope.
    settings = {"CgroupPlugin": "autodetect", "IgnoreSystemd": "yes"}
    path = cluster.at("cgroup_conf")
    for key, value in _known(cluster, cluster.cgroup_conf, path, keys.CGROUP_CONF, problems).items():
        text = _text(value, f"{path}.{key}", problems)
        if text is not None:
            settings[key] = text
    return [Line(((key, value),)) for key, value in sorted(settings.items())]


def _gres_lines(cluster: Cluster, problems: Problems) -> list[Line]:
    """gres.conf: lines for nodes outside Kubernetes, and the NodeSet's own file (which sets AutoDetect)."""
    lines: list[Line] = []
    path = cluster.at("gres_conf")
    for key, value in sorted(cluster.gres_conf.items()):
        if key.lower() == "autodetect":
            text = _text(value, f"{path}.{key}", problems)
            if text is not None and text not in AUTO_DETECT:
                problems.add(f"{path}.{key}", f"must be one of {', '.join(AUTO_DETECT)}, is {text!r}")
        elif key.lower() == "nodename":
            lines += _records("NodeName", value, f"{path}.{key}", problems)
        else:
            problems.add(
                f"{path}.{key}", "must be AutoDetect or NodeName (a list); the devices of a NodeSet are in its gres"
            )
    return [*lines, Line((("Include", f"/etc/slurm/{NODESET_GRES_CONF}"),))]
