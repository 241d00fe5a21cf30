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
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import NOTHING_CHANGED, OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.pods import runs
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.lint import CONTAINER
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.live_files import wait_while
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm_config_judge import (
    Judge,
    require_release,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm_config_live import (
    RELEASE,
    RESTART,
    ConfigPod,
    Seen,
    mounts_whole,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm_config_restd import Restd
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm_config_take import Takeover

# Kinds of actions.
CREATE, CANCEL, WRITE, REMOVE, RECONFIGURE, START_ANEW = (
    "create", "cancel", "write", "remove", "reconfigure", "restart",
)  # fmt: skip
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
        self._restd = Restd(run.kubernetes, run.params["namespace"], run.params["name"])
        self._takeover = Takeover(run, self._pod)
        self._files = _checked(run.params["files"] or {}, wanted=run.params["state"] == "present")
        self._old: Mapping[str, str] | None = None
        self._changes: list[config_change.Change] = []
        self._needs: dict[str, list[str]] = {}
        self._pending_before: list[str] = []  # daemons that an earlier run has left to be restarted
        self._notes: dict[str, str] = {}  # our annotations of the files that are there
        self._pending: list[str] = []
        self._has_pod = False

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
            annotations = live["metadata"].get("annotations") or {}
            self._notes = {key: annotations[key] for key in (RESTART, RELEASE) if annotations.get(key)}
            self._pending_before = [daemon for daemon in self._notes.get(RESTART, "").split(",") if daemon]
        self._changes = config_change.changes(self._old or {}, self._files)
        self._needs = config_change.restarts(self._changes)
        seen, why_not = self._look()
        if self._has_pod:
            require_release(
                self._notes.get(RELEASE, ""),
                seen.version if seen else "",
                self._params["slurm_version"],
                may_change=self._params["change_release"],
            )
        why = self._why_read(seen) if seen and not why_not else ""
        if why or (self._changes and why_not):
            actions += self._plan_cancel(seen, why_not)
        self._pending = self._plan_restarts(can_take=bool(seen) and not why_not)
        actions += self._plan_write()
        if why:
            actions.append(Action(RECONFIGURE, SLURMCTLD, why))
        if seen and not why_not and self._params["restart"] == "auto":
            actions += [Action(START_ANEW, daemon, self._why_anew(daemon)) for daemon in self._pending]
        if why_not and self._changes:
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
        if not runs(pod, CONTAINER):
            return None, f"slurmctld does not run in Pod {self._pod.pod}"
        seen = self._pod.look()
        if not mounts_whole(pod, self._pod.config_map):
            return seen, f"Pod {self._pod.pod} does not show all of {self._pod.target}"
        if absent := config_change.absent_keys(self._files, seen.hashes):
            # Of a Pod that an older template made; role slurmctld replaces it next.
            return seen, f"Pod {self._pod.pod} does not show {', '.join(absent)}"
        return seen, "" if seen.answers else f"slurmctld in Pod {self._pod.pod} does not answer"

    def _plan_cancel(self, seen: Seen | None, why_not: str) -> list[Action]:
        """What ends jobs because that was asked for; everything else that would end them, or slurmctld, is refused."""
        judge = Judge(self._run, self._pod, self._old or {}, self._files)
        judge.require_possible(self._changes)
        losers = judge.losers(seen, why_not)
        if not why_not:
            judge.lint()
            judge.require_programs()
            judge.require_plugins()
        if not losers:
            return []
        lost = list(losers.values())
        return [Action(CANCEL, f"{len(lost)} jobs", "what they need goes", before=lost, subject=list(losers))]

    def _plan_restarts(self, *, can_take: bool) -> list[str]:
        """Daemons that a reconfigure does not reach; a slurmctld that reads the files later starts anew anyway."""
        wanted = {*self._needs, *self._pending_before}
        found = [SLURMCTLD] if SLURMCTLD in wanted and can_take else []
        if SLURMRESTD not in wanted or not self._restd.exists():
            return found
        if SLURMRESTD not in self._needs and self._restd.has_begun_with((self._old or {}).get(SLURM_CONF, "")):
            return found  # its Pods were made anew since, by role slurmrestd or a person
        return [*found, SLURMRESTD]

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
        if actions:
            return actions
        if self._release != self._notes.get(RELEASE, ""):
            actions.append(Action(WRITE, self._pod.target, f"to be known as for Slurm {self._release}", stage=WRITE))
        return actions

    @property
    def _release(self) -> str:
        """The release that the new files are for; that of the old ones if nothing is said."""
        wanted = self._params["slurm_version"]
        return str(versions.parse_version(wanted)) if wanted else self._notes.get(RELEASE, "")

    def _why_read(self, seen: Seen) -> str:
        """Why slurmctld has to read its files; empty if it works with them."""
        if self._changes:
            return "to read the new files"
        if behind := self._pod.lacks(self._files, seen, {}):
            return f"its Pod has other files: {', '.join(behind)}"
        return "" if seen.taken else "it has not read the files since they came"

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
            notes = {RESTART: ",".join(self._pending), RELEASE: self._release}
            self._takeover.write(self._files, {key: note for key, note in notes.items() if note}, bring=self._has_pod)
        elif target == SLURMCTLD:
            actions[0].done = True  # begun is done, so that it is put back
            self._make_it_read(kind)
        else:
            wait_while(self._run, self._restd.roll(self._files), "The restart of slurmrestd")
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
            begun = self._takeover.take(self._files, self._removed)
            self._takeover.require_nodes(self._files, begun)
        except OperationError as error:
            known = self._old if self._changes else None
            told = self._takeover.put_back(error, known, self._files, self._notes)
            if told.reason != "NotPutBack" and known is not None:
                for action in self._run.actions:
                    action.done = action.done and action.kind == CANCEL
            raise told from error

    # --- wait and tell --------------------------------------------------------------------------------------------

    def wait(self) -> None:
        """Nothing: each step waits for its own effect. Say what is left to others."""
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
