# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The Pods of slurmctld: of two, one serves and the other waits for its end (docs/decisions/056)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import names
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.pods import is_ready, runs
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import POD
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.lint import CONTAINER

Pod = Mapping[str, Any]


def controller_pods(kubernetes: KubernetesClient, namespace: str, cluster: str) -> list[Pod]:
    """The Pods of slurmctld that there are; the first is the one in which commands are run.

    Slurm's own order, in which the first serves whenever it can; one that cannot be reached comes behind.
    """
    found = [kubernetes.get(POD, namespace, name) for name in names.controller_pods(cluster)]
    return sorted((pod for pod in found if pod is not None), key=_distance)


def command_pod(kubernetes: KubernetesClient, namespace: str, cluster: str) -> str:
    """The name of the Pod in which commands are run; if there is none, of the one that should be there."""
    found = controller_pods(kubernetes, namespace, cluster)
    return str(found[0]["metadata"]["name"]) if found else names.controller_pods(cluster)[0]


def can_be_asked(pod: Pod) -> bool:
    """Whether a command in the Pod is likely to be answered: that of a lost Node is not Ready, and runs."""
    return _distance(pod) == 0


def _distance(pod: Pod) -> int:
    if pod["metadata"].get("deletionTimestamp") or not runs(pod, CONTAINER):
        return 2
    return 0 if is_ready(pod) else 1
