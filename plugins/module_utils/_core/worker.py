# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The worker Pods of a NodeSet: from what the user wrote to the parts that a template puts into a workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import names
from .cluster import Cluster
from .gres import gres_conf
from .kubernetes_objects import CLUSTER, NODESET
from .nodeset import NodeSet
from .problems import Problems
from .versions import probes

# Where the NodeSet's ConfigMap is seen in the Pod, and what the cluster's gres.conf includes.
FILES_PATH = "/etc/slurm-ops/nodeset"
NODESET_GRES_CONF = "nodeset-gres.conf"
LOG_PATH = "/var/log/slurm"
DOMAIN = names.DOMAIN
PORT = 6818


def worker(nodeset: NodeSet, cluster: Cluster, problems: Problems, taken: dict[str, str]) -> dict[str, Any]:
    """Everything about one NodeSet that templates need, every key always there.

    ``taken`` holds the Slurm node names given out so far, to find collisions over all NodeSets.
    """
    options = nodeset.pod
    image = nodeset.image or cluster.image
    if not image:
        problems.add(f"{nodeset.path}.image", f"is required (or {cluster.at('image')})")
    node_names = _node_names(nodeset, cluster, problems, taken)
    files = _files(nodeset, cluster, node_names)
    files_name = f"{nodeset.name}-files"
    volumes, mounts = _volumes(nodeset, cluster, files_name, files)
    labels = _labels(nodeset, cluster)
    container = _set(
        name="slurmd",
        image=image,
        imagePullPolicy=nodeset.image_pull_policy or cluster.image_pull_policy,
        args=_args(nodeset, cluster),
        env=_env(nodeset),
        ports=[{"name": "slurmd", "containerPort": PORT}],
        resources=dict(nodeset.resources),
        securityContext=dict(options.security_context),
        volumeMounts=mounts,
        **{f"{kind}Probe": probe for kind, probe in probes(cluster.version)["slurmd"].items()},
    )
    pod_spec = _pod_spec(nodeset, cluster, container, volumes)
    return {
        "name": nodeset.name,
        "kind": nodeset.kind,
        "workload": "StatefulSet" if nodeset.kind == "replica" else "DaemonSet",
        "replicas": nodeset.replicas,
        "image": image,
        "image_pull_policy": container.get("imagePullPolicy"),
        "args": container["args"],
        "env": container["env"],
        "resources": container.get("resources", {}),
        "security_context": container.get("securityContext", {}),
        "startup_probe": container["startupProbe"],
        "liveness_probe": container["livenessProbe"],
        "readiness_probe": container["readinessProbe"],
        "lifecycle": {},
        "volumes": volumes,
        "volume_mounts": mounts,
        "container": container,
        "pod_spec": pod_spec,
        "labels": labels,
        "annotations": {
            **options.annotations,
            "kubectl.kubernetes.io/default-container": "slurmd",
            f"{DOMAIN}/restart-on": _restart_on(files_name, files),
        },
        "selector": {key: labels[key] for key in ("app.kubernetes.io/instance", NODESET)},
        "volume_claim_templates": [dict(item) for item in options.volume_claim_templates],
        "files_name": files_name,
        "files": files,
        "node_name_prefix": nodeset.node_name_prefix,
        "node_names": node_names,
        "topology_labels": list(nodeset.topology_labels),
        "conf": nodeset.conf,
        "features": list(nodeset.features),
        "gres": [item.plain() for item in nodeset.gres],
        "expected": {
            "cpus": nodeset.cpus,
            "memory_mib": nodeset.memory_mib,
            "gres": nodeset.gres_spec or None,
        },
        "size": {
            "name": nodeset.name,
            "replicas": nodeset.replicas if nodeset.kind == "replica" else None,
            "cpus": nodeset.cpus,
            "memory_mib": nodeset.memory_mib,
            "gres": nodeset.gres_spec,
        },
        "partition": None if nodeset.partition is None else {"name": nodeset.name, **nodeset.partition},
        "host_network": options.host_network,
        "node_selector": pod_spec.get("nodeSelector", {}),
        "affinity": dict(options.affinity),
        "tolerations": [dict(item) for item in options.tolerations],
        "priority_class_name": options.priority_class_name or None,
        "service_account_name": options.service_account_name or None,
        "image_pull_secrets": pod_spec.get("imagePullSecrets", []),
        "pod_security_context": dict(options.pod_security_context),
        "init_containers": [dict(item) for item in options.init_containers],
        "sidecars": [dict(item) for item in options.sidecars],
        "termination_grace_period_seconds": options.termination_grace_period_seconds,
    }


