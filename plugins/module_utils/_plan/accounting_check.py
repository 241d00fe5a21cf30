# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What is refused of a description of accounting before anything is written: names that are not there, and circles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from .._core import accounting_settings as known
from .._core.accounting import NORMAL, ROOT, Accounting
from .._core.accounting_options import Wanted
from .._core.accounting_settings import Settings
from .._core.problems import Problems, did_you_mean


def check(seen: Accounting, wanted: Wanted, *, prune: bool) -> None:
    """Raise OperationError (InvalidVariables) with every name that is not there, and with circles."""
    problems = Problems()
    qos = _there(seen.qos, wanted.qos, prune, {NORMAL})
    accounts = _there(seen.accounts, wanted.accounts, prune, {ROOT})
    for name, settings in (wanted.qos or {}).items():
        _check_names(problems, f"qos[{name}].preempt", "QOS", settings.get("preempt", ()), qos)
        _check_tres(problems, f"qos[{name}]", settings, seen.tres)
        _check_emptied(problems, f"qos[{name}].preempt", settings, seen.qos.get(name, {}), f"qos {name}")
    preempts = {name: item["preempt"] for name, item in seen.qos.items()} | {
        name: item["preempt"] for name, item in (wanted.qos or {}).items() if "preempt" in item
    }
    _check_circle(problems, "qos[{}].preempt", preempts)
    for name, settings in (wanted.accounts or {}).items():
        path = f"accounts[{name}]"
        _check_names(problems, f"{path}.parent", "account", _one(settings.get("parent")), accounts)
        _check_association(problems, path, settings, seen.accounts.get(name, {}), qos, seen.tres)
        _check_emptied(problems, f"{path}.qos", settings, seen.accounts.get(name, {}), f"account {name}")
    parents = {name: _one(item.get("parent")) for name, item in seen.accounts.items()} | {
        name: _one(parent_of(name, item, seen)) for name, item in (wanted.accounts or {}).items()
    }
    _check_circle(problems, "accounts[{}].parent", parents)
    for (account, user), settings in wanted.members.items():
        path = f"users[{user}].accounts"
        _check_names(problems, path, "account", [account], accounts)
        before = seen.members.get((account, user), {})
        _check_association(problems, path, settings, before, qos, seen.tres)
        _check_emptied(problems, f"{path}.qos", settings, before, f"user {user} where account={account}")
    problems.raise_if_any("Accounting")


def _there(seen: Collection[str], wanted: Collection[str] | None, prune: bool, always: Collection[str]) -> set[str]:
    """Names that will be there: with ``prune``, what is described only."""
    return {*(wanted or ()), *always, *(() if prune and wanted is not None else seen)}


def _one(name: str | None) -> list[str]:
    return [name] if name else []


def _check_names(problems: Problems, path: str, what: str, names: Iterable[str], there: Collection[str]) -> None:
    for name in names:
        if name not in there:
            problems.add(path, f"there is no {what} {name}, and none is described{did_you_mean(name, there)}")


def _check_tres(problems: Problems, path: str, settings: Settings, tres: known.Tres) -> None:
    for limit, counts in settings.items():
        for name in counts if isinstance(counts, Mapping) else ():
            if name not in tres:
                hint = did_you_mean(name, tres) or "; AccountingStorageTRES of slurm.conf names what is counted"
                problems.add(f"{path}.limits.{limit}", f"slurmdbd does not know the TRES {name}{hint}")


def _check_emptied(problems: Problems, path: str, settings: Settings, before: Settings, what: str) -> None:
    """An empty list of QOS is "no change" to slurmdbd, and slurmrestd knows no other word for it (24.11, 26.05)."""
    key = path.rpartition(".")[2]
    if before.get(key) and settings.get(key) == ():
        problems.add(path, f"the last QOS cannot be taken away over REST; run: sacctmgr modify {what} set {key}=''")


def _check_association(
    problems: Problems, path: str, settings: Settings, before: Settings, qos: Collection[str], tres: known.Tres
) -> None:
    _check_names(problems, f"{path}.qos", "QOS", settings.get("qos", ()), qos)
    default = settings.get("default_qos", "")
    _check_names(problems, f"{path}.default_qos", "QOS", _one(default), qos)
    allowed = settings.get("qos", before.get("qos", ()))
    if default and allowed and default not in allowed:
        problems.add(f"{path}.default_qos", f"{default} is not one of its QOS ({', '.join(allowed)})")
    _check_tres(problems, path, settings, tres)


def _check_circle(problems: Problems, path: str, above: Mapping[str, Iterable[str]]) -> None:
    for start in above:
        reached: set[str] = set()
        ahead = [*above[start]]
        while ahead:
            name = ahead.pop()
            if name not in reached:
                reached.add(name)
                ahead += above.get(name, ())
        if start in reached:
            problems.add(path.format(start), f"comes back to {start}")


def parent_of(name: str, settings: Settings, seen: Accounting) -> str:
    """What its parent shall be: as described, else as it is, else root."""
    if name == ROOT:
        return ""
    return str(settings.get("parent") or seen.accounts.get(name, {}).get("parent") or ROOT)
