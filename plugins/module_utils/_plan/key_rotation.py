# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Rotation of keys: which are due, how far each is, what the Secret holds next, and what has to read it.

The old key and the new one are good side by side (docs/decisions/054):

    added     everybody believes both; the old one signs
    switched  everybody believes both; the new one signs
    retired   the new one is the only one; some may still have to read that

Pure: the Secret and the time come in; new keys come in too, as nothing is generated here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import key_set, names
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.kubernetes_objects import seconds
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action

JWT, SLURM = "jwt", "slurm"
KINDS = (JWT, SLURM)
SETTLED, ADDED, SWITCHED, RETIRED = "", "added", "switched", "retired"
# On the Secret: the dates of the keys, and the phase of a rotation.
ANNOTATION = f"{names.DOMAIN}/keys"
# Keys of the Secret. slurm.jwks exists while slurm.key is rotated, and next.jwk until the new key of tokens signs.
SLURM_KEY, SLURM_JWKS = "slurm.key", "slurm.jwks"
JWT_KEY, PUBLIC, SIGNING, NEXT = "jwt.key", "jwks.json", "jwt.jwk", "next.jwk"
# Kinds of actions.
ADD, SWITCH, RETIRE, RESTART, RELOAD, FINISH = "add", "switch", "retire", "restart", "reload", "finish"
SLURMDBD, EVERYBODY, SLURMCTLD = "slurmdbd", "slurmctld, slurmd, sackd", "slurmctld"

_STEPS = ((ADDED, ADD), (SWITCHED, SWITCH), (RETIRED, RETIRE))
_ORDER = (SETTLED, ADDED, SWITCHED, RETIRED)
_WHY = {
    ADDED: "both keys are to be believed before one signs",
    SWITCHED: "the new key is to sign",
    RETIRED: "the old key is to be believed no more",
}
Data = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Rotation:
    """One kind of key: since when the one in use signs, and the phase of its rotation with its time."""

    made: int
    phase: str = SETTLED
    since: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for; spans in seconds. Without ``wait`` old keys whose time is not over stay for a later run."""

    kinds: Sequence[str]
    older_than: int
    overlap: int
    wait: bool


@dataclass(frozen=True, slots=True)
class Behind:
    """Who has not read what the Secret holds now, and whether there is a slurmdbd at all."""

    slurmdbd: bool = False
    others: bool = False
    accounting: bool = True


def rotations(secret: Mapping[str, Any]) -> dict[str, Rotation]:
    """How far each kind is. Raises OperationError for what no rotation of ours has left."""
    metadata = secret["metadata"]
    text = (metadata.get("annotations") or {}).get(ANNOTATION, "{}")
    try:
        noted = json.loads(text)
        found = {
            kind: Rotation(
                seconds(noted.get(kind, {}).get("made") or metadata.get("creationTimestamp")),
                noted.get(kind, {}).get("phase", SETTLED),
                seconds(noted.get(kind, {}).get("since")),
            )
            for kind in KINDS
        }
    except (ValueError, AttributeError):
        raise OperationError(
            f"The annotation {ANNOTATION} of the Secret is unreadable.",
            reason="Malformed",
            hint="Remove it. Then the keys are as old as the Secret.",
        ) from None
    _check(found, secret.get("data") or {})
    return found


def _check(found: Mapping[str, Rotation], data: Mapping[str, Any]) -> None:
    going_on = {kind: item.phase in (ADDED, SWITCHED) for kind, item in found.items()}
    if (SLURM_JWKS in data) != going_on[SLURM] or (NEXT in data) != (found[JWT].phase == ADDED):
        raise OperationError(
            f"{SLURM_JWKS} or {NEXT} in the Secret is not what the rotation noted in {ANNOTATION} has made.",
            reason="Inconsistent",
            hint="Somebody else has changed the Secret. Put back what was there, or remove both keys and the annotation"
            " once every daemon has slurm.key.",
        )


def annotation(found: Mapping[str, Rotation]) -> str:
    """The annotation that says so."""
    noted: dict[str, dict[str, str]] = {}
    for kind, item in sorted(found.items()):
        noted[kind] = {"made": timestamp(item.made)}
        if item.phase:
            noted[kind] |= {"phase": item.phase, "since": timestamp(item.since)}
    return json.dumps(noted)


def timestamp(moment: float) -> str:
    """A time as Kubernetes writes it."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- the plan -----------------------------------------------------------------------------------------------------


def plan(found: Mapping[str, Rotation], wanted: Wanted, behind: Behind, now: float, target: str) -> list[Action]:
    """All that is to be done, in order. ``subject`` of an action: the phase and the kinds."""
    at = {kind: found[kind] for kind in KINDS if kind in wanted.kinds}
    due = {kind: item for kind, item in at.items() if item.phase or now - item.made > wanted.older_than}
    # What an earlier run has written, and not everybody read.
    actions = _reading(*_unread(due), behind)
    for phase, kind in _STEPS:
        moved = [name for name, item in due.items() if _ORDER.index(item.phase) < _ORDER.index(phase)]
        if phase == RETIRED and not wanted.wait:
            moved = [name for name in moved if _over(due[name], wanted, now)]
        if not moved:
            continue
        actions.append(
            Action(
                kind,
                target,
                _why(phase, moved, due, now),
                before=_shown(phase, -1),
                after=_shown(phase),
                subject=(phase, moved),
            )
        )
        actions += _reading(phase, moved, Behind(slurmdbd=True, others=True, accounting=behind.accounting))
        if phase == RETIRED:
            actions.append(_finish(target, moved))
    ended = [name for name, item in due.items() if item.phase == RETIRED]
    return [*actions, _finish(target, ended)] if ended else actions


