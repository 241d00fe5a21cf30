# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Collects everything that is wrong with a user's variables, so that it is said at once and not one run at a time."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .errors import OperationError


class Problems:
    """A list of (variable path, what is wrong); raised together."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []

    def add(self, path: str, text: str) -> None:
        """Notes one problem; the same one is kept once."""
        if (path, text) not in self._found:
            self._found.append((path, text))

    def __bool__(self) -> bool:
        return bool(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def lines(self) -> list[str]:
        """``path: text`` of each problem, in the order found."""
        return [f"{path}: {text}" for path, text in self._found]

    def raise_if_any(self, what: str) -> None:
        """Raises one OperationError (InvalidVariables) that lists them all; ``what`` says what cannot be made."""
        if not self._found:
            return
        number = len(self._found)
        head = f"{what}: {number} problem{'s' if number > 1 else ''} in the variables."
        raise OperationError(
            "\n  ".join([head, *self.lines]),
            reason="InvalidVariables",
            remaining=[path for path, text in self._found],
            hint="\nNothing was sent to the cluster.",
        )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` (did you mean x?)`` when a known word is close, else nothing."""
    lowered = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=0.75)
    return f" (did you mean {lowered[close[0]]}?)" if close else ""
