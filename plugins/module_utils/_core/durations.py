# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Spans of time as people write them: 90d, 12h, 10m, 30s, or seconds."""

from __future__ import annotations

import re

from .errors import OperationError

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SPAN = re.compile(r"(\d{1,9})\s*([smhdw]?)", re.ASCII)


def seconds(text: str, option: str) -> int:
    """Seconds of such a text; raises OperationError (InvalidVariables) that names the option."""
    match = _SPAN.fullmatch(text.strip().lower())
    if match is None:
        raise OperationError(
            f"{option} is {text!r}, which is no span of time such as 90d, 12h, 10m or 30s.", reason="InvalidVariables"
        )
    return int(match[1]) * _UNITS[match[2]]
