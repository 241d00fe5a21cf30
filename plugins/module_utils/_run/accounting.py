# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module accounting's work: read all of slurmdbd's lists, plan, write each kind in one call, look again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import accounting_options
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import accounting_settings as known
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.accounting import (
    ADMIN_LEVELS,
    Accounting,
    accounting,
    association,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.values import number, words
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import accounting as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.accounting import Busy, Plan, Subject
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.accounting_check import check
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import client_of
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient

DATABASE = "slurmdb"
# Entries of one call: slurmrestd asks slurmdbd about each of them, and the call has to end in time.
BATCH = 500
# Associations as they are, without what they inherit: REST calls its parameters like this.
_OWN_ONLY = (("Exclude limits from parents", "true"), ("Include the raw QOS or delta_qos", "true"))
# Base states of jobs that are over.
_OVER = frozenset(
    {"CANCELLED", "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"}
)


def read(slurm: SlurmClient, cluster: str) -> Accounting:
    """All lists of accounting, five calls whatever their length."""

    def listed(path: str, key: str, query: Sequence[tuple[str, str | int]] = ()) -> Sequence[Mapping[str, Any]]:
        return slurm.request("GET", path, f"read {key} of slurmdbd", query=query, plugin=DATABASE).get(key) or ()

    return accounting(
        cluster,
        tres=listed("tres/", "TRES"),
        qos=listed("qos/", "qos"),
        accounts=listed("accounts/", "accounts", [("WithCoordinators", "true")]),
        users=listed("users/", "users"),
        associations=listed("associations/", "associations", _OWN_ONLY),
    )


class AccountingChange:
    """An Operation: see _run/module.py."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._params = run.params
        self._cluster: str = run.params["name"]
        described = accounting_options.wanted(
            **{key: self._params[key] for key in ("qos", "accounts", "users", "groups")}
        )
        self._wanted = planner.completed(described, prune=self._params["prune"])
        self._slurm = client_of(run.kubernetes, run.params, run.slurm_calls)
        self._seen = Accounting()
        self._kept: Mapping[str, str] = {}

    def plan(self) -> Sequence[Action]:
        """Read everything and compare; jobs only when something is to be removed."""
        self._seen = read(self._slurm, self._cluster)
        check(self._seen, self._wanted, prune=self._params["prune"])
        plan = self._planned()
        self._kept = plan.kept
        for target, why in plan.kept.items():
            self._run.warn(f"Not removed: {target} ({why}).")
        return plan.actions

    def _planned(self) -> Plan:
        prune = self._params["prune"]
        plan = planner.plan(self._seen, self._wanted, prune=prune)
        if any(action.kind == planner.REMOVE for action in plan.actions):
            plan = planner.plan(self._seen, self._wanted, prune=prune, busy=self._busy())
        return plan

    def _busy(self) -> Busy:
        jobs = [item for item in self._slurm.jobs().items if _counts(words(item.get("job_state")))]
        qos = {
            str((item.get("qos") or {}).get("assigned")): f"partition {item.get('name')} has it"
            for item in self._slurm.partitions().items
        }
        return Busy(
            accounts={str(item.get("account")) for item in jobs},
            members={member for item in jobs for member in self._owners(item)},
            qos=qos | {str(item.get("qos")): planner.HAS_JOBS for item in jobs},
        )

    def _owners(self, job: Mapping[str, Any]) -> set[tuple[str, str]]:
        """Account and user of a job. slurmctld need not know the names of users: then its association says whose it is,
        and a job that has none that is known may be anybody's of its account."""
        account, user = str(job.get("account") or ""), str(job.get("user_name") or "")
        if user:
            return {(account, user)}
        owner = self._seen.owners.get(number(job.get("association_id")) or 0)
        return {owner} if owner else {member for member in self._seen.members if member[0] == account}

    # --- act ------------------------------------------------------------------------------------------------------

    def act(self, actions: Sequence[Action]) -> None:
        """Carry out one stage: a call for each kind of thing where REST takes lists, one for each object where not."""
        stage = actions[0].stage
        alone: dict[str, Callable[[Subject], None]] = {
            planner.OUT_MEMBERS: self._remove_member,
            planner.OUT_USERS: lambda subject: self._remove("user", subject.name),
            planner.OUT_ACCOUNTS: lambda subject: self._remove("account", subject.name),
            planner.OUT_QOS: lambda subject: self._remove("qos", subject.name),
        }
        if stage in alone:
            for action in actions:
                alone[stage](action.subject)
                action.done = True
            return
        together: dict[str, Callable[[Sequence[Subject]], None]] = {
            planner.NEW_QOS: self._write_qos,
            planner.QOS: self._write_qos,
            planner.ACCOUNTS: self._write_accounts,
            planner.NEW_USERS: self._make_users,
            planner.MEMBERS: self._write_members,
            planner.USERS: self._write_users,
        }
        together[stage]([action.subject for action in actions])
        for action in actions:
            action.done = True

    def _post(self, key: str, entries: Sequence[Any]) -> None:
        for begin in range(0, len(entries), BATCH):
            body = {key: entries[begin : begin + BATCH]}
            self._slurm.request("POST", f"{key}/", f"write {key}", kind="update", body=body, plugin=DATABASE)
            self._run.progress.tell(f"{key}: {min(begin + BATCH, len(entries))} of {len(entries)} written")

    def _write_qos(self, subjects: Sequence[Subject]) -> None:
        entries = [
            {"name": item.name, **known.write(known.QOS, item.settings, item.before or {}, self._seen.tres)}
            for item in subjects
        ]
        self._post("qos", entries)

    def _write_accounts(self, subjects: Sequence[Subject]) -> None:
        texts = ("description", "organization")
        records = [
            {
                "name": item.name,
                **{key: item.settings[key] for key in texts},
                # Without them slurmrestd takes those away that there are.
                "coordinators": [{"name": name} for name in self._seen.coordinators.get(item.name, ())],
            }
            for item in subjects
            if item.before is None or any(item.settings[key] != item.before[key] for key in texts)
        ]
        self._post("accounts", records)
        together: list[dict[str, Any]] = []
        for item in subjects:
            # For a new account without a parent slurmrestd answers 200 and does nothing.
            entry = self._association(item, item.name, "", parent_account=item.settings["parent"])
            together.append(entry)
            if item.before and item.before.get("parent") not in (None, item.settings["parent"]):
                # 26.05 sees the tree as it was before the call: no account can move below one that moves in it.
                self._post("associations", together)
                together = []
        self._post("associations", together)

    def _association(self, subject: Subject, account: str, user: str, **more: Any) -> dict[str, Any]:
        # Without a list of QOS slurmrestd writes down those that are inherited.
        settings = {"qos": (), **subject.settings}
        body = known.write(known.ASSOCIATION, settings, subject.before or {}, self._seen.tres)
        return association(account, user, self._cluster, body, **more)

    def _make_users(self, subjects: Sequence[Subject]) -> None:
        """Make users with their associations, alike ones in one call; then what is set of the associations.

        POST users/ would leave one that was removed earlier as it is, removed.
        """
        alike: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        for item in subjects:
            key = (item.settings["default_account"], item.settings["admin_level"], tuple(item.members))
            alike.setdefault(key, []).append(item.name)
        for (default, level, accounts), names in alike.items():
            condition = {"users": names, "accounts": list(accounts), "clusters": [self._cluster], "association": {}}
            user = {"defaultaccount": default, "adminlevel": [ADMIN_LEVELS[level]]}
            body = {"association_condition": condition, "user": user}
            what = f"make users {_first(names)}"
            self._slurm.request("POST", "users_association/", what, kind="create", body=body, plugin=DATABASE)
        self._write_members(
            [
                Subject(item.name, settings, account=account)
                for item in subjects
                for account, settings in item.members.items()
                if settings
            ]
        )

    def _write_members(self, subjects: Sequence[Subject]) -> None:
        entries = [self._association(item, item.account, item.name) for item in subjects]
        self._post("associations", entries)

    def _write_users(self, subjects: Sequence[Subject]) -> None:
        entries = [
            {
                "name": item.name,
                "administrator_level": [ADMIN_LEVELS[item.settings["admin_level"]]],
                "default": {"account": item.settings["default_account"]},
            }
            for item in subjects
        ]
        self._post("users", entries)

    def _remove(self, what: str, name: str) -> None:
        path = f"{what}/{quote(name, safe='')}"
        self._slurm.request("DELETE", path, f"remove {what} {name}", kind="delete", plugin=DATABASE)

    def _remove_member(self, subject: Subject) -> None:
        query = [("account", subject.account), ("user", subject.name), ("cluster", self._cluster)]
        what = f"remove {subject.name} from account {subject.account}"
        self._slurm.request("DELETE", "associations/", what, kind="delete", query=query, plugin=DATABASE)

    # --- wait and tell --------------------------------------------------------------------------------------------

    def wait(self) -> None:
        """Look again: slurmdbd answers 200 to some things that it does not do."""
        if not self._run.actions:
            return
        self._seen = read(self._slurm, self._cluster)
        left = [f"{action.kind} {action.target}" for action in self._planned().actions]
        if left:
            raise OperationError(
                f"slurmdbd has taken the changes and has not done all of them: {_first(left)}.",
                reason="NotAsAsked",
                remaining=left,
                hint="Look at the log of slurmdbd; this release of Slurm may not take it over REST.",
            )

    def result(self) -> Mapping[str, Any]:
        """Return what stays though it is not described."""
        return {"kept": dict(self._kept)}


def _counts(states: Sequence[str]) -> bool:
    """Whether a job still counts against its association; one that completes does."""
    return _OVER.isdisjoint(states) or "COMPLETING" in states


def _first(lines: Sequence[str], limit: int = 5) -> str:
    return ", ".join(lines[:limit]) + (f" and {len(lines) - limit} more" if len(lines) > limit else "")


def report(run: Run) -> Mapping[str, Any]:
    """What module accounting_info returns: accounting as the options of module accounting describe it."""
    seen = read(client_of(run.kubernetes, run.params, run.slurm_calls), run.params["name"])
    return {
        "qos": [{"name": name, **known.shown(known.QOS, item)} for name, item in sorted(seen.qos.items())],
        "accounts": [_account(name, item) for name, item in sorted(seen.accounts.items()) if "parent" in item],
        "users": [
            {"name": name, **item, "accounts": list(_accounts(seen, name))}
            for name, item in sorted(seen.users.items())
            if any(_accounts(seen, name))
        ],
        "tres": sorted(seen.tres),
    }


def _account(name: str, item: Mapping[str, Any]) -> dict[str, Any]:
    texts = {key: item[key] for key in ("parent", "description", "organization") if item.get(key)}
    return {"name": name, **texts, **known.shown(known.ASSOCIATION, item)}


def _accounts(seen: Accounting, user: str) -> Iterable[dict[str, Any]]:
    for (account, name), settings in seen.members.items():
        if name == user:
            yield {"name": account, **known.shown(known.ASSOCIATION, settings)}
