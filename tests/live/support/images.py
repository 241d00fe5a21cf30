# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The smallest cluster that shows what the images promise: bare Pods, without any role or template of the collection.

Everything but slurmd and login runs as the "restricted" Pod Security level wants it, with a read-only root.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

from .kube import Json, Kube
from .process import Completed

REGISTRY = os.environ.get("SLURM_OPS_TEST_REGISTRY", "localhost/slurm-ops")
PASSWORD = "se'cret"

SLURM_CONF = """
ClusterName=images
SlurmctldHost=controller(controller.{namespace}.svc)
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/slurm
CredType=cred/slurm
AuthInfo=use_client_ids
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
SlurmctldParameters=enable_configless
StateSaveLocation=/var/spool/slurmctld/state
SlurmdSpoolDir=/var/spool/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2
LaunchParameters=enable_nss_slurm
SlurmdParameters=config_overrides
MailProg=/bin/true
MaxNodeCount=16
ReturnToService=2
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=accounting
NodeSet=cpu Feature=cpu
PartitionName=cpu Nodes=cpu Default=YES
"""

SLURMDBD_CONF = """
AuthType=auth/slurm
AuthInfo=use_client_ids
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
DbdHost=localhost
SlurmUser=slurm
PidFile=/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=database
StorageUser=slurm
StoragePass={password}
"""

SSSD_CONF = """
[sssd]
services = nss, pam
domains = nowhere
[domain/nowhere]
id_provider = ldap
ldap_uri = ldap://localhost:1
ldap_search_base = dc=nowhere
"""

TOPOLOGY = """
- topology: default
  cluster_default: true
  tree:
    switches:
      - switch: s0
        children: s1
      - switch: s1
        nodes: ""
"""

# One mounted service and one that runs once, both without the executable bit, as ConfigMaps give them.
MOUNTED_SERVICE = "#!/bin/sh\ntest -e /run/prepared || exit 1\ntouch /run/served\nexec sleep infinity\n"
MOUNTED_ONESHOT = "#!/bin/sh\ntouch /run/prepared\n"

# https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted, and a read-only root
RESTRICTED: Json = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
LOGIN_CAPABILITIES = [
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT")
]


def pod(
    name: str,
    image: str,
    volumes: dict[str, Json],
    user: int | None = None,
    search: str = "",
    init: Json | None = None,
    **container: Any,
) -> Json:
    """A Pod of one container `main`; volumes are by mount path. With a user it is a restricted one."""
    names = {path: re.sub(r"[^a-z]+", "-", path.strip("/")) for path in volumes}
    mounts = [{"name": names[path], "mountPath": path} for path in volumes]
    main = {"name": "main", "image": f"{REGISTRY}/{image}", "imagePullPolicy": "Never", "volumeMounts": mounts}
    spec: Json = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 20,
        "containers": [{**main, **container}],
        "volumes": [{"name": names[path], **source} for path, source in volumes.items()],
    }
    if user is not None:
        spec["securityContext"] = {
            "runAsUser": user,
            "runAsGroup": user,
            "fsGroup": user,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        spec["containers"][0]["securityContext"] = RESTRICTED
    if init:
        spec["initContainers"] = [{**main, "name": "prepare", "securityContext": RESTRICTED, **init}]
    if search:
        # slurmctld 24.11 resolves the short name of the host that srun runs on, and stands still while it cannot.
        spec |= {"hostname": name, "subdomain": "names", "dnsConfig": {"searches": [search]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name, "cluster": "images"}},
        "spec": spec,
    }


def memory() -> Json:
    return {"emptyDir": {"medium": "Memory"}}


def files(*sources: Json, mode: int = 0o600) -> Json:
    return {"projected": {"defaultMode": mode, "sources": list(sources)}}


def secret(name: str, *keys: str) -> Json:
    return {"secret": {"name": name, **({"items": [{"key": key, "path": key} for key in keys]} if keys else {})}}


