# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What makes slurmdbd agree with a description, in an order in which nothing is named before it is there.

QOS, accounts from the top of the tree down, users, associations, defaults; then, only with ``prune``, what is not
described: associations, users, accounts from the bottom up, QOS.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core import accounting_settings as known
from .._core.accounting import NORMAL, ROOT, Accounting
from .._core.accounting_options import Wanted
from .._core.accounting_settings import Settings
from .accounting_check import parent_of
from .action import Action

CREATE, CHANGE, REMOVE = "create", "change", "remove"
# Stages: neighbours of one stage go in as few calls as REST takes.
NEW_QOS, QOS, ACCOUNTS, NEW_USERS, MEMBERS, USERS = "new qos", "qos", "accounts", "new users", "associations", "users"
OUT_MEMBERS, OUT_USERS, OUT_ACCOUNTS, OUT_QOS = "- associations", "- users", "- accounts", "- qos"

NOT_AS_DESCRIBED = "not as described"
NOT_DESCRIBED = "not described"
HAS_JOBS = "has jobs"
ELSEWHERE = "another cluster has it too"


@dataclass(frozen=True, slots=True)
class Subject:
    """What an action is about: its name, all that it shall have, and what it had (None: it was not there)."""

    name: str
    settings: Settings
    before: Settings | None = None
    account: str = ""  # of an association of a user
    members: Mapping[str, Settings] = field(default_factory=dict)  # of a new user: what it is in each account


@dataclass(frozen=True, slots=True)
class Busy:
    """What is in use: accounts and their users by jobs that have not ended, QOS by whatever the text says."""

    accounts: Collection[str] = frozenset()
    members: Collection[tuple[str, str]] = frozenset()
    qos: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done, and what stays though it is not described, with the reason."""

    actions: Sequence[Action]
    kept: Mapping[str, str]


def completed(wanted: Wanted, *, prune: bool) -> Wanted:
    """With ``prune``, limits that are not described are limits to be taken away."""
    if not prune:
        return wanted

    def whole(limits: Mapping[str, known.Setting], settings: Settings) -> Settings:
        return {**_blank(limits), **settings}

    def all_of(limits: Mapping[str, known.Setting], items: Mapping[str, Settings] | None) -> Any:
        return None if items is None else {name: whole(limits, item) for name, item in items.items()}

    return Wanted(
        all_of(known.QOS_LIMITS, wanted.qos),
        all_of(known.ASSOCIATION_LIMITS, wanted.accounts),
        wanted.users,
        {key: whole(known.ASSOCIATION_LIMITS, item) for key, item in wanted.members.items()},
    )


# --- what is to be done -------------------------------------------------------------------------------------------


def plan(seen: Accounting, wanted: Wanted, *, prune: bool = False, busy: Busy | None = None) -> Plan:
    """The actions, from what is there and what is described (see ``accounting_check`` and ``completed``)."""
    actions = [
        *_qos(seen, wanted.qos or {}),
        *_accounts(seen, wanted.accounts or {}),
        *_users(seen, wanted, prune),
    ]
    kept: dict[str, str] = {}
    if prune:
        actions += _prune(seen, wanted, busy or Busy(), kept)
    return Plan(actions, kept)


def _changes(before: Settings, after: Settings) -> dict[str, Any]:
    return {name: value for name, value in after.items() if before.get(name) != value}


def _action(
    stage: str, target: str, subject: Subject, after: Settings, *, why: str = "", shown: Settings | None = None
) -> Action:
    """One object that is made or changed; ``after`` is what changes of it."""
    before = subject.before
    plain = _plain(after)
    if before is None:
        whole = _plain(after if shown is None else shown)
        return Action(CREATE, target, why or "not there", None, whole, ({}, whole), stage, subject)
    old = _plain({name: before.get(name) for name in after})
    return Action(CHANGE, target, why or NOT_AS_DESCRIBED, old, plain, (old, plain), stage, subject)


def _plain(settings: Settings) -> dict[str, Any]:
    """Lists instead of tuples, which YAML has no plain form for."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}


