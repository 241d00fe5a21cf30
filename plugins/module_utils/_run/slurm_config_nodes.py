# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What nodes make of new files: whether slurmd of a few has got them, and whether it can work with them.

slurmctld judges neither the plugins that slurmd alone loads (ProctrackType, CgroupPlugin, plugstack.conf) nor paths on
nodes. A slurmd that does not take its new files goes on with the old ones, says so, and would not start again.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.trouble import Seen
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import rollout
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.exec import exec_in_pod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import POD
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.lint import words_of
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.live_files import LOG_CONTAINER
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.pod_look import hashes
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.wait import wait_until

PUSHED_WITHIN = 15.0  # seconds; slurmctld sends its files to the nodes within one
ANSWERED_WITHIN = 0.5  # seconds after which a slurmd that has got files has begun to try them
LINES = 20  # of a log: one attempt
_LACKING = 'for path; do [ -e "$path" ] || echo "$path"; done'
_CACHE = "cd /run/slurm/conf && sha256sum *"
_BEGUN, _REFUSED = "Triggering reconfigure", "reconfigure failed"
_OUTCOME = re.compile(rf"{_BEGUN}|{_REFUSED}|Relinquishing control to new slurmd")
_NOISE = re.compile("GPU detection")  # what slurmd says on any machine without one


class Nodes:
    """A few nodes of one cluster: the first of its worker Pods that are ready, one in the middle, the last."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._namespace: str = run.params["namespace"]
        self._cluster: str = run.params["name"]

    def _sample(self) -> list[str]:
        labels = f"app.kubernetes.io/name=slurmd,app.kubernetes.io/instance={self._cluster}"
        pods = self._run.kubernetes.list(POD, self._namespace, labels=labels, cached=True)
        ready = sorted(pod["metadata"]["name"] for pod in pods if not rollout.missing(pod))
        return sorted({ready[0], ready[len(ready) // 2], ready[-1]}) if ready else []

    def lacking(self, paths: Sequence[str]) -> dict[str, list[str]]:
        """{Pod: those of the paths that are not there}."""
        found = {pod: self._run_in(pod, ["sh", "-c", _LACKING, "look", *paths]) for pod in self._sample() if paths}
        return {pod: said.splitlines() for pod, said in found.items() if said}

    def plugin_files(self, directory: str) -> dict[str, set[str]]:
        """{Pod: the files in its directory of plugins}, without Pods that have no such directory."""
        found = {pod: self._run_in(pod, ["ls", directory]) for pod in self._sample() if directory}
        return {pod: set(said.split()) for pod, said in found.items() if said}

    def require_taken(self, wanted: Mapping[str, str], begun: float) -> None:
        """Wait until they have got the files and tried them; ``wanted``: {file: hash}, ``begun``: of the reconfigure.

        Raises OperationError (Refused) with slurmd's words when it took them on none; warns of single ones.
        """
        pods = self._sample()
        if not pods:
            return
        self._await_files(pods, wanted)
        refused = {pod: said for pod in pods if (said := self._refusal(pod, begun))}
        if not refused:
            return
        text = "; ".join(f"{pod}: {'; '.join(said)}" for pod, said in refused.items())
        if len(refused) == len(pods):
            raise OperationError(f"slurmd does not take the new files ({text}).", reason="Refused")
        self._run.warn(f"slurmd does not take the new files ({text}). There it would not start again.")

    def _await_files(self, pods: Sequence[str], wanted: Mapping[str, str]) -> None:
        def behind(pod: str) -> str:
            try:
                cached = self._cached(pod)
            except OperationError:
                return ""  # a Pod that has just gone
            other = sorted(name for name, value in cached.items() if wanted.get(name, value) != value)
            return f"{pod} ({', '.join(other)})" if other else ""

        try:
            self._wait(lambda: [found for found in map(behind, pods) if found], "Sending the files to the nodes")
        except OperationError as error:
            self._run.warn(f"Nodes work with old files: {', '.join(error.remaining)}. They ask again when they start.")

    def _refusal(self, pod: str, begun: float) -> Sequence[str]:
        """What a slurmd said that tried new files and went on with the old ones; nothing if it took them."""
        said: list[str] = []

        def tries() -> list[str]:
            elapsed = time.monotonic() - begun
            try:
                text = self._run.kubernetes.log_tail(
                    self._namespace, pod, LOG_CONTAINER, lines=LINES, seconds=math.ceil(elapsed) + 1
                )
            except OperationError:
                return []  # its log cannot be read: what it says is not known
            said[:] = text.splitlines()
            outcomes = _OUTCOME.findall(text)
            undecided = outcomes[-1] == _BEGUN if outcomes else elapsed < ANSWERED_WITHIN
            return [f"slurmd in Pod {pod} tries them"] if undecided else []

        try:
            self._wait(tries, "Trying the files on the nodes")
        except OperationError as error:
            self._run.warn(error.msg)
            return ()
        outcomes = _OUTCOME.findall("\n".join(said))
        if not outcomes or outcomes[-1] != _REFUSED:
            return ()
        return words_of(said, _NOISE) or [_REFUSED]

    def _wait(self, left: Callable[[], list[str]], what: str) -> None:
        wait_until(lambda: Seen(left()), what, timeout=PUSHED_WITHIN, interval=1.0, progress=self._run.progress)

    def _cached(self, pod: str) -> Mapping[str, str]:
        """{file: hash} of what a worker's slurmd works with."""
        return hashes(self._run_in(pod, ["sh", "-c", _CACHE]))

    def _run_in(self, pod: str, command: Sequence[str]) -> str:
        ended = exec_in_pod(
            self._run.kubernetes, self._namespace, pod, command, container="slurmd", timeout=20.0, reads=True
        )
        return ended.stdout
