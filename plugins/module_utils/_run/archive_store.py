# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Places for archives, one interface for all: a folder of this machine, a claim, a bucket.

An archive has its name in a place only when it is there as a whole. For a place elsewhere it is made, and checked, in a
temporary folder ($TMPDIR) first, and fetched into one to be read.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import archive, archive_place
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.archive_place import Place
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.archive_bucket import bucket_shelf
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.archive_claim import claim_shelf
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.archive_file import unwritable
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run


class Shelf(Protocol):
    """A place that is within reach. Each method raises OperationError."""

    def names(self) -> Sequence[str]:
        """Return the names of files there, with those of archives that were not completed."""

    def put(self, draft: Path, name: str) -> None:
        """Bring a complete archive, which then has this name; the draft may be gone."""

    def remove(self, name: str) -> None:
        """Remove a file; none of that name is fine."""


class DistantShelf(Shelf, Protocol):
    """One whose archives are no files of this machine."""

    def get(self, name: str, copy: Path) -> None:
        """Copy an archive into a new file."""


class Store(Protocol):
    """A place for archives."""

    def opened(self) -> AbstractContextManager[Shelf]:
        """Bring it within reach for the moment."""

    def draft(self, name: str) -> AbstractContextManager[Path]:
        """Give a path for an archive to be made at; gone afterwards, unless it was put."""

    def local(self, name: str) -> AbstractContextManager[Path]:
        """Give an archive as a file of this machine, to be read."""


def store_of(run: Run, place: Place) -> Store:
    """The store of a place."""
    if place.kind == archive_place.CLAIM:
        return Elsewhere(lambda: claim_shelf(run, place))
    if place.kind == archive_place.BUCKET:
        return Elsewhere(lambda: bucket_shelf(run, place))
    return Folder(Path(place.path))


class Folder:
    """A folder of this machine: store and shelf at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def opened(self) -> Iterator[Folder]:
        """It is within reach always."""
        yield self

    @contextmanager
    def draft(self, name: str) -> Iterator[Path]:
        """In the folder itself, so that putting is renaming."""
        path = self._path / archive.draft_name(name)
        try:
            self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # of a run that was killed
        except OSError as error:
            raise unwritable(path, error) from error
        try:
            yield path
        finally:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """It is a file of this machine."""
        yield self._path / name

    def names(self) -> Sequence[str]:
        """A folder that is not there has none."""
        try:
            return os.listdir(self._path)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise OperationError(
                f"{self._path} cannot be read: {error.strerror or error}.", reason="Unreadable", hint="Check the path."
            ) from error

    def put(self, draft: Path, name: str) -> None:
        """Rename it, and have that on disk."""
        try:
            os.replace(draft, self._path / name)
            descriptor = os.open(self._path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise unwritable(self._path / name, error) from error

    def remove(self, name: str) -> None:
        """Unlink it."""
        path = self._path / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise OperationError(
                f"{path} cannot be removed: {error.strerror or error}.", reason="Unwritable", hint="Check its rights."
            ) from error


class Elsewhere:
    """A place that is reached over the network."""

    def __init__(self, opened: Callable[[], AbstractContextManager[DistantShelf]]) -> None:
        self.opened = opened

    @contextmanager
    def draft(self, name: str) -> Iterator[Path]:
        """In a temporary folder, for its owner only."""
        with _temporary() as folder:
            yield folder / name

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """A copy in a temporary folder."""
        with _temporary() as folder:
            with self.opened() as shelf:
                shelf.get(name, folder / name)
            yield folder / name


@contextmanager
def _temporary() -> Iterator[Path]:
    try:
        folder = tempfile.TemporaryDirectory(prefix="slurm-archive-")
    except OSError as error:
        raise unwritable(Path(tempfile.gettempdir()), error) from error
    with folder as path:
        yield Path(path)
