# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""An archive as a file: written as a stream, looked through before anybody relies on it, read as a stream."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import io
import lzma
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.archive import (
    DATABASE,
    MANIFEST,
    STATE,
    Manifest,
    Part,
    damaged,
    parse_manifest,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.transfer import STATE_FILES
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.sealed import Cipher

CHUNK = 2**20  # bytes that are read at a time
LARGEST_MANIFEST = 2**20
# What zipfile, tarfile and their decompressors raise for changed bytes: by far not always BadZipFile. RuntimeError
# (NotImplementedError is one) is a member that seems to be encrypted, or packed in an unknown way; MemoryError and
# OverflowError a size that no file has; OSError (EINVAL) a place that no file has.
_DAMAGES = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, LookupError,
    ValueError, TypeError, RuntimeError, MemoryError, OverflowError,
)  # fmt: skip
SQL_END = b"-- Dump completed"  # the last line of mariadb-dump, and of nothing that was cut off


def unwritable(path: Path, error: OSError) -> OperationError:
    """The error for a folder that does not take the archive."""
    return OperationError(
        f"{path} cannot be written: {error.strerror or error}.",
        reason="Unwritable",
        hint="Check folder, rights and free space. No archive was left there.",
    )


class ArchiveWriter:
    """Writes an archive into a file that is to be removed unless finish() ended well."""

    def __init__(self, draft: Path, manifest: Manifest, passphrase: str | None) -> None:
        self.draft = draft
        self.manifest = manifest
        self._passphrase = passphrase
        self._cipher = Cipher(passphrase or "", manifest.seal, manifest.id) if manifest.seal else None

    def __enter__(self) -> ArchiveWriter:
        with self._writing():
            descriptor = os.open(self.draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            self._file = os.fdopen(descriptor, "w+b")
            self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_STORED, allowZip64=True)
        return self

    def __exit__(self, *exception: Any) -> None:
        # A ZipFile that is not closed writes its end when it is collected, and complains on stderr.
        with contextlib.suppress(OSError, ValueError):
            self._zip.close()
        with contextlib.suppress(OSError, ValueError):
            self._file.close()

    def part(self, name: str, fill: Callable[[Callable[[bytes], None]], object]) -> None:
        """Write one part; ``fill`` is given what takes its bytes."""
        digest = hashlib.sha256()
        size = stored = 0

        with self._writing():
            member = self._zip.open(name, "w", force_zip64=True)

        def store(data: bytes) -> None:
            nonlocal stored
            digest.update(data)
            stored += len(data)
            with self._writing():
                member.write(data)

        writer = self._cipher.writer(name, store) if self._cipher else None

        def take(data: bytes) -> None:
            nonlocal size
            size += len(data)
            (writer.write if writer else store)(data)

        try:
            fill(take)
            if writer:
                writer.close()
        except BaseException:
            # Closing writes what is buffered, which may fail once more; the first error is the one to tell.
            with contextlib.suppress(OSError, ValueError):
                member.close()
            raise
        with self._writing():
            member.close()
        part = Part(name, size, stored, digest.hexdigest())
        self.manifest = replace(self.manifest, parts=(*self.manifest.parts, part))

    def finish(self) -> int:
        """Complete it and read it back; returns its size in bytes."""
        with self._writing():
            self._zip.writestr(MANIFEST, self.manifest.text())
            self._zip.close()
            self._file.flush()
            os.fsync(self._file.fileno())
        with Archive(self.draft, self._passphrase) as written:
            written.check()
        return self.draft.stat().st_size

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise unwritable(self.draft, error) from error


