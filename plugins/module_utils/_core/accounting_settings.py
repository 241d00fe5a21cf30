# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What can be set of a QOS and of an association: where REST has it, and how it is read and written.

Settings are a dictionary from names as sacctmgr has them (``grp_tres`` is GrpTRES) to plain values. A number without a
limit is None, a list of TRES without one is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .values import number, words

Raw = Mapping[str, Any]
Settings = Mapping[str, Any]
Tres = Mapping[str, int]  # {name: id}, such as {"cpu": 1, "gres/gpu": 1001}

PARENT = "parent"
# Fair-share "as my parent" (SLURMDB_FS_USE_PARENT in slurm/slurmdb.h).
_USE_PARENT = 0x7FFFFFFF
# A count that takes a TRES out of a limit: slurmdbd adds what it is sent to what it has.
_NO_COUNT = -1

NUMBER, MINUTES, REAL, TRES, QOS_LIST, QOS_NAME, SHARES, SECONDS, FLAGS, MODE, TEXT = (
    "number", "minutes", "real", "tres", "qos list", "qos", "shares", "seconds", "flags", "mode", "text"
)  # fmt: skip

# sacctmgr's words for the flags of a QOS, and REST's.
FLAG_WORDS = {
    "DenyOnLimit": "DENY_LIMIT",
    "EnforceUsageThreshold": "ENFORCE_USAGE_THRESHOLD",
    "NoDecay": "NO_DECAY",
    "NoReserve": "NO_RESERVE",
    "OverPartQOS": "OVERRIDE_PARTITION_QOS",
    "PartitionMaxNodes": "PARTITION_MAXIMUM_NODE",
    "PartitionMinNodes": "PARTITION_MINIMUM_NODE",
    "PartitionTimeLimit": "PARTITION_TIME_LIMIT",
    "Relative": "RELATIVE",
    "RequiresReservation": "REQUIRED_RESERVATION",
    "UsageFactorSafe": "USAGE_FACTOR_SAFE",
}
_FLAGS_OF_REST = {rest: word for word, rest in FLAG_WORDS.items()}
MODES = ("cluster", "cancel", "requeue", "suspend")
_CLUSTER_MODE = "DISABLED"  # how REST says that PreemptMode of slurm.conf counts


@dataclass(frozen=True, slots=True)
class Setting:
    """Where REST has a setting, of what kind it is, and what it is when it is not set (see ``unset``)."""

    path: str
    kind: str = NUMBER
    none: Any = None

    @property
    def unset(self) -> Any:
        """The value that stands for "not set"."""
        return {} if self.kind == TRES else self.none


# The descriptions in slurmrestd's own OpenAPI text say which name of sacctmgr is meant.
ASSOCIATION_LIMITS = {
    "grp_jobs": Setting("max/jobs/per/count"),
    "grp_jobs_accrue": Setting("max/jobs/per/accruing"),
    "grp_submit_jobs": Setting("max/jobs/per/submitted"),
    "grp_tres": Setting("max/tres/total", TRES),
    "grp_tres_mins": Setting("max/tres/group/minutes", TRES),
    "grp_tres_run_mins": Setting("max/tres/group/active", TRES),
    "grp_wall": Setting("max/per/account/wall_clock", MINUTES),
    "max_jobs": Setting("max/jobs/active"),
    "max_jobs_accrue": Setting("max/jobs/accruing"),
    "max_submit_jobs": Setting("max/jobs/total"),
    "max_tres_mins_per_job": Setting("max/tres/minutes/per/job", TRES),
    "max_tres_per_job": Setting("max/tres/per/job", TRES),
    "max_tres_per_node": Setting("max/tres/per/node", TRES),
    "max_wall": Setting("max/jobs/per/wall_clock", MINUTES),
    "min_prio_threshold": Setting("min/priority_threshold"),
}
ASSOCIATION = {
    "fairshare": Setting("shares_raw", SHARES, 1),
    "priority": Setting("priority"),
    "default_qos": Setting("default/qos", QOS_NAME, ""),
    "qos": Setting("qos", QOS_LIST, ()),
    **ASSOCIATION_LIMITS,
}
QOS_LIMITS = {
    "grp_jobs": Setting("limits/max/active_jobs/count"),
    "grp_jobs_accrue": Setting("limits/max/active_jobs/accruing"),
    "grp_submit_jobs": Setting("limits/max/jobs/count"),
    "grp_tres": Setting("limits/max/tres/total", TRES),
    "grp_tres_mins": Setting("limits/max/tres/minutes/total", TRES),
    "grp_tres_run_mins": Setting("limits/max/tres/minutes/per/qos", TRES),
    "grp_wall": Setting("limits/max/wall_clock/per/qos", MINUTES),
    "max_jobs_accrue_per_account": Setting("limits/max/accruing/per/account"),
    "max_jobs_accrue_per_user": Setting("limits/max/accruing/per/user"),
    "max_jobs_per_account": Setting("limits/max/jobs/active_jobs/per/account"),
    "max_jobs_per_user": Setting("limits/max/jobs/active_jobs/per/user"),
    "max_submit_jobs_per_account": Setting("limits/max/jobs/per/account"),
    "max_submit_jobs_per_user": Setting("limits/max/jobs/per/user"),
    "max_tres_mins_per_job": Setting("limits/max/tres/minutes/per/job", TRES),
    "max_tres_per_account": Setting("limits/max/tres/per/account", TRES),
    "max_tres_per_job": Setting("limits/max/tres/per/job", TRES),
    "max_tres_per_node": Setting("limits/max/tres/per/node", TRES),
    "max_tres_per_user": Setting("limits/max/tres/per/user", TRES),
    "max_tres_run_mins_per_account": Setting("limits/max/tres/minutes/per/account", TRES),
    "max_tres_run_mins_per_user": Setting("limits/max/tres/minutes/per/user", TRES),
    "max_wall": Setting("limits/max/wall_clock/per/job", MINUTES),
    "min_prio_threshold": Setting("limits/min/priority_threshold"),
    "min_tres_per_job": Setting("limits/min/tres/per/job", TRES),
}
QOS = {
    "description": Setting("description", TEXT, ""),
    "priority": Setting("priority", NUMBER, 0),
    "flags": Setting("flags", FLAGS, ()),
    "preempt": Setting("preempt/list", QOS_LIST, ()),
    "preempt_mode": Setting("preempt/mode", MODE, MODES[0]),
    "preempt_exempt_time": Setting("preempt/exempt_time"),
    "grace_time": Setting("limits/grace_time", SECONDS, 0),
    "usage_factor": Setting("usage_factor", REAL, 1.0),
    "usage_threshold": Setting("usage_threshold", REAL),
    "limit_factor": Setting("limits/factor", REAL),
    **QOS_LIMITS,
}


