# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What one look during a wait shows: what is still to come, and what stands in the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

INFORMATION = float("inf")  # a grace that never ends: told when the time is over, but no reason to give up early


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that keeps a wait from ending well.

    ``key`` is the same as long as it is the same trouble. Once it has lasted ``grace`` seconds the wait fails; what
    can never heal has a grace of 0. ``subject`` is the object that has the trouble, "Kind namespace/name".
    """

    key: str
    text: str
    grace: float
    reason: str = "Failed"
    hint: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look: what is still to come (for people), and what stands in the way."""

    remaining: Sequence[str] = ()
    troubles: Sequence[Trouble] = field(default=())