def _qos(seen: Accounting, wanted: Mapping[str, Settings]) -> Iterator[Action]:
    new = [name for name in wanted if name not in seen.qos]
    # A QOS that preempts another is made after it, in a second call: slurmrestd looks names up before it begins.
    later = {name: wanted[name].get("preempt", ()) for name in new}
    there = dict(seen.qos)
    for name in new:
        made = {key: value for key, value in _set(known.QOS, wanted[name]).items() if key != "preempt"}
        there[name] = {**_blank(known.QOS), **made}
        yield _action(NEW_QOS, f"qos {name}", Subject(name, there[name]), made)
    for name, settings in wanted.items():
        before = there[name]
        if changes := _changes(before, settings if name in seen.qos else {"preempt": later[name]}):
            yield _action(QOS, f"qos {name}", Subject(name, {**before, **changes}, before), changes)


def _blank(settings: Mapping[str, known.Setting]) -> dict[str, Any]:
    """Nothing set at all."""
    return {name: setting.unset for name, setting in settings.items()}


def _set(settings: Mapping[str, known.Setting], values: Settings) -> dict[str, Any]:
    """Without what stands for nothing: of a new object it need not be said."""
    return {name: value for name, value in values.items() if name not in settings or value != settings[name].unset}


def _accounts(seen: Accounting, wanted: Mapping[str, Settings]) -> Iterator[Action]:
    for name in _top_down(seen, wanted):
        before = seen.accounts.get(name)
        after = dict(wanted[name])
        if name != ROOT:
            after["parent"] = parent_of(name, after, seen)
        if before is None or "parent" not in before:
            record = {"description": name, "organization": after["parent"], **(before or {})}
            made = record | _set(known.ASSOCIATION, after)
            yield _action(ACCOUNTS, f"account {name}", Subject(name, made), made)
        elif changes := _changes(before, after):
            yield _action(ACCOUNTS, f"account {name}", Subject(name, {**before, **after}, before), changes)


def _top_down(seen: Accounting, wanted: Mapping[str, Settings]) -> list[str]:
    """The described accounts, each after the one above it."""
    ordered: dict[str, None] = {}

    def place(name: str) -> None:
        if name in wanted and name not in ordered:
            place(parent_of(name, wanted[name], seen))
            ordered[name] = None

    for name in wanted:
        place(name)
    return list(ordered)


def _users(seen: Accounting, wanted: Wanted, prune: bool) -> Iterator[Action]:
    described = wanted.users or {}
    own: dict[str, dict[str, Settings]] = {name: {} for name in described}
    for (account, user), settings in wanted.members.items():
        own[user][account] = settings
    for name, settings in described.items():
        if name not in seen.users:
            made = {"admin_level": "none", "default_account": next(iter(own[name]), "")} | dict(settings)
            members = {account: _set(known.ASSOCIATION, item) for account, item in own[name].items()}
            shown = made | {"accounts": [{"name": key, **_plain(item)} for key, item in members.items()]}
            yield _action(NEW_USERS, f"user {name}", Subject(name, made, members=members), made, shown=shown)
    for (account, name), settings in wanted.members.items():
        if name not in seen.users:
            continue
        before = seen.members.get((account, name))
        target = f"association {name} in {account}"
        if before is None:
            made = _set(known.ASSOCIATION, settings)
            yield _action(MEMBERS, target, Subject(name, made, account=account), made)
        elif changes := _changes(before, settings):
            yield _action(MEMBERS, target, Subject(name, {**before, **settings}, before, account), changes)
    for name, settings in described.items():
        before = seen.users.get(name)
        if before is None:
            continue
        after = dict(settings)
        default = before["default_account"]
        # One who has no default yet, or whose default goes, gets the first account as a new user does.
        if "default_account" not in after and (not default or (prune and default not in own[name])):
            after["default_account"] = next(iter(own[name]), "")
        if changes := _changes(before, after):
            yield _action(USERS, f"user {name}", Subject(name, {**before, **after}, before), changes)


# --- what is not described ----------------------------------------------------------------------------------------


