# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives as files: whole or not there, and read to the end before anybody relies on them."""

from __future__ import annotations

import errno
import gzip
import os
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import archive
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.transfer import STATE_FILES
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.archive_file import Archive

from .archive_samples import PARTS, packed, write, writing


@pytest.mark.parametrize("passphrase", [None, "correct horse"])
def test_it_is_read_as_it_was_written(tmp_path: Path, passphrase: str | None) -> None:
    path = write(tmp_path / "new" / "a.zip", passphrase)
    with Archive(path, passphrase) as found:
        found.check()
        assert {name: found.read(name) for name in archive.PARTS} == PARTS
        assert found.manifest.cluster == "hpc"
        assert [part.size for part in found.manifest.parts] == [len(PARTS[name]) for name in archive.PARTS]
    assert (b"open+sesame" in path.read_bytes()) == (passphrase is None)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == ["a.zip"]


def test_an_ordinary_tool_can_read_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(write(tmp_path / "a.zip")) as found:
        assert found.testzip() is None
        assert found.namelist() == [*archive.PARTS, archive.MANIFEST]


def test_what_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    def fail(take: Any) -> None:
        take(b"some")
        raise OperationError("The Pod went away.", reason="Unreachable")

    with pytest.raises(OperationError, match="went away"), writing(tmp_path / "a.zip") as writer:
        writer.part(archive.STATE, fail)
    assert os.listdir(tmp_path) == []


def test_a_part_of_a_run_that_was_killed_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / ".a.zip.part").write_text("half")
    write(tmp_path / "a.zip")
    assert os.listdir(tmp_path) == ["a.zip"]


@pytest.mark.parametrize("part", [archive.STATE, archive.DATABASE])
def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def fill(take: Any) -> None:
        monkeypatch.setattr(zipfile._ZipWriteFile, "write", full)  # type: ignore[attr-defined]
        take(PARTS[part])

    with pytest.raises(OperationError, match="No space left") as caught, writing(tmp_path / "a.zip") as writer:
        writer.part(part, fill)
    assert caught.value.reason == "Unwritable"
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationError) as caught:
        write(tmp_path / "file" / "a.zip")
    assert caught.value.reason == "Unwritable"


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({archive.DATABASE: gzip.compress(b"CREATE TABLE a (b int);\n")}, "cut off"),
        ({archive.DATABASE: PARTS[archive.DATABASE][:-9]}, "unpacked"),
        ({archive.DATABASE: b"no gzip"}, "unpacked"),
        ({archive.STATE: packed(job_state=b"x")}, "assoc_usage and no fed_mgr_state and no node_state"),
        ({archive.STATE: PARTS[archive.STATE][:-9]}, "unpacked"),
        ({archive.STATE: gzip.compress(b"no tar")}, "unpacked"),
    ],
)
def test_a_stream_that_ended_too_early_makes_no_archive(tmp_path: Path, parts: Mapping[str, bytes], words: str) -> None:
    with pytest.raises(OperationError, match=words) as caught:
        write(tmp_path / "a.zip", parts={**PARTS, **parts})
    assert caught.value.reason == "Damaged"
    assert os.listdir(tmp_path) == []


def test_the_old_file_stands_for_one_that_is_just_being_renamed(tmp_path: Path) -> None:
    files = dict.fromkeys([*STATE_FILES[1:], f"{STATE_FILES[0]}.old"], b"x")
    write(tmp_path / "a.zip", parts={**PARTS, archive.STATE: packed(**files)})


def refusal(path: Path, passphrase: str | None = None) -> OperationError:
    with pytest.raises(OperationError) as caught, Archive(path, passphrase) as found:
        found.check()
    return caught.value


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_an_archive_that_was_cut_off_is_refused(tmp_path: Path, share: float) -> None:
    path = write(tmp_path / "a.zip")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    assert refusal(path).reason == "Damaged"


def verdict(path: Path, passphrase: str | None) -> str:
    """What an archive is found to be; what was not changed is read as it was written."""
    try:
        with Archive(path, passphrase) as found:
            found.check()
            return "whole" if {name: found.read(name) for name in archive.PARTS} == PARTS else "other"
    except OperationError as error:
        return str(error.reason)


@pytest.mark.parametrize(("passphrase", "known"), [(None, set()), ("correct horse", {"WrongPassphrase"})])
def test_no_flipped_bit_is_read_as_truth_or_ends_in_a_surprise(
    tmp_path: Path, passphrase: str | None, known: set[str]
) -> None:
    """Each bit of an archive, one after the other: zipfile knows many errors for what is damaged."""
    path = write(tmp_path / "a.zip", passphrase)
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as found:
        inside: set[int] = set()
        for name in archive.PARTS:
            stored = found.read(name)
            start = whole.index(stored, found.getinfo(name).header_offset)
            inside |= set(range(start, start + len(stored)))
    changed = tmp_path / "b.zip"
    for place, byte in enumerate(whole):
        # Members have a checksum, for which each bit is like the other.
        for bit in range(1 if place in inside else 8):
            changed.write_bytes(whole[:place] + bytes([byte ^ 1 << bit]) + whole[place + 1 :])
            seen = verdict(changed, passphrase)
            # What zip files say beside their members' bytes (dates, rights, names again) may change nothing.
            assert seen in {"Damaged", *known, *([] if place in inside else ["whole"])}, (place, bit)


def rewritten(path: Path, **members: bytes) -> Path:
    """The archive with other members, and a sound zip file all the same."""
    with zipfile.ZipFile(path) as found:
        content = {name: found.read(name) for name in found.namelist()}
    with zipfile.ZipFile(path, "w") as made:
        for name, data in {**content, **members}.items():
            if data:
                made.writestr(name, data)
    return path


def test_a_checksum_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = rewritten(write(tmp_path / "a.zip"), **{archive.SECRETS: b"[]"})
    assert "checksum" in refusal(path).msg


@pytest.mark.parametrize("name", [archive.MANIFEST, archive.STATE])
def test_a_missing_member_is_refused(tmp_path: Path, name: str) -> None:
    assert refusal(rewritten(write(tmp_path / "a.zip"), **{name: b""})).reason == "Damaged"


@pytest.mark.parametrize("passphrase", [None, "", "wrong horse"])
def test_the_passphrase_has_to_be_the_one(tmp_path: Path, passphrase: str | None) -> None:
    path = write(tmp_path / "a.zip", "correct horse")
    assert refusal(path, passphrase).reason == "WrongPassphrase"


def test_no_archive_at_all(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.zip").reason == "Unreadable"
    (tmp_path / "text.zip").write_text("text")
    assert refusal(tmp_path / "text.zip").reason == "Damaged"
