# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Compare what is wanted with what the API server holds, although it adds defaults and rewrites values.

``contains`` must never say "the same" of things that differ; where it cannot know, it says "differs" and the planner
asks the server by a dry run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

Path = tuple[str, ...]

# Lists whose items the server merges by a key: others (an admission webhook, the kubelet) may add items of their own.
# Every other list belongs to whoever applied it, so there a longer live list is a difference.
_MERGED_LISTS = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "ports": ("containerPort", "port", "name"),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "secrets": ("name",),
    "ownerReferences": ("uid",),
}
# Below these keys values are quantities, which the server writes in its own way (1000m becomes 1).
_QUANTITY_PARENTS = frozenset(
    {"requests", "limits", "capacity", "hard", "default", "defaultRequest", "max", "min", "overhead"}
)
_QUANTITY_KEYS = frozenset({"sizeLimit", "divisor"})
# Fields without a pointer behind them: the server drops them when they are false or empty.
_DROPPED_WHEN_EMPTY = frozenset(
    {
        "value",
        "readOnly",
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "stdin",
        "stdinOnce",
        "tty",
        "publishNotReadyAddresses",
        "suspend",
    }
)

_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20,
    "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50,
    "Ei": Decimal(2) ** 60,
}


def quantity(value: Any) -> Decimal | None:
    """Return a Kubernetes quantity as a number, or None if it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    text = str(value).strip()
    digits = text.rstrip("numkKMGTPEi")
    suffix = text[len(digits) :]
    if suffix.startswith("E") and suffix not in _SUFFIXES:
        return None
    try:
        return Decimal(digits) * _SUFFIXES[suffix]
    except (InvalidOperation, KeyError):
        return None


def contains(live: Any, wanted: Any, path: Path = ()) -> bool:
    """Return whether ``live`` holds everything that ``wanted`` says, defaults and rewriting by the server aside."""
    if wanted is None:
        return True
    if isinstance(wanted, Mapping):
        if not wanted:
            # {} and absent are told apart by few fields, and those keep the {}.
            return live is None or isinstance(live, Mapping)
        if not isinstance(live, Mapping):
            return False
        return all(_value_contained(live, key, value, path) for key, value in wanted.items())
    if isinstance(wanted, (list, tuple)):
        if not wanted:
            return live is None or live == []
        return isinstance(live, (list, tuple)) and _list_contained(live, wanted, path)
    return _same_scalar(live, wanted, path)


def _value_contained(live: Mapping[str, Any], key: str, wanted: Any, path: Path) -> bool:
    if key not in live and key in _DROPPED_WHEN_EMPTY and wanted in ("", False):
        return True
    return contains(live.get(key), wanted, (*path, key))


def _list_contained(live: Sequence[Any], wanted: Sequence[Any], path: Path) -> bool:
    if len(live) == len(wanted) and all(contains(have, want, path) for have, want in zip(live, wanted, strict=True)):
        return True
    for key in _MERGED_LISTS.get(path[-1] if path else "", ()):
        if not all(isinstance(item, Mapping) and key in item for item in (*live, *wanted)):
            continue
        by_key: dict[Any, list[Any]] = {}
        for item in live:
            by_key.setdefault(item[key], []).append(item)
        # The order of merged lists is the server's, except that containers start and env expands in order.
        in_order = [item[key] for item in live if any(item[key] == want[key] for want in wanted)]
        if path[-1] in ("env", "initContainers") and in_order != [want[key] for want in wanted]:
            return False
        return all(any(contains(have, want, path) for have in by_key.get(want[key], ())) for want in wanted)
    return False


def _same_scalar(live: Any, wanted: Any, path: Path) -> bool:
    if isinstance(live, bool) or isinstance(wanted, bool):
        return live is wanted
    if live == wanted:
        return True
    if path and (path[-1] in _QUANTITY_KEYS or _QUANTITY_PARENTS.intersection(path[:-1])):
        have = quantity(live)
        return have is not None and have == quantity(wanted)
    return False


def changes(before: Any, after: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    """Return the leaves that differ: path -> (before, after), None for what is not there."""
    if before == after and type(before) is type(after):
        return {}
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        found: dict[str, tuple[Any, Any]] = {}
        for key in sorted({*before, *after}, key=str):
            step = f"{path}.{key}" if "." not in str(key) else f"{path}[{key}]"
            found |= changes(before.get(key), after.get(key), step)
        return found
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        found = {}
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            name = new["name"] if isinstance(new, Mapping) and "name" in new else number
            found |= changes(old, new, f"{path}[{name}]")
        return found
    return {path.lstrip("."): (before, after)}
