# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The configuration that a cluster has: its ConfigMap, the files in the controller's Pod, and what slurmctld has read.

slurmctld reads its files when it starts, and a reconfigure starts a new process. So it works with the files of its Pod
if, and only if, it is younger than they are.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import config_change, names
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import CLUSTER
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import (
    CONFIG_MAP,
    NAMESPACE,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.live_files import ControllerPod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.pod_look import (
    CLOCKS,
    PROCESSES,
    hashes,
    is_younger,
    oldest,
    processes,
    sections,
)

# On the ConfigMap: daemons that are still to be restarted for it. A run that was interrupted leaves it to the next.
RESTART = f"{names.DOMAIN}/restart"
RELEASE = f"{names.DOMAIN}/release"
_LOOK = rf"""
cd /etc/slurm || exit 1
printf '=== hashes\n'; for file in *; do [ ! -f "$file" ] || sha256sum "$file"; done
printf '=== times\n'; stat -c %.3Y ..data; {CLOCKS}
{PROCESSES}
printf '=== version\n'; slurmctld -V
printf '=== answer\n'; timeout 10 scontrol ping
printf '=== partitions\n'
timeout 20 scontrol -o --all show partitions | sed -n 's/^PartitionName=\([^ ]*\).*/\1/p'
exit 0
"""
_USE = r"""
printf '=== nodes\n'; scontrol -o --all show nodes | sed -n 's/^NodeName=\([^ ]*\).*/\1/p'
printf '=== jobs\n'; squeue -h -a -o "$1" || exit 1
"""
_END = r"""
for process in /proc/[0-9]*; do
  case $(cat "$process/comm" 2>/dev/null) in slurmctld*) kill "${process#/proc/}" || exit 1 ;; esac
done
"""

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look into the controller's Pod shows: hashes of its files, and of slurmctld whether it began after they
    came (``taken``), and when (``started``, in ticks since the machine did; 0: there is none)."""

    hashes: Mapping[str, str]
    taken: bool
    started: int
    answers: bool
    version: str
    partitions: frozenset[str]


class ConfigPod(ControllerPod):
    """The Pod of slurmctld and the ConfigMap with its configuration (docs/decisions/050)."""

    def __init__(self, kubernetes: KubernetesClient, namespace: str, name: str) -> None:
        super().__init__(kubernetes, namespace, name, "config")
        self._covered: frozenset[str] | None = None

    @property
    def target(self) -> str:
        """The ConfigMap, for people."""
        return f"ConfigMap {self._namespace}/{self.config_map}"

    def require_ours(self, live: Raw | None) -> None:
        """Raise OperationError (NameClash) if somebody else made the ConfigMap."""
        if live is None or (live["metadata"].get("labels") or {}).get(CLUSTER) == self._cluster:
            return
        makers = dict.fromkeys(str(entry.get("manager")) for entry in live["metadata"].get("managedFields") or ())
        raise OperationError(
            f"{self.target} exists and was made by {', '.join(makers) or 'somebody else'}, so it is not touched.",
            reason="NameClash",
            hint=f"Remove it, or label it {CLUSTER}={self._cluster}.",
        )

    def create_namespace(self) -> None:
        """Make the namespace; role cluster adds its labels."""
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}
        self._kubernetes.apply(manifest, None, resource=NAMESPACE)

    def shown(self, files: Mapping[str, str]) -> dict[str, str]:
        """The files that the Pod shows: module topology's are over those of the same name."""
        if self._covered is None and any(name.startswith("topology.") for name in files):
            over = self._kubernetes.get(CONFIG_MAP, self._namespace, f"{self._cluster}-topology") or {}
            self._covered = frozenset(over.get("data") or {})
        return {name: text for name, text in files.items() if name not in (self._covered or ())}

    def wanted(self, files: Mapping[str, str], removed: Mapping[str, str]) -> dict[str, str]:
        """{file of the Pod: the hash that it should have}, empty for one that is to be gone."""
        gone = dict.fromkeys(self.shown(removed), "")
        return gone | {name: config_change.sha256(text) for name, text in self.shown(files).items()}

    def lacks(self, files: Mapping[str, str], seen: Seen, removed: Mapping[str, str]) -> list[str]:
        """Files of the Pod that are not as they should be, or still there though removed."""
        wanted = self.wanted(files, removed)
        return sorted(name for name, value in wanted.items() if seen.hashes.get(name, "") != value)

    # --- what slurmctld has ---------------------------------------------------------------------------------------

    def look(self) -> Seen:
        """Look into the Pod, with one call. Raises OperationError if no command can be run there."""
        ended = self.run(["sh", "-c", _LOOK, "look", "slurmctld"])
        shown = sections(ended.stdout)
        version = shown.get("version", "").split()
        started = oldest(processes(shown.get("processes", "")))
        return Seen(
            hashes=hashes(shown.get("hashes", "")),
            taken=is_younger(started, shown.get("times", "").split()),
            started=started,
            answers=" UP" in shown.get("answer", "").upper(),
            version=version[-1] if version else "",
            partitions=frozenset(shown.get("partitions", "").split()),
        )

    def use(self) -> tuple[frozenset[str], list[config_change.Queued]]:
        """The nodes that slurmctld knows, and the jobs that wait or run."""
        ended = self.run(["sh", "-c", _USE, "use", config_change.QUEUE_FORMAT])
        if ended.rc:
            raise OperationError(
                f"slurmctld does not tell its jobs: {ended.stderr.strip() or 'no answer'}.",
                reason="SlurmUnreachable",
                hint="Nothing was changed. Look at the log of the controller's Pod.",
            )
        shown = sections(ended.stdout)
        return frozenset(shown.get("nodes", "").split()), config_change.parse_queue(shown.get("jobs", ""))

    def plugin_directory(self) -> str:
        """Where Slurm's plugins are; empty if that is not told."""
        return self.run(["sh", "-c", "scontrol show config | sed -n 's/^PluginDir *= *//p'"]).stdout.strip()

    def bring(self, files: Mapping[str, str]) -> None:
        """Have the kubelet bring the files into the Pod now."""
        digest = config_change.sha256("".join(map(str, sorted(files.items()))))
        self.nudge(f"{digest[:16]}-{time.time_ns()}")

    def reconfigure(self) -> None:
        """Make slurmctld read its files; raises OperationError (Refused) when it says that it does not."""
        ended = self.run(["scontrol", "reconfigure"], reads=False)
        if ended.rc:
            said = (ended.stderr or ended.stdout).strip() or f"exit status {ended.rc}"
            raise OperationError(f"slurmctld does not take the new files: {said}.", reason="Refused")

    def cancel(self, jobs: list[int]) -> None:
        """End these jobs."""
        ended = self.run(["scancel", *map(str, jobs)], reads=False)
        if ended.rc:
            raise OperationError(f"scancel: {ended.stderr.strip()}", reason="Refused", hint="Nothing else was changed.")

    # --- restarts -------------------------------------------------------------------------------------------------

    def end_slurmctld(self) -> None:
        """End slurmctld as its container would be ended: it saves its state, and its supervisor starts it anew.

        One that waits first: it is to wait again when the other ends.
        """
        for pod in (*self._standby(), self.pod):
            ended = self.run(["sh", "-c", _END], pod=pod, reads=False)
            if ended.rc:
                raise OperationError(
                    f"slurmctld in Pod {pod} cannot be ended: {ended.stderr.strip()}.", reason="ExecFailed"
                )

    def note_restarts(self, daemons: Sequence[str]) -> None:
        """Note on the ConfigMap which daemons are still to be restarted for it."""
        change = {"metadata": {"annotations": {RESTART: ",".join(daemons) or None}}}
        self._kubernetes.patch(CONFIG_MAP, self._namespace, self.config_map, change)


def mounts_whole(pod: Raw, config_map: str) -> bool:
    """Whether every file of the ConfigMap is in the Pod, also those that it does not have yet."""
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if (source.get("configMap") or {}).get("name") == config_map:
                return not source["configMap"].get("items")
    return False
