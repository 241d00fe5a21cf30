# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""How many nodes an option means that takes a number or a share."""

from __future__ import annotations

import re

from .errors import OperationError


def share(text: str, total: int, option: str) -> int:
    """How many nodes "5" or "25%" are; a share is rounded down, but never to none. Raises OperationError (Invalid)."""
    match = re.fullmatch(r"(\d+)(%?)", text.strip())
    if not match or (match[2] and int(match[1]) > 100):
        raise OperationError(
            f"{option} is {text!r}, which is neither a number of nodes nor a share such as 25%.", reason="Invalid"
        )
    return max(1, total * int(match[1]) // 100) if match[2] else int(match[1])