def _set(**fields: Any) -> dict[str, Any]:
    """Only the fields that say something: an empty one would be owned by us for nothing."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def _args(nodeset: NodeSet, cluster: Cluster) -> list[str]:
    """Arguments of the slurmd container, whose entrypoint lets a shell read them again.

    So --conf carries quotes of its own, and a name can be computed. No double quotes: the public images put the
    arguments into a double-quoted line of supervisord's configuration.
    """
    args = [
        "-Z",
        "--conf-server",
        ",".join(f"{address}:6817" for address in cluster.controller_hosts.values()),
        "--conf",
        f"'{nodeset.conf}'",
    ]
    if nodeset.kind == "node":
        # The name from the NodeSet's ConfigMap (an override), else prefix and the Node's name up to its first dot.
        default = f"{nodeset.node_name_prefix}${{NODE_NAME%%.*}}"
        args += ["-N", f"$(cat {FILES_PATH}/node-name.$NODE_NAME 2>/dev/null || echo {default})"]
    return [*args, *nodeset.extra_slurmd_args]


def _env(nodeset: NodeSet) -> list[dict[str, Any]]:
    own: list[dict[str, Any]] = [
        {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        # Said here, since slurmd looks for keys beside its configuration, and that is elsewhere once it has fetched it:
        # a slurm.jwks that comes or goes is then seen at the next reconfigure.
        {"name": "SLURM_SACK_KEY", "value": "/etc/slurm/slurm.key"},
        {"name": "SLURM_SACK_JWKS", "value": "/etc/slurm/slurm.jwks"},
    ]
    return [*own, *(dict(item) for item in nodeset.pod.env)]


def _log(container: Mapping[str, Any]) -> dict[str, Any]:
    """The sidecar that makes slurmd's log the log of a container (docs/decisions/003).

    A supervised slurmd is silent after its first reconfigure unless it has a file: this pipe. It is held
    open for reading and writing, so that slurmd never waits for a reader.
    """
    pipe = f"{LOG_PATH}/slurmd.log"
    return _set(
        name="log",
        image=container.get("image"),
        imagePullPolicy=container.get("imagePullPolicy"),
        restartPolicy="Always",
        command=["sh", "-euc"],
        # A container's first process hears SIGTERM only if it has asked for it: with cat alone each Pod would last
        # for the whole of its grace period.
        args=[f"[ -p {pipe} ] || mkfifo -m 600 {pipe}\ncat <>{pipe} &\ntrap 'kill $!; exit 0' TERM\nwait\n"],
        startupProbe={"exec": {"command": ["test", "-p", pipe]}, "periodSeconds": 1, "failureThreshold": 60},
        securityContext={"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        volumeMounts=[{"name": "slurm-log", "mountPath": LOG_PATH}],
    )


def _labels(nodeset: NodeSet, cluster: Cluster) -> dict[str, str]:
    return {
        **nodeset.pod.labels,
        "app.kubernetes.io/name": "slurmd",
        "app.kubernetes.io/instance": cluster.name,
        "app.kubernetes.io/component": "worker",
        "app.kubernetes.io/part-of": "slurm",
        "app.kubernetes.io/managed-by": "slurm_ops.kubernetes",
        CLUSTER: cluster.name,
        NODESET: nodeset.name,
    }


def _node_names(nodeset: NodeSet, cluster: Cluster, problems: Problems, taken: dict[str, str]) -> dict[str, str]:
    """{Node: Slurm node} for kind node, of the Nodes that its selector matches."""
    if nodeset.kind == "replica":
        for ordinal in range(nodeset.replicas or 0):
            taken.setdefault(f"{nodeset.name}-{ordinal}", f"NodeSet {nodeset.name}")
        return {}
    selector = node_selector(nodeset)
    nodes = [node for node in cluster.nodes if _matches(node, selector)]
    return names.map_node_names(nodes, nodeset.node_name_prefix, problems, nodeset.path, taken)


def _restart_on(files_name: str, files: Mapping[str, str]) -> str:
    """Files whose change makes a new template; not the names of single nodes, which would make all Pods old."""
    return ",".join(f"configmap/{files_name}/{key}" for key in files if not key.startswith("node-name."))


def node_selector(nodeset: NodeSet) -> dict[str, str]:
    """The Nodes of a NodeSet. Of kind node without a selector or affinity: those that carry the NodeSet's label."""
    options = nodeset.pod
    if options.node_selector or options.affinity or nodeset.kind == "replica":
        return dict(options.node_selector)
    return {NODESET: nodeset.name}


def _matches(node: Mapping[str, Any], selector: Mapping[str, str]) -> bool:
    labels = (node.get("metadata") or node).get("labels") or {}
    return all(labels.get(key) == value for key, value in selector.items())


