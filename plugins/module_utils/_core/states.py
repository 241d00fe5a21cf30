# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""States of a Slurm node, as REST lists them: a base state first, then flags.

The words and the meaning of "drained" are the same for every module of this collection; nothing else compares states.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

BASE_STATES = frozenset({"UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE"})
# COMPLETING is a flag: a job's epilog still runs on an otherwise idle node.
BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
FLAGS = frozenset(
    {
        "BLOCKED", "CLOUD", "COMPLETING", "DRAIN", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "EXTERNAL", "FAIL", "INVALID",
        "INVALID_REG", "MAINTENANCE", "NOT_RESPONDING", "PLANNED", "POWER_DOWN", "POWER_DRAIN", "POWER_UP",
        "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "REBOOT_CANCELED", "REBOOT_ISSUED", "REBOOT_REQUESTED",
        "RESERVED", "RESUME", "UNDRAIN",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NodeState:
    """What Slurm says of one node. Every predicate is False for a node that Slurm said nothing about."""

    base: str
    flags: frozenset[str]

    @property
    def words(self) -> tuple[str, ...]:
        """Base state, then the flags in alphabetical order."""
        return ((self.base,) if self.base else ()) + tuple(sorted(self.flags))

    @property
    def busy(self) -> bool:
        """A job, or the end of one, is on the node."""
        return self.base in BUSY or not BUSY.isdisjoint(self.flags)

    @property
    def drain(self) -> bool:
        """No new job will start: draining or drained."""
        return "DRAIN" in self.flags and "UNDRAIN" not in self.flags

    @property
    def draining(self) -> bool:
        """Drain was asked for and something still runs."""
        return self.drain and self.busy

    @property
    def drained(self) -> bool:
        """Drain was asked for and nothing runs. Fails closed: an unknown or unheard-of state is not drained.

        UNKNOWN is what a node is until its slurmd has registered, so a job may be there; with INVALID_REG slurmd has
        registered and was refused, which Slurm shows as UNKNOWN,DRAIN,INVALID_REG.
        """
        known = self.base in BASE_STATES and (self.base != "UNKNOWN" or "INVALID_REG" in self.flags)
        return known and self.drain and not self.busy

    @property
    def down(self) -> bool:
        """Slurm has given the node up."""
        return self.base in ("DOWN", "ERROR")

    @property
    def responding(self) -> bool:
        """slurmd answered when it was last asked."""
        return bool(self.base) and self.base not in ("UNKNOWN", "FUTURE") and "NOT_RESPONDING" not in self.flags

    @property
    def registered(self) -> bool:
        """slurmd has registered and was accepted."""
        return self.responding and self.base != "DOWN" and "INVALID_REG" not in self.flags

    @property
    def usable(self) -> bool:
        """Jobs can start on it, now or when those that run have ended.

        Not so at once after UNDRAIN or RESUME: Slurm shows NOT_RESPONDING until it has asked slurmd again, up to half a
        minute later (seen on 24.11 and 26.05). Whoever waits for the end of a drain waits for ``not drain``.
        """
        return self.registered and not self.drain and self.base != "ERROR" and self.flags.isdisjoint(_NO_NEW_JOBS)

    @property
    def word(self) -> str:
        """One word for people, in the manner of sinfo."""
        if not self.base:
            return "unknown"
        if "FAIL" in self.flags:
            return "failing" if self.busy else "fail"
        if self.drain and self.base != "DOWN":
            return "draining" if self.busy else "drained"
        if "COMPLETING" in self.flags and self.base == "IDLE":
            return "completing"
        return self.base.lower()


_NO_NEW_JOBS = frozenset(
    {"FAIL", "POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "POWER_DRAIN", "REBOOT_ISSUED", "MAINTENANCE"}
)


def parse(state: Iterable[str] | str | None) -> NodeState:
    """NodeState of a REST list (``["IDLE", "DRAIN"]``) or of scontrol's text (``IDLE+DRAIN``).

    Words that this file does not know are kept as flags; without a known base state the base is empty (unknown).
    """
    if state is None:
        return _parse(())
    if isinstance(state, str):
        return _parse(tuple(state.replace("+", " ").replace(",", " ").split()))
    return _parse(tuple(map(str, state)))


# A cluster of any size has few different states, and NodeState cannot be changed.
@lru_cache(maxsize=4096)
def _parse(given: tuple[str, ...]) -> NodeState:
    words = [word.upper().rstrip("*") for word in given]
    base = next((word for word in words if word in BASE_STATES), "")
    return NodeState(base, frozenset(word for word in words if word != base))
