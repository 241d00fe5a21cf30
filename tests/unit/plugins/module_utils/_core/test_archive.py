# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of archives, manifests, and where an archive fits."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import archive
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.archive import Manifest, Part, Seal
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

PARTS = tuple(Part(name, 10, 12, "0" * 64) for name in archive.PARTS)
MANIFEST = Manifest("id", "hpc", "ns", "26.05.1", "slurm_acct_db", "2026-01-02T03:04:05+00:00", PARTS, Seal("00" * 16))


@pytest.mark.parametrize("manifest", [MANIFEST, dataclasses.replace(MANIFEST, seal=None)])
def test_a_manifest_is_read_as_it_was_written(manifest: Manifest) -> None:
    assert archive.parse_manifest("a.zip", manifest.text()) == manifest


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": 2}, "UnknownFormat"),
        ({"parts": []}, "Damaged"),
        ({"parts": [dataclasses.asdict(PARTS[0])] * 4}, "Damaged"),
        ({"parts": [{"name": "x"}]}, "Damaged"),
        ({"surprise": 1}, "Damaged"),
        ({"seal": {"salt": "x", "rounds": 1}}, "Damaged"),
    ],
)
def test_a_manifest_of_another_kind_is_refused(change: dict[str, object], reason: str) -> None:
    with pytest.raises(OperationError, match=r"a\.zip") as caught:
        archive.parse_manifest("a.zip", json.dumps({**json.loads(MANIFEST.text()), **change}))
    assert caught.value.reason == reason


@pytest.mark.parametrize("text", ["", "[]", "null", "{", b"\xff\xfe"])
def test_what_is_no_manifest_is_refused(text: str | bytes) -> None:
    with pytest.raises(OperationError) as caught:
        archive.parse_manifest("a.zip", text)
    assert caught.value.reason == "Damaged"


@pytest.mark.parametrize(
    ("cluster", "release", "reason"),
    [
        ("hpc", "26.05", None),
        ("other", "26.05", "OtherCluster"),
        ("hpc", "25.11", "NewerRelease"),
    ],
)
def test_where_an_archive_fits(cluster: str, release: str, reason: str | None) -> None:
    if reason is None:
        archive.check_fits("a.zip", MANIFEST, cluster, release)
        return
    with pytest.raises(OperationError, match=r"hpc|26\.05") as caught:
        archive.check_fits("a.zip", MANIFEST, cluster, release)
    assert caught.value.reason == reason
    assert caught.value.hint


def test_an_older_release_can_be_read_by_a_newer_one() -> None:
    archive.check_fits("a.zip", dataclasses.replace(MANIFEST, slurm="24.11.5"), "hpc", "26.05")


def test_names_sort_by_age_and_pass_for_names() -> None:
    names = [archive.dated_name("hpc", archive.moment(stamp)) for stamp in (0, 1, 60, 86400, 1.8e9)]
    assert names == sorted(names)
    assert names[0] == "hpc-19700101T000000Z.zip"
    assert [archive.check_name(name) for name in names] == names


def test_a_given_name_gets_its_ending() -> None:
    assert archive.check_name("before-upgrade") == "before-upgrade.zip"


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "a b", "", "-x", "x\n"])
def test_a_name_with_a_folder_or_worse_is_refused(name: str) -> None:
    with pytest.raises(OperationError) as caught:
        archive.check_name(name)
    assert caught.value.reason == "Malformed"


def stamps(count: int) -> list[str]:
    return [archive.dated_name("hpc", archive.moment(day * 86400)) for day in range(count)]


@pytest.mark.parametrize(
    ("keep", "there", "gone"),
    [(0, 9, 0), (1, 3, 3), (7, 6, 0), (7, 7, 1), (7, 10, 4)],
)
def test_the_oldest_are_too_many(keep: int, there: int, gone: int) -> None:
    names = stamps(there)
    assert archive.outdated(reversed(names), "hpc", keep, stamps(there + 1)[-1]) == names[:gone]


def test_what_a_person_named_and_other_clusters_count_for_nothing() -> None:
    others = ["hpc-before-upgrade.zip", "hpc-gpu-20260101T000000Z.zip", "x.zip", "hpc-20260101T000000Z.zip.bak"]
    assert archive.outdated(others, "hpc", 1, "hpc-20260102T000000Z.zip") == []
    assert archive.outdated(stamps(3), "hpc", 1, "before-upgrade.zip") == []


def test_only_what_was_begun_long_ago_and_never_completed_is_abandoned() -> None:
    drafts = [archive.draft_name(name) for name in [*stamps(4), "before-upgrade.zip", "hpc-gpu-19700101T000000Z.zip"]]
    assert archive.abandoned([*drafts, *stamps(4)], "hpc", archive.moment(3 * 86400 - 1)) == drafts[:2]


@given(st.integers(1, 9), st.sets(st.integers(0, 40)))
def test_as_many_are_left_as_are_to_be_kept(keep: int, days: set[int]) -> None:
    names = {archive.dated_name("hpc", archive.moment(day * 86400)) for day in days}
    coming = archive.dated_name("hpc", archive.moment(41 * 86400))
    gone = set(archive.outdated(names, "hpc", keep, coming))
    left = (names - gone) | {coming}
    assert len(left) == min(len(names) + 1, keep)
    assert not gone or max(gone) < min(left)
