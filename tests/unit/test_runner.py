# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner behind `make test`: what fails must be counted, whatever else happens."""

from __future__ import annotations

import sys
import time
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def load_runner() -> ModuleType:
    spec = util.spec_from_file_location("runner", Path(__file__).resolve().parents[1] / "tools" / "runner.py")
    if spec is None or spec.loader is None:
        raise ImportError("tests/tools/runner.py")
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their annotations
    spec.loader.exec_module(module)
    return module


runner = load_runner()

ONE_OF_EACH = """<testsuites><testsuite tests="5" errors="1" failures="1" skipped="1"/></testsuites>"""


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*steps: Any) -> tuple[int, list[str]]:
        status = runner.Runner(tmp_path / "logs", show=False).run(steps)
        return status, capsys.readouterr().out.splitlines()

    return run


def step(tmp_path: Path, name: str, script: str, **more: Any) -> Any:
    return runner.Step(name, ["sh", "-c", script], tmp_path, **more)


def test_all_steps_run_and_the_last_line_counts_them(run: Any, tmp_path: Path) -> None:
    status, lines = run(
        step(tmp_path, "bad", "echo why; exit 3"), step(tmp_path, "good", "true"), step(tmp_path, "fine", "true")
    )
    assert status == 1
    assert lines[-1] == "2 passed, 1 failed"
    assert "why" in lines


def test_success(run: Any, tmp_path: Path) -> None:
    status, lines = run(step(tmp_path, "good", "true", together=True), step(tmp_path, "fine", "true", together=True))
    assert (status, lines[-1]) == (0, "2 passed, 0 failed")


def test_a_step_whose_need_failed_counts_as_failed_and_does_not_run(run: Any, tmp_path: Path) -> None:
    status, lines = run(step(tmp_path, "base", "false"), step(tmp_path, "top", "touch ran", needs=("base",)))
    assert (status, lines[-1]) == (1, "0 passed, 2 failed")
    assert not (tmp_path / "ran").exists()


def test_a_step_that_takes_too_long_is_ended_with_its_children(run: Any, tmp_path: Path) -> None:
    start = time.monotonic()
    status, lines = run(step(tmp_path, "slow", "sleep 60 & sleep 60; wait", timeout=0.5))
    assert (status, lines[-1]) == (1, "0 passed, 1 failed")
    assert time.monotonic() - start < 20


def test_success_for_want_of_anything_to_do_is_a_failure(run: Any, tmp_path: Path) -> None:
    status, lines = run(step(tmp_path, "idle", "echo All targets skipped.", vacuous="All targets skipped"))
    assert (status, lines[-1]) == (1, "0 passed, 1 failed")


@pytest.mark.parametrize(
    ("report", "exit_status", "counted"),
    [
        (ONE_OF_EACH, 1, "2 passed, 2 failed"),
        (ONE_OF_EACH.replace('errors="1" failures="1"', 'errors="0" failures="0"'), 0, "4 passed, 0 failed"),
        # pytest ended badly after tests that passed: a crash, an interrupt
        (ONE_OF_EACH.replace('errors="1" failures="1"', 'errors="0" failures="0"'), 2, "4 passed, 1 failed"),
        # nothing ran
        (
            '<testsuites><testsuite tests="0" errors="0" failures="0" skipped="0"/></testsuites>',
            0,
            "0 passed, 1 failed",
        ),
        ("", 0, "0 passed, 1 failed"),
    ],
)
def test_tests_are_counted(run: Any, tmp_path: Path, report: str, exit_status: int, counted: str) -> None:
    junit = tmp_path / "junit.xml"
    junit.write_text("left by an earlier run")
    script = f"[ -z '{report}' ] || printf %s '{report}' > junit.xml; exit {exit_status}"
    status, lines = run(step(tmp_path, "tests", script, junit=junit))
    assert lines[-1] == counted
    assert status == (0 if counted.endswith(" 0 failed") else 1)