def _files(nodeset: NodeSet, cluster: Cluster, node_names: Mapping[str, str]) -> dict[str, str]:
    """The NodeSet's ConfigMap."""
    default = next((str(value) for key, value in cluster.gres_conf.items() if key.lower() == "autodetect"), "off")
    files = {"gres.conf": gres_conf(nodeset.gres, default)}
    overridden = {names.name_of(node) for node in cluster.nodes if names.override_of(node)}
    for node, name in node_names.items():
        if node in overridden:
            files[f"node-name.{node}"] = f"{name}\n"
    files.update({f"service.{name}": text for name, text in nodeset.pod.services.items()})
    files.update({f"oneshot.{name}": text for name, text in nodeset.pod.oneshots.items()})
    return dict(sorted(files.items()))


def _volumes(
    nodeset: NodeSet, cluster: Cluster, files_name: str, files: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    options = nodeset.pod
    # Everything else comes from slurmctld. The key is readable by root only, as auth/slurm wants it. While it is
    # being rotated there is slurm.jwks too.
    rotated = {"name": cluster.auth_secret, "optional": True, "items": [{"key": "slurm.jwks", "path": "slurm.jwks"}]}
    sources = [
        {"secret": {"name": cluster.auth_secret, "items": [{"key": "slurm.key", "path": "slurm.key"}]}},
        {"secret": rotated},
        {"configMap": {"name": files_name, "items": [{"key": "gres.conf", "path": NODESET_GRES_CONF}]}},
    ]
    volumes: list[dict[str, Any]] = [
        {"name": "slurm-etc", "projected": {"defaultMode": 0o600, "sources": sources}},
        {"name": "slurm-files", "configMap": {"name": files_name}},
        # Survives a restart of the container, and keeps job scripts off the image's writable layer.
        {"name": "slurm-spool", "emptyDir": {}},
        {"name": "slurm-log", "emptyDir": {"medium": "Memory"}},
    ]
    mounts: list[dict[str, Any]] = [
        {"name": "slurm-etc", "mountPath": "/etc/slurm", "readOnly": True},
        {"name": "slurm-files", "mountPath": FILES_PATH, "readOnly": True},
        {"name": "slurm-spool", "mountPath": "/var/spool/slurmd"},
        {"name": "slurm-log", "mountPath": LOG_PATH},
    ]
    for kind, pattern in (("service", "{}/run"), ("oneshot", "{}")):
        items = [
            {"key": key, "path": pattern.format(key.partition(".")[2]), "mode": 0o755}
            for key in files
            if key.startswith(f"{kind}.")
        ]
        if items:
            volumes.append({"name": f"{kind}s", "configMap": {"name": files_name, "items": items}})
            mounts.append({"name": f"{kind}s", "mountPath": f"/etc/slurm-ops/{kind}s", "readOnly": True})
    if options.shared_memory:
        memory = {"medium": "Memory", "sizeLimit": options.shared_memory}
        volumes.append({"name": "shared-memory", "emptyDir": memory})
        mounts.append({"name": "shared-memory", "mountPath": "/dev/shm"})
    wanted = {str(item.get("mountPath", "")).rstrip("/") for item in options.volume_mounts}
    if cluster.home_claim and "/home" not in wanted:
        volumes.append({"name": "slurm-home", "persistentVolumeClaim": {"claimName": cluster.home_claim}})
        mounts.append({"name": "slurm-home", "mountPath": "/home"})
    volumes += [dict(item) for item in options.volumes]
    mounts += [dict(item) for item in options.volume_mounts]
    return volumes, mounts


def _pod_spec(
    nodeset: NodeSet, cluster: Cluster, container: dict[str, Any], volumes: list[dict[str, Any]]
) -> dict[str, Any]:
    options = nodeset.pod
    secrets = [dict(item) for item in (*cluster.image_pull_secrets, *options.image_pull_secrets)]
    return {
        "automountServiceAccountToken": bool(options.service_account_name),
        # One variable for each Service of the namespace would end up in every job's environment.
        "enableServiceLinks": False,
        **_set(
            serviceAccountName=options.service_account_name,
            imagePullSecrets=[item for index, item in enumerate(secrets) if item not in secrets[:index]],
            securityContext=dict(options.pod_security_context),
            nodeSelector=node_selector(nodeset),
            affinity=dict(options.affinity),
            tolerations=[dict(item) for item in options.tolerations],
            priorityClassName=options.priority_class_name,
            terminationGracePeriodSeconds=options.termination_grace_period_seconds,
            hostNetwork=options.host_network or None,
            dnsPolicy="ClusterFirstWithHostNet" if options.host_network else None,
            # slurm.conf and jobs know nodes by their short names.
            dnsConfig={"searches": [cluster.service("workers")]},
            initContainers=[_log(container), *(dict(item) for item in options.init_containers)],
            containers=[container, *(dict(item) for item in options.sidecars)],
            volumes=volumes,
        ),
    }
