# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Reads one dictionary that a user wrote: types checked, defaults filled in, unknown keys refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .problems import Problems, did_you_mean

CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


class Fields:
    """Typed access to the keys of one dictionary; what is wrong goes to ``problems`` under ``path``.

    After a problem the default is given back, so that the rest can be checked as well.
    """

    def __init__(self, data: Any, path: str, problems: Problems, known: Iterable[str]) -> None:
        self.path = path
        self.problems = problems
        self._data: Mapping[str, Any] = {}
        if not isinstance(data, Mapping):
            problems.add(path, f"must be a dictionary, not {kind_of(data)}")
            return
        self._data = data
        names = list(known)
        for key in data:
            if key not in names:
                problems.add(f"{path}.{key}", f"unknown key{did_you_mean(str(key), names)}")

    def at(self, key: str) -> str:
        """The path of a key, for messages."""
        return f"{self.path}.{key}" if self.path else key

    def given(self, key: str) -> bool:
        """True when the user set the key to something else than null."""
        return self._data.get(key) is not None

    def raw(self, key: str, default: Any = None) -> Any:
        """The value as the user wrote it."""
        value = self._data.get(key)
        return default if value is None else value

    def text(self, key: str, default: str = "", *, required: bool = False, multiline: bool = False) -> str:
        """A string; a number is taken as its text (a YAML reader makes one of ``version: 26.05``)."""
        value = self._value(key, required)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            self._wrong(key, "a string", value)
            return default
        text = str(value)
        if not multiline and CONTROL_CHARACTERS.search(text):
            self.problems.add(self.at(key), "must not hold line breaks or control characters")
            return default
        if multiline and "\0" in text:
            self.problems.add(self.at(key), "must not hold NUL characters")
            return default
        if required and not text:
            self.problems.add(self.at(key), "must not be empty")
        return text

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self._value(key, False)
        if value is None:
            return default
        if not isinstance(value, bool):
            self._wrong(key, "true or false", value)
            return default
        return value

    def integer(self, key: str, default: int, *, minimum: int = 0, maximum: int = 2**31 - 1) -> int:
        """A whole number; text of digits (as templates give) is taken too."""
        found = self.optional_integer(key, minimum=minimum, maximum=maximum)
        return default if found is None else found

    def optional_integer(self, key: str, *, minimum: int = 0, maximum: int = 2**31 - 1) -> int | None:
        """A whole number, or None when not set."""
        value = self._value(key, False)
        if value is None:
            return None
        if isinstance(value, str) and re.fullmatch(r"\d{1,10}", value, re.ASCII):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self._wrong(key, "a whole number", value)
            return None
        if not minimum <= value <= maximum:
            self.problems.add(self.at(key), f"must be from {minimum} to {maximum}, is {value}")
            return None
        return int(value)

    def choice(self, key: str, choices: Iterable[str], default: str) -> str:
        """One of a few words."""
        value = self.text(key, default)
        options = list(choices)
        if value not in options:
            self.problems.add(self.at(key), f"must be one of {', '.join(options)}, is {value!r}")
            return default
        return value

    def mapping(self, key: str) -> dict[str, Any]:
        """A dictionary with string keys."""
        value = self._value(key, False)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self._wrong(key, "a dictionary", value)
            return {}
        for name in value:
            if not isinstance(name, str):
                self.problems.add(self.at(key), f"key {name!r} must be a string, is {kind_of(name)}")
        return {name: item for name, item in value.items() if isinstance(name, str)}

    def texts(self, key: str) -> dict[str, str]:
        """A dictionary of strings to strings; numbers and booleans become text as Kubernetes wants it."""
        result = {}
        for name, item in self.mapping(key).items():
            if isinstance(item, (Mapping, list, tuple)) or item is None:
                self.problems.add(f"{self.at(key)}.{name}", f"must be a string, is {kind_of(item)}")
                continue
            result[name] = str(item).lower() if isinstance(item, bool) else str(item)
        return result

    def items(self, key: str) -> list[Any]:
        """A list of anything."""
        value = self._value(key, False)
        if value is None:
            return []
        if not isinstance(value, (list, tuple)):
            self._wrong(key, "a list", value)
            return []
        return list(value)

    def words(self, key: str) -> list[str]:
        """A list of strings; a single string counts as a list of one."""
        value = self._value(key, False)
        if isinstance(value, str):
            value = [value]
        if value is None:
            return []
        if not isinstance(value, (list, tuple)):
            self._wrong(key, "a list of strings", value)
            return []
        words = []
        for index, item in enumerate(value):
            if isinstance(item, bool) or not isinstance(item, (str, int, float)):
                self.problems.add(f"{self.at(key)}[{index}]", f"must be a string, is {kind_of(item)}")
            elif CONTROL_CHARACTERS.search(str(item)):
                self.problems.add(f"{self.at(key)}[{index}]", "must not hold line breaks or control characters")
            else:
                words.append(str(item))
        return words

    def dictionaries(self, key: str) -> list[dict[str, Any]]:
        """A list of dictionaries."""
        found = []
        for index, item in enumerate(self.items(key)):
            if isinstance(item, Mapping):
                found.append(dict(item))
            else:
                self.problems.add(f"{self.at(key)}[{index}]", f"must be a dictionary, is {kind_of(item)}")
        return found

    def _value(self, key: str, required: bool) -> Any:
        value = self._data.get(key)
        if value is None and required:
            self.problems.add(self.at(key), "is required")
        return value

    def _wrong(self, key: str, expected: str, value: Any) -> None:
        self.problems.add(self.at(key), f"must be {expected}, is {kind_of(value)}")


def kind_of(value: Any) -> str:
    """A type's name for people who write YAML."""
    if value is None:
        return "null"
    for kind, name in (
        (bool, "a boolean"),
        (int, "a number"),
        (float, "a number"),
        (str, "a string"),
        (Mapping, "a dictionary"),
        (list, "a list"),
        (tuple, "a list"),
    ):
        if isinstance(value, kind):
            return name
    return type(value).__name__
