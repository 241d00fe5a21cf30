# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""From actions to what a module returns: changed, actions, diff, remaining, api_calls, duration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.yaml_text import text

READS = frozenset({"get", "list", "watch", "discover", "dry-run"})


def api_calls(kubernetes: Counter[str], slurm: Counter[str]) -> dict[str, Any]:
    """Return how many calls each side took, and how many of them could change something (dry runs cannot)."""
    writes = sum(count for verb, count in (*kubernetes.items(), *slurm.items()) if verb not in READS)
    return {
        "kubernetes": sum(kubernetes.values()),
        "slurm": sum(slurm.values()),
        "writes": writes,
        "verbs": dict(sorted((kubernetes + slurm).items())),
    }


def diffs(actions: Sequence[Action]) -> list[dict[str, str]]:
    """Return the --diff of all actions: one before and after for each target, YAML as people write it."""
    found = []
    for action in actions:
        if action.diff is None:
            continue
        before, after = action.diff
        found.append(
            {
                "before_header": action.target,
                "after_header": f"{action.target} ({action.kind}: {action.why})",
                "before": text(before),
                "after": text(after),
            }
        )
    return found


def done_and_not(actions: Sequence[Action], limit: int = 10) -> str:
    """Return a sentence about what a failed run did and did not do; empty if there was nothing to do."""
    done = [action for action in actions if action.done]
    left = [action for action in actions if not action.done]
    if not done:
        return " Nothing was changed." if left else ""
    sentence = f" Done: {_names(done, limit)}."
    if left:
        sentence += f" Not done: {_names(left, limit)}."
    return sentence


def _names(actions: Sequence[Action], limit: int) -> str:
    names = [f"{action.kind} {action.target}" for action in actions[:limit]]
    return ", ".join(names) + (f" and {len(actions) - limit} more" if len(actions) > limit else "")
