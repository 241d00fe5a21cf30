# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""One thing to do, as every planner says it and every module returns it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Action:
    """What is done to which target and why, with the state before and after.

    ``before`` and ``after`` hold only what changes and never a secret. ``diff`` holds whole texts or objects for
    --diff. ``stage`` groups neighbours that may be done in one call or side by side. ``subject`` is for the one who
    carries it out and is not returned.
    """

    kind: str
    target: str
    why: str
    before: Any = None
    after: Any = None
    diff: tuple[Any, Any] | None = field(default=None, repr=False)
    stage: str = ""
    subject: Any = field(default=None, repr=False, compare=False)
    done: bool = field(default=False, compare=False)

    def result(self) -> Mapping[str, Any]:
        """Return the action as modules return it."""
        return {
            "kind": self.kind,
            "target": self.target,
            "before": self.before,
            "after": self.after,
            "why": self.why,
            "done": self.done,
        }
