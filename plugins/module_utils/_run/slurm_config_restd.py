# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""slurmrestd, which reads slurm.conf when it starts and takes no part in a reconfigure: its Deployment and its Pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import names
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.config_change import (
    SLURM_CONF,
    SLURMRESTD,
    sha256,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import rollout
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.exec import exec_in_pod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import DEPLOYMENT, POD
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.pod_look import (
    CLOCKS,
    PROCESSES,
    hashes,
    is_younger,
    oldest,
    processes,
    sections,
)

_LOOK = rf"""
cd /etc/slurm || exit 1
printf '=== hashes\n'; sha256sum {SLURM_CONF}
printf '=== times\n'; stat -c %.3Y ..data; {CLOCKS}
{PROCESSES}
"""


class Restd:
    """The slurmrestd of one cluster."""

    def __init__(self, kubernetes: KubernetesClient, namespace: str, cluster: str) -> None:
        self._kubernetes = kubernetes
        self._namespace = namespace
        self._name = f"{cluster}-restapi"

    def _read(self) -> dict[str, Any] | None:
        return self._kubernetes.get(DEPLOYMENT, self._namespace, self._name)

    def exists(self) -> bool:
        """Whether there is a slurmrestd."""
        return self._read() is not None

    def has_begun_with(self, text: str) -> bool:
        """Whether each Pod has this slurm.conf and a slurmrestd that is younger; False if that is not known."""
        live = self._read()
        if live is None or rollout.missing(live):
            return False
        chosen = live["spec"]["selector"].get("matchLabels") or {}
        labels = ",".join(f"{key}={value}" for key, value in sorted(chosen.items()))
        pods = self._kubernetes.list(POD, self._namespace, labels=labels) if labels else []
        return bool(pods) and all(self._pod_has_begun_with(pod["metadata"]["name"], sha256(text)) for pod in pods)

    def _pod_has_begun_with(self, pod: str, wanted: str) -> bool:
        look = ["sh", "-c", _LOOK, "look", SLURMRESTD]
        try:
            ended = exec_in_pod(
                self._kubernetes, self._namespace, pod, look, container=SLURMRESTD, timeout=20.0, reads=True
            )
        except OperationError:
            return False
        shown = sections(ended.stdout)
        started = oldest(processes(shown.get("processes", "")))
        has_file = hashes(shown.get("hashes", "")).get(SLURM_CONF) == wanted
        return has_file and is_younger(started, shown.get("times", "").split())

    def roll(self, files: Mapping[str, str]) -> Callable[[], str]:
        """Replace the Pods one after the other; returns what tells what that still lacks."""
        value = sha256(files[SLURM_CONF])[:16]
        change = {"spec": {"template": {"metadata": {"annotations": {names.RESTARTED: value}}}}}
        self._kubernetes.patch(DEPLOYMENT, self._namespace, self._name, change)

        def lacks() -> str:
            live = self._read()
            return rollout.missing(live) if live else ""

        return lacks
