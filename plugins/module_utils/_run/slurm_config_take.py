# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Have slurmctld work with new files, without a restart where that is enough; and go back to the old ones."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import config_change
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.config_change import SLURM_CONF
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.live_files import wait_while
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm_config_live import ConfigPod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm_config_nodes import Nodes

Files = Mapping[str, str]


class Takeover:
    """The steps of one change, and the way back."""

    def __init__(self, run: Run, pod: ConfigPod) -> None:
        self._run = run
        self._pod = pod
        self._nodes = Nodes(run)

    def write(self, files: Files, notes: Mapping[str, str], *, bring: bool) -> None:
        """Write the ConfigMap with these annotations, and bring its files into the Pod if there is one."""
        self._pod.apply(files, notes)
        if bring:
            self._pod.bring(files)

    def take(self, files: Files, removed: Files) -> float:
        """Wait for the files in the Pod, and have slurmctld read them. Raises OperationError if it does not.

        Returns when that began, for require_nodes.
        """

        def lacks() -> str:
            if other := self._pod.lacks(files, self._pod.look(), removed):
                return f"{', '.join(other)} in Pod {self._pod.pod} are not the new ones"
            return self._pod.standby_lacks(self._pod.wanted(files, removed))

        wait_while(self._run, lacks, "Bringing the files to the controller")
        begun = time.monotonic()
        self._pod.reconfigure()
        wait_while(self._run, lambda: self._not_taken(files), "Reading the new files")
        return begun

    def require_nodes(self, files: Files, begun: float) -> None:
        """Wait until a few nodes have the files too. Raises OperationError if slurmd takes them on none of these."""
        self._nodes.require_taken(self._pod.wanted(files, {}), begun)

    def restart(self, files: Files) -> None:
        """End slurmctld, which its supervisor starts anew; jobs go on meanwhile."""
        before = self._pod.look().started
        self._pod.end_slurmctld()
        wait_while(self._run, lambda: self._not_taken(files, before), "The restart of slurmctld")

    def _not_taken(self, files: Files, before: int = 0) -> str:
        """What keeps a slurmctld that began after ``before`` from working with the files; empty if nothing."""
        seen = self._pod.look()
        if not seen.answers:
            return "slurmctld does not answer"
        if seen.started <= before:
            return "slurmctld has not ended yet"
        if self._pod.lacks(files, seen, {}):
            return f"Pod {self._pod.pod} has other files"
        if not seen.taken:
            return "slurmctld still works with the old files"
        missing = config_change.partitions(files[SLURM_CONF]) - seen.partitions
        return f"slurmctld has no partition {', '.join(sorted(missing))}" if missing else ""

    def put_back(
        self, error: OperationError, old: Files | None, new: Files, notes: Mapping[str, str]
    ) -> OperationError:
        """Bring the old files back; the error that tells both what went wrong and how the cluster is left.

        ``old`` is None if they are not known; ``notes`` are their annotations.
        """
        failed = f"{error.msg.rstrip('.')}."
        if words := self._pod.words():
            failed += f" slurmctld says: {'; '.join(words)}."
        if old is None:
            return OperationError(
                f"{failed} The files that slurmctld had before are not known, so nothing was put back.",
                reason=error.reason,
                remaining=error.remaining,
                hint="Correct the variables and run again.",
            )
        try:
            serves = self._serves()
            self.write(old, notes, bring=True)
            if serves:
                self.take(old, config_change.without(new, old))
            else:
                wait_while(self._run, lambda: self._not_taken(old), "The start of slurmctld with the old files")
        except OperationError as second:
            return OperationError(
                f"{failed} Putting the old files back failed too: {second.msg}",
                reason="NotPutBack",
                hint=f"Look at the log of Pod {self._pod.pod}; the files are in {self._pod.target}.",
            )
        return OperationError(
            f"{failed} The old files are back.", reason=error.reason, remaining=error.remaining, hint=error.hint
        )

    def _serves(self) -> bool:
        try:
            return self._pod.look().answers
        except OperationError:
            return False
