# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module key_rotation's work: write a phase into the Secret, have everybody read it, then the next."""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import durations
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.names import auth_secret
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import SECRET
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import key_rotation as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import keys
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.key_pods import KeyPods, Lack, Part
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.live_files import wait_while
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.wait import Seen, wait_until

SLURM_KEY_BYTES, JWT_KEY_BYTES = 1024, 32
# Seconds that slurmctld gets to reach every slurmd and sackd before they are asked by a signal.
REACHED_WITHIN = 10


class KeyRotation:
    """An Operation: see _run/module.py."""

    def __init__(self, run: Run) -> None:
        self._run = run
        params = run.params
        self._namespace = params["namespace"]
        self._name = auth_secret(params["name"], params["auth_secret"])
        self._wanted = planner.Wanted(
            kinds=params["which"],
            older_than=durations.seconds(params["older_than"], "older_than"),
            overlap=durations.seconds(params["overlap"], "overlap"),
            wait=params["wait"],
        )
        self._pods = KeyPods(run.kubernetes, self._namespace, params["name"], self._name)
        self._secret: Mapping[str, Any] = {}
        self._found: dict[str, planner.Rotation] = {}

    @property
    def _target(self) -> str:
        return f"Secret {self._namespace}/{self._name}"

    @property
    def _data(self) -> dict[str, bytes]:
        return {name: base64.b64decode(value) for name, value in (self._secret.get("data") or {}).items()}

    # --- plan -----------------------------------------------------------------------------------------------------

    def plan(self) -> Sequence[Action]:
        """Read the Secret, and where a rotation goes on or is due, the Pods that have to read it."""
        live = self._run.kubernetes.get(SECRET, self._namespace, self._name)
        if live is None:
            raise OperationError(
                f"{self._target} does not exist, so there are no keys to rotate.",
                reason="NoKey",
                hint="Check the name of the Slurm cluster and its namespace.",
            )
        self._take(live)
        now = time.time()
        actions = planner.plan(self._found, self._wanted, planner.Behind(), now, self._target)
        going_on = [kind for kind in self._wanted.kinds if self._found[kind].phase]
        if not actions and not going_on:
            return []
        self._require_possible(live)
        kinds = {kind for action in actions for kind in action.subject[1]} | set(going_on)
        pods = self._those(list(kinds))
        behind = planner.Behind(
            slurmdbd=bool(going_on) and bool(self._pods.slurmdbd_is_behind(self._data)),
            others=bool(going_on) and bool(self._pods.behind(pods, self._data)),
            accounting=self._pods.has_slurmdbd(),
        )
        return planner.plan(self._found, self._wanted, behind, now, self._target)

    def _take(self, secret: Mapping[str, Any]) -> None:
        self._secret = secret
        self._found = planner.rotations(secret)

    def _require_possible(self, live: Mapping[str, Any]) -> None:
        needed = {planner.SLURM: (planner.SLURM_KEY,), planner.JWT: (planner.JWT_KEY, planner.PUBLIC)}
        missing = [name for kind in self._wanted.kinds for name in needed[kind] if name not in (live.get("data") or {})]
        if missing:
            raise OperationError(
                f"{self._target} has no {', '.join(missing)}.",
                reason="NoKey",
                hint="Run site, whose role cluster adds what is missing.",
            )
        if live.get("immutable"):
            raise OperationError(
                f"{self._target} is immutable, so its keys cannot be rotated.",
                reason="Immutable",
                hint="Make it anew without immutable, with the same keys.",
            )

    # --- act ------------------------------------------------------------------------------------------------------

    def act(self, actions: Sequence[Action]) -> None:
        """Carry out one step."""
        action = actions[0]
        phase, kinds = action.subject
        if action.kind == planner.RESTART:
            self._pods.restart_slurmdbd()
            wait_while(self._run, lambda: self._pods.slurmdbd_is_behind(self._data), "The restart of slurmdbd")
        elif action.kind == planner.RELOAD:
            self._reload(kinds)
        else:
            if phase == planner.RETIRED:
                self._wait_for_overlap(kinds)
            self._write(phase, kinds)
        action.done = True

    def _write(self, phase: str, kinds: Sequence[str]) -> None:
        """Write a phase, its keys and its date, with the version that was looked at: nobody's change is lost."""
        now = time.time()
        found = planner.moved(self._found, phase, kinds, now)
        change: dict[str, Any] = {
            "metadata": {
                "annotations": {planner.ANNOTATION: planner.annotation(found)},
                "resourceVersion": self._secret["metadata"]["resourceVersion"],
            }
        }
        if phase:
            data = planner.next_data(self._data, phase, kinds, _generated(phase, kinds, now))
            change["data"] = {
                name: None if value is None else base64.b64encode(value).decode() for name, value in data.items()
            }
        try:
            self._take(self._run.kubernetes.patch(SECRET, self._namespace, self._name, change))
        except ApiError as error:
            if error.reason != "Conflict":
                raise
            raise OperationError(
                f"{self._target} was changed by somebody else at the same moment.",
                reason="Conflict",
                hint="Nothing was written over; run again.",
            ) from error

    def _reload(self, kinds: Sequence[str]) -> None:
        """Bring the keys into the Pods, and have their daemons read them."""
        self._pods.nudge(list(self._those(kinds)))
        wait_while(
            self._run,
            lambda: _first(lack.text for lack in self._behind(kinds, copies=True).values() if lack.files),
            "Bringing the keys to the daemons",
        )
        if not self._behind(kinds):
            return
        self._pods.reconfigure()
        if late := self._late(kinds):
            self._pods.ask_again({name: part for name, part in self._those(kinds).items() if name in late})
            wait_while(
                self._run,
                lambda: _first(lack.text for lack in self._behind(kinds).values()),
                "Reading the new keys",
            )

    def _those(self, kinds: Sequence[str]) -> dict[str, Part]:
        return self._pods.those(between_daemons=planner.SLURM in kinds)

    def _behind(self, kinds: Sequence[str], *, copies: bool = False) -> dict[str, Lack]:
        return self._pods.behind(self._those(kinds), self._data, copies=copies)

    def _late(self, kinds: Sequence[str]) -> set[str]:
        """Pods whose daemons a reconfigure has not reached in time."""
        begun = time.monotonic()
        while True:
            behind = self._behind(kinds)
            if not behind or time.monotonic() - begun > REACHED_WITHIN:
                return set(behind)
            time.sleep(0.5)

    def _wait_for_overlap(self, kinds: Sequence[str]) -> None:
        ends = max(planner.retires_after(self._found[kind], self._wanted.overlap) for kind in kinds)

        def look() -> Seen:
            left = ends - time.time()
            return Seen([f"{left:.0f} s"] if left > 0 else ())

        wait_until(
            look,
            "Letting what was signed with the old key end",
            timeout=self._wanted.overlap + 60,
            interval=max(1, self._run.params["wait_sleep"]),
            progress=self._run.progress,
        )

    # --- wait and tell --------------------------------------------------------------------------------------------

    def wait(self) -> None:
        """There is nothing left to wait for: each step has waited until everybody had read it."""

    def result(self) -> Mapping[str, Any]:
        """Return the dates and phases, never what is in a key."""
        told = []
        for kind in self._wanted.kinds:
            item = self._found[kind]
            ends = planner.retires_after(item, self._wanted.overlap) if item.phase == planner.SWITCHED else None
            told.append(
                {
                    "key": kind,
                    "made": planner.timestamp(item.made),
                    "phase": item.phase or "settled",
                    "retires_after": planner.timestamp(ends) if ends else None,
                }
            )
        return {"rotations": told}


def _generated(phase: str, kinds: Sequence[str], now: float) -> dict[str, Any]:
    """The new keys that a step needs."""
    new: dict[str, Any] = {"kid": f"{planner.timestamp(now)}-{secrets.token_hex(4)}"}
    if phase == planner.ADDED and planner.SLURM in kinds:
        new[planner.SLURM_KEY] = secrets.token_bytes(SLURM_KEY_BYTES)
    if phase == planner.ADDED and planner.JWT in kinds:
        new[planner.NEXT] = keys.token_key(new["kid"])
    if phase == planner.RETIRED and planner.JWT in kinds:
        new[planner.JWT_KEY] = secrets.token_bytes(JWT_KEY_BYTES)
    return new


def _first(texts: Iterable[str]) -> str:
    found = list(texts)
    return f"{found[0]}{f' (and {len(found) - 1} more)' if len(found) > 1 else ''}" if found else ""
