# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Drains of nodes: whose they are, and what drains and undrains may touch.

A reason that begins with ``k8s:`` is ours. Some are Slurm's own. Every other one belongs to a person, also one that
nobody can tell anything about, and is neither undone nor overwritten.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from . import jobs
from .jobs import Job
from .snapshot import SlurmNode
from .states import NodeState

OWNER = "k8s:"
OURS, PERSON, SLURM = "ours", "person", "slurm"

# Reasons that slurmctld and slurmd set by themselves. Only the text tells: the user is SlurmUser for us, too.
_SLURMS = re.compile(
    r"(Not responding|Prolog error|Epilog error|Kill task failed|batch job complete failure|Node unexpectedly rebooted"
    r"|Low (RealMemory|CPUs|socket|TmpDisk|core|boards|thread)|gres/\S+ count|Invalid|ResumeTimeout reached|SuspendTime"
    r"|NHC|health.?check|slurmd|Registration|.* : (reboot issued|reboot timed out))",
    re.IGNORECASE | re.ASCII,
)


def owner_of(reason: str) -> str:
    """Whose a reason is: ours, slurm or person; empty for no reason."""
    text = reason.strip()
    if not text:
        return ""
    if text.startswith(OWNER):
        return OURS
    return SLURM if _SLURMS.match(text) else PERSON


def ours(reason: str) -> bool:
    """Whether we set it."""
    return owner_of(reason) == OURS


def with_owner(reason: str) -> str:
    """The reason as it is written to Slurm, on one line."""
    text = " ".join(reason.split())
    return text if text.startswith(OWNER) else f"{OWNER} {text}"


def is_foreign(state: NodeState, reason: str) -> bool:
    """Whether somebody else has taken a node from users: drained, failing or down for a reason that is not ours.

    A drain without any reason is somebody else's: we never set one. Slurm's own reason of a node that is down and not
    drained, such as Not responding, is nobody's decision.
    """
    owner = owner_of(reason)
    if state.drain:
        return owner != OURS
    return owner == PERSON and (state.down or "FAIL" in state.flags)


def is_empty(node: SlurmNode) -> bool:
    """Whether nothing runs on a node and nothing will begin: drained, or taken down by a person."""
    state = node.state
    return state.drained or (not state.drain and not state.busy and is_foreign(state, node.reason))


def note(node: SlurmNode) -> str:
    """Why a node takes no job even without a drain, or empty text."""
    if "INVALID_REG" in node.state.flags:
        return "slurmd's registration was refused (INVALID_REG): it takes no job before that is mended"
    if node.state.down:
        return "is DOWN: it takes no job before slurmd answers or somebody resumes it"
    return ""


def plain(node: SlurmNode, holders: Sequence[Job], now: float) -> dict[str, Any]:
    """What modules return of a node that is about drains."""
    return {
        "name": node.name,
        "state": node.state.word,
        "drained": node.state.drained,
        "draining": node.state.drain and not node.state.drained,
        "reason": node.reason,
        "by": owner_of(node.reason) or None,
        "reason_user": node.reason_user,
        "reason_at": node.reason_at,
        "jobs": [jobs.plain(job, now) for job in holders],
        "note": note(node) or None,
    }
