# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Reads, writes and compares slurm.conf and its relatives (cgroup.conf, gres.conf, topology.conf, slurmdbd.conf).

A file is an ordered list of lines; a line is an ordered list of key=value pairs. Keys are case-insensitive, the first
pair of a record line (NodeName=..., PartitionName=...) names the record. Comments and line breaks are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import OperationError
from .fields import CONTROL_CHARACTERS

# Keys that begin a line of their own with further keys behind them.
RECORD_KEYS = {
    key.lower(): key
    for key in ("BlockName", "DownNodes", "FrontendName", "Name", "NodeName", "NodeSet", "PartitionName", "SwitchName")
}
# Keys that may stand on several lines, each adding to the others.
REPEATED_KEYS = {key.lower(): key for key in ("Epilog", "EpilogSlurmctld", "Include", "Prolog", "PrologSlurmctld",
                                              "SlurmctldHost")}  # fmt: skip

# A value is quoted text, or text without blanks; Slurm's own expression (src/common/parse_config.c) is as wide.
_PAIR = re.compile(r"\s*(?P<key>[A-Za-z0-9_.]+)\s*(?P<operator>[-*+/]?)=\s*(?:\"(?P<quoted>[^\"]*)\"|(?P<plain>\S+))")
_INCLUDE = re.compile(r"\s*include\s+(?P<path>\S+)\s*$", re.IGNORECASE)
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Line:
    """One logical line: its pairs in order, as text without quotes."""

    pairs: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """The first key: the setting's, or the kind of record."""
        return self.pairs[0][0]

    @property
    def value(self) -> str:
        """The first value: the setting's, or the record's name."""
        return self.pairs[0][1]

    def render(self) -> str:
        """The line as Slurm reads it."""
        if self.key.lower() == "include":
            return f"Include {self.value}"
        return " ".join(f"{key}={quote(value)}" for key, value in self.pairs)


def parse(text: str) -> list[Line]:
    """The logical lines of a file; raises OperationError (InvalidSlurmConf) with the line's number."""
    lines: list[Line] = []
    pending = ""
    first = 0
    for number, raw in enumerate(text.split("\n"), start=1):
        first = first or number
        line = _without_comment(raw.rstrip("\r"))
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        pending += line
        lines.extend(_parse_line(pending.strip(), first))
        pending, first = "", 0
    if pending.strip():
        lines.extend(_parse_line(pending.strip(), first))
    return lines


def render(lines: Iterable[Line]) -> str:
    """The text of a file, one line a line, with a line break at the end."""
    return "".join(f"{line.render()}\n" for line in lines)


def quote(value: str) -> str:
    """A value as Slurm reads it: quoted when it has blanks or is empty, # and backslash escaped."""
    escaped = value.replace("\\", "\\\\").replace("#", "\\#")
    return f'"{escaped}"' if not value or re.search(r"\s", value) else escaped


def key_problem(key: Any) -> str:
    """Why something cannot be a key of slurm.conf, or empty text."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        return "is not a key: letters, digits and '_', beginning with a letter"
    return ""


def value_text(value: Any) -> str:
    """A value from YAML as text: true is YES, a list is joined by commas; raises ValueError with what is wrong."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, (list, tuple)):
        words = [value_text(item) for item in value if not isinstance(item, (list, tuple, Mapping))]
        if len(words) != len(value):
            raise ValueError("a list must hold only strings and numbers")
        if any("," in word for word in words):
            raise ValueError("an item of a list must not hold a comma")
        return ",".join(word for word in words if word)
    if isinstance(value, (int, float, str)):
        text = str(value)
        if CONTROL_CHARACTERS.search(text):
            raise ValueError("must not hold line breaks or control characters")
        if '"' in text:
            raise ValueError("must not hold a double quote: Slurm has no way to write one in a value")
        return text
    raise ValueError("must be a string, number, boolean or list of these")


def union(ours: Sequence[str], text: str, path: str, refuse: Callable[[str, str], None]) -> str:
    """Our words, then the user's, joined by commas; ``refuse`` is told of a word that contradicts one of ours."""
    words = list(ours)
    parameters = {word.partition("=")[0].lower(): word for word in ours if "=" in word}
    for word in (part.strip() for part in text.split(",")):
        other = parameters.get(word.partition("=")[0].lower())
        if other and word != other:
            refuse(path, f"{word} contradicts {other}, as the collection sets it")
        elif word and word.lower() not in (known.lower() for known in words):
            words.append(word)
    return ",".join(words)


