# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The window of a rollout: what times are taken, and what is done about its reservation."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.window import (
    Reservation,
    Window,
    parse,
    plan,
    reservation,
)

TWO = 1_795_312_800  # 2026-11-22T02:00:00Z
WINDOW = Window(TWO, TWO + 7200)


@pytest.mark.parametrize("start", ["2026-11-22T02:00:00Z", "2026-11-22T03:00:00+01:00", "2026-11-22 02:00+00:00"])
def test_times_with_a_zone(start: str) -> None:
    assert parse({"start": start, "duration": 120}) == WINDOW


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"start": "2026-11-22T02:00:00", "duration": 1}, "no time with a zone"),
        ({"start": "tonight", "duration": 1}, "no time with a zone"),
        ({"start": "2026-11-22T02:00:00Z", "duration": 0}, "at least 1 minute"),
    ],
)
def test_others_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OperationError) as caught:
        parse(options)
    assert said in caught.value.msg


def test_ahead_open_over() -> None:
    assert [(WINDOW.is_ahead(now), WINDOW.is_over(now)) for now in (TWO - 1, TWO, TWO + 7199, TWO + 7200)] == [
        (True, False),
        (False, False),
        (False, False),
        (False, True),
    ]


THERE = Reservation(WINDOW, frozenset({"cpu-0", "cpu-1"}), frozenset({"MAINT", "IGNORE_JOBS"}))
OTHER_FLAGS = Reservation(WINDOW, THERE.nodes, frozenset())
EARLIER = Reservation(Window(TWO - 60, TWO), THERE.nodes, THERE.flags)


@pytest.mark.parametrize(
    ("nodes", "there", "now", "kinds"),
    [
        (["cpu-0", "cpu-1"], None, TWO - 60, ["reserve"]),
        (["cpu-0", "cpu-1"], THERE, TWO - 60, []),
        (["cpu-0"], THERE, TWO - 60, ["reserve"]),
        (["cpu-0", "cpu-1"], EARLIER, TWO - 60, ["reserve"]),
        (["cpu-0", "cpu-1"], OTHER_FLAGS, TWO - 60, ["reserve"]),
        ([], THERE, TWO - 60, ["unreserve"]),
        ([], None, TWO - 60, []),
        (["cpu-0"], THERE, TWO, ["unreserve"]),
        (["cpu-0"], None, TWO, []),
    ],
)
def test_what_is_done(nodes: list[str], there: Reservation | None, now: int, kinds: list[str]) -> None:
    found = plan("cpu", WINDOW, nodes, there, now)
    assert [action.kind for action in found] == kinds
    if kinds == ["reserve"]:
        assert found[0].subject == there, "whether it is made or changed"


def test_the_reservation_among_others() -> None:
    def listed(name: str) -> dict[str, Any]:
        return {
            "name": name,
            "start_time": {"set": True, "infinite": False, "number": TWO},
            "end_time": {"set": True, "infinite": False, "number": TWO + 7200},
            "node_list": "cpu-[0-1]",
            "flags": ["IGNORE_JOBS", "MAINT"],
        }

    assert reservation([listed("maint"), listed("k8s-rollout-cpu")], "cpu") == THERE
    assert reservation([listed("maint")], "cpu") is None
