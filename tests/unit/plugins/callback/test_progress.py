# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The callback that shows what long steps are doing."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.callback.progress import CallbackModule


class Display:
    verbosity = 0

    def __init__(self) -> None:
        self.lines: list[str] = []

    def display(self, text: str, color: str | None = None) -> None:
        self.lines.append(text)


@pytest.fixture
def display() -> Display:
    return Display()


@pytest.fixture
def callback(display: Display, monkeypatch: pytest.MonkeyPatch) -> CallbackModule:
    monkeypatch.delenv("SLURM_OPS_PROGRESS", raising=False)
    made = CallbackModule(display=display)
    monkeypatch.setattr(made, "get_option", lambda _name: 0.01)
    return made


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 5
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def test_lines_are_shown_as_they_come(callback: CallbackModule, display: Display) -> None:
    callback.v2_playbook_on_start(None)
    path = Path(os.environ["SLURM_OPS_PROGRESS"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with path.open("a") as stream:
        stream.write("one\ntwo\nhal")
        stream.flush()
        wait_for(lambda: len(display.lines) == 2)
        stream.write("f\n")
        stream.flush()
        wait_for(lambda: len(display.lines) == 3)
    assert display.lines == ["  ... one", "  ... two", "  ... half"]
    callback.v2_playbook_on_stats(None)


def test_at_the_end_the_rest_is_shown_and_the_file_removed(callback: CallbackModule, display: Display) -> None:
    callback.v2_playbook_on_start(None)
    path = Path(os.environ["SLURM_OPS_PROGRESS"])
    with path.open("ab") as stream:
        stream.write("last \xff".encode("latin-1"))
    callback.v2_playbook_on_stats(None)
    assert display.lines == ["  ... last \ufffd"]
    assert not path.exists()
    assert "SLURM_OPS_PROGRESS" not in os.environ
    callback.v2_playbook_on_stats(None)


def test_whoever_set_the_variable_shows_the_lines(
    callback: CallbackModule, display: Display, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SLURM_OPS_PROGRESS", str(tmp_path / "theirs"))
    callback.v2_playbook_on_start(None)
    callback.v2_playbook_on_stats(None)
    assert os.environ["SLURM_OPS_PROGRESS"] == str(tmp_path / "theirs")
    assert display.lines == []
