# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What a restore does, from what is in the namespace and what is in the archive. Pure.

A part that this archive has brought already is not brought again, so that a restore that was interrupted goes on. What
an archive has brought is noted at the claim of slurmctld's state, which goes when the state goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import OperationError
from .._core.names import DOMAIN
from .action import Action

Object = Mapping[str, Any]

KEYS, DATABASE, STATE = "keys", "database", "state"
STATEFUL_SET = "StatefulSet"
FROM, BROUGHT = f"{DOMAIN}/restored-from", f"{DOMAIN}/restored"


@dataclass(frozen=True, slots=True)
class Found:
    """What is in the namespace.

    ``daemons`` are StatefulSets of what writes to what is restored, ``workers`` (kind, name) of what makes workers.
    """

    namespace_exists: bool = True
    secrets: Mapping[str, Object] = field(default_factory=dict)
    topology: Object | None = None
    daemons: Sequence[str] = ()
    workers: Sequence[tuple[str, str]] = ()
    claim: Object | None = None

    @property
    def brought(self) -> tuple[str, Sequence[str]]:
        """The archive that a restore began with, and the parts that are done."""
        annotations = ((self.claim or {}).get("metadata") or {}).get("annotations") or {}
        return str(annotations.get(FROM, "")), str(annotations.get(BROUGHT, "")).split()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be restored from which archive, and where to."""

    namespace: str
    archive: str  # its id
    parts: Sequence[str]
    claim: str
    database: str  # for people: which database, and where
    database_secret: str
    secrets: Sequence[Object]
    topology: Object | None
    replace: bool

    @property
    def loads(self) -> Sequence[str]:
        """The parts that are loaded into something."""
        return [part for part in (DATABASE, STATE) if part in self.parts]


def plan_restore(wanted: Wanted, found: Found) -> list[Action]:
    """Return what is to be done. Raises OperationError (Live) where data would be written over without being told."""
    source, brought = found.brought
    ours = source == wanted.archive
    if not wanted.replace and ours and {DATABASE, STATE} <= set(brought):
        return []
    if not wanted.replace and not ours:
        _refuse_live(wanted, found)
    actions: list[Action] = []
    if KEYS in wanted.parts:
        actions += _keys(wanted, found)
    kept = brought if ours and not wanted.replace else ()
    missing = [part for part in wanted.loads if part not in kept]
    if missing:
        actions += _stop(wanted, found)
        actions += _claim(wanted, found, ours)
    if DATABASE in missing:
        actions.append(Action("load", wanted.database, "from the archive", subject=DATABASE))
    if STATE in missing:
        target = f"PersistentVolumeClaim {wanted.namespace}/{wanted.claim}"
        actions.append(Action("load", target, "from the archive", subject=STATE))
    return actions


def _refuse_live(wanted: Wanted, found: Found) -> None:
    there = [f"StatefulSet {wanted.namespace}/{name}" for name in found.daemons]
    there += [f"PersistentVolumeClaim {wanted.namespace}/{wanted.claim}"] if found.claim is not None else []
    if there:
        raise OperationError(
            f"Namespace {wanted.namespace} has a cluster of this name: {', '.join(there)}.",
            reason="Live",
            hint="Nothing was changed. Restore into another namespace, or say that it is to be replaced.",
        )


def _keys(wanted: Wanted, found: Found) -> list[Action]:
    actions: list[Action] = []
    if not found.namespace_exists:
        actions.append(Action("create", f"Namespace {wanted.namespace}", "not there yet", subject="namespace"))
    for secret in wanted.secrets:
        name = secret["metadata"]["name"]
        target = f"Secret {wanted.namespace}/{name}"
        live = found.secrets.get(name)
        if live is None:
            keys = sorted(secret.get("data") or {})
            actions.append(Action("create", target, "not there", after={"keys": keys}, subject=secret))
        # The password of the database is that of the database which is there, not of the one that was backed up.
        elif name != wanted.database_secret and dict(live.get("data") or {}) != dict(secret.get("data") or {}):
            if not wanted.replace:
                raise OperationError(
                    f"{target} exists and holds other keys than the archive.",
                    reason="Live",
                    hint="Nothing was changed. Delete it, or say that the cluster is to be replaced.",
                )
            actions.append(Action("replace", target, "holds other keys", subject=secret))
    if wanted.topology is not None and (found.topology or {}).get("data") != wanted.topology.get("data"):
        # slurmctld does not start when the record of a node names a switch that the topology has not.
        name = wanted.topology["metadata"]["name"]
        why = "not there" if found.topology is None else "has another topology"
        kind = "create" if found.topology is None else "replace"
        actions.append(Action(kind, f"ConfigMap {wanted.namespace}/{name}", why, subject=wanted.topology))
    return actions


def _stop(wanted: Wanted, found: Found) -> list[Action]:
    """They go, for the roles to make them again: the number of replicas is the roles' field.

    The records of nodes that come back have the addresses of then, and a slurmd registers only when it starts; one of a
    newer release could not register at all.
    """
    going = [(STATEFUL_SET, name, "writes to what is restored") for name in found.daemons]
    going += [(kind, name, "every slurmd has to register anew") for kind, name in found.workers]
    return [
        Action("stop", f"{kind} {wanted.namespace}/{name}", why, stage="stop", subject=(kind, name))
        for kind, name, why in going
    ]


def _claim(wanted: Wanted, found: Found, ours: bool) -> list[Action]:
    target = f"PersistentVolumeClaim {wanted.namespace}/{wanted.claim}"
    if found.claim is None:
        return [Action("create", target, "for the state of slurmctld", subject="claim")]
    return [] if ours and not wanted.replace else [Action("mark", target, "a restore begins", subject="claim")]
