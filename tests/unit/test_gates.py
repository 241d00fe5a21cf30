# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which steps the checks take: what needs a sandbox has its own, made once."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

TOOLS = str(Path(__file__).resolve().parents[1] / "tools")


@pytest.fixture
def gates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    for name in ("CHECKOUT", "CACHE", "COLLECTIONS"):
        monkeypatch.setenv(f"SLURM_OPS_{name}", str(tmp_path))
    monkeypatch.setenv("SLURM_OPS_MARK", "mark")
    for name in ("ARGS", "KEEP", "KUBECONFIG", "K8S_AUTH_KUBECONFIG", "K8S_AUTH_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.syspath_prepend(TOOLS)
    for name in ("gates", "runner", "copy_checkout"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return import_module("gates")


def shown(steps: list[Any]) -> list[tuple[str, str]]:
    return [(step.name, step.command[-2]) for step in steps if step.name.startswith("sandbox")]


def test_from_nothing_and_nothing_left(gates: Any) -> None:
    steps = gates.steps_of(["live", "molecule"], fresh=True)
    assert [step.name for step in steps if not step.name.startswith("sandbox")] == ["live", "molecule"]
    assert shown(steps) == [
        ("sandbox test", "fresh"),
        ("sandbox test-2", "fresh"),
        ("sandbox test end", "absent"),
        ("sandbox test-2 end", "absent"),
    ]
    assert [step.cleans_up for step in steps] == [False, False, False, False, True, True]


def test_each_worker_has_a_sandbox(gates: Any) -> None:
    live = gates.live()[-1]
    assert "--numprocesses=2" in live.command
    assert live.needs == ("sandbox test", "sandbox test-2")
    paths = live.env["KUBECONFIG"].split(":")
    assert [Path(path).parent.name for path in paths] == ["test", "test-2"]
    assert shown(gates.molecule()) == [("sandbox test", "present")]


def test_chosen_tests_and_a_given_cluster_take_one(gates: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "ARGS", ["tests/live/test_site.py"])
    assert shown(gates.live()) == [("sandbox test", "present")]
    assert "tests/live" not in gates.live()[-1].command
    monkeypatch.setattr(gates, "ARGS", [])
    monkeypatch.setenv("K8S_AUTH_HOST", "https://127.0.0.1")
    (live,) = gates.steps_of(["live"], fresh=False)
    assert (live.needs, live.command[-1]) == ((), "tests/live")
