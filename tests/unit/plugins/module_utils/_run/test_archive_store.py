# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Places for archives on this machine; claims and buckets are of the live tests."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.archive_store import Folder


def test_an_archive_has_its_name_once_it_was_put(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "new" / "folder")
    assert folder.names() == []
    with folder.draft("a.zip") as draft:
        draft.write_text("x")
        assert folder.names() == [".a.zip.part"]
        folder.put(draft, "a.zip")
    assert folder.names() == ["a.zip"]
    assert stat.S_IMODE((tmp_path / "new" / "folder").stat().st_mode) == 0o700
    with folder.local("a.zip") as path:
        assert path.read_text() == "x"
    for _again in range(2):
        folder.remove("a.zip")
    assert folder.names() == []


def test_a_draft_that_was_not_put_is_gone(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with folder.draft("a.zip") as draft:
        draft.write_text("half")
    assert folder.names() == []


def test_what_cannot_be_read_or_removed_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationError) as unreadable:
        Folder(tmp_path / "file").names()
    assert unreadable.value.reason == "Unreadable"
    (tmp_path / "a.zip").mkdir()
    with pytest.raises(OperationError) as unwritable:
        Folder(tmp_path).remove("a.zip")
    assert unwritable.value.reason == "Unwritable"
