# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rotation of keys: which are due, in what order who reads them, and what the Secret holds in each phase."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import key_set
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import key_rotation
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.key_rotation import (
    ADDED,
    JWT,
    RETIRED,
    SETTLED,
    SLURM,
    SWITCHED,
    Behind,
    Rotation,
    Wanted,
)

NOW = 1_800_000_000
DAY = 86400
READ = Behind()
YOUNG, OLD = Rotation(NOW - DAY), Rotation(NOW - 100 * DAY)
ALL_OF_IT = [
    "add Secret hpc/hpc-auth",
    "restart slurmdbd",
    "reload slurmctld, slurmd, sackd",
    "switch Secret hpc/hpc-auth",
    "reload slurmctld, slurmd, sackd",
    "retire Secret hpc/hpc-auth",
    "restart slurmdbd",
    "reload slurmctld, slurmd, sackd",
    "finish Secret hpc/hpc-auth",
]


def steps(jwt: Rotation, slurm: Rotation, behind: Behind = READ, **options: Any) -> list[str]:
    wanted = Wanted(**{"kinds": [JWT, SLURM], "older_than": 90 * DAY, "overlap": 600, "wait": True, **options})
    actions = key_rotation.plan({JWT: jwt, SLURM: slurm}, wanted, behind, NOW, "Secret hpc/hpc-auth")
    return [f"{action.kind} {action.target}" for action in actions]


def test_young_keys_stay() -> None:
    assert steps(YOUNG, YOUNG, Behind(True, True)) == []


def test_old_ones_are_rotated_together() -> None:
    assert steps(OLD, OLD) == ALL_OF_IT
    assert steps(YOUNG, YOUNG, older_than=0) == ALL_OF_IT


def test_only_what_is_due_and_asked_for() -> None:
    assert steps(YOUNG, OLD) == ALL_OF_IT
    only_tokens = [step.replace(", slurmd, sackd", "") for step in ALL_OF_IT]
    del only_tokens[4]  # which key signs tokens is no business of the daemons
    assert steps(OLD, YOUNG) == only_tokens
    assert steps(OLD, OLD, kinds=[JWT]) == only_tokens


def test_without_accounting_there_is_no_slurmdbd() -> None:
    assert steps(OLD, OLD, Behind(accounting=False)) == [step for step in ALL_OF_IT if "slurmdbd" not in step]


@pytest.mark.parametrize(
    ("phase", "behind", "expected"),
    [
        (ADDED, Behind(), ALL_OF_IT[3:]),
        (ADDED, Behind(slurmdbd=True, others=True), ALL_OF_IT[1:]),
        (ADDED, Behind(others=True), ALL_OF_IT[2:]),
        # slurmdbd goes on signing with the old key until it forgets it.
        (SWITCHED, Behind(slurmdbd=True, others=True), ALL_OF_IT[4:]),
        (SWITCHED, Behind(), ALL_OF_IT[5:]),
        (RETIRED, Behind(slurmdbd=True, others=True), ALL_OF_IT[6:]),
        (RETIRED, Behind(), ALL_OF_IT[8:]),
    ],
)
def test_what_was_interrupted_goes_on(phase: str, behind: Behind, expected: list[str]) -> None:
    begun = Rotation(NOW, phase, NOW)
    assert steps(begun, begun, behind) == expected


def test_without_waiting_the_old_key_stays_until_its_time_is_over() -> None:
    assert steps(OLD, OLD, wait=False) == ALL_OF_IT[:5]
    assert steps(OLD, OLD, wait=False, overlap=0) == ALL_OF_IT
    early, late = (Rotation(NOW - span, SWITCHED, NOW - span) for span in (599, 600))
    assert steps(early, early, wait=False) == []
    assert steps(late, late, wait=False) == ALL_OF_IT[5:]
    assert steps(early, late, wait=False) == ALL_OF_IT[5:]


def test_one_that_goes_on_and_one_that_begins_share_their_steps() -> None:
    switched = Rotation(NOW - 700, SWITCHED, NOW - 700)
    assert steps(switched, OLD) == ALL_OF_IT


def secret(data: dict[str, bytes], annotation: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    if annotation:
        metadata["annotations"] = {key_rotation.ANNOTATION: annotation}
    return {"metadata": metadata, "data": data}


def test_what_the_secret_holds_from_phase_to_phase() -> None:
    old = {"slurm.key": b"o" * 1024, "jwt.key": b"j" * 32, "jwks.json": b'{"keys": []}'}
    private = {"kty": "RSA", "kid": "n", "n": "AQ", "e": "AQAB", "d": "secret", "p": "secret", "q": "secret"}
    new = {"kid": "n", "slurm.key": b"n" * 1024, "next.jwk": private, "jwt.key": b"k" * 32}
    data, found = dict(old), key_rotation.rotations(secret(old))
    seen = []
    for phase in (ADDED, SWITCHED, RETIRED, SETTLED):
        found = key_rotation.moved(found, phase, [JWT, SLURM], NOW)
        change = key_rotation.next_data(data, phase, [JWT, SLURM], new) if phase else {}
        data = {name: value for name, value in {**data, **change}.items() if value is not None}
        assert key_rotation.rotations(secret(data, key_rotation.annotation(found))) == found
        seen.append(data)
    added, switched, retired, settled = seen

    def shared(data: dict[str, bytes]) -> list[tuple[str, bytes, bool]]:
        keys = key_set.read(data["slurm.jwks"], "slurm.jwks")
        return [(key["kid"], key_set.content(key), key.get("use") == "default") for key in keys]

    assert shared(added) == [("before-n", old["slurm.key"], True), ("n", new["slurm.key"], False)]
    assert shared(switched) == [("before-n", old["slurm.key"], False), ("n", new["slurm.key"], True)]
    assert (added["slurm.key"], switched["slurm.key"]) == (old["slurm.key"], new["slurm.key"])
    for item in seen:
        assert json.loads(item["jwks.json"])["keys"] == [{"kty": "RSA", "kid": "n", "n": "AQ", "e": "AQAB"}]
    assert "jwt.jwk" not in added
    assert json.loads(switched["jwt.jwk"]) == private
    assert (switched["jwt.key"], retired["jwt.key"]) == (old["jwt.key"], new["jwt.key"])
    assert set(retired) == {"slurm.key", "jwt.key", "jwks.json", "jwt.jwk"}
    assert settled == retired
    assert found[SLURM] == Rotation(NOW)


def test_keys_without_a_date_are_as_old_as_the_secret() -> None:
    assert key_rotation.rotations(secret({})) == {JWT: Rotation(1767225600), SLURM: Rotation(1767225600)}


@pytest.mark.parametrize(
    ("data", "annotation", "reason"),
    [
        ({"slurm.jwks": b"x"}, "", "Inconsistent"),
        ({"next.jwk": b"x"}, "", "Inconsistent"),
        ({}, '{"slurm": {"phase": "added"}}', "Inconsistent"),
        ({}, "no json", "Malformed"),
        ({}, "[]", "Malformed"),
    ],
)
def test_what_no_rotation_has_left_is_refused(data: dict[str, bytes], annotation: str, reason: str) -> None:
    with pytest.raises(OperationError) as caught:
        key_rotation.rotations(secret(data, annotation))
    assert caught.value.reason == reason


def test_no_key_is_quoted() -> None:
    with pytest.raises(OperationError) as caught:
        key_set.read(b'{"keys": "hush', "slurm.jwks")
    assert "hush" not in str(caught.value)