class Archive:
    """An archive that is there. Opening it reads the manifest; check() all of it. People call it ``told``."""

    def __init__(self, path: Path, passphrase: str | None, told: str = "") -> None:
        self.path = told or str(path)
        with contextlib.ExitStack() as held:
            with self._readable():
                file = held.enter_context(path.open("rb"))
            with self._whole("it is no archive, or it was cut off"):
                self._zip = held.enter_context(zipfile.ZipFile(file))
            with self._whole("its manifest cannot be read"):
                if self._zip.getinfo(MANIFEST).file_size > LARGEST_MANIFEST:
                    raise damaged(self.path, "its manifest is too large")
                self.manifest = parse_manifest(self.path, self._zip.read(MANIFEST))
                self._cipher = self._unseal(passphrase)
            self._held = held.pop_all()

    @contextlib.contextmanager
    def _whole(self, what: str) -> Iterator[None]:
        """Tell what reading a damaged file raises as that damage."""
        try:
            with self._readable():
                yield
        except _DAMAGES as error:
            # A KeyError's text is only a name.
            why = "" if isinstance(error, KeyError) else f" ({error or type(error).__name__})"
            raise damaged(self.path, f"{what}{why}") from error

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        """Tell a disk or a mount that does not give the file; an OSError that is a damage goes through."""
        try:
            yield
        except OSError as error:
            if error.errno in (None, errno.EINVAL):
                raise
            raise OperationError(
                f"Archive {self.path} cannot be read: {error.strerror or error}.",
                reason="Unreadable",
                hint="Check the path.",
            ) from error

    def _unseal(self, passphrase: str | None) -> Cipher | None:
        if self.manifest.seal is None:
            return None
        if not passphrase:
            raise OperationError(
                f"Archive {self.path} is encrypted, and no passphrase is given.",
                reason="WrongPassphrase",
                hint="Give the passphrase that it was made with.",
            )
        return Cipher(passphrase, self.manifest.seal, self.manifest.id)

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._held.close()

    def check(self) -> None:
        """Read every part to its end; raises OperationError (Damaged, WrongPassphrase)."""
        for part in self.manifest.parts:
            self._checksum(part)
        for part in self.manifest.parts:
            self._content(part.name)

    def _checksum(self, part: Part) -> None:
        digest = hashlib.sha256()
        size = 0
        for data in self._stored(part.name):
            digest.update(data)
            size += len(data)
        if size != part.stored or digest.hexdigest() != part.sha256:
            raise damaged(self.path, f"{part.name} does not have the checksum that the manifest gives")

    def _content(self, name: str) -> None:
        with self._whole(f"{name} cannot be unpacked"):
            if name == STATE:
                self._check_state()
            elif name == DATABASE:
                self._check_database()
            else:
                self.read(name)

    def _check_state(self) -> None:
        with gzip.GzipFile(fileobj=self._file(STATE)) as unpacked:
            with tarfile.open(fileobj=unpacked, mode="r|") as state:
                names = {entry.name.removeprefix("./") for entry in state}
            while unpacked.read(CHUNK):
                pass
        missing = [name for name in STATE_FILES if not names & {name, f"{name}.old"}]
        if missing:
            raise damaged(self.path, f"the state of slurmctld has no {' and no '.join(missing)}")

    def _check_database(self) -> None:
        end = b""
        with gzip.GzipFile(fileobj=self._file(DATABASE)) as unpacked:
            while data := unpacked.read(CHUNK):
                end = (end + data)[-1024:]
        if SQL_END not in end:
            raise damaged(self.path, "the dump of the database was cut off")

    def chunks(self, name: str) -> Iterator[bytes]:
        """The bytes of one part, decrypted."""
        stored = self._stored(name)
        return self._cipher.open(self.path, name, stored) if self._cipher else stored

    def read(self, name: str) -> bytes:
        """One small part as a whole."""
        return b"".join(self.chunks(name))

    def _file(self, name: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self.chunks(name)), CHUNK)

    def _stored(self, name: str) -> Iterator[bytes]:
        with self._whole(f"{name} cannot be read"):
            member = self._zip.open(name)
        with member:
            while True:
                with self._whole(f"{name} cannot be read"):
                    data = member.read(CHUNK)
                if not data:
                    return
                yield data


class _Reader(io.RawIOBase):
    """Chunks as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            try:
                self._left = memoryview(next(self._chunks))
            except StopIteration:
                return 0
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count
