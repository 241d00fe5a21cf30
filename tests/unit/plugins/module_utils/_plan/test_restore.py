# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a restore does, as a table."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.restore import (
    BROUGHT,
    FROM,
    Found,
    Wanted,
    plan_restore,
)

Object = dict[str, Any]


def item(name: str, kind: str = "Secret", **data: str) -> Object:
    return {"kind": kind, "metadata": {"name": name}, "data": data}


def claim(source: str = "", brought: str = "") -> Object:
    return {"metadata": {"annotations": {FROM: source, BROUGHT: brought} if source else None}}


AUTH, PASSWORD = item("hpc-auth", key="a"), item("hpc-database", password="b")
TOPOLOGY = item("hpc-topology", "ConfigMap", file="t")
WANTED = Wanted(
    namespace="ns",
    archive="one",
    parts=("keys", "database", "state"),
    claim="state-hpc-controller-0",
    database="database d",
    database_secret="hpc-database",
    secrets=(AUTH, PASSWORD),
    topology=TOPOLOGY,
    replace=False,
)
BOTH = {"hpc-auth": AUTH, "hpc-database": PASSWORD}
KEYS_THERE = Found(secrets=BOTH, topology=TOPOLOGY)
LOADS = ["load database d", "load PersistentVolumeClaim ns/state-hpc-controller-0"]
CLAIM = "PersistentVolumeClaim ns/state-hpc-controller-0"


def steps(found: Found, **options: Any) -> list[str]:
    return [f"{action.kind} {action.target}" for action in plan_restore(dataclasses.replace(WANTED, **options), found)]


def test_into_nothing_everything_is_brought() -> None:
    assert steps(Found(namespace_exists=False)) == [
        "create Namespace ns",
        "create Secret ns/hpc-auth",
        "create Secret ns/hpc-database",
        "create ConfigMap ns/hpc-topology",
        f"create {CLAIM}",
        *LOADS,
    ]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["keys"], []),
        (["database"], [f"create {CLAIM}", LOADS[0]]),
        (["state"], [f"create {CLAIM}", LOADS[1]]),
        (["state", "database"], [f"create {CLAIM}", *LOADS]),
    ],
)
def test_parts(parts: list[str], expected: list[str]) -> None:
    assert steps(KEYS_THERE, parts=parts) == expected


@pytest.mark.parametrize(
    "found",
    [
        Found(daemons=["hpc-controller"]),
        Found(daemons=["hpc-accounting"]),
        Found(claim=claim()),
        Found(claim=claim("two", "database state")),
        Found(secrets={"hpc-auth": item("hpc-auth", key="other")}),
    ],
)
def test_what_is_there_is_not_written_over(found: Found) -> None:
    with pytest.raises(OperationError, match="ns") as caught:
        plan_restore(WANTED, found)
    assert caught.value.reason == "Live"


def test_told_to_replace_it_stops_the_daemons_first() -> None:
    found = Found(
        secrets={"hpc-auth": item("hpc-auth", key="other"), "hpc-database": item("hpc-database", password="other")},
        topology=item("hpc-topology", "ConfigMap", file="other"),
        daemons=["hpc-controller", "hpc-accounting"],
        workers=[("StatefulSet", "cpu"), ("DaemonSet", "gpu")],
        claim=claim("two", "database state"),
    )
    assert steps(found, replace=True) == [
        "replace Secret ns/hpc-auth",
        "replace ConfigMap ns/hpc-topology",
        "stop StatefulSet ns/hpc-controller",
        "stop StatefulSet ns/hpc-accounting",
        "stop StatefulSet ns/cpu",
        "stop DaemonSet ns/gpu",
        f"mark {CLAIM}",
        *LOADS,
    ]


@pytest.mark.parametrize(
    ("brought", "expected"), [("", LOADS), ("database", LOADS[1:]), ("state", LOADS[:1]), ("database state", [])]
)
def test_an_interrupted_restore_goes_on(brought: str, expected: list[str]) -> None:
    assert steps(dataclasses.replace(KEYS_THERE, claim=claim("one", brought))) == expected


def test_a_restore_that_went_on_while_the_daemons_were_started_stops_them() -> None:
    found = dataclasses.replace(KEYS_THERE, claim=claim("one", "database"), daemons=["hpc-controller"])
    assert steps(found) == ["stop StatefulSet ns/hpc-controller", LOADS[1]]


def test_a_complete_restore_is_left_alone_whatever_became_of_the_cluster() -> None:
    found = Found(
        secrets={"hpc-auth": item("hpc-auth", key="renewed")},
        daemons=["hpc-controller"],
        claim=claim("one", "state database"),
    )
    assert steps(found) == []


def test_the_same_archive_is_brought_again_when_that_is_asked_for() -> None:
    found = dataclasses.replace(KEYS_THERE, claim=claim("one", "state database"))
    assert steps(found, replace=True) == [f"mark {CLAIM}", *LOADS]


def test_no_secret_is_in_what_is_returned() -> None:
    returned = str([action.result() for action in plan_restore(WANTED, Found())])
    assert "'a'" not in returned
    assert "'b'" not in returned
