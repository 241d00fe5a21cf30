# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What one sandbox shall be, and the names and places that follow from its name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

from .addresses import MAX_NODES, AddressPlan

PAUSE_IMAGE = "localhost/slurm-ops/pause:dev"
PROVISIONER = "slurm-ops.kubernetes/sandbox"
KWOK_ANNOTATION = "kwok.x-k8s.io/node"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?")
_INTERFACE_LIMIT = 15
_HEARTBEATS_PER_SECOND = 20


def check_name(name: str) -> None:
    """Refuse names that cannot be a directory, part of a cgroup's name and a label alike."""
    if not _NAME.fullmatch(name):
        raise OperationError(
            f"sandbox name {name!r} cannot be used: up to 32 lower case letters, digits and inner hyphens are allowed.",
            reason="InvalidName",
        )


def interface_name(name: str) -> str:
    """The sandbox's interface on the machine; a name too long for Linux is replaced by its hash."""
    interface = f"so-{name}"
    if len(interface) > _INTERFACE_LIMIT:
        interface = f"so-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return interface


def run_directory(name: str) -> Path:
    """Sockets and configuration of a running sandbox: short, as a socket's path may have 107 characters at most."""
    return Path(f"/run/slurm-ops-{name}")


def cgroup_name(name: str) -> str:
    return f"slurm-ops-{name}"


@dataclass(frozen=True, slots=True)
class KwokNode:
    """What a simulated Node claims to have."""

    capacity: Mapping[str, str] = field(default_factory=lambda: {"cpu": "64", "memory": "512Gi", "pods": "110"})


@dataclass(frozen=True, slots=True)
class Settings:
    """The wanted sandbox. ``binaries`` holds our own programs, ``runtime`` is the root of the unpacked containerd.

    ``image_archives`` None means those that it had.
    """

    name: str
    directory: Path
    cache: Path
    binaries: Path
    runtime: Path
    kubeconfig: Path
    addresses: AddressPlan
    nodes: int = 2
    node_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    kwok_nodes: int = 0
    kwok_node: KwokNode = field(default_factory=KwokNode)
    image_archives: tuple[Path, ...] | None = None
    wait_timeout: float = 120.0
    grace_period: float = 10.0

    def __post_init__(self) -> None:
        check_name(self.name)
        if not 1 <= self.nodes <= MAX_NODES:
            raise OperationError(f"nodes is {self.nodes}: 1 to {MAX_NODES} are possible.", reason="InvalidNodes")
        if self.kwok_nodes < 0:
            raise OperationError("kwok_nodes is less than 0.", reason="InvalidNodes")

    @property
    def interface(self) -> str:
        return interface_name(self.name)

    @property
    def run(self) -> Path:
        return run_directory(self.name)

    @property
    def cgroup(self) -> str:
        return cgroup_name(self.name)

    @property
    def pki(self) -> Path:
        return self.directory / "pki"

    @property
    def logs(self) -> Path:
        return self.directory / "log"

    @property
    def volumes(self) -> Path:
        return self.directory / "volumes"

    @property
    def archives_record(self) -> Path:
        """Which image archives the sandbox had when it was last made to run."""
        return self.directory / "image-archives.json"

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(node_name(number) for number in range(1, self.nodes + 1))

    @property
    def node_lease_seconds(self) -> int:
        """How long a Node counts as alive after it last said so, which it does four times as often.

        Kubernetes' own 40 s for as many Nodes as a small API server hears without effort; the heartbeats of 5,000 Nodes
        would be 500 writes a second, a core's work for nothing.
        """
        return max(40, 4 * self.kwok_nodes // _HEARTBEATS_PER_SECOND)

    def node_directory(self, node: str) -> Path:
        return self.directory / "nodes" / node

    def node_run(self, node: str) -> Path:
        return self.run / node

    def containerd_socket(self, node: str) -> Path:
        return self.node_run(node) / "containerd.sock"

    def labels_of(self, node: str) -> dict[str, str]:
        """Labels for one Node: all patterns that match its name, later ones win."""
        labels: dict[str, str] = {}
        for pattern, values in self.node_labels.items():
            if fnmatchcase(node, pattern):
                labels.update(values)
        return labels


def node_name(number: int) -> str:
    return f"node{number}"


def node_number(node: str) -> int:
    return int(node.removeprefix("node"))


def kwok_name(number: int) -> str:
    """Simulated Nodes have names of one length, so that hostlists of them are short."""
    return f"kwok-{number:05d}"
