# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small archive for tests."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import archive
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.archive import Manifest, Seal
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.transfer import STATE_FILES
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.archive_file import ArchiveWriter
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.archive_store import Folder


def packed(**files: bytes) -> bytes:
    """A compressed tar."""
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(f"./{name}")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return result.getvalue()


SECRET: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "type": "Opaque",
    "metadata": {"name": "hpc-auth"},
    "data": {"slurm.key": "open+sesame="},
}
TOPOLOGY = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "hpc-topology"},
    "data": {"topology.yaml": "x"},
}
PARTS = {
    archive.STATE: packed(**dict.fromkeys(STATE_FILES, b"x")),
    archive.DATABASE: gzip.compress(b"CREATE TABLE a (b int);\n" * 50 + b"-- Dump completed on 2026-01-02\n"),
    archive.SECRETS: json.dumps([SECRET]).encode(),
    archive.CONFIGURATION: json.dumps([TOPOLOGY]).encode(),
}


def manifest(**values: Any) -> Manifest:
    """The manifest of an archive that has no parts yet."""
    return replace(Manifest("id", "hpc", "hpc", "26.05.1", "slurm_acct_db", "2026-01-02T03:04:05+00:00"), **values)


@contextmanager
def writing(path: Path, passphrase: str | None = None, **values: Any) -> Iterator[ArchiveWriter]:
    """Write parts of an archive into its folder; it is put there under its name when the block ends well."""
    seal = Seal(salt="00" * 16, n=2) if passphrase else None
    folder = Folder(path.parent)
    with folder.draft(path.name) as draft:
        with ArchiveWriter(draft, manifest(seal=seal, **values), passphrase) as writer:
            yield writer
            writer.finish()
        folder.put(draft, path.name)


def write(path: Path, passphrase: str | None = None, parts: Mapping[str, bytes] | None = None, **values: Any) -> Path:
    """Write an archive and return its path."""
    with writing(path, passphrase, **values) as writer:
        for name in archive.PARTS:
            data = (parts or PARTS)[name]
            writer.part(name, lambda take, data=data: take(data))
    return path
