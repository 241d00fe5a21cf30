# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module slurm_config's work: compare files, have them judged, put them into place, restart what must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import config_change, slurm_conf, versions
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.config_change import (
    SACKD,
    SLURM_CONF,
    SLURMCTLD,
    SLURMD,
    SLURMRESTD,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.manifests import PART_OF
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.lint import lint, node_lines
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.live_files import wait_while
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm_config_live import (
    RESTART,
    ConfigPod,
    Seen,
    is_running,
    mounts_whole,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm_config_take import Takeover

# Kinds of actions.
CREATE, CANCEL, WRITE, REMOVE, RECONFIGURE, START_ANEW = (
    "create", "cancel", "write", "remove", "reconfigure", "restart",
)  # fmt: skip
NOTHING_CHANGED = "Nothing was changed."
# Daemons that no module restarts in passing: jobs and sessions hang on them.
_BY_OTHERS = {
    SLURMD: "make the Pods of the NodeSets anew when their nodes are drained",
    SACKD: "make the login Pods anew when nobody is there",
}


class ConfigurationChange:
    """An Operation: see _run/module.py."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._params = run.params
        self._pod = ConfigPod(run.kubernetes, run.params["namespace"], run.params["name"])
        self._takeover = Takeover(run, self._pod)
        self._files = _checked(run.params["files"] or {}, wanted=run.params["state"] == "present")
        self._old: Mapping[str, str] | None = None
        self._changes: list[config_change.Change] = []
        self._needs: dict[str, list[str]] = {}
        self._pending_before: list[str] = []  # daemons that an earlier run has left to be restarted
        self._pending: list[str] = []
        self._has_pod = False
        self._in_set = False

    @property
    def _removed(self) -> Mapping[str, str]:
        return config_change.without(self._old or {}, self._files)

    # --- plan -----------------------------------------------------------------------------------------------------

    def plan(self) -> Sequence[Action]:
        """Compare, look into the controller's Pod, and have a second slurmctld judge files that are new."""
        live = self._pod.read_config_map()
        self._pod.require_ours(live)
        if self._params["state"] == "absent":
            return self._plan_absent(live)
        actions: list[Action] = []
        if live is None:
            actions += self._plan_namespace()
        else:
            self._old = live.get("data") or {}
            self._in_set = PART_OF in (live["metadata"].get("labels") or {})
            noted = (live["metadata"].get("annotations") or {}).get(RESTART, "")
            self._pending_before = [daemon for daemon in noted.split(",") if daemon]
        self._changes = config_change.changes(self._old or {}, self._files)
        self._needs = config_change.restarts(self._changes)
        seen, why_not = self._look()
        if self._changes and (seen or why_not):
            actions += self._judge(seen, why_not)
        self._pending = self._plan_restarts(can_take=bool(seen) and not why_not)
        actions += self._plan_write()
        if seen and not why_not:
            actions += self._plan_take(seen)
        elif why_not and self._changes:
            self._run.warn(f"The files are written and not read: {why_not}. slurmctld reads them when it starts anew.")
        return actions

    def _plan_absent(self, live: Mapping[str, Any] | None) -> list[Action]:
        if live is None:
            return []
        if self._pod.exists():
            # Said again by the removal itself: in check mode of the playbook destroy the controller is still there.
            self._run.warn(f"{self._pod.target} goes only when there is no slurmctld any more.")
        return [Action(REMOVE, self._pod.target, "as asked", before="present", after="absent")]

    def _plan_namespace(self) -> list[Action]:
        """The namespace, if it is to be made; the dry run also tells what the API server has against the files."""
        try:
            self._pod.apply(self._files, dry_run=True)
        except ApiError as error:
            namespace = error.missing_namespace()
            if not namespace or not self._params["create_namespace"]:
                raise
            return [Action(CREATE, f"Namespace {namespace}", "not there yet", after="present")]
        return []

    def _look(self) -> tuple[Seen | None, str]:
        """What slurmctld has, and why files cannot be brought to it now; neither if there is no slurmctld."""
        pod = self._pod.read_pod()
        self._has_pod = pod is not None
        if pod is None:
            return None, f"there is no Pod {self._pod.pod}" if self._pod.exists() else ""
        if not is_running(pod):
            return None, f"slurmctld does not run in Pod {self._pod.pod}"
        seen = self._pod.look()
        if not mounts_whole(pod, self._pod.config_map):
            return seen, f"Pod {self._pod.pod} does not show all of {self._pod.target}"
        wanted = self._params["slurm_version"]
        if wanted and versions.parse_version(wanted) != versions.parse_version(seen.version):
            return seen, f"they are for Slurm {wanted}, and slurmctld is {seen.version}"
        return seen, "" if seen.answers else f"slurmctld in Pod {self._pod.pod} does not answer"

    def _judge(self, seen: Seen | None, why_not: str) -> list[Action]:
        """Refuse what would end slurmctld or jobs. Returns what ends jobs because that was asked for."""
        if never := config_change.impossible(self._changes):
            raise OperationError(
                f"This cannot be changed in a running cluster: {'; '.join(never)}.",
                reason="NotPossible",
                hint=f"{NOTHING_CHANGED} Take the cluster away and make it anew for that.",
            )
        going = config_change.gone(self._old or {}, self._files)
        cancels = self._params["on_running_jobs"] == CANCEL
        if seen is None or not seen.answers:
            if going and not cancels:
                raise OperationError(
                    f"Partitions, nodes or GRES go, and whether jobs need them cannot be told: {why_not}.",
                    reason="Unreadable",
                    hint=f"{NOTHING_CHANGED} Mend slurmctld first; or set on_running_jobs to cancel.",
                )
            return []
        nodes, jobs = self._pod.use()
        losers = config_change.victims(going, jobs)
        if losers and not cancels:
            raise OperationError(
                f"slurmctld would end {len(losers)} of its jobs: {'; '.join(list(losers.values())[:10])}.",
                reason="JobsRunning",
                remaining=list(losers.values()),
                hint=f"{NOTHING_CHANGED} Wait for the jobs or move them; or set on_running_jobs to cancel.",
            )
        if not why_not:
            self._lint(nodes, yaml=versions.parse_version(seen.version).at_least(25, 5))
        if not losers:
            return []
        lost = list(losers.values())
        return [Action(CANCEL, f"{len(losers)} jobs", "what they need goes", before=lost, subject=list(losers))]

    def _lint(self, known: frozenset[str], *, yaml: bool) -> None:
        text = self._files[SLURM_CONF]
        dynamic = known - config_change.nodes((self._old or {}).get(SLURM_CONF, ""))
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
            self._params["namespace"],
            self._pod.pod,
            self._pod.shown(self._files),
            nodes=node_lines(text, dynamic, {}, yaml=yaml),
            removed=self._pod.shown(self._removed),
        )
        verdict.require("these files", hint=f"{NOTHING_CHANGED} Correct the variables.")

    def _plan_restarts(self, *, can_take: bool) -> list[str]:
        """Daemons that a reconfigure does not reach; a slurmctld that reads the files later starts anew anyway."""
        wanted = {*self._needs, *self._pending_before}
        found = [SLURMCTLD] if SLURMCTLD in wanted and can_take else []
        return [*found, SLURMRESTD] if SLURMRESTD in wanted and self._pod.has_restd() else found

    def _plan_write(self) -> list[Action]:
        """One action for each file; they are written by one call."""
        old = self._old or {}
        actions = []
        for name in sorted({change.file for change in self._changes}):
            inside = [change for change in self._changes if change.file == name]
            before, after = (config_change.without_secrets(files.get(name, "")) for files in (old, self._files))
            actions.append(
                Action(
                    WRITE if name in self._files else REMOVE,
                    f"{name} in {self._pod.target}",
                    config_change.summary(inside),
                    before={change.what: change.before for change in inside},
                    after={change.what: change.after for change in inside},
                    diff=(before, after),
                    stage=WRITE,
                )
            )
        if self._in_set and not actions:
            actions.append(Action(WRITE, self._pod.target, "to be pruned by no ApplySet", stage=WRITE))
        return actions

    def _plan_take(self, seen: Seen) -> list[Action]:
        """What makes the daemons work with the files."""
        behind = self._pod.lacks(self._files, seen, {})
        why = ""
        if self._changes:
            why = "to read the new files"
        elif behind:
            why = f"its Pod has other files: {', '.join(behind)}"
        elif not seen.taken:
            why = "it has not read the files since they came"
        actions = [Action(RECONFIGURE, SLURMCTLD, why)] if why else []
        if self._params["restart"] == "auto":
            actions += [Action(START_ANEW, daemon, self._why_anew(daemon)) for daemon in self._pending]
        return actions

    def _why_anew(self, daemon: str) -> str:
        keys = ", ".join(self._needs.get(daemon, ()))
        return f"a reconfigure does not bring it {keys}" if keys else "an earlier run has left it to do"

    # --- act ------------------------------------------------------------------------------------------------------

    def act(self, actions: Sequence[Action]) -> None:
        """Carry out one step. When slurmctld does not take it, the old files come back and the error says so."""
        kind, target = actions[0].kind, actions[0].target
        if kind == CREATE:
            self._pod.create_namespace()
        elif kind == CANCEL:
            self._pod.cancel(actions[0].subject)
        elif self._params["state"] == "absent":
            self._remove()
        elif kind in (WRITE, REMOVE):
            self._takeover.write(self._files, self._pending, bring=self._has_pod)
        elif target == SLURMCTLD:
            actions[0].done = True  # begun is done, so that it is put back
            self._make_it_read(kind)
        else:
            wait_while(self._run, self._pod.roll_restd(self._files), "The restart of slurmrestd")
            self._pod.note_restarts([])
        for action in actions:
            action.done = True

    def _remove(self) -> None:
        if self._pod.exists():
            raise OperationError(
                f"{self._pod.target} cannot go while there is a slurmctld, which would not start again without it.",
                reason="InUse",
                hint="Remove the controller first (playbook destroy).",
            )
        self._pod.remove()

    def _make_it_read(self, kind: str) -> None:
        try:
            if kind == START_ANEW:
                self._takeover.restart(self._files)
                self._pod.note_restarts([daemon for daemon in self._pending if daemon != SLURMCTLD])
                return
            if not self._changes:
                self._pod.bring(self._files)
            self._takeover.take(self._files, self._removed)
        except OperationError as error:
            known = self._old if self._changes else None
            told = self._takeover.put_back(error, known, self._files, self._pending_before)
            if told.reason != "NotPutBack" and known is not None:
                for action in self._run.actions:
                    action.done = action.done and action.kind == CANCEL
            raise told from error

    # --- wait and tell --------------------------------------------------------------------------------------------

    def wait(self) -> None:
        """See whether the nodes have got the files too, and say what is left to others."""
        if any(action.kind == RECONFIGURE and action.done for action in self._run.actions):
            self._takeover.check_nodes(self._files)
        for daemon, advice in _BY_OTHERS.items():
            if daemon in self._needs:
                keys = ", ".join(self._needs[daemon])
                self._run.warn(f"{daemon} takes {keys} only when it starts anew: {advice}.")

    def result(self) -> Mapping[str, Any]:
        """Return what differs and which daemons have to start anew for it."""
        done = {action.target for action in self._run.actions if action.kind == START_ANEW and action.done}
        daemons = [*self._pending, *(daemon for daemon in _BY_OTHERS if daemon in self._needs)]
        return {
            "changes": [asdict(change) for change in self._changes],
            "restarts": [
                {"daemon": daemon, "because": self._needs.get(daemon, []), "done": daemon in done} for daemon in daemons
            ],
        }


def _checked(files: Mapping[str, Any], *, wanted: bool) -> Mapping[str, str]:
    """The files; raises OperationError if they cannot be any."""
    if not wanted:
        return {}
    wrong = [str(name) for name, text in files.items() if not isinstance(name, str) or not isinstance(text, str)]
    if wrong or SLURM_CONF not in files:
        raise OperationError(
            f"These files are not text: {', '.join(wrong)}." if wrong else f"There is no {SLURM_CONF} among the files.",
            reason="InvalidVariables",
            hint=NOTHING_CHANGED,
        )
    try:
        slurm_conf.parse(files[SLURM_CONF])
    except OperationError as error:
        raise OperationError(f"{SLURM_CONF}: {error.msg}", reason=error.reason, hint=NOTHING_CHANGED) from error
    return {name: str(text) for name, text in files.items()}
