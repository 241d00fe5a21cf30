# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Slurm host lists: ``rack[1-2]node[01-16],login`` to names and back, in the order of the real Slurm.

Each rule here was compared with ``scontrol show hostnames`` and ``scontrol show hostlist`` of 26.05; the live test
repeats that. Where Slurm guesses (``a[1-]`` is read as a1, ``a1]`` as a name, ``a[ 1-2]`` as a01,a02) we refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .errors import OperationError

# Slurm refuses a range of more names (MAX_RANGE in src/common/hostlist.c) and a bracket of more ranges.
MAX_RANGE = 65536
# An expression as short as a[0-999999999] must not eat the memory of the controller.
MAX_NAMES = 1_000_000

_DIGITS = "0123456789"
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)
# What may not stand in a name: Slurm's own syntax, quotes and anything that is not printable.
_BAD_IN_NAME = re.compile(r"[\[\]{}\s,=#\"'\\\x00-\x1f\x7f]")


def expand(expression: str, *, limit: int = MAX_NAMES) -> list[str]:
    """Names of a host list, in Slurm's order, duplicates kept; empty text gives no names.

    Raises OperationError (InvalidHostlist) that names the faulty part, also for more than ``limit`` names.
    """
    names: list[str] = []
    for element in split(expression):
        names.extend(_expand_element(element, expression, limit - len(names)))
    return names


def compress(names: Iterable[str], *, sort: bool = False, unique: bool = False) -> str:
    """The shortest host list that Slurm would write for these names.

    Neighbours that differ in their last number share a bracket, as in Slurm; with ``sort`` the names are ordered by
    prefix, width and number first, so that the result does not depend on the order given.
    """
    chosen: Iterable[str] = names
    if unique:
        chosen = dict.fromkeys(chosen)
    parted = [_part(name) for name in chosen]
    if sort:
        # Prefix, then width, then number: digits of one width sort as text the same as by number.
        parted.sort()
    return ",".join(_groups(parted))


def split(expression: str) -> Iterator[str]:
    """Elements of a host list: cut at commas and blanks that are outside brackets."""
    depth = 0
    start = 0
    for position, character in enumerate(expression):
        if character == "[":
            depth += 1
            if depth > 1:
                raise _invalid(expression, "a bracket inside a bracket")
        elif character == "]":
            depth -= 1
            if depth < 0:
                raise _invalid(expression, 'a "]" without its "["')
        elif character in ", \t\n" and depth == 0:
            if position > start:
                yield expression[start:position]
            start = position + 1
    if depth:
        raise _invalid(expression, 'a "[" without its "]"')
    if start < len(expression):
        yield expression[start:]


def _expand_element(element: str, expression: str, room: int) -> list[str]:
    # "a[1-2]b[3]c" splits into ["a", "1-2", "b", "3", "c"]: text at even places, ranges at odd ones.
    pieces = re.split(r"[\[\]]", element)
    for text in pieces[0::2]:
        if _BAD_IN_NAME.search(text):
            raise _invalid(expression, f"{element!r} holds a character that no node name can have")
    if len(pieces) == 1:
        return [element]
    dimensions = [_ranges(piece, expression) for piece in pieces[1::2]]
    count = 1
    for ranges in dimensions:
        count *= sum(high - low + 1 for low, high, first in ranges)
    if count > room:
        raise _invalid(expression, f"{element!r} brings the names to more than {MAX_NAMES}")
    # Slurm's order: the last bracket runs fastest, then the first, the second and so on.
    heads = [pieces[0]]
    for index, ranges in enumerate(dimensions[:-1]):
        heads = [head + value + pieces[2 * index + 2] for value in _values(ranges) for head in heads]
    last = _values(dimensions[-1])
    tail = pieces[-1]
    return [head + value + tail for head in heads for value in last]


def _ranges(text: str, expression: str) -> list[tuple[int, int, str]]:
    """(low, high, low as written) of each range between two brackets."""
    ranges = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise _invalid(expression, f"{part!r} is not a number or a range such as 1-8")
        first, second = match.groups()
        low = int(first)
        high = low if second is None else int(second)
        if high < low:
            raise _invalid(expression, f"range {part} runs backwards")
        ranges.append((low, high, first))
    return ranges


def _values(ranges: list[tuple[int, int, str]]) -> list[str]:
    values: list[str] = []
    for low, high, first in ranges:
        values.append(first)
        if high > low:
            # The width is that of the lower end, as in Slurm: [9-010] gives 9 and 10.
            width = len(first)
            values.extend([f"{number:0{width}d}" for number in range(low + 1, high + 1)])
    return values


def _part(name: str) -> tuple[str, int, str]:
    """A name as (prefix, width, trailing digits); digits too long to count stay with the prefix."""
    prefix = name.rstrip(_DIGITS)
    width = len(name) - len(prefix)
    return (prefix, width, name[len(prefix) :]) if width <= 18 else (name, 0, "")


def _groups(parted: list[tuple[str, int, str]]) -> Iterator[str]:
    """One element for each run of names with the same prefix."""
    index = 0
    total = len(parted)
    while index < total:
        prefix, width, digits = parted[index]
        if _BAD_IN_NAME.search(prefix) or not (prefix or digits):
            raise OperationError(
                f"{prefix + digits!r} cannot be a node name in a host list.",
                reason="InvalidHostlist",
                hint="Give single names, expanded, without brackets, commas or blanks.",
            )
        if not width:
            yield prefix
            index += 1
            continue
        ranges: list[str] = []
        while True:
            start, number, end = digits, int(digits), ""
            run_limit = number + MAX_RANGE
            start_width = width
            # Joined only when expanding gives exactly this text again: 9,10 and 09,10 do, 08,9 do not.
            while True:
                index += 1
                number += 1
                if index == total:
                    candidate = None
                    break
                candidate, width, digits = parted[index]
                if (
                    candidate != prefix
                    or not width
                    or number == run_limit
                    or int(digits) != number
                    or (width != start_width and (width < start_width or digits[0] == "0"))
                ):
                    break
                end = digits
            ranges.append(f"{start}-{end}" if end else start)
            if candidate != prefix or not width or len(ranges) == MAX_RANGE:
                break
        yield prefix + ranges[0] if len(ranges) == 1 and not end else f"{prefix}[{','.join(ranges)}]"


def _invalid(expression: str, why: str) -> OperationError:
    shown = expression if len(expression) <= 120 else expression[:117] + "..."
    return OperationError(f"Invalid host list {shown!r}: {why}.", reason="InvalidHostlist")
