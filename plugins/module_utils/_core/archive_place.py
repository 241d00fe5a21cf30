# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Where archives lie, as people write it: a folder, a PersistentVolumeClaim (pvc://) or a bucket (s3://)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from .errors import OperationError
from .names import dns_subdomain

FOLDER, CLAIM, BUCKET = "folder", "claim", "bucket"
_SCHEMES = {"pvc": CLAIM, "s3": BUCKET}
_URL = re.compile(r"(?P<scheme>[a-z0-9]+)://(?P<holder>[^/]*)/*(?P<path>.*)", re.ASCII | re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}", re.ASCII)
_PART = re.compile(r"[\w.+@=-]+")


@dataclass(frozen=True, slots=True)
class Place:
    """A place for archives: ``path`` in the claim or bucket ``holder``; a folder of the machine has no holder."""

    kind: str
    holder: str
    path: str

    def of(self, name: str) -> str:
        """One archive there, as people write it."""
        if self.kind == FOLDER:
            return str(PurePosixPath(self.path) / name)
        scheme = next(scheme for scheme, kind in _SCHEMES.items() if kind == self.kind)
        return "/".join(part for part in (f"{scheme}:/", self.holder, self.path, name) if part)


def parse_place(text: str) -> Place:
    """Read a place; raises OperationError (Malformed)."""
    url = _URL.fullmatch(text)
    if not url:
        if not text.startswith("/"):
            raise OperationError(
                f"The folder {text!r} is not absolute.",
                reason="Malformed",
                hint="Where a module runs is not where Ansible was started; write the whole path.",
            )
        return Place(FOLDER, "", text)
    kind = _SCHEMES.get(url["scheme"], "")
    parts = [part for part in url["path"].split("/") if part]
    if not kind or not _is_holder(kind, url["holder"]) or not all(map(_is_part, parts)):
        raise OperationError(
            f"{text!r} is no place for archives.",
            reason="Malformed",
            hint="Write the path of a folder, pvc://CLAIM/FOLDER or s3://BUCKET/PREFIX.",
        )
    return Place(kind, url["holder"], "/".join(parts))


def parse_archive(text: str) -> tuple[Place, str]:
    """Read where one archive is: its place and its name; raises OperationError (Malformed)."""
    place, slash, name = text.rpartition("/")
    if not slash or not name or place.endswith(":/"):
        raise OperationError(
            f"{text!r} is no archive.", reason="Malformed", hint="Write the whole path, with the archive's name."
        )
    return parse_place(place or "/"), name


def _is_holder(kind: str, name: str) -> bool:
    return not dns_subdomain(name) if kind == CLAIM else bool(_BUCKET.fullmatch(name))


def _is_part(part: str) -> bool:
    return part not in (".", "..") and bool(_PART.fullmatch(part))
