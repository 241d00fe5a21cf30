# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Archives in a bucket of S3, or of what speaks its protocol, by the library minio."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.archive_place import Place
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import library
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.library import missing_library
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.archive_file import unwritable
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run

# What a server answers, by HTTP status.
ANSWERS = {403: ("Forbidden", "Check keys and rights."), 404: ("NotFound", "Check bucket and name.")}


@contextmanager
def bucket_shelf(run: Run, place: Place) -> Iterator[BucketShelf]:
    """Make a client. Keys that the options do not give are those of the environment."""
    try:
        from minio import Minio
        from minio.credentials.providers import EnvAWSProvider, StaticProvider
    except ImportError as error:
        raise missing_library("minio", "for archives in a bucket") from error
    params = run.params
    url = urlsplit(params["s3_endpoint_url"])
    if url.scheme not in ("http", "https") or not url.netloc or url.path.strip("/"):
        raise OperationError(
            f"{params['s3_endpoint_url']!r} is no URL of a server for S3.",
            reason="Malformed",
            hint="Write https://HOST or https://HOST:PORT.",
        )
    given = params["s3_access_key"]
    with _http() as http:
        with _asking(f"Reaching {place.of('')}"):
            client = Minio(
                endpoint=url.netloc,
                secure=url.scheme == "https",
                region=params["s3_region"] or None,
                credentials=StaticProvider(given, params["s3_secret_key"]) if given else EnvAWSProvider(),
                http_client=http,
            )
        yield BucketShelf(client, place)


@contextmanager
def _http() -> Iterator[Any]:
    """Connections of which each call ends, tried again as often as that may help."""
    urllib3 = library.transport()
    pool = urllib3.PoolManager(
        timeout=urllib3.Timeout(connect=10, read=60),
        retries=urllib3.Retry(total=3, backoff_factor=0.5, status_forcelist=[500, 502, 503, 504]),
        cert_reqs="CERT_REQUIRED",
        ca_certs=os.environ.get("SSL_CERT_FILE"),
    )
    try:
        yield pool
    finally:
        pool.clear()


class BucketShelf:
    """A prefix of a bucket: see DistantShelf in archive_store.py. An object is there as a whole or not at all."""

    def __init__(self, client: Any, place: Place) -> None:
        self._client = client
        self._place = place

    def names(self) -> Sequence[str]:
        """List the objects right under the prefix."""
        start = self._key("")
        with _asking(f"Looking at {self._place.of('')}"):
            found = self._client.list_objects(self._place.holder, prefix=start)
            return [entry.object_name.removeprefix(start) for entry in found if not entry.is_dir]

    def put(self, draft: Path, name: str) -> None:
        """Upload it, in several parts if it is large; each goes with a checksum."""
        with _asking(f"Writing {self._place.of(name)}"):
            self._client.fput_object(self._place.holder, self._key(name), str(draft))

    def get(self, name: str, copy: Path) -> None:
        """Download it; its own checksums are for the reader."""
        with _asking(f"Reading {self._place.of(name)}"):
            try:
                self._client.fget_object(self._place.holder, self._key(name), str(copy))
            except OSError as error:
                raise unwritable(copy, error) from error

    def remove(self, name: str) -> None:
        """Delete it."""
        with _asking(f"Removing {self._place.of(name)}"):
            self._client.remove_object(self._place.holder, self._key(name))

    def _key(self, name: str) -> str:
        return f"{self._place.path}/{name}" if self._place.path else name


@contextmanager
def _asking(what: str) -> Iterator[None]:
    """Tell what the library says in our words."""
    from minio.error import MinioException, S3Error

    urllib3 = library.transport()
    try:
        yield
    except S3Error as error:
        reason, hint = ANSWERS.get(error.response.status, ("Refused", "See what it says."))
        text = f"{error.code}: {error.message}".rstrip(".")
        raise OperationError(f"{what} failed: {text}.", reason=reason, hint=hint) from error
    except (MinioException, urllib3.exceptions.HTTPError, ValueError) as error:
        text = str(error).rstrip(".")
        hint = "Check endpoint, keys and network."
        raise OperationError(f"{what} failed: {text}.", reason="Unreachable", hint=hint) from error
