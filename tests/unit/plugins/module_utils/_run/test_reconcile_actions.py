# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What somebody did between the plan of a reconciliation and its actions is respected."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import snapshot
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.reconcile_actions import Actor
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.token import GivenToken

from .._slurm.fake_slurm import Slurm

REASON = "k8s: cordoned: disk"


@pytest.fixture
def slurm() -> Slurm:
    made = Slurm()
    made.node("cpu-0")
    made.node("cpu-1")
    return made


def act(slurm: Slurm, stage: str, why: str, planned_on: Any) -> list[Action]:
    before = snapshot(slurm_nodes=planned_on).slurm_nodes
    actions = [Action(stage, name, why, stage=stage, subject=node) for name, node in before.items()]
    client = SlurmClient(slurm, GivenToken("x"))
    Actor(None, "ns", lambda: client).act(actions)  # type: ignore[arg-type]
    return actions


def test_a_persons_drain_keeps_its_reason(slurm: Slurm) -> None:
    planned_on = [dict(node) for node in slurm.nodes.values()]
    slurm.node("cpu-1", "IDLE+DRAIN", "bad fan, Ann")
    done = act(slurm, "drain", REASON, planned_on)
    assert [action.done for action in done] == [True, False]
    assert slurm.nodes["cpu-1"]["reason"] == "bad fan, Ann"
    assert [content["name"] for _method, _what, content in slurm.written] == [["cpu-0"]]


def test_a_drain_that_a_person_took_over_is_not_lifted(slurm: Slurm) -> None:
    planned_on = [{"name": name, "state": ["IDLE", "DRAIN"], "reason": REASON} for name in ("cpu-0", "cpu-1")]
    slurm.node("cpu-0", "IDLE+DRAIN", REASON)
    slurm.node("cpu-1", "IDLE+DRAIN", "bad fan, Ann")
    done = act(slurm, "undrain", "no longer cordoned", planned_on)
    assert [action.done for action in done] == [True, False]
    assert "DRAIN" in slurm.nodes["cpu-1"]["state"]
