# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox of a test's own: runs it, and finds every trace of it on this machine."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
from pathlib import Path
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox import processes
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.settings import (
    cgroup_name,
    interface_name,
    run_directory,
)

from .kube import Kube
from .playbook import NO_INVENTORY, Ansible, PlaybookResult

Json = dict[str, Any]


class Sandbox:
    """Runs the playbook, or the module by itself, for one sandbox and looks at what it has made."""

    def __init__(self, ansible: Ansible, cache: Path) -> None:
        self.name = f"live-{secrets.token_hex(3)}"
        self.cache = cache
        self.ansible = ansible
        self.images: list[str] = []
        self.binaries = Path()
        self.runtime = Path()
        self.nodes = 2
        self.kwok = 0

    @property
    def _labels(self) -> Json:
        return {"node*": {"example.com/kind": "real"}, "node2": {"example.com/rack": "b"}}

    def run(self, state: str = "present", check: bool = False, **more: Any) -> PlaybookResult:
        return self.ansible.run_playbook(
            "sandbox",
            inventory=NO_INVENTORY,
            check=check,
            diff=True,
            extra_vars={
                "sandbox_name": self.name,
                "sandbox_state": state,
                "sandbox_nodes": self.nodes,
                "sandbox_kwok_nodes": self.kwok,
                "sandbox_images_build": False,
                "sandbox_image_archives": self.images,
                "sandbox_node_labels": self._labels,
                **more,
            },
        )

    def module(self, state: str = "present", check: bool = False) -> Json:
        """What the role does last, with less of Ansible around it."""
        options = {
            "name": self.name,
            "state": state,
            "nodes": self.nodes,
            "kwok_nodes": self.kwok,
            "node_labels": self._labels,
            "image_archives": self.images,
            "binaries": str(self.binaries),
            "runtime": str(self.runtime),
        }
        return self.ansible.run_module("sandbox", options, check=check)

    def kube(self) -> Kube:
        return Kube(str(self.kubeconfig))

    @property
    def directory(self) -> Path:
        return self.cache / "sandbox" / self.name

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    def traces(self) -> list[str]:
        """Everything on this machine that only a running sandbox has."""
        found = [
            f"process {p.pid} {p.argv}"
            for p in processes.everything()
            if self.name in " ".join(p.argv) and str(self.directory.parent) in " ".join(p.argv)
        ]
        found += [
            f"mount {line}" for line in Path("/proc/self/mountinfo").read_text().splitlines() if self.name in line
        ]
        found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/{cgroup_name(self.name)}")]
        if Path(f"/sys/class/net/{interface_name(self.name)}").exists():
            found.append(f"interface {interface_name(self.name)}")
        found += [line for line in output("ip", "route").splitlines() if interface_name(self.name) in line]
        if run_directory(self.name).exists():
            found.append(str(run_directory(self.name)))
        return found

    def namespaces(self) -> set[str]:
        """The kernel's numbers of the namespaces that its processes, and those of its Pods, are in and we are not."""
        found: set[str] = set()
        for control_group in Path("/sys/fs/cgroup").glob(f"**/{cgroup_name(self.name)}"):
            for members in control_group.rglob("cgroup.procs"):
                for pid in members.read_text().split():
                    found |= _namespaces_of(pid)
        return found - _namespaces_of("self")


def _namespaces_of(pid: str) -> set[str]:
    numbers = set()
    for kind in ("cgroup", "ipc", "mnt", "net", "pid", "uts"):
        # It may have ended just now.
        with contextlib.suppress(OSError):
            numbers.add(os.readlink(f"/proc/{pid}/ns/{kind}").partition("[")[2].rstrip("]"))
    return numbers


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
