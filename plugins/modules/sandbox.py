#!/usr/bin/python

# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a real Kubernetes with several nodes on one machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sandbox
short_description: Run a real Kubernetes with several nodes on one machine
description:
  - Runs etcd, API server (RBAC, NodeRestriction), controller manager, scheduler, CoreDNS, a volume provisioner and, for
    each node, a kubelet, a containerd and a kube-proxy as ordinary processes in private namespaces of Linux.
    Each node has its own network, mounts and host name.
  - Nothing can leave the sandbox, and nothing of the machine is reconfigured but, where it is too low,
    the limit C(fs.inotify.max_user_instances). A container runtime that the machine has is left alone.
  - Programs and images come from the role P(slurm_ops.kubernetes.sandbox#role), the usual way to use this module.
version_added: "1.0.0"
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
requirements:
  - root
  - Linux 5.10 or newer with overlayfs, nftables, C(ip), C(nft), C(nsenter), C(unshare) and C(setsid)
  - cryptography (Python library; ansible-core brings it)
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
    details:
      - What is done through the API server of the sandbox can only be told while that runs.
  diff_mode:
    description: Returns details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
    support: full
  idempotent:
    description:
      - When run twice in a row outside C(check_mode), with the same arguments, the second invocation indicates
        no change.
      - This assumes that the system controlled by the module has not changed in a relevant way.
    support: full
options:
  name:
    description:
      - Name of the sandbox. Sandboxes of different names run side by side.
    type: str
    default: default
  state:
    description:
      - With V(present) it runs as the options say. What does not run, does not answer or runs with another
        configuration is (re)started.
      - With V(stopped) no process, mount, interface, route or control group of it is left, but its data is.
        Running it again continues with the same cluster.
      - With V(absent) its data is removed too.
    type: str
    choices: [present, stopped, absent]
    default: present
  nodes:
    description:
      - Number of nodes, named C(node1) and so on.
      - Each reports all processors and memory of the machine as its own.
    type: int
    default: 2
  node_labels:
    description:
      - Labels of Nodes. A key is the name of a Node or a shell pattern for names, a value is a dictionary of labels.
      - Where several patterns give the same label, the last one counts.
    type: dict
    default: {}
  kwok_nodes:
    description:
      - Number of simulated Nodes, named C(kwok-00000) and so on. They exist in the API only, where kwok plays them.
      - They have the taint C(kwok.x-k8s.io/node=fake:NoSchedule), the annotation C(kwok.x-k8s.io/node=fake) and the
        label C(type=kwok).
    type: int
    default: 0
  kwok_capacity:
    description: What each new simulated Node claims to have.
    type: dict
    default: {cpu: "64", memory: "512Gi", pods: "110"}
  image_archives:
    description:
      - Paths of image archives, uncompressed tar files in OCI or Docker form, whose images all nodes shall have.
      - They are imported once. Adding an archive later imports that one only.
      - Left out, the sandbox keeps the images that it had, also over a stop.
    type: list
    elements: path
  binaries:
    description: Directory with the programs that the role builds. Needed to start.
    type: path
  runtime:
    description: Directory under which C(usr/bin/containerd), C(usr/sbin/runc) and C(usr/lib/cni) are. Needed to start.
    type: path
  cache:
    description:
      - Directory for what sandboxes share. C(~/.cache/slurm_ops.kubernetes), or below C($XDG_CACHE_HOME), if not given.
    type: path
  directory:
    description: Directory for the data of this sandbox. C(sandbox/) and the name, below O(cache), if not given.
    type: path
  kubeconfig:
    description: File to write the administrator's kubeconfig to. C(kubeconfig) in O(directory) if not given.
    type: path
  network:
    description:
      - A private IPv4 network of size /16 that everything in the sandbox uses. It must not be routed on the machine.
      - The first free one of C(10.120.0.0/16) to C(10.127.0.0/16) if not given.
      - It is kept until the sandbox is removed.
    type: str
  grace_period:
    description: Seconds that Pods get to end by themselves with O(state=stopped).
    type: int
    default: 10
  wait_timeout:
    description: Seconds to wait at most for a component to answer, and for all nodes to be ready.
    type: int
    default: 120
"""

EXAMPLES = r"""
- name: Run a sandbox with four nodes in two racks
  slurm_ops.kubernetes.sandbox:
    nodes: 4
    node_labels:
      "node[12]": {example.com/rack: a}
      "node[34]": {example.com/rack: b}
    binaries: /root/.cache/slurm_ops.kubernetes/bin-0123456789abcdef
    runtime: /root/.cache/slurm_ops.kubernetes/runtime/debian-12-0123456789

- name: Stop it and keep its data
  slurm_ops.kubernetes.sandbox:
    state: stopped
"""

RETURN = r"""
actions:
  description: What was done, or would be in check mode.
  returned: success
  type: list
  elements: dict
  contains:
    kind: {description: What was done to it., type: str, returned: always, sample: restart}
    target: {description: Component or object., type: str, returned: always, sample: etcd}
    why: {description: Reason., type: str, returned: always, sample: not running}
kubeconfig:
  description: Path of the administrator's kubeconfig.
  returned: success
  type: str
  sample: /root/.cache/slurm_ops.kubernetes/sandbox/default/kubeconfig
network:
  description: The network of the sandbox.
  returned: success and O(state=present)
  type: str
  sample: 10.120.0.0/16
processes:
  description: Process number of each component that runs.
  returned: success
  type: dict
  sample: {etcd: 4711}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 0.4
remaining:
  description: Details of a failure, such as the end of a component's log.
  returned: failure
  type: list
  elements: str
  sample: []
reason:
  description: One word for the cause of a failure.
  returned: failure
  type: str
  sample: NetworkInUse
"""

import os
import time
import traceback
from http.client import HTTPException
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.progress import Progress
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox import ending, presence
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.addresses import AddressPlan, parse_network
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.certificates import CRYPTOGRAPHY_ERROR
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.observe import running_processes
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.records import pick_network
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.settings import (
    KwokNode,
    Settings,
    check_name,
)

OPTIONS = {
    "name": {"type": "str", "default": "default"},
    "state": {"type": "str", "default": "present", "choices": ["present", "stopped", "absent"]},
    "nodes": {"type": "int", "default": 2},
    "node_labels": {"type": "dict", "default": {}},
    "kwok_nodes": {"type": "int", "default": 0},
    "kwok_capacity": {"type": "dict", "default": {"cpu": "64", "memory": "512Gi", "pods": "110"}},
    "image_archives": {"type": "list", "elements": "path"},
    "binaries": {"type": "path"},
    "runtime": {"type": "path"},
    "cache": {"type": "path"},
    "directory": {"type": "path"},
    "kubeconfig": {"type": "path"},
    "network": {"type": "str"},
    "grace_period": {"type": "int", "default": 10},
    "wait_timeout": {"type": "int", "default": 120},
}


def default_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "slurm_ops.kubernetes"


def settings_from(params: dict[str, Any], directory: Path, cache: Path, kubeconfig: Path, check: bool) -> Settings:
    wanted = parse_network(params["network"]) if params["network"] else None
    archives = params["image_archives"]
    return Settings(
        name=params["name"],
        directory=directory,
        cache=cache,
        binaries=Path(params["binaries"]).resolve(),
        runtime=Path(params["runtime"]).resolve(),
        kubeconfig=kubeconfig,
        addresses=AddressPlan(pick_network(params["name"], directory, wanted, check)),
        nodes=params["nodes"],
        node_labels={p: {k: str(v) for k, v in labels.items()} for p, labels in params["node_labels"].items()},
        kwok_nodes=params["kwok_nodes"],
        kwok_node=KwokNode({key: str(value) for key, value in params["kwok_capacity"].items()}),
        image_archives=None if archives is None else tuple(Path(path).resolve() for path in archives),
        wait_timeout=params["wait_timeout"],
        grace_period=params["grace_period"],
    )


def main() -> None:
    """Bring the sandbox into the wanted state."""
    begun = time.monotonic()
    required = [("state", "present", ["binaries", "runtime"])]
    module = AnsibleModule(OPTIONS, supports_check_mode=True, required_if=required)
    params = module.params
    if os.geteuid() != 0:
        module.fail_json(msg="A sandbox needs root: it makes namespaces, mounts, interfaces and control groups.")
    if CRYPTOGRAPHY_ERROR is not None:
        module.fail_json(msg=missing_required_lib("cryptography"), exception=str(CRYPTOGRAPHY_ERROR))
    result: dict[str, Any] = {}
    try:
        check_name(params["name"])
        cache = Path(params["cache"]).resolve() if params["cache"] else default_cache()
        directory = Path(params["directory"]).resolve() if params["directory"] else cache / "sandbox" / params["name"]
        kubeconfig = Path(params["kubeconfig"]).absolute() if params["kubeconfig"] else directory / "kubeconfig"
        if params["state"] == "present":
            settings = settings_from(params, directory, cache, kubeconfig, module.check_mode)
            result["network"] = str(settings.addresses.network)
            report = presence.present(settings, Progress("sandbox").say, module.check_mode)
        elif params["state"] == "stopped":
            report = ending.stopped(params["name"], directory, params["grace_period"], module.check_mode)
        else:
            report = ending.absent(params["name"], directory, kubeconfig, cache, module.check_mode)
        result["processes"] = running_processes(params["name"])
    except OperationError as error:
        module.fail_json(
            msg=str(error),
            reason=error.reason,
            hint=error.hint,
            remaining=list(error.remaining),
            duration=round(time.monotonic() - begun, 3),
        )
    except (OSError, HTTPException) as error:
        # Such as a full disk, or an API server that ends while it is spoken to. A later run goes on from what is there.
        module.fail_json(
            msg=f"The sandbox {params['name']} could not be brought to state {params['state']}: {error}",
            reason="Unexpected",
            exception=traceback.format_exc(),
            duration=round(time.monotonic() - begun, 3),
        )
    if module._diff:
        result["diff"] = {"before": report.before, "after": report.after}
    module.exit_json(
        changed=report.changed,
        actions=report.actions,
        kubeconfig=str(kubeconfig),
        duration=round(time.monotonic() - begun, 3),
        **result,
    )


if __name__ == "__main__":
    main()
