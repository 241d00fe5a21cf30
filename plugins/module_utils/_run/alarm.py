# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What wakes a resident reconciliation: a Pod or Node that changed, a Slurm node that changed, or time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.kubernetes_objects import kubernetes_node, pod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.paths import Resource
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import KUBERNETES_NODE, POD
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.transport import ConnectionFailed
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.watch import SYNC, Watch

AGAIN = 2.0  # seconds until a watch that failed for good is begun anew


class Alarm:
    """Watches in the background; ``wait`` returns when something changed, or when it is time to look anyway."""

    def __init__(self, kubernetes: KubernetesClient, namespace: str, labels: str, duration: float) -> None:
        self._kubernetes = kubernetes
        self._rang = threading.Event()
        self._end = time.monotonic() + duration
        for arguments in ((POD, namespace, labels, pod), (KUBERNETES_NODE, None, "", kubernetes_node)):
            threading.Thread(target=self._watch, args=arguments, daemon=True).start()

    def wait(self, slurm_changed: Callable[[], bool], poll: float, interval: float) -> None:
        """Sleep until there is reason for a pass: at most ``interval`` seconds, asking Slurm every ``poll`` seconds.

        Raises what ``slurm_changed`` raises when Slurm cannot be asked.
        """
        until = min(time.monotonic() + interval, self._end)
        while (left := until - time.monotonic()) > 0:
            if self._rang.wait(min(poll, left)):
                # Changes come in swarms (a Node that goes takes its Pods along).
                time.sleep(min(0.3, max(0.0, left)))
                break
            if slurm_changed():
                break
        self._rang.clear()

    def _watch(self, resource: Resource, namespace: str | None, labels: str, parse: Callable[[Any], Any]) -> None:
        known: dict[str, Any] = {}
        while (left := self._end - time.monotonic()) > 0:
            try:
                for kind, found in Watch(self._kubernetes, resource, namespace, labels=labels, duration=left):
                    # A heartbeat changes nothing that we look at.
                    if _changed(known, kind, found, parse):
                        self._rang.set()
            except (OperationError, ConnectionFailed):
                time.sleep(min(AGAIN, max(0.0, left)))


def _changed(known: dict[str, Any], kind: str, found: Any, parse: Callable[[Any], Any]) -> bool:
    """Take an event into what is known, and say whether it made a difference."""
    if kind == SYNC:
        there = {item["metadata"]["name"]: parse(item) for item in found}
        differs = there != known
        known.clear()
        known.update(there)
        return differs
    name = found["metadata"]["name"]
    before = known.pop(name, None)
    if kind != "DELETED":
        known[name] = parse(found)
    return bool(before != known.get(name))