def to_lines(settings: Mapping[str, Any]) -> list[Line]:
    """Lines of a dictionary as from_lines gives it; raises OperationError (InvalidSlurmConf) that lists what is wrong.

    null is left out; a list of dictionaries under a record key gives one line each; a list under a repeated key
    (SlurmctldHost, Prolog) too; every other list is joined by commas.
    """
    lines: list[Line] = []
    wrong: list[str] = []
    for key, value in settings.items():
        if key_problem(key):
            wrong.append(f"{key!r} {key_problem(key)}")
        elif value is None:
            continue
        elif key.lower() in RECORD_KEYS:
            records = value if isinstance(value, (list, tuple)) else [value]
            for index, record in enumerate(records):
                try:
                    lines.append(record_line(key, record))
                except ValueError as error:
                    wrong.append(f"{key}[{index}]{error}")
        else:
            repeated = key.lower() in REPEATED_KEYS and isinstance(value, (list, tuple))
            for item in value if repeated else [value]:
                try:
                    lines.append(Line(((key, value_text(item)),)))
                except ValueError as error:
                    wrong.append(f"{key} {error}")
    if wrong:
        raise OperationError("Cannot write a Slurm configuration: " + "; ".join(wrong) + ".", reason="InvalidSlurmConf")
    return lines


def record_line(key: str, record: Any) -> Line:
    """One record line; raises ValueError that begins with the key at fault."""
    if not isinstance(record, Mapping):
        raise ValueError(": must be a dictionary such as {" + key + ": name, ...}")
    lowered = {str(name).lower(): name for name in record}
    if len(lowered) < len(record):
        raise ValueError(": two keys differ only in case")
    if key.lower() not in lowered:
        raise ValueError(f".{key}: is required")
    pairs = []
    for name in sorted(record, key=lambda name: str(name).lower() != key.lower()):
        if key_problem(name):
            raise ValueError(f".{name} {key_problem(name)}")
        if record[name] is None:
            continue
        try:
            pairs.append((name, value_text(record[name])))
        except ValueError as error:
            raise ValueError(f".{name}: {error}") from error
    return Line(tuple(pairs))


def from_lines(lines: Iterable[Line]) -> dict[str, Any]:
    """A dictionary of the settings: records and repeated keys as lists, everything else the last value given."""
    result: dict[str, Any] = {}
    spelling: dict[str, str] = {}
    for line in lines:
        lowered = line.key.lower()
        key = spelling.setdefault(lowered, RECORD_KEYS.get(lowered) or REPEATED_KEYS.get(lowered) or line.key)
        if lowered in RECORD_KEYS:
            result.setdefault(key, []).append({key: line.value, **dict(line.pairs[1:])})
        elif lowered in REPEATED_KEYS:
            result.setdefault(key, []).append(line.value)
        else:
            result[key] = line.value
    return result


def differences(before: str, after: str) -> list[tuple[str, str | None, str | None]]:
    """(what, before, after) of each setting or record that differs; order, case, quoting and comments do not count."""
    old, new = _comparable(before), _comparable(after)
    changes = []
    for name in dict.fromkeys([*old, *new]):
        if old.get(name, ("", None))[1] != new.get(name, ("", None))[1]:
            shown = (new.get(name) or old[name])[0]
            changes.append((shown, _shown(old.get(name)), _shown(new.get(name))))
    return changes


def _comparable(text: str) -> dict[str, tuple[str, Any]]:
    found: dict[str, tuple[str, Any]] = {}
    for line in parse(text):
        lowered = line.key.lower()
        if lowered in RECORD_KEYS:
            pairs = {key.lower(): value for key, value in line.pairs}
            found[f"{lowered}={line.value}"] = (f"{line.key}={line.value}", pairs)
        elif lowered in REPEATED_KEYS:
            shown, values = found.get(lowered, (line.key, ()))
            found[lowered] = (shown, (*values, line.value))
        else:
            found[lowered] = (line.key, line.value)
    return found


def _shown(entry: tuple[str, Any] | None) -> str | None:
    if entry is None:
        return None
    value = entry[1]
    if isinstance(value, dict):
        return " ".join(f"{key}={text}" for key, text in value.items())
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _without_comment(line: str) -> str:
    """The line up to the first # that is not escaped (quotes do not protect it, as in Slurm)."""
    for match in re.finditer("#", line):
        position = match.start()
        backslashes = position - len(line[:position].rstrip("\\"))
        if backslashes % 2 == 0:
            return line[:position]
    return line


def _parse_line(text: str, number: int) -> list[Line]:
    if not text:
        return []
    include = _INCLUDE.fullmatch(text)
    if include:
        return [Line((("Include", _unescape(include["path"])),))]
    pairs = []
    position = 0
    while text[position:].strip():
        match = _PAIR.match(text, position)
        if match is None:
            raise OperationError(
                f"Line {number} cannot be read: {text[position:].strip()[:60]!r} is not key=value.",
                reason="InvalidSlurmConf",
            )
        if match["operator"]:
            raise OperationError(
                f"Line {number}: {match['key']}{match['operator']}= is not supported.", reason="InvalidSlurmConf"
            )
        value = match["plain"] if match["quoted"] is None else match["quoted"]
        pairs.append((match["key"], _unescape(value)))
        position = match.end()
    if pairs[0][0].lower() in RECORD_KEYS:
        return [Line(tuple(pairs))]
    return [Line((pair,)) for pair in pairs]


def _unescape(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value)