def _prune(seen: Accounting, wanted: Wanted, busy: Busy, kept: dict[str, str]) -> Iterator[Action]:
    staying = set(seen.members)
    if wanted.users is not None:
        yield from _prune_users(seen, wanted, busy, kept, staying)
    if wanted.accounts is not None:
        yield from _prune_accounts(seen, wanted.accounts, busy, kept, {account for account, _user in staying})
    for name, settings in sorted(seen.qos.items()) if wanted.qos is not None else ():
        if name in (wanted.qos or ()) or name == NORMAL:
            continue
        if name in busy.qos:
            kept[f"qos {name}"] = busy.qos[name]
        else:
            yield _removal(OUT_QOS, f"qos {name}", Subject(name, {}, settings), known.shown(known.QOS, settings))


def _removal(stage: str, target: str, subject: Subject, before: Settings) -> Action:
    plain = _plain(before)
    return Action(REMOVE, target, NOT_DESCRIBED, plain, None, (plain, {}), stage, subject)


def _prune_users(
    seen: Accounting, wanted: Wanted, busy: Busy, kept: dict[str, str], staying: set[tuple[str, str]]
) -> Iterator[Action]:
    """What goes is taken out of ``staying``. A user who is not described and has jobs stays as a whole."""
    described = {*(wanted.users or ()), ROOT}
    with_jobs = {user for _account, user in busy.members} - described
    gone = {name for name in seen.users.keys() - described - with_jobs if f"user {name}" not in seen.elsewhere}
    kept |= {f"user {name}": HAS_JOBS for name in sorted(seen.users) if name in with_jobs}
    # slurmdbd does not take the default from one who has other accounts: it goes last.
    is_default = {(user["default_account"], name) for name, user in seen.users.items()}
    for account, name in sorted(seen.members, key=lambda key: (key in is_default, key)):
        if (account, name) in wanted.members or name in with_jobs or name == ROOT:
            continue
        target = f"association {name} in {account}"
        if (account, name) in busy.members:
            kept[target] = HAS_JOBS
            continue
        staying.discard((account, name))
        if name not in gone:
            settings = seen.members[account, name]
            subject = Subject(name, {}, settings, account)
            yield _removal(OUT_MEMBERS, target, subject, known.shown(known.ASSOCIATION, settings))
    for name in sorted(gone):
        yield _removal(OUT_USERS, f"user {name}", Subject(name, {}, seen.users[name]), seen.users[name])


def _prune_accounts(
    seen: Accounting, described: Mapping[str, Settings], busy: Busy, kept: dict[str, str], with_users: Collection[str]
) -> Iterator[Action]:
    """Accounts from the bottom up. One that stays keeps all above it."""
    parents = {name: str(item.get("parent") or "") for name, item in seen.accounts.items()}
    parents |= {name: parent_of(name, item, seen) for name, item in described.items()}
    why_kept: dict[str, str] = {}
    for name in seen.accounts:
        if name in described or name == ROOT:
            continue
        if name in busy.accounts:
            why_kept[name] = HAS_JOBS
        elif f"account {name}" in seen.elsewhere:
            why_kept[name] = ELSEWHERE
        elif name in with_users:
            why_kept[name] = "has users"
    for name in list(why_kept):
        above = parents.get(name, "")
        while above not in ("", ROOT, *described, *why_kept):
            why_kept[above] = f"{name} is below it"
            above = parents.get(above, "")
    kept |= {f"account {name}": why for name, why in why_kept.items()}
    gone = [name for name in seen.accounts if name not in (ROOT, *described, *why_kept)]
    for name in sorted(gone, key=lambda name: (-_depth(name, parents), name)):
        settings = seen.accounts[name]
        texts = {key: settings[key] for key in ("parent", "description", "organization") if key in settings}
        before = texts | known.shown(known.ASSOCIATION, settings)
        yield _removal(OUT_ACCOUNTS, f"account {name}", Subject(name, {}, settings), before)


def _depth(name: str, parents: Mapping[str, str]) -> int:
    depth = 0
    while name and depth <= len(parents):
        name, depth = parents.get(name, ""), depth + 1
    return depth
