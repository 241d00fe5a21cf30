# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Places for archives, as people write them."""

from __future__ import annotations

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.archive_place import (
    BUCKET,
    CLAIM,
    FOLDER,
    Place,
    parse_archive,
    parse_place,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError


@pytest.mark.parametrize(
    ("text", "place", "archive"),
    [
        ("/srv/backup", Place(FOLDER, "", "/srv/backup"), "/srv/backup/a.zip"),
        ("/srv/with blanks/", Place(FOLDER, "", "/srv/with blanks/"), "/srv/with blanks/a.zip"),
        ("/", Place(FOLDER, "", "/"), "/a.zip"),
        ("pvc://archives", Place(CLAIM, "archives", ""), "pvc://archives/a.zip"),
        ("pvc://archives/hpc//old/", Place(CLAIM, "archives", "hpc/old"), "pvc://archives/hpc/old/a.zip"),
        ("s3://site.backup/slurm", Place(BUCKET, "site.backup", "slurm"), "s3://site.backup/slurm/a.zip"),
    ],
)
def test_a_place_is_read_and_an_archive_in_it_is_found_again(text: str, place: Place, archive: str) -> None:
    assert parse_place(text) == place
    assert place.of("a.zip") == archive
    found, name = parse_archive(archive)
    assert (found.of(name), name) == (archive, "a.zip")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "archives",
        "./archives",
        "pvc://",
        "pvc:///folder",
        "pvc://Upper/x",
        "pvc://a/../b",
        "pvc://a/b c",
        "pvc://a/x\n",
        "s3://a",
        "s3://user@host/x",
        "https://server/x",
    ],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(OperationError) as caught:
        parse_place(text)
    assert caught.value.reason == "Malformed"
    assert caught.value.hint


@pytest.mark.parametrize("text", ["a.zip", "/srv/", "s3://bucket", "pvc://claim", "pvc://claim/", "x/a.zip"])
def test_what_is_no_archive_is_refused(text: str) -> None:
    with pytest.raises(OperationError) as caught:
        parse_archive(text)
    assert caught.value.reason == "Malformed"
