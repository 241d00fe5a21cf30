# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Whether a configuration may be put into place: what slurmctld says of it, and which jobs would end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import config_change, node_needs, versions
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.config_change import SLURM_CONF, Change
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import NOTHING_CHANGED, OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.lint import lint, node_lines
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm_config_live import ConfigPod, Seen
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm_config_nodes import Nodes

CANCEL = "cancel"


def require_release(noted: str, running: str, wanted: str | None, *, may_change: bool) -> None:
    """Raise OperationError (OtherRelease) for files of another release of Slurm than those that are there.

    ``noted`` is the release of the files that are there, and ``running`` slurmctld's; empty if not known.
    """
    there = noted or running
    if not wanted or not there:
        return
    of, old = versions.parse_version(wanted), versions.parse_version(there)
    if of != old and not may_change:
        raise OperationError(
            f"The cluster's files are for Slurm {old}, and these are for {of}.",
            reason="OtherRelease",
            hint=f"{NOTHING_CHANGED} To go to another release, run the playbook upgrade.",
        )
    if running and of.pair > versions.parse_version(running).pair:
        raise OperationError(
            f"These files are for Slurm {of}, and slurmctld is {running}.",
            reason="OtherRelease",
            hint=f"{NOTHING_CHANGED} Upgrade slurmctld first (playbook upgrade).",
        )


class Judge:
    """The old files, the new ones, and what slurmctld has now."""

    def __init__(self, run: Run, pod: ConfigPod, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        self._run = run
        self._pod = pod
        self._old = old
        self._new = new
        self._nodes: frozenset[str] = frozenset()
        self._version = ""

    def require_possible(self, found: Iterable[Change]) -> None:
        """Raise OperationError (NotPossible) for what a running cluster cannot change."""
        if never := config_change.impossible(found):
            raise OperationError(
                f"This cannot be changed in a running cluster: {'; '.join(never)}.",
                reason="NotPossible",
                hint=f"{NOTHING_CHANGED} Take the cluster away and make it anew for that.",
            )

    def losers(self, seen: Seen | None, why_not: str) -> dict[int, str]:
        """The jobs that may end, {number: what it loses}. Raises OperationError if they may not, or are not known."""
        cancels = self._run.params["on_running_jobs"] == CANCEL
        going = config_change.gone(self._old, self._new)
        if seen is None or not seen.answers:
            if going and not cancels:
                raise OperationError(
                    f"Partitions, nodes or GRES go, and whether jobs need them cannot be told: {why_not}.",
                    reason="Unreadable",
                    hint=f"{NOTHING_CHANGED} Mend slurmctld first; or set on_running_jobs to cancel.",
                )
            return {}
        # Also what an interrupted run has taken away already, and partitions that somebody made without a file.
        extra = seen.partitions - config_change.partitions(self._new[SLURM_CONF])
        self._version = seen.version
        self._nodes, jobs = self._pod.use()
        found = config_change.victims(replace(going, partitions=going.partitions | extra), jobs)
        if found and not cancels:
            raise OperationError(
                f"slurmctld would end {len(found)} of its jobs: {'; '.join(list(found.values())[:10])}.",
                reason="JobsRunning",
                remaining=list(found.values()),
                hint=f"{NOTHING_CHANGED} Wait for the jobs or move them; or set on_running_jobs to cancel.",
            )
        return found

    def require_programs(self) -> None:
        """Raise OperationError (Refused) for a new prolog or epilog that nodes have not: each would drain at a job."""
        new = node_needs.programs(self._new[SLURM_CONF]) - node_needs.programs(self._old.get(SLURM_CONF, ""))
        absent = sorted(path for path in new if not path.startswith("/") and path not in self._new)
        lacking = Nodes(self._run).lacking(sorted(path for path in new if path.startswith("/")))
        wrong = [f"{path} is no file of the configuration" for path in absent]
        wrong += [f"{path} is not there in Pod {pod}" for pod, paths in lacking.items() for path in paths]
        if wrong:
            raise OperationError(
                f"Nodes would be drained by the first job, for want of a prolog or epilog: {'; '.join(wrong)}.",
                reason="Refused",
                hint=f"{NOTHING_CHANGED} Correct the variables, or the image of the nodes.",
            )

    def require_plugins(self) -> None:
        """Raise OperationError (Refused) for new plugins that no node has: daemons start without, and jobs fail."""
        new = node_needs.plugins(self._new[SLURM_CONF]) - node_needs.plugins(self._old.get(SLURM_CONF, ""))
        if not new:
            return
        there = Nodes(self._run).plugin_files(self._pod.plugin_directory())
        lacking = {
            pod: sorted(plugin for plugin in new if not node_needs.has_plugin(files, plugin))
            for pod, files in there.items()
        }
        text = "; ".join(f"{', '.join(names)} is not there in Pod {pod}" for pod, names in lacking.items() if names)
        if text and all(lacking.values()):
            raise OperationError(
                f"Nodes do not have a plugin: {text}.",
                reason="Refused",
                hint=f"{NOTHING_CHANGED} Correct the variables, or the image of the nodes.",
            )
        if text:
            self._run.warn(f"Some nodes do not have a plugin: {text}.")

    def lint(self) -> None:
        """Have a second slurmctld judge the new files; raises OperationError (Refused) with its words."""
        text = self._new[SLURM_CONF]
        dynamic = self._nodes - config_change.nodes(self._old.get(SLURM_CONF, ""))
        limit, total = config_change.node_limit(text), len(dynamic | config_change.nodes(text))
        if limit is not None and total > limit:
            # The second slurmctld has no saved nodes and cannot tell.
            raise OperationError(
                f"slurmctld would not start with MaxNodeCount={limit}: there are {total} nodes.",
                reason="Refused",
                hint=f"{NOTHING_CHANGED} Set a larger one.",
            )
        verdict = lint(
            self._run.kubernetes,
            self._run.params["namespace"],
            self._pod.pod,
            self._pod.shown(self._new),
            nodes=node_lines(text, dynamic, {}, yaml=versions.parse_version(self._version).at_least(25, 5)),
            removed=self._pod.shown(config_change.without(self._old, self._new)),
        )
        verdict.require("these files", hint=f"{NOTHING_CHANGED} Correct the variables.")
