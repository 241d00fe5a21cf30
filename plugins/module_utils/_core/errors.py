# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The one exception that everything below the module edge raises."""

from __future__ import annotations

from collections.abc import Sequence

NOTHING_CHANGED = "Nothing was changed."  # what many a hint begins with


class OperationError(Exception):
    """Something could not be done, said so that a person can act on it.

    ``msg`` says what and where, ``reason`` is one stable CamelCase word for programs, ``remaining`` names what is
    still to be done (nodes, objects), ``hint`` says what to do next.
    """

    def __init__(self, msg: str, *, reason: str, remaining: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(msg)
        self.msg = msg
        self.reason = reason
        self.remaining = tuple(remaining)
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.msg} {self.hint}".strip()
