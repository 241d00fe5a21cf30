# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What identifies an archive, and the archive that is written."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.archives import (
    collection_identity,
    identity,
    image_archive,
    pause_archive,
)


def read(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def test_the_same_program_gives_the_same_archive() -> None:
    assert pause_archive(b"program") == pause_archive(b"program")
    assert pause_archive(b"program") != pause_archive(b"another")


def test_all_blobs_are_named_by_their_digest_and_refer_to_each_other() -> None:
    files = read(pause_archive(b"program"))
    blobs = {name.removeprefix("blobs/sha256/"): content for name, content in files.items() if "/" in name}
    assert all(hashlib.sha256(content).hexdigest() == name for name, content in blobs.items())
    descriptor = json.loads(files["index.json"])["manifests"][0]
    assert descriptor["annotations"]["io.containerd.image.name"] == "localhost/slurm-ops/pause:dev"
    manifest = json.loads(blobs[descriptor["digest"].removeprefix("sha256:")])
    for part in (manifest["config"], *manifest["layers"]):
        assert len(blobs[part["digest"].removeprefix("sha256:")]) == part["size"]
    configuration = json.loads(blobs[manifest["config"]["digest"].removeprefix("sha256:")])
    assert configuration["config"]["Entrypoint"] == ["/pause"]


def test_identity_follows_the_index_only(tmp_path: Path) -> None:
    archive = tmp_path / "image.tar"
    archive.write_bytes(image_archive("localhost/a:1", {"file": (b"one", 0o644)}, {}))
    first = identity(archive)
    archive.rename(tmp_path / "renamed.tar")
    assert identity(tmp_path / "renamed.tar") == first
    archive.write_bytes(image_archive("localhost/a:1", {"file": (b"two", 0o644)}, {}))
    assert identity(archive) != first


def test_a_docker_archive_is_one_too(tmp_path: Path) -> None:
    path = tmp_path / "docker.tar"
    with tarfile.open(path, "w") as tar:
        member = tarfile.TarInfo("./manifest.json")
        tar.addfile(member)
    assert identity(path) == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize("content", [b"no archive at all", b""])
def test_what_is_no_image_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.tar"
    path.write_bytes(content)
    with pytest.raises(OperationError) as caught:
        identity(path)
    assert caught.value.reason == "InvalidArchive"
    assert str(path) in caught.value.msg


def test_a_missing_archive_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperationError) as caught:
        identity(tmp_path / "nowhere.tar")
    assert "nowhere.tar" in caught.value.msg


def test_order_does_not_matter_but_the_runtime_does() -> None:
    assert collection_identity(["a", "b"], "r") == collection_identity(["b", "a"], "r")
    assert collection_identity(["a"], "r") != collection_identity(["a", "b"], "r")
    assert collection_identity(["a"], "r") != collection_identity(["a"], "s")