class Cluster:
    """One Slurm version's Pods in one namespace."""

    def __init__(self, kube: Kube, namespace: str, version: str) -> None:
        self.kube = kube
        self.namespace = namespace
        self.version = version
        self.path = f"/api/v1/namespaces/{namespace}"
        self.search = f"names.{namespace}.svc.cluster.local"
        self.slurm_conf = SLURM_CONF.format(namespace=namespace)

    # -- what it is made of

    def database(self) -> Json:
        return pod(
            "database",
            "mariadb:debian13",
            {
                "/var/lib/mysql": {"emptyDir": {}},
                "/run/mysqld": memory(),
                "/tmp": {"emptyDir": {}},
                "/etc/mysql/conf.d": {"configMap": {"name": "database"}},
                "/secret": {"secret": {"secretName": "database", "defaultMode": 0o440}},
            },
            user=999,
            env=environment(
                MARIADB_DATABASE="slurm_acct_db",
                MARIADB_USER="slurm",
                MARIADB_PASSWORD_FILE="/secret/password",
                MARIADB_RANDOM_ROOT_PASSWORD="1",
            ),
            readinessProbe=probe(exec={"command": ["healthcheck.sh", "--connect", "--innodb_initialized"]}),
        )

    def accounting(self) -> Json:
        volumes = {"/run": memory(), "/tmp": {"emptyDir": {}}}
        configuration = files(secret("slurmdbd"), secret("auth"))
        init = None
        if self.version < "25.11":
            # Before 25.11 slurmdbd.conf has to be 0600 and SlurmUser's own, which no projected volume can be.
            volumes |= {"/etc/slurm": memory(), "/mounted": configuration}
            init = {"command": ["sh", "-c", "umask 077 && cat /mounted/slurmdbd.conf > /etc/slurm/slurmdbd.conf"]}
            init["command"][2] += " && cat /mounted/slurm.key > /etc/slurm/slurm.key"
            init["command"][2] += " && cat /mounted/jwt.key > /etc/slurm/jwt.key"
        else:
            volumes["/etc/slurm"] = configuration
        return pod(
            "accounting",
            f"slurmdbd:{self.version}",
            volumes,
            user=401,
            init=init,
            readinessProbe=probe(tcpSocket={"port": 6819}),
        )

    def controller(self, name: str = "controller", config: str = "config") -> Json:
        return pod(
            name,
            f"slurmctld:{self.version}",
            {
                "/run": memory(),
                "/tmp": memory(),
                "/var/spool/slurmctld": {"emptyDir": {}},
                "/etc/slurm": files({"configMap": {"name": config}}, secret("auth")),
            },
            user=401,
            args=["-v", "'-v'"],
            search=self.search,
            readinessProbe=self.answers_on(6817),
        )

    def restapi(self) -> Json:
        slurm_conf = {"configMap": {"name": "config", "items": [{"key": "slurm.conf", "path": "slurm.conf"}]}}
        return pod(
            "restapi",
            f"slurmrestd:{self.version}",
            {"/etc/slurm": files(slurm_conf, secret("auth", "slurm.key"))},
            user=65534,
            env=environment(SLURM_JWT="daemon", SLURMRESTD_SECURITY="disable_unshare_files,disable_unshare_sysv"),
            readinessProbe=probe(tcpSocket={"port": 6820}),
        )

    def worker(self, name: str, conf: str = "Feature=cpu", extra: dict[str, Json] | None = None, **env: str) -> Json:
        mounted = {"configMap": {"name": "services"}}
        service = {**mounted["configMap"], "items": [{"key": "service", "path": "extra/run"}]}
        oneshot = {**mounted["configMap"], "items": [{"key": "oneshot", "path": "prepare"}]}
        return pod(
            name,
            f"slurmd:{self.version}",
            {
                "/etc/slurm": files(secret("auth", "slurm.key")),
                "/etc/slurm-ops/services": {"configMap": service},
                "/etc/slurm-ops/oneshots": {"configMap": oneshot},
                **(extra or {}),
            },
            search=self.search,
            args=["-Z", "--conf-server", f"controller.{self.namespace}:6817", "--conf", f"'{conf}'"],
            env=environment(**env),
            securityContext={"privileged": True},
            readinessProbe=self.answers_on(6818),
        )

    def login(self) -> Json:
        return pod(
            "login",
            f"login:{self.version}",
            {
                "/etc/slurm": files(secret("auth", "slurm.key")),
                "/etc/sssd/conf.d": files(secret("sssd")),
            },
            search=self.search,
            env=environment(SACKD_OPTIONS=f"--conf-server controller.{self.namespace}:6817"),
            securityContext={
                "capabilities": {"drop": ["ALL"], "add": LOGIN_CAPABILITIES},
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            readinessProbe=probe(exec={"command": ["test", "-S", "/run/slurm/sack.socket"]}),
        )

    def answers_on(self, port: int) -> Json:
        if self.version < "25.11":
            # Every connection that says nothing is an error in Slurm's log.
            command = "scontrol ping | grep -q UP" if port == 6817 else "test -S /run/slurm/sack.socket"
            return probe(exec={"command": ["sh", "-c", command]})
        return probe(httpGet={"port": port, "path": "/readyz"})

    def configuration(self, slurm_conf: str) -> dict[str, str]:
        files = {"slurm.conf": slurm_conf, "cgroup.conf": "CgroupPlugin=disabled\n"}
        if self.version > "25":
            files["topology.yaml"] = TOPOLOGY
        return files

    # -- what can be done with it

    def start(self) -> None:
        keys = {"slurm.key": secrets.token_bytes(1024), "jwt.key": secrets.token_bytes(32)}
        self.secret("auth", keys)
        self.secret("database", {"password": PASSWORD})
        self.secret("slurmdbd", {"slurmdbd.conf": SLURMDBD_CONF.format(password=PASSWORD)})
        self.secret("sssd", {"sssd.conf": SSSD_CONF})
        self.config_map("config", self.configuration(self.slurm_conf))
        self.config_map("database", {"test.cnf": "[mariadbd]\ninnodb_buffer_pool_size=33554432\n"})
        self.config_map("services", {"service": MOUNTED_SERVICE, "oneshot": MOUNTED_ONESHOT})
        for name in ("database", "accounting", "controller"):
            self.service(name, {"app": name})
        self.service("names", {"cluster": "images"})
        pods = [self.database(), self.accounting(), self.controller(), self.restapi()]
        self.config_map("sshd", {"10-test.conf": "PasswordAuthentication no\n"})
        # Dynamic nodes name their place in the topology from 25.05 on; one that names none then gets no jobs.
        env = {"POD_TOPOLOGY": "default:s1"} if self.version > "25" else {}
        with_ssh = {"/etc/ssh/sshd_config.d": {"configMap": {"name": "sshd"}}}
        limited = self.worker("w-1", "Feature=cpu Weight=7", with_ssh, POD_CPUS="1", POD_MEMORY="1000", **env)
        workers = [self.worker("w-0", **env), limited]
        for one in [*pods, *workers, self.login()]:
            self.create_pod(one)
        for one in [*pods, *workers, self.login()]:
            self.wait_ready(one["metadata"]["name"], timeout=180)
        self.eventually(lambda: self.run("login", "sinfo -h -o %t%n").stdout.count("idle") == 2, "both nodes are idle")

    def create_pod(self, body: Json) -> None:
        self.kube.create(f"{self.path}/pods", body)

    def service(self, name: str, selector: dict[str, str]) -> None:
        spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector}
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
        self.kube.create(f"{self.path}/services", body)

    def secret(self, name: str, data: Mapping[str, bytes | str]) -> None:
        encoded = {
            key: base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()
            for key, value in data.items()
        }
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded}
        self.kube.apply(f"{self.path}/secrets/{name}", body)

    def config_map(self, name: str, data: dict[str, str]) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        self.kube.apply(f"{self.path}/configmaps/{name}", body)

    def configure(self, addition: str) -> Completed:
        """Put slurm.conf with an addition before slurmctld and let it reconfigure."""
        mark = f"# {secrets.token_hex(8)}"
        text = f"{self.slurm_conf}{addition}\n{mark}\n"
        self.config_map("config", self.configuration(text))
        # A changed annotation makes the kubelet look at the Pod's volumes at once instead of within a minute.
        self.kube.patch(f"{self.path}/pods/controller", {"metadata": {"annotations": {"config": mark[2:]}}})
        arrived = f"grep -q '{mark}' /etc/slurm/slurm.conf"
        self.eventually(lambda: self.run("controller", arrived).rc == 0, "the new slurm.conf is there", timeout=100)
        return self.run("controller", "scontrol reconfigure")

    def run(self, pod_name: str, command: str, timeout: float = 60) -> Completed:
        return self.kube.exec(self.namespace, pod_name, ["bash", "-c", command], container="main", timeout=timeout)

    def status(self, name: str) -> Json:
        found: Json = self.kube.get(f"{self.path}/pods/{name}")
        statuses = found["status"].get("containerStatuses")
        return statuses[0] if statuses else {}

    def wait_ready(self, name: str, timeout: float = 60) -> None:
        self.eventually(lambda: self.status(name).get("ready"), f"{name} is ready", timeout)

    def eventually(self, condition: Callable[[], Any], what: str, timeout: float = 60) -> float:
        """Wait for something; how long it took in seconds."""
        __tracebackhide__ = True
        started = time.monotonic()
        while not condition():
            if time.monotonic() - started > timeout:
                raise AssertionError(f"{self.version}: not seen within {timeout} s: {what}\n{self.report()}")
            time.sleep(0.2)
        return time.monotonic() - started

    def report(self) -> str:
        """The end of every Pod's log, for a failure."""
        parts = []
        for one in self.kube.items(f"{self.path}/pods"):
            name = one["metadata"]["name"]
            try:
                log = self.kube.logs(self.namespace, name, container="main", tailLines=15)
            except AssertionError as error:
                log = str(error)
            parts.append(f"--- {name}: {one['status']['phase']}\n{log}")
        return "\n".join(parts)


def environment(**variables: str) -> list[Json]:
    return [{"name": name, "value": value} for name, value in variables.items()]


def probe(**how: Json) -> Json:
    return {"periodSeconds": 1, "timeoutSeconds": 5, **how}
