# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Values as the REST API of Slurm writes them: numbers that may be unset or infinite, lists of flags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def number(value: Any) -> int | None:
    """A number of the API: a plain one, or {set, infinite, number}; None when it is not set or infinite."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, Mapping):
        if not value.get("set", True) or value.get("infinite"):
            return None
        return number(value.get("number"))
    if isinstance(value, (int, float)):
        return int(value)
    text = str(value)
    return int(text) if text.lstrip("-").isdigit() else None


def infinite(value: Any) -> bool:
    """True for a number without an end (a time limit of INFINITE)."""
    return isinstance(value, Mapping) and bool(value.get("infinite"))


def given(value: int) -> dict[str, Any]:
    """A number as the API wants it."""
    return {"set": True, "infinite": False, "number": value}


def words(value: Any) -> list[str]:
    """A list of words; older parsers join them by commas."""
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [word for word in value.split(",") if word]
    return [str(word) for word in value]
