# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines for people while a long step runs."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.progress import Progress


def progress_to(path: Path, times: list[float]) -> Progress:
    return Progress("t", environ={"SLURM_OPS_PROGRESS": str(path)}, clock=lambda: times.pop(0), interval=10)


def test_say_writes_one_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_text("before\n")
    progress_to(path, [0.0]).say("one\n  two")
    assert path.read_text() == "before\nt: one two\n"


def test_tell_keeps_an_interval(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.touch()
    times = [0.0, 5.0, 10.0, 10.0, 15.0, 21.0, 21.0]
    progress = progress_to(path, times)
    for number in range(5):
        progress.tell(str(number))
    assert path.read_text() == "t: 2\nt: 4\n"


def test_without_the_variable_it_is_silent() -> None:
    Progress(environ={}).say("x")


def test_a_file_that_is_gone_is_no_error(tmp_path: Path) -> None:
    progress = progress_to(tmp_path / "absent", [0.0, 1.0])
    progress.say("x")
    progress.say("y")
    assert not list(tmp_path.iterdir())
