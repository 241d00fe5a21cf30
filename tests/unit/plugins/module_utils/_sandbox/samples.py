# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings and processes to test with."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.addresses import AddressPlan
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.processes import Process
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.settings import Settings


def settings(**changes: Any) -> Settings:
    values: dict[str, Any] = {
        "name": "demo",
        "directory": Path("/state"),
        "cache": Path("/cache"),
        "binaries": Path("/cache/bin"),
        "runtime": Path("/cache/runtime/containerd-1.6"),
        "kubeconfig": Path("/state/kubeconfig"),
        "addresses": AddressPlan(IPv4Network("10.120.0.0/16")),
    }
    return Settings(**{**values, **changes})


def process(pid: int = 100, *argv: str, parent: int = 1) -> Process:
    return Process(pid, parent, pid * 10, argv)