def _unread(due: Mapping[str, Rotation]) -> tuple[str, list[str]]:
    going_on = {name: item.phase for name, item in due.items() if item.phase}
    return (min(going_on.values(), key=_ORDER.index) if going_on else SETTLED), list(going_on)


def _over(item: Rotation, wanted: Wanted, now: float) -> bool:
    return now >= retires_after(item, wanted.overlap) if item.phase == SWITCHED else wanted.overlap == 0


def retires_after(item: Rotation, overlap: int) -> int:
    """When the old key's time is over."""
    return item.since + overlap


def _reading(phase: str, kinds: Sequence[str], behind: Behind) -> list[Action]:
    """Who has to read the Secret in a phase. slurmdbd reads its keys only when it starts, so it starts no more often
    than needed: until it forgets the old key it signs with it, which all others then still believe."""
    actions = []
    if behind.slurmdbd and behind.accounting and phase in (ADDED, RETIRED):
        actions.append(
            Action(RESTART, SLURMDBD, f"{_WHY[phase]}; it reads keys when it starts", subject=(phase, kinds))
        )
    # The key that signs tokens is no business of the daemons.
    if behind.others and kinds and (SLURM in kinds or phase != SWITCHED):
        target = EVERYBODY if SLURM in kinds else SLURMCTLD
        actions.append(Action(RELOAD, target, _WHY[phase], subject=(phase, kinds)))
    return actions


def _finish(target: str, kinds: Sequence[str]) -> Action:
    return Action(FINISH, target, "everybody has read it", before="retired", after="settled", subject=(SETTLED, kinds))


def _why(phase: str, kinds: Sequence[str], due: Mapping[str, Rotation], now: float) -> str:
    if phase == ADDED:
        ages = ", ".join(f"{kind} is {_age(now - due[kind].made)} old" for kind in kinds)
        return f"the key of {ages}"
    return f"{', '.join(kinds)}: {_WHY[phase]}"


def _age(span: float) -> str:
    return f"{span / 86400:.0f} days" if span >= 172800 else f"{span / 60:.0f} minutes"


def _shown(phase: str, step: int = 0) -> str:
    words = ("the old key", "old and new key, the old one signs", "old and new key, the new one signs", "the new key")
    return words[_ORDER.index(phase) + step]


# --- what the Secret holds ----------------------------------------------------------------------------------------


def moved(found: Mapping[str, Rotation], phase: str, kinds: Sequence[str], now: float) -> dict[str, Rotation]:
    """How far each kind is after a step."""
    result = dict(found)
    for kind in kinds:
        made = int(now) if phase == SWITCHED else found[kind].made
        result[kind] = replace(found[kind], phase=phase, since=int(now) if phase else 0, made=made)
    return result


def next_data(data: Data, phase: str, kinds: Sequence[str], new: Mapping[str, Any]) -> dict[str, bytes | None]:
    """What a step changes in the Secret; None is what goes. ``new`` has the keys that were generated for it."""
    change: dict[str, bytes | None] = {}
    if SLURM in kinds:
        change |= _next_slurm(data, phase, new)
    if JWT in kinds:
        change |= _next_jwt(data, phase, new)
    return change


def _next_slurm(data: Data, phase: str, new: Mapping[str, Any]) -> dict[str, bytes | None]:
    if phase == ADDED:
        kid = str(new["kid"])
        old = key_set.shared(f"before-{kid}", data[SLURM_KEY], signs=True)
        return {SLURM_JWKS: key_set.written([old, key_set.shared(kid, new[SLURM_KEY], signs=False)])}
    if phase == SWITCHED:
        old, latest = key_set.read(data[SLURM_JWKS], SLURM_JWKS)
        keys = [
            key_set.shared(str(old["kid"]), key_set.content(old), signs=False),
            key_set.shared(str(latest["kid"]), key_set.content(latest), signs=True),
        ]
        # A daemon that has slurm.key only understands, and is understood by, those whose signing key that is.
        return {SLURM_JWKS: key_set.written(keys), SLURM_KEY: key_set.content(latest)}
    return {SLURM_JWKS: None}


def _next_jwt(data: Data, phase: str, new: Mapping[str, Any]) -> dict[str, bytes | None]:
    if phase == ADDED:
        keys = [*key_set.read(data[PUBLIC], PUBLIC), key_set.public(new[NEXT])]
        return {PUBLIC: key_set.written(keys), NEXT: json.dumps(new[NEXT]).encode()}
    if phase == SWITCHED:
        return {SIGNING: data[NEXT], NEXT: None}
    # Slurm has one key for tokens of `scontrol token`: these end here.
    return {PUBLIC: key_set.written([key_set.public(json.loads(data[SIGNING]))]), JWT_KEY: new[JWT_KEY]}
