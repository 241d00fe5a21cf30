# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What Slurm answers when something is not so, told so that a person can act on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

# Slurm's numbers (slurm/slurm_errno.h) that callers tell apart, and what to do about them.
HINTS = {
    1007: "The token was refused: check that the Secret's jwt.key is slurmctld's and that the clocks agree.",
    1800: "slurmctld does not answer slurmrestd: check the controller Pod.",
    2010: "Slurm lets only root, SlurmUser and users with AdminLevel=Administrator do this.",
    2018: "Slurm does not know a node of that name; nodes that it does know may have been changed.",
    2028: "The state is not one that can be set, or two were given at once.",
    2053: "There is no such reservation.",
    2168: "A node of that name exists.",
    2169: "MaxNodeCount is reached: raise it.",
    2178: "The topology, or the block or switch in it, does not exist.",
    2180: "The node's present state does not allow that change (RESUME needs a drained, down or failing node).",
    9200: "A field is missing in the request.",
}
REASONS = {
    1007: "TokenRefused",
    1800: "ControllerUnreachable",
    2010: "NotAllowed",
    2018: "UnknownNode",
    2028: "InvalidState",
    2168: "NodeExists",
    2169: "NodeTableFull",
    2178: "UnknownTopology",
    2180: "InvalidTransition",
}


class SlurmError(OperationError):
    """slurmrestd or slurmctld said no. ``status`` is HTTP's, ``number`` Slurm's (0 when it gave none)."""

    def __init__(self, msg: str, *, status: int, number: int, reason: str, hint: str = "") -> None:
        super().__init__(msg, reason=reason, hint=hint)
        self.status = status
        self.number = number


def complaint(entry: Any) -> str:
    """One entry of errors[] or warnings[] as text."""
    if not isinstance(entry, Mapping):
        return str(entry)
    number = entry.get("error_number") or 0
    parts = [str(entry.get("error") or "").strip(), str(entry.get("description") or "").strip()]
    text = ": ".join(dict.fromkeys(part for part in parts if part and part != "No error"))
    source = str(entry.get("source") or "").strip()
    return f"{text or 'no reason given'}{f' ({number})' if number else ''}{f' [{source}]' if source else ''}"


def refused(what: str, where: str, status: int, errors: Sequence[Any], *, wrote: bool) -> SlurmError:
    """The error of an answer with entries in errors[]."""
    numbers = [entry.get("error_number") or 0 for entry in errors if isinstance(entry, Mapping)]
    number = next((item for item in numbers if item), 0)
    texts = "; ".join(dict.fromkeys(complaint(entry) for entry in errors)) or f"HTTP {status}"
    hints = [HINTS[number]] if number in HINTS else []
    if wrote:
        # A batch is carried out name by name, and what came before the fault stays done.
        hints.append("A part may have been done; read the state before trying again.")
    return SlurmError(
        f"Slurm refused to {what} ({where}): {texts}.",
        status=status,
        number=number,
        reason=REASONS.get(number, "SlurmRefused"),
        hint=" ".join(hints),
    )
