# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which steps an upgrade has, and what stands in its way."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.versions import (
    Version,
    furthest,
    parse_version,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.upgrade import (
    LOGIN,
    NODESET,
    OUTSIDE,
    SLURMCTLD,
    SLURMDBD,
    SLURMREST,
    Part,
    Picture,
    Room,
    Upgrade,
    plan_upgrade,
)

OLD, NEW = "24.11.5", "26.05.5"


def part(kind: str, version: str = OLD, *, name: str = "", **more: Any) -> Part:
    more.setdefault("coming", NEW)
    return Part(kind, name or kind, ((version, 1),) if version else (), **more)


def cluster(**versions: str) -> list[Part]:
    """All parts, in a wrong order, at 24.11 or as told."""
    kinds = (LOGIN, NODESET, SLURMREST, SLURMCTLD, SLURMDBD)
    return [part(kind, versions.get(kind, OLD)) for kind in kinds]


def plan(parts: list[Part], wanted: str = "26.05", **more: Any) -> Upgrade:
    return plan_upgrade(Picture(parse_version(wanted), parts, **more))


def kinds(upgrade: Upgrade) -> list[str]:
    return [step.kind for step in upgrade.steps]


def test_everything_in_slurms_order() -> None:
    upgrade = plan(cluster(), jobs=3, files_release="24.11", rooms=[Room("the disk", 10, 10)])
    assert kinds(upgrade) == ["slurmdbd", "slurmctld", "slurmrestd", "nodeset", "login", "configuration"]
    assert [(step.before, step.after) for step in upgrade.steps] == [(OLD, NEW)] * 5 + [("24.11", "26.05")]
    assert upgrade.problems == []
    assert upgrade.untouched
    assert upgrade.oldest == Version(24, 11)
    notes = "\n".join(upgrade.notes)
    assert "jobs that run: 3" in notes
    assert "v0.0.40, v0.0.41; clients of those go to v0.0.42 first" in notes
    assert "keeps to what 24.11 knows" in notes


@pytest.mark.parametrize(
    ("done", "left"),
    [
        ({SLURMDBD}, ["slurmctld", "slurmrestd", "nodeset", "login", "configuration"]),
        ({SLURMDBD, SLURMCTLD, SLURMREST}, ["nodeset", "login", "configuration"]),
        ({SLURMDBD, SLURMCTLD, SLURMREST, NODESET, LOGIN}, ["configuration"]),
    ],
)
def test_what_is_done_is_no_step_any_more(done: set[str], left: list[str]) -> None:
    upgrade = plan(cluster(**dict.fromkeys(done, NEW)), files_release="24.11")
    assert kinds(upgrade) == left
    assert not upgrade.untouched
    assert upgrade.oldest == (Version(26, 5) if left == ["configuration"] else Version(24, 11))


def test_nothing_is_left_to_do() -> None:
    upgrade = plan(
        cluster(**dict.fromkeys((SLURMDBD, SLURMCTLD, SLURMREST, NODESET, LOGIN), NEW)), files_release="26.05"
    )
    assert (kinds(upgrade), upgrade.notes, upgrade.problems) == ([], [], [])


def test_maintenance_versions_are_no_upgrade() -> None:
    assert kinds(plan([part(SLURMCTLD, "26.05.3")])) == []


@pytest.mark.parametrize(
    ("parts", "wanted", "problem"),
    [
        ([part(SLURMCTLD, "26.05.5")], "25.11", "slurmctld is 26.05: 25.11 cannot read what it has written"),
        ([part(SLURMDBD, "24.11.5", coming="")], "26.11", "reads at most 3 releases back. Go to 26.05 first"),
        ([part(NODESET, "24.11.5", name="NodeSet cpu", coming="")], "26.11", "NodeSet cpu is 24.11"),
        ([part(SLURMREST, coming="25.11.2")], "26.05", "its image holds Slurm 25.11.2, not 26.05"),
        ([part(SLURMCTLD, "")], "26.05", "slurmctld does not run"),
        ([part(OUTSIDE, "26.05.5", coming="")], "25.11", "no daemon serves newer ones"),
        ([part(NODESET, coming="26.05.5", own_image=True)], "25.11", "its own image holds Slurm 26.05.5"),
    ],
)
def test_what_stands_in_the_way(parts: list[Part], wanted: str, problem: str) -> None:
    if wanted == "25.11":
        parts = [part(SLURMDBD, "25.05.1", coming="25.11.2"), *parts]
    upgrade = plan(parts, wanted)
    assert any(problem in line for line in upgrade.problems), upgrade.problems


def test_a_full_volume_stands_in_the_way_of_a_conversion_only() -> None:
    rooms = [Room("the volume of the database", 3 * 2**30, 2**20)]
    upgrade = plan(cluster(), rooms=rooms)
    assert upgrade.problems == [
        "the volume of the database has 1 MiB free; a conversion writes up to 3.0 GiB beside what is there"
    ]
    converted = cluster(slurmdbd=NEW, slurmctld=NEW)
    assert plan(converted, rooms=rooms).problems == []


def test_a_database_that_is_down_stands_in_the_way_of_slurmdbd_only() -> None:
    assert plan(cluster(), database_away=True).problems == [
        "the database does not run, so slurmdbd could not convert it; mend it first"
    ]
    assert plan(cluster(slurmdbd=NEW), database_away=True).problems == []


def test_a_slurmctld_that_crashes_in_the_middle_is_what_the_next_run_mends() -> None:
    upgrade = plan(cluster(slurmdbd=NEW, slurmctld=""))
    assert upgrade.problems == []
    assert kinds(upgrade)[0] == "slurmctld"
    assert upgrade.steps[0].before == "not known"


def test_a_nodeset_with_an_image_of_its_own_may_stay_behind() -> None:
    own = part(NODESET, "25.11.2", name="NodeSet old", coming="25.11.2", own_image=True)
    upgrade = plan([part(SLURMDBD), own])
    assert kinds(upgrade) == ["slurmdbd"]
    assert "NodeSet old stays at 25.11" in "\n".join(upgrade.notes)
    later = plan([part(SLURMDBD, NEW), own], files_release="24.11")
    assert [(step.kind, step.after) for step in later.steps] == [("configuration", "25.11")]
    assert kinds(plan([part(SLURMDBD, NEW), own], files_release="25.11")) == []
    # Also when nobody has looked into its image.
    unseen = part(NODESET, "25.11.2", name="NodeSet old", coming="", own_image=True)
    assert kinds(plan([part(SLURMDBD, NEW), unseen], files_release="25.11")) == []


def test_a_rollout_that_is_half_done_goes_on() -> None:
    half = Part(NODESET, "NodeSet cpu", ((OLD, 3), (NEW, 1)), coming=NEW)
    upgrade = plan([part(SLURMCTLD, NEW), half])
    assert [(step.name, step.before) for step in upgrade.steps] == [("NodeSet cpu", "24.11.5 (3), 26.05.5 (1)")]


def test_nodes_outside_are_for_others() -> None:
    upgrade = plan([part(SLURMCTLD), part(OUTSIDE, name="nodes outside", coming="")], login_by_hand=True)
    assert kinds(upgrade) == ["slurmctld"]
    assert "nodes outside (24.11.5) are for you to upgrade" in "\n".join(upgrade.notes)


@pytest.mark.parametrize(("old", "new"), [("24.11", "26.05"), ("25.05", "26.11"), ("25.11", "27.05")])
def test_how_far_a_release_is_read(old: str, new: str) -> None:
    assert str(furthest(parse_version(old))) == new
