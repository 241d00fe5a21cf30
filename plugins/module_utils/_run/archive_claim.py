# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Archives in a PersistentVolumeClaim of the cluster's namespace, reached from a Pod that exists for the moment."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import archive, transfer
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.archive_place import Place
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import CLAIM
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.archive_file import CHUNK, unwritable
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.data_places import Reach, require
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.tool_pod import CONTAINER, tool_pod

MOUNT = "/archives"


@contextmanager
def claim_shelf(run: Run, place: Place) -> Iterator[ClaimShelf]:
    """Mount the claim in a Pod. The image of the database's client has all that is needed."""
    params, target = run.params, f"PersistentVolumeClaim {run.params['namespace']}/{place.holder}"
    if run.kubernetes.get(CLAIM, params["namespace"], place.holder) is None:
        raise OperationError(
            f"There is no {target} for archives.", reason="NotFound", hint="Make it first; nothing was changed."
        )
    volumes = [{"name": "archives", "persistentVolumeClaim": {"claimName": place.holder}}]
    mounts = [{"name": "archives", "mountPath": MOUNT}]
    image, user = params["database_image"], params["database_run_as_user"]
    with tool_pod(run, "archives", image, user, volumes, mounts, params["wait_timeout"]) as pod:
        yield ClaimShelf(run, place, Reach(run, pod, CONTAINER))


class ClaimShelf:
    """The claim in a Pod: see DistantShelf in archive_store.py."""

    def __init__(self, run: Run, place: Place, reach: Reach) -> None:
        self._run = run
        self._place = place
        self._reach = reach
        self._shelf = transfer.Shelf(str(PurePosixPath(MOUNT) / place.path))

    def names(self) -> Sequence[str]:
        """List the folder; one that is not there is empty."""
        return self._reach.read(f"Looking at {self._place.of('')}", self._shelf.names()).splitlines()

    def put(self, draft: Path, name: str) -> None:
        """Send it, and have its checksum compared there."""
        what = f"Writing {self._place.of(name)}"
        with draft.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        command = self._shelf.put(name, archive.draft_name(name), draft.stat().st_size, digest)
        require(self._reach.stream(what, command, source=_chunks(draft)), what, self._reach.pod)

    def get(self, name: str, copy: Path) -> None:
        """Copy it; its own checksums are for the reader."""
        what, command = f"Reading {self._place.of(name)}", self._shelf.get(name)
        try:
            with copy.open("wb") as file:
                ended = self._reach.stream(what, command, sink=file.write)
        except OSError as error:
            raise unwritable(copy, error) from error
        if ended.rc == transfer.NO_ARCHIVE:
            raise OperationError(
                f"There is no archive {self._place.of(name)}.", reason="NotFound", hint="Check claim, folder and name."
            )
        require(ended, what, self._reach.pod)

    def remove(self, name: str) -> None:
        """Remove it."""
        what = f"Removing {self._place.of(name)}"
        require(self._reach.stream(what, self._shelf.remove(name), source=()), what, self._reach.pod)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while data := file.read(CHUNK):
            yield data
