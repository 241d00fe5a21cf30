# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A text that goes to a file too: once, as a whole, with the rights that the file had."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import saved_file


def test_once(tmp_path: Path) -> None:
    path = tmp_path / "topology.yaml"
    (action,) = saved_file.plan(str(path), "a\n")
    assert (action.kind, action.target, action.why, action.diff) == ("save", str(path), "not there", ("", "a\n"))
    assert not path.exists()
    saved_file.save(str(path), "a\n")
    assert saved_file.plan(str(path), "a\n") == []
    path.chmod(0o640)
    (action,) = saved_file.plan(str(path), "b\n")
    assert action.diff == ("a\n", "b\n")
    saved_file.save(str(path), "b\n")
    assert path.read_text() == "b\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [item.name for item in tmp_path.iterdir()] == ["topology.yaml"]


def test_nothing_to_write() -> None:
    assert saved_file.plan(None, "a") == saved_file.plan("/x", None) == []


def test_no_folder(tmp_path: Path) -> None:
    path = str(tmp_path / "missing" / "topology.yaml")
    assert saved_file.plan(path, "a")
    with pytest.raises(OperationError, match="cannot be written"):
        saved_file.save(path, "a")
