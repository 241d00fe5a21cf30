# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The clock of a rollout: which nodes take too long in their phase, which will never come back, and why."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.trouble import Trouble
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import EVENT
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.trouble import MOST_LOOKED_AT, pod_troubles
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.rollout import (
    BACK,
    DONE,
    DRAINING,
    RETURNING,
    Worker,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.workers import Workers

INSPECTION = 2.0  # seconds between two close looks at a Pod
FINAL = 20.0  # seconds that what waiting will not mend is given all the same: slurmd may be registering


@dataclass(slots=True)
class Stay:
    """How long a node has been in its phase, and the trouble that its Pod has had, since when."""

    phase: str
    since: float
    inspected: float = float("-inf")
    troubles: dict[str, tuple[Trouble, float]] = field(default_factory=dict)


class Returning:
    """Looks at the same nodes again and again. ``clock`` is there for tests."""

    def __init__(self, client: KubernetesClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._stays: dict[str, Stay] = {}
        self._came_back: dict[str, float] = {}

    def look(self, workers: Workers) -> None:
        """Take note of every node's phase, and look closely at Pods that do not become ready."""
        now = self._clock()
        looked_at = 0
        there = {worker.node for worker in workers.picture.workers}
        self._stays = {node: stay for node, stay in self._stays.items() if node in there}
        for worker in workers.picture.workers:
            phase = workers.picture.phase(worker)
            stay = self._stays.get(worker.node)
            if stay is None or stay.phase != phase:
                if stay is not None and phase == DONE and stay.phase in (RETURNING, BACK):
                    self._came_back[worker.node] = now
                stay = self._stays[worker.node] = Stay(phase, now)
            is_unready = phase == RETURNING and worker.updated and not worker.deleting
            if is_unready and looked_at < MOST_LOOKED_AT and now - stay.inspected >= INSPECTION:
                looked_at += 1
                stay.inspected = now
                found = self._troubles(worker, workers)
                stay.troubles = {item.key: (item, stay.troubles.get(item.key, (item, now))[1]) for item in found}

    def draining_for(self, seconds: float) -> frozenset[str]:
        """The nodes whose jobs have had so long to end."""
        return frozenset(
            node for node, stay in self._stays.items() if stay.phase == DRAINING and self._is(stay, seconds)
        )

    def failed(self, seconds: float) -> frozenset[str]:
        """The nodes that did not come back in so long, or that never will."""
        now = self._clock()
        return frozenset(
            node
            for node, stay in self._stays.items()
            if stay.phase == RETURNING
            and (self._is(stay, seconds) or any(now - since >= item.grace for item, since in stay.troubles.values()))
        )

    def came_back_within(self, seconds: float) -> frozenset[str]:
        """The nodes that came back less than so long ago."""
        now = self._clock()
        return frozenset(node for node, since in self._came_back.items() if now - since < seconds)

    def why(self, worker: Worker) -> tuple[str, str]:
        """What keeps a node from coming back, and what to do about it."""
        stay = self._stays.get(worker.node)
        trouble = next((item for item, _since in stay.troubles.values()), None) if stay else None
        if trouble is not None:
            return trouble.text, trouble.hint
        if worker.deleting:
            return "its old Pod has not ended", "See why: kubectl describe pod; a finalizer or an unreachable Node."
        return worker.lacks or "has no Pod", ""

    def _is(self, stay: Stay, seconds: float) -> bool:
        return self._clock() - stay.since >= seconds

    def _troubles(self, worker: Worker, workers: Workers) -> Sequence[Trouble]:
        if worker.final:
            return [Trouble(worker.lacks, worker.lacks, FINAL, hint="Compare the template with what the machine has.")]
        pod = workers.pods.get(worker.pod)
        if pod is None:
            return ()
        events = self._events(str(pod["metadata"]["uid"]), str(pod["metadata"]["namespace"]))
        return pod_troubles(pod, events, self._log)

    def _events(self, uid: str, namespace: str) -> Sequence[Any]:
        try:
            return self._client.list(EVENT, namespace, fields=f"involvedObject.uid={uid}")
        except ApiError as error:
            if error.status != 403:
                raise
            return ()

    def _log(self, pod: Any, container: str) -> str:
        try:
            return self._client.log_tail(pod["metadata"]["namespace"], pod["metadata"]["name"], container)
        except ApiError:
            return ""