def tres_name(item: Raw) -> str:
    """``gres/gpu`` of {type: gres, name: gpu}."""
    return "/".join(part for part in (str(item.get("type") or ""), str(item.get("name") or "")) if part)


def read(known: Mapping[str, Setting], item: Raw) -> dict[str, Any]:
    """The settings of one entry of a list of REST."""
    return {name: _read(setting, _at(item, setting.path)) for name, setting in known.items()}


def _at(item: Any, path: str) -> Any:
    for key in path.split("/"):
        item = item.get(key) if isinstance(item, Mapping) else None
    return item


def _read(setting: Setting, raw: Any) -> Any:
    found = _READERS[setting.kind](raw)
    return setting.unset if found is None else found


def _read_real(raw: Any) -> float | None:
    if isinstance(raw, Mapping):
        return None if raw.get("infinite") or not raw.get("set", True) else _read_real(raw.get("number"))
    return None if raw is None else float(raw)


def _read_shares(raw: Any) -> Any:
    shares = number(raw)
    return PARENT if shares == _USE_PARENT else shares


def _read_mode(raw: Any) -> str | None:
    return next((word.lower() for word in words(raw) if word.lower() in MODES), None)


def read_tres(raw: Any) -> dict[str, int]:
    """{name: count} of a list of TRES, by name."""
    found = {tres_name(item): number(item.get("count")) for item in raw or ()}
    return {name: count for name, count in sorted(found.items()) if count is not None and count >= 0}


def _sorted_words(raw: Any) -> tuple[str, ...]:
    return tuple(sorted(words(raw)))


_READERS: Mapping[str, Callable[[Any], Any]] = {
    NUMBER: number,
    MINUTES: number,
    SECONDS: number,
    REAL: _read_real,
    TRES: read_tres,
    QOS_LIST: _sorted_words,
    FLAGS: lambda raw: tuple(sorted(_FLAGS_OF_REST[word] for word in words(raw) if word in _FLAGS_OF_REST)),
    MODE: _read_mode,
    SHARES: _read_shares,
    QOS_NAME: lambda raw: None if raw is None else str(raw),
    TEXT: lambda raw: None if raw is None else str(raw),
}


def write(known: Mapping[str, Setting], settings: Settings, before: Settings, tres: Tres) -> dict[str, Any]:
    """Settings as REST takes them. ``before`` is what there was: a TRES that goes has to be named.

    All of them are sent, not only those that change: what is left out may be set back (limits in TRES of an
    association, flags of a QOS).
    """
    body: dict[str, Any] = {}
    for name, setting in known.items():
        if name not in settings:
            continue
        if setting.kind == QOS_NAME and not settings[name] and not before.get(name):
            continue
        value = _write(setting, settings[name], before.get(name), tres)
        place = body
        *folders, last = setting.path.split("/")
        for key in folders:
            place = place.setdefault(key, {})
        place[last] = value
    return body


def _write(setting: Setting, value: Any, before: Any, tres: Tres) -> Any:
    kind = setting.kind
    if kind == TRES:
        return _write_tres(value, before or {}, tres)
    if kind in (NUMBER, MINUTES, REAL):
        # slurmrestd warns of a whole number where it expects another.
        zero = 0.0 if kind == REAL else 0
        return {"set": True, "infinite": value is None, "number": zero if value is None else value}
    if kind == SHARES:
        return _USE_PARENT if value == PARENT else value
    if kind == FLAGS:
        return [FLAG_WORDS[word] for word in value]
    if kind == MODE:
        return [_CLUSTER_MODE if value == MODES[0] else value.upper()]
    if kind == QOS_LIST:
        return list(value)
    # An empty name is looked up and not found; null takes the default QOS away.
    return None if kind == QOS_NAME and not value else value


def _write_tres(value: Mapping[str, int], before: Mapping[str, int], tres: Tres) -> list[dict[str, Any]]:
    counts = dict.fromkeys(before, _NO_COUNT) | dict(value)
    entries = []
    for name, count in sorted(counts.items()):
        kind, _slash, rest = name.partition("/")
        # Without the id slurmrestd of 24.11 does not find the TRES.
        entries.append({"type": kind, "name": rest, "id": tres[name], "count": count})
    return entries


def shown(known: Mapping[str, Setting], settings: Settings) -> dict[str, Any]:
    """What is set, as options of module accounting have it, without what is not set."""
    found = {
        name: list(settings[name]) if isinstance(settings[name], tuple) else settings[name]
        for name, setting in known.items()
        if name in settings and settings[name] != setting.unset
    }
    limits = {name: found.pop(name) for name in list(found) if name in ASSOCIATION_LIMITS or name in QOS_LIMITS}
    return found | ({"limits": limits} if limits else {})
