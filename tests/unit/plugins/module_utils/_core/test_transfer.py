# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scripts that carry slurmctld's state and archives, run by a real shell on folders of this machine."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import transfer


def run(command: Sequence[str], data: bytes = b"") -> bytes:
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    (folder / "hash.3" / "job.13").mkdir(parents=True)
    (folder / "hash.3" / "job.13" / "script").write_text("#!/bin/sh\n")
    (folder / "hash.3" / "job.13" / "script").chmod(0o600)
    for name in (*transfer.STATE_FILES[1:], "job_state.old", "assoc_usage.old", "node_state.new", "name with blanks"):
        (folder / name).write_text(name)
    (folder / "lost+found").mkdir()
    return folder


def test_jobs_scripts_come_after_the_jobs_and_nothing_half_written_comes(state: Path) -> None:
    packed = run(transfer.copy_state(str(state), pause=0))
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        names = [name.removeprefix("./") for name in archive.getnames()]
    assert sorted(names[:-3]) == [
        "assoc_usage.old",
        "fed_mgr_state",
        "job_state",
        "job_state.old",
        "name with blanks",
        "node_state",
        "resv_state",
        "trigger_state",
    ]
    assert names[-3:] == ["hash.3", "hash.3/job.13", "hash.3/job.13/script"]


def test_a_folder_becomes_what_was_copied(state: Path, tmp_path: Path) -> None:
    packed = run(transfer.copy_state(str(state), pause=0))
    target = tmp_path / "target"
    (target / "hash.9").mkdir(parents=True)
    (target / "job_state").write_text("another cluster's")
    (target / "lost+found").mkdir()
    run(transfer.unpack_state(str(target), len(packed)), packed + b"stdin that is never closed")
    found = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert found >= {"hash.3/job.13/script", "job_state", "job_state.old", "name with blanks"}
    assert len(found) == 9
    assert (target / "job_state").read_text() == "job_state"
    assert (target / "hash.3/job.13/script").stat().st_mode & 0o777 == 0o600
    assert (target / "lost+found").is_dir()
    assert not (target / "hash.9").exists()


def test_a_state_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    command = transfer.copy_state(str(tmp_path / "none"), pause=0)
    assert subprocess.run(command, capture_output=True, check=False).returncode


def test_a_state_from_which_slurmctld_would_not_start_is_waited_for_but_not_taken(state: Path) -> None:
    (state / "trigger_state").unlink()
    command = transfer.copy_state(str(state), pause=0, most=2)
    ended = subprocess.run(command, capture_output=True, check=False, text=True)
    assert ended.returncode == 1
    assert "has not written trigger_state" in ended.stderr


def test_a_stream_that_was_cut_off_is_an_error(state: Path, tmp_path: Path) -> None:
    packed = run(transfer.copy_state(str(state), pause=0))
    command = transfer.unpack_state(str(tmp_path / "state"), len(packed))
    assert subprocess.run(command, input=packed[:-9], capture_output=True, check=False).returncode


def test_a_state_is_measured(state: Path) -> None:
    assert int(run(transfer.state_size(str(state)))) > len("job_state") * 3


def put(folder: Path, data: bytes, sent: bytes) -> int:
    digest = hashlib.sha256(data).hexdigest()
    command = transfer.Shelf(str(folder)).put("a.zip", ".a.zip.part", len(data), digest)
    return subprocess.run(command, input=sent, capture_output=True, check=False).returncode


def test_an_archive_in_a_volume_comes_back_as_it_was_put(tmp_path: Path) -> None:
    folder, data = tmp_path / "new" / "folder", bytes(range(256)) * 40
    shelf = transfer.Shelf(str(folder))
    assert run(shelf.names()) == b""
    assert put(folder, data, data + b"stdin that is never closed") == 0
    (folder / ".b.zip.part").write_text("of a run that was killed")
    (folder / "notes.txt").write_text("a person's")
    assert sorted(run(shelf.names()).split()) == [b".b.zip.part", b"a.zip"]
    assert run(shelf.get("a.zip")) == data
    assert (folder / "a.zip").stat().st_mode & 0o777 == 0o600
    for _again in range(2):
        run(shelf.remove("a.zip"))
    assert subprocess.run(shelf.get("a.zip"), check=False).returncode == transfer.NO_ARCHIVE


@pytest.mark.parametrize("sent", [b"", b"half", b"another"])
def test_an_archive_that_does_not_arrive_whole_is_not_there(tmp_path: Path, sent: bytes) -> None:
    assert put(tmp_path, b"archive", sent) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["dump", "size", "load"])
def test_a_database_is_never_part_of_a_script_and_the_shell_takes_the_scripts(command: str) -> None:
    database = transfer.Database("db.example.org", 3307, "us'er", "slurm_acct_db")
    words = {"dump": database.dump(), "size": database.size(), "load": database.load(7, replace=False)}[command]
    assert words[:2] == ["bash", "-c"]
    assert words[4:8] == ["db.example.org", "3307", "us'er", "slurm_acct_db"]
    assert "us'er" not in words[2]
    subprocess.run(["bash", "-n", "-c", words[2]], check=True)
