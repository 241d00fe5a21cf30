# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Configuration files of the components, as text. Pure: the same settings give the same text."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from .settings import PAUSE_IMAGE, Settings, node_number

# What a kubelet wants the kernel to be set to. It is shown these values in files of its own, so that it leaves those of
# the machine alone.
KERNEL_TUNABLES = {
    "kernel/keys/root_maxbytes": "25000000",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
}


def as_json(document: Mapping[str, Any]) -> str:
    """JSON is YAML too: no library is needed to write it."""
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def kubeconfig(settings: Settings, user: str) -> str:
    """For a component: refers to its key, so that the file holds no secret."""
    return _kubeconfig(
        settings,
        {"certificate-authority": str(settings.pki / "ca.crt")},
        {
            "client-certificate": str(settings.pki / f"{user}.crt"),
            "client-key": str(settings.pki / f"{user}.key"),
        },
    )


def portable_kubeconfig(settings: Settings, authority: bytes, certificate: bytes, key: bytes) -> str:
    """For people: holds everything, so that it can be copied."""
    return _kubeconfig(
        settings,
        {"certificate-authority-data": base64.b64encode(authority).decode()},
        {
            "client-certificate-data": base64.b64encode(certificate).decode(),
            "client-key-data": base64.b64encode(key).decode(),
        },
    )


def _kubeconfig(settings: Settings, authority: Mapping[str, str], user: Mapping[str, str]) -> str:
    name = f"sandbox-{settings.name}"
    cluster = {"server": f"https://{settings.addresses.hub}:6443", **authority}
    return as_json(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": dict(user)}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
            "current-context": name,
        }
    )


# What kwok says of a simulated Node, once: its leases keep it alive. The conditions of 5,000 Nodes written anew every
# few minutes keep a small API server busy.
_SIMULATED_STATUS = """\
conditions:
- {type: Ready, status: "True", reason: Simulated, lastHeartbeatTime: {{ Now | Quote }}, lastTransitionTime: {{ Now | Quote }}}
addresses:
- {type: InternalIP, address: {{ NodeIP | Quote }}}
- {type: Hostname, address: {{ .metadata.name | Quote }}}
phase: Running
"""  # noqa: E501


def kwok_configuration() -> str:
    ready = '.status.conditions.[] | select( .type == "Ready" ) | .status'
    return as_json(
        {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "Stage",
            "metadata": {"name": "node-is-there"},
            "spec": {
                "resourceRef": {"apiGroup": "v1", "kind": "Node"},
                "selector": {"matchExpressions": [{"key": ready, "operator": "NotIn", "values": ["True"]}]},
                "next": {"statusTemplate": _SIMULATED_STATUS},
            },
        }
    )


def kubelet_configuration(settings: Settings, node: str) -> str:
    address = str(settings.addresses.node(node_number(node)))
    return as_json(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": address,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(settings.pki / "ca.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{settings.cgroup}/{node}",
            "cgroupsPerQOS": True,
            "clusterDNS": [str(settings.addresses.dns_service)],
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": f"unix://{settings.containerd_socket(node)}",
            "enforceNodeAllocatable": [],
            # Nothing about disks here: under pressure the kubelet would delete images, which nobody could pull again.
            "evictionHard": {"memory.available": "100Mi"},
            "failCgroupV1": False,
            "failSwapOn": False,
            "healthzBindAddress": address,
            "healthzPort": 10248,
            "imageGCHighThresholdPercent": 100,
            "maxPods": 250,
            "oomScoreAdj": 0,
            "port": 10250,
            "readOnlyPort": 0,
            "resolvConf": str(settings.node_run(node) / "resolv.conf"),
            "tlsCertFile": str(settings.pki / f"kubelet-{node}.crt"),
            "tlsPrivateKeyFile": str(settings.pki / f"kubelet-{node}.key"),
            "volumePluginDir": str(settings.node_run(node) / "volume-plugins"),
        }
    )


def proxy_configuration(settings: Settings, node: str) -> str:
    return as_json(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "bindAddress": "0.0.0.0",
            "clientConnection": {"kubeconfig": str(settings.run / "kube-proxy.kubeconfig")},
            "clusterCIDR": str(settings.addresses.pods),
            # The limit belongs to the whole machine.
            "conntrack": {"maxPerCore": 0, "min": 0},
            "healthzBindAddress": f"{settings.addresses.node(node_number(node))}:10256",
            "hostnameOverride": node,
            "metricsBindAddress": "127.0.0.1:10249",
            "mode": "nftables",
            "nodePortAddresses": ["primary"],
            "oomScoreAdj": 0,
        }
    )


def containerd_configuration(settings: Settings, node: str) -> str:
    """Version 2 of the format is read by every containerd from 1.6 on."""
    run, runtime = settings.node_run(node), settings.runtime
    return f"""\
version = 2
root = "{settings.node_directory(node) / "containerd"}"
state = "{run / "containerd"}"

[grpc]
  address = "{settings.containerd_socket(node)}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  stream_server_address = "127.0.0.1"
  # Without CAP_SYS_RESOURCE the kernel refuses to lower a score; runc then fails with "can't get final child's PID".
  restrict_oom_score_adj = true
  # Profiles would be loaded into the machine's kernel and stay there.
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{runtime / "usr/sbin/runc"}"
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{runtime / "usr/lib/cni"}"
    conf_dir = "{run / "cni"}"
"""


def network_configuration(settings: Settings, node: str) -> str:
    """Pods are joined by point-to-point links and not by a bridge, so that all traffic passes the node's packet filter.

    On a bridge the answer of a Service's Pod to its neighbour would go past it, and keep its own address, unless the
    machine had the module br_netfilter loaded.
    """
    subnet = str(settings.addresses.node_pods(node_number(node)))
    return as_json(
        {
            "cniVersion": "0.4.0",
            "name": "sandbox",
            "plugins": [
                {
                    "type": "ptp",
                    "ipMasq": False,
                    "ipam": {
                        "type": "host-local",
                        "dataDir": str(settings.node_run(node) / "ipam"),
                        "ranges": [[{"subnet": subnet}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                },
                {"type": "portmap", "capabilities": {"portMappings": True}},
            ],
        }
    )


def corefile(settings: Settings) -> str:
    """Names of the cluster. Every other name is said not to exist at once, as no question can leave the sandbox."""
    hub = settings.addresses.hub
    return f"""\
cluster.local:53 in-addr.arpa:53 ip6.arpa:53 {{
  bind {hub}
  errors
  health {hub}:8080 {{
    lameduck 0s
  }}
  ready {hub}:8181
  kubernetes cluster.local in-addr.arpa ip6.arpa {{
    kubeconfig {settings.run / "coredns.kubeconfig"} sandbox-{settings.name}
    pods insecure
    ttl 5
  }}
  cache 5
  loadbalance
}}
.:53 {{
  bind {hub}
  errors
  template ANY ANY {{
    rcode NXDOMAIN
    authority ". 60 IN SOA sandbox.invalid. nobody.invalid. 1 60 60 60 60"
  }}
}}
"""


def resolver_configuration(settings: Settings) -> str:
    """For Pods that ask for the node's own resolver: the machine's could not be reached from here."""
    return f"nameserver {settings.addresses.dns_service}\n"
