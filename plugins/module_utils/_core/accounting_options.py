# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Accounting as people describe it: QOS, accounts, users and groups of them, checked.

Only what is said is in the settings, so that a plan can leave the rest alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import accounting_settings as known
from .accounting import ADMIN_LEVELS, ROOT
from .accounting_settings import Setting, Settings
from .fields import Fields, kind_of
from .problems import Problems, did_you_mean

UNSET = -1  # takes a limit away, as in sacctmgr

_ACCOUNT = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,63}", re.ASCII)
_USER = re.compile(r"[a-z0-9_][a-z0-9_.@$+-]{0,63}", re.ASCII)
_TIME = re.compile(r"(?:(?P<days>\d{1,5})-)?(?P<clock>\d{1,7}(?::\d{1,2}){0,2})", re.ASCII)
_COUNT = re.compile(r"(?P<number>\d{1,18})(?P<unit>[KMGTP]?)", re.ASCII)
_MEBIBYTES = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
_THOUSANDS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4, "P": 1024**5}
_IN_MEBIBYTES = ("mem", "vmem", "bb")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was described; None where nothing was said of a kind, which is then left alone altogether."""

    qos: Mapping[str, Settings] | None = None
    accounts: Mapping[str, Settings] | None = None
    users: Mapping[str, Settings] | None = None
    members: Mapping[tuple[str, str], Settings] = field(default_factory=dict)


def wanted(
    *,
    qos: Sequence[Mapping[str, Any]] | None = None,
    accounts: Sequence[Mapping[str, Any]] | None = None,
    users: Sequence[Mapping[str, Any]] | None = None,
    groups: Mapping[str, Any] | None = None,
) -> Wanted:
    """What the options describe. Raises OperationError (InvalidVariables) with all that is wrong in them.

    An empty list counts as not given: with ``prune`` it would otherwise take everything away.
    """
    problems = Problems()
    qos_found = _named("qos", qos, _ACCOUNT, problems, _qos)
    accounts_found = _named("accounts", accounts, _ACCOUNT, problems, _account)
    members: dict[tuple[str, str], Settings] = {}
    users_found = _users(users or (), groups or {}, members, problems)
    problems.raise_if_any("Accounting")
    return Wanted(qos_found or None, accounts_found or None, users_found or None, members)


def _named(what: str, items: Any, pattern: re.Pattern[str], problems: Problems, parse: Any) -> dict[str, Settings]:
    found: dict[str, Settings] = {}
    for index, item in enumerate(items or ()):
        path = f"{what}[{index}]"
        name = str(item.get("name") or "") if isinstance(item, Mapping) else ""
        if not _name(name, pattern, f"{path}.name", problems):
            continue
        if name in found:
            problems.add(f"{path}.name", f"{name} is described twice")
        found[name] = parse(item, f"{what}[{name}]", problems)
    return found


def _name(name: str, pattern: re.Pattern[str], path: str, problems: Problems) -> bool:
    if pattern.fullmatch(name):
        return True
    allowed = "letters, digits, '_', '-' and '.'" if pattern is _ACCOUNT else "a login name"
    problems.add(path, f"{name!r} must be {allowed} in lower case, as Slurm keeps it, at most 64 long")
    return False


def _qos(item: Mapping[str, Any], path: str, problems: Problems) -> Settings:
    plain = [name for name in known.QOS if name not in known.QOS_LIMITS]
    fields = Fields(item, path, problems, ["name", "limits", *plain])
    return _settings(fields, known.QOS, plain) | _limits(fields, known.QOS_LIMITS)


def _account(item: Mapping[str, Any], path: str, problems: Problems) -> Settings:
    fields = Fields(item, path, problems, ["name", "parent", "description", "organization", "limits", *_PLAIN])
    settings = {key: fields.text(key) for key in ("description", "organization") if fields.given(key)}
    if fields.given("parent"):
        parent = fields.text("parent")
        if _name(parent, _ACCOUNT, fields.at("parent"), problems):
            settings["parent"] = parent
    if item.get("name") == ROOT and "parent" in settings:
        problems.add(fields.at("parent"), "root has none")
    return settings | _settings(fields, known.ASSOCIATION, _PLAIN) | _limits(fields, known.ASSOCIATION_LIMITS)


_PLAIN = [name for name in known.ASSOCIATION if name not in known.ASSOCIATION_LIMITS]


def _users(
    items: Sequence[Any], groups: Mapping[str, Any], members: dict[tuple[str, str], Settings], problems: Problems
) -> dict[str, Settings]:
    found: dict[str, dict[str, Any]] = {}
    for index, item in enumerate(items):
        path = f"users[{index}]"
        name = str(item.get("name") or "") if isinstance(item, Mapping) else ""
        if not _name(name, _USER, f"{path}.name", problems):
            continue
        if name in found:
            problems.add(f"{path}.name", f"{name} is described twice")
        found[name] = _user(item, name, f"users[{name}]", members, problems)
    for account, names in groups.items():
        path = f"groups.{account}"
        if not _name(str(account), _ACCOUNT, path, problems):
            continue
        if isinstance(names, str) or not isinstance(names, Sequence):
            problems.add(path, f"must be a list of users, is {kind_of(names)}")
            continue
        for name in names:
            if _name(str(name), _USER, path, problems):
                found.setdefault(str(name), {})
                members.setdefault((str(account), str(name)), {})
    for name, settings in found.items():
        accounts = accounts_of(name, members)
        default = settings.get("default_account")
        if default and default not in accounts:
            problems.add(f"users[{name}].default_account", f"{default} is not one of the accounts of {name}")
        if not accounts:
            problems.add(f"users[{name}].accounts", "must name at least one account, here or in groups")
    return dict(found)


def _user(
    item: Any, name: str, path: str, members: dict[tuple[str, str], Settings], problems: Problems
) -> dict[str, Any]:
    fields = Fields(item, path, problems, ["name", "accounts", "default_account", "admin_level"])
    settings: dict[str, Any] = {}
    if fields.given("admin_level"):
        settings["admin_level"] = fields.choice("admin_level", ADMIN_LEVELS, "none")
    if fields.given("default_account"):
        settings["default_account"] = fields.text("default_account")
    for index, entry in enumerate(fields.items("accounts")):
        at = f"{path}.accounts[{index}]"
        account = entry if isinstance(entry, str) else entry.get("name") if isinstance(entry, Mapping) else None
        if not _name(str(account or ""), _ACCOUNT, at, problems):
            continue
        if (account, name) in members:
            problems.add(at, f"{account} is named twice")
        inner = Fields(entry if isinstance(entry, Mapping) else {}, at, problems, ["name", "limits", *_PLAIN])
        members[str(account), name] = _settings(inner, known.ASSOCIATION, _PLAIN) | _limits(
            inner, known.ASSOCIATION_LIMITS
        )
    return settings


def accounts_of(user: str, members: Mapping[tuple[str, str], Settings]) -> list[str]:
    """The accounts of a user, in the order of their description."""
    return [account for account, name in members if name == user]


# --- values -------------------------------------------------------------------------------------------------------


def _limits(fields: Fields, limits: Mapping[str, Setting]) -> dict[str, Any]:
    inner = Fields(fields.mapping("limits"), fields.at("limits"), fields.problems, limits)
    return _settings(inner, limits, limits)


def _settings(fields: Fields, settings: Mapping[str, Setting], names: Any) -> dict[str, Any]:
    found = {}
    for name in names:
        if fields.given(name):
            try:
                found[name] = _value(fields, name, settings[name])
            except ValueError as error:
                fields.problems.add(fields.at(name), str(error))
    return found


def _value(fields: Fields, name: str, setting: Setting) -> Any:
    raw, kind = fields.raw(name), setting.kind
    if str(raw) == str(UNSET):
        return setting.unset
    if kind == known.QOS_LIST:
        return tuple(sorted(set(fields.words(name))))
    if kind in (known.TEXT, known.QOS_NAME):
        return fields.text(name)
    if kind == known.FLAGS:
        return _flags(fields.words(name))
    if kind == known.MODE:
        return fields.choice(name, known.MODES, known.MODES[0])
    if kind == known.TRES:
        return tres(raw)
    if kind == known.SHARES and raw == known.PARENT:
        return known.PARENT
    if kind == known.REAL:
        return real(raw)
    return minutes(raw) if kind == known.MINUTES else whole(raw)


def _flags(words: Sequence[str]) -> tuple[str, ...]:
    spelled = {word.lower(): word for word in known.FLAG_WORDS}
    unknown = [word for word in words if word.lower() not in spelled]
    if unknown:
        raise ValueError(f"{unknown[0]} is no flag of a QOS{did_you_mean(unknown[0], known.FLAG_WORDS)}")
    return tuple(sorted({spelled[word.lower()] for word in words}))


def whole(raw: Any) -> int:
    """A whole number from 0, or its text."""
    text = str(raw)
    if isinstance(raw, bool) or not re.fullmatch(r"\d{1,10}", text, re.ASCII) or int(text) >= 2**31 - 1:
        raise ValueError(f"must be a whole number, or {UNSET} for none, is {raw!r}")
    return int(text)


def real(raw: Any) -> float:
    """A number from 0, or its text."""
    try:
        found = -1.0 if isinstance(raw, bool) else float(raw)
    except (TypeError, ValueError):
        found = -1.0
    if not 0 <= found < 2**31:
        raise ValueError(f"must be a number, or {UNSET} for none, is {raw!r}")
    return found


def minutes(raw: Any) -> int:
    """Minutes of a number of them, or of a time as Slurm writes it: 90, 90:00, 1:30:00, 7-0, 7-00:00:00."""
    if isinstance(raw, int) and not isinstance(raw, bool):
        return whole(raw)
    match = _TIME.fullmatch(str(raw))
    if isinstance(raw, bool) or match is None:
        raise ValueError(f"must be minutes or a time such as 7-00:00:00, or {UNSET} for none, is {raw!r}")
    clock = [int(part) for part in match["clock"].split(":")]
    if match["days"] is not None:
        hours, mins, seconds = (*clock, 0, 0)[:3]
    elif len(clock) == 3:
        hours, mins, seconds = clock
    else:
        hours, mins, seconds = 0, clock[0], clock[1] if len(clock) == 2 else 0
    total = int(match["days"] or 0) * 86400 + hours * 3600 + mins * 60 + seconds
    if total % 60:
        raise ValueError(f"must be whole minutes, is {raw!r}")
    return total // 60


def tres(raw: Any) -> dict[str, int]:
    """{name: count}, from such a mapping or from text: ``cpu=8,mem=64G,gres/gpu=2``. Memory counts in MiB."""
    if isinstance(raw, Mapping):
        pairs = [(str(name), str(count)) for name, count in raw.items()]
    elif isinstance(raw, str):
        pairs = [(name, count) for name, _equals, count in (part.partition("=") for part in raw.split(",") if part)]
    else:
        raise ValueError(f"must be a mapping or text such as cpu=8,gres/gpu=2, is {kind_of(raw)}")
    found = {}
    for name, count in pairs:
        match = _COUNT.fullmatch(count.strip().upper())
        if match is None:
            raise ValueError(f"{name.strip()} must have a whole number, is {count!r}")
        in_mebibytes = name.strip().partition("/")[0] in _IN_MEBIBYTES
        amount = int(match["number"]) * (_MEBIBYTES if in_mebibytes else _THOUSANDS)[match["unit"]]
        if amount != int(amount):
            raise ValueError(f"{name.strip()} must be whole MiB, is {count!r}")
        found[name.strip()] = int(amount)
    return dict(sorted(found.items()))
