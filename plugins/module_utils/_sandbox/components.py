# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The programs of a sandbox: what is started where, with which arguments and files, and how one sees that it works.

A component's files carry a digest of their content in their names, and thereby its argument list does: a process whose
arguments are those wanted runs with the configuration wanted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv4Address
from pathlib import Path

from . import render
from .certificates import Identity
from .settings import PROVISIONER, Settings, node_number

HUB = "hub"
API_STAGE = 1


class ProbeKind(Enum):
    HTTP = "http"
    HTTPS = "https"
    GRPC = "grpc"


@dataclass(frozen=True, slots=True)
class Probe:
    """How to ask a component whether it works: an address and path, or the path of a socket."""

    kind: ProbeKind
    where: str
    path: str = "/healthz"


@dataclass(frozen=True, slots=True)
class Component:
    """One process. ``place`` is the hub or a node; components of a lower ``stage`` answer before later ones start."""

    name: str
    place: str
    stage: int
    argv: tuple[str, ...]
    probe: Probe
    files: Mapping[Path, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def program(self) -> str:
        return Path(self.argv[0]).name


def _addressed(directory: Path, name: str, suffix: str, content: str) -> Path:
    return directory / f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:10]}{suffix}"


def search_path(settings: Settings) -> str:
    """Our runtime first, then what every system has, whatever PATH the caller came with."""
    own = [settings.runtime / part for part in ("usr/bin", "usr/sbin")]
    return ":".join([*map(str, own), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"])


def identities(settings: Settings) -> list[Identity]:
    """Every certificate signed by the sandbox's authority."""
    addresses = settings.addresses
    hub = (addresses.hub, IPv4Address("127.0.0.1"))
    service = ["kubernetes", "default", "svc", "cluster", "local"]
    names = ("localhost", *(".".join(service[:length]) for length in (1, 2, 3, 5)))
    result = [
        Identity("admin", "sandbox-admin", ("system:masters",)),
        Identity(
            "kube-apiserver", "kube-apiserver", addresses=(*hub, addresses.api_service), names=names, client=False
        ),
        Identity("kube-apiserver-kubelet", "kube-apiserver-kubelet-client"),
        Identity("kube-controller-manager", "system:kube-controller-manager", addresses=hub),
        Identity("kube-scheduler", "system:kube-scheduler", addresses=hub),
        Identity("kube-proxy", "system:kube-proxy"),
        Identity("coredns", "slurm-ops:coredns"),
        Identity("provisioner", "slurm-ops:provisioner"),
        Identity("kwok", "slurm-ops:kwok"),
    ]
    for node in settings.node_names:
        address = addresses.node(node_number(node))
        result.append(
            Identity(f"kubelet-{node}", f"system:node:{node}", ("system:nodes",), addresses=(address,), names=(node,))
        )
    return result


# The aggregation layer trusts an authority that signs for nobody else.
FRONT_PROXY = Identity("front-proxy-client", "front-proxy-client")


def components(settings: Settings) -> list[Component]:
    """All components, in the order in which they are started."""
    result = [_etcd(settings)]
    result += [_containerd(settings, node) for node in settings.node_names]
    result += [_apiserver(settings), _controller_manager(settings), _scheduler(settings)]
    for node in settings.node_names:
        result += [_kubelet(settings, node), _proxy(settings, node)]
    result += [_coredns(settings), _provisioner(settings)]
    if settings.kwok_nodes:
        result.append(_kwok(settings))
    return result


def _etcd(settings: Settings) -> Component:
    return Component(
        "etcd",
        HUB,
        0,
        (
            str(settings.binaries / "etcd"),
            f"--data-dir={settings.directory / 'etcd'}",
            "--listen-client-urls=http://127.0.0.1:2379",
            "--advertise-client-urls=http://127.0.0.1:2379",
            "--listen-peer-urls=http://127.0.0.1:2380",
            f"--listen-metrics-urls=http://{settings.addresses.hub}:2381",
            # A crash of the machine may lose the last writes, a crash of etcd does not: good enough for a sandbox, and
            # the difference between seconds and half a minute on a slow disk.
            "--unsafe-no-fsync",
            "--quota-backend-bytes=4294967296",
            "--log-level=warn",
        ),
        Probe(ProbeKind.HTTP, f"{settings.addresses.hub}:2381", "/health"),
    )


def _containerd(settings: Settings, node: str) -> Component:
    content = render.containerd_configuration(settings, node)
    run = settings.node_run(node)
    file = _addressed(run, "containerd", ".toml", content)
    # The Pod network is read from a directory, while it runs, and not named by an argument.
    network = render.network_configuration(settings, node)
    return Component(
        f"containerd-{node}",
        node,
        0,
        (str(settings.runtime / "usr/bin/containerd"), "--config", str(file)),
        Probe(ProbeKind.GRPC, str(settings.containerd_socket(node))),
        {file: content, run / "cni" / "10-sandbox.conflist": network},
    )


def _apiserver(settings: Settings) -> Component:
    pki, addresses = settings.pki, settings.addresses
    return Component(
        "kube-apiserver",
        HUB,
        API_STAGE,
        (
            str(settings.binaries / "kube-apiserver"),
            f"--advertise-address={addresses.hub}",
            "--allow-privileged=true",
            "--authorization-mode=Node,RBAC",
            f"--client-ca-file={pki / 'ca.crt'}",
            "--enable-admission-plugins=NodeRestriction",
            # There is no proxy for Services where this runs.
            "--enable-aggregator-routing=true",
            "--etcd-servers=http://127.0.0.1:2379",
            f"--kubelet-certificate-authority={pki / 'ca.crt'}",
            f"--kubelet-client-certificate={pki / 'kube-apiserver-kubelet.crt'}",
            f"--kubelet-client-key={pki / 'kube-apiserver-kubelet.key'}",
            "--kubelet-preferred-address-types=InternalIP",
            "--profiling=false",
            f"--proxy-client-cert-file={pki / 'front-proxy-client.crt'}",
            f"--proxy-client-key-file={pki / 'front-proxy-client.key'}",
            "--requestheader-allowed-names=front-proxy-client",
            f"--requestheader-client-ca-file={pki / 'front-proxy-ca.crt'}",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
            "--secure-port=6443",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={pki / 'service-accounts.pub'}",
            f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
            f"--service-cluster-ip-range={addresses.services}",
            f"--tls-cert-file={pki / 'kube-apiserver.crt'}",
            f"--tls-private-key-file={pki / 'kube-apiserver.key'}",
        ),
        Probe(ProbeKind.HTTPS, f"{addresses.hub}:6443", "/readyz"),
    )


def _kubeconfig_file(settings: Settings, user: str) -> tuple[Path, str]:
    content = render.kubeconfig(settings, user)
    return _addressed(settings.run, user, ".kubeconfig", content), content


def _controller_manager(settings: Settings) -> Component:
    pki, hub = settings.pki, settings.addresses.hub
    file, content = _kubeconfig_file(settings, "kube-controller-manager")
    return Component(
        "kube-controller-manager",
        HUB,
        2,
        (
            str(settings.binaries / "kube-controller-manager"),
            # Addresses follow from a node's number, not from the order of registration.
            "--allocate-node-cidrs=false",
            f"--bind-address={hub}",
            f"--cluster-signing-cert-file={pki / 'ca.crt'}",
            f"--cluster-signing-key-file={pki / 'ca.key'}",
            "--kube-api-burst=400",
            "--kube-api-qps=200",
            f"--kubeconfig={file}",
            "--leader-elect=false",
            f"--node-monitor-grace-period={settings.node_lease_seconds + 10}s",
            "--profiling=false",
            f"--root-ca-file={pki / 'ca.crt'}",
            f"--service-account-private-key-file={pki / 'service-accounts.key'}",
            f"--tls-cert-file={pki / 'kube-controller-manager.crt'}",
            f"--tls-private-key-file={pki / 'kube-controller-manager.key'}",
            "--use-service-account-credentials=true",
        ),
        Probe(ProbeKind.HTTPS, f"{hub}:10257"),
        {file: content},
    )


def _scheduler(settings: Settings) -> Component:
    pki, hub = settings.pki, settings.addresses.hub
    file, content = _kubeconfig_file(settings, "kube-scheduler")
    return Component(
        "kube-scheduler",
        HUB,
        2,
        (
            str(settings.binaries / "kube-scheduler"),
            f"--bind-address={hub}",
            "--kube-api-burst=400",
            "--kube-api-qps=200",
            f"--kubeconfig={file}",
            "--leader-elect=false",
            "--profiling=false",
            f"--tls-cert-file={pki / 'kube-scheduler.crt'}",
            f"--tls-private-key-file={pki / 'kube-scheduler.key'}",
        ),
        Probe(ProbeKind.HTTPS, f"{hub}:10259"),
        {file: content},
    )


def _kubelet(settings: Settings, node: str) -> Component:
    content = render.kubelet_configuration(settings, node)
    run, address = settings.node_run(node), settings.addresses.node(node_number(node))
    file = _addressed(run, "kubelet", ".json", content)
    kubeconfig, access = _kubeconfig_file(settings, f"kubelet-{node}")
    return Component(
        f"kubelet-{node}",
        node,
        2,
        (
            str(settings.binaries / "kubelet"),
            f"--config={file}",
            f"--hostname-override={node}",
            f"--kubeconfig={kubeconfig}",
            f"--node-ip={address}",
            f"--root-dir={run / 'kubelet'}",
        ),
        Probe(ProbeKind.HTTP, f"{address}:10248"),
        {file: content, kubeconfig: access, run / "resolv.conf": render.resolver_configuration(settings)},
    )


def _proxy(settings: Settings, node: str) -> Component:
    content = render.proxy_configuration(settings, node)
    file = _addressed(settings.node_run(node), "kube-proxy", ".json", content)
    return Component(
        f"kube-proxy-{node}",
        node,
        2,
        (str(settings.binaries / "kube-proxy"), f"--config={file}"),
        # Its /healthz also says whether a load balancer should use the Node, which it may never learn when it starts
        # before its Node is registered.
        Probe(ProbeKind.HTTP, f"{settings.addresses.node(node_number(node))}:10256", "/livez"),
        {file: content, settings.run / "kube-proxy.kubeconfig": render.kubeconfig(settings, "kube-proxy")},
    )


def _coredns(settings: Settings) -> Component:
    content = render.corefile(settings)
    file = _addressed(settings.run, "Corefile", "", content)
    access = {settings.run / "coredns.kubeconfig": render.kubeconfig(settings, "coredns")}
    return Component(
        "coredns",
        HUB,
        2,
        (str(settings.binaries / "coredns"), "-conf", str(file)),
        Probe(ProbeKind.HTTP, f"{settings.addresses.hub}:8181", "/ready"),
        {file: content, **access},
    )


def _provisioner(settings: Settings) -> Component:
    kubeconfig, access = _kubeconfig_file(settings, "provisioner")
    health = f"{settings.addresses.hub}:8090"
    return Component(
        "provisioner",
        HUB,
        2,
        (
            str(settings.binaries / "provisioner"),
            f"--directory={settings.volumes}",
            f"--health-address={health}",
            f"--kubeconfig={kubeconfig}",
            f"--provisioner={PROVISIONER}",
        ),
        Probe(ProbeKind.HTTP, health),
        {kubeconfig: access},
    )


def _kwok(settings: Settings) -> Component:
    kubeconfig, access = _kubeconfig_file(settings, "kwok")
    content = render.kwok_configuration()
    file = _addressed(settings.run, "kwok", ".json", content)
    addresses = settings.addresses
    return Component(
        "kwok",
        HUB,
        2,
        (
            str(settings.binaries / "kwok"),
            f"--config={file}",
            f"--kubeconfig={kubeconfig}",
            f"--cidr={addresses.simulated_pods}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            f"--node-ip={addresses.hub}",
            f"--node-lease-duration-seconds={settings.node_lease_seconds}",
            f"--server-address={addresses.hub}:10247",
        ),
        Probe(ProbeKind.HTTP, f"{addresses.hub}:10247"),
        {file: content, kubeconfig: access},
    )
