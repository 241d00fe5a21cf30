# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules restore and backup from their options to their results, against a small API server in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import archive
from ansible_collections.slurm_ops.kubernetes.plugins.modules import backup, restore

from ..module_utils._kube.fake_api import FakeApi
from ..module_utils._kube.fake_cluster import FakeCluster
from ..module_utils._run.archive_samples import PARTS, SECRET, TOPOLOGY, write
from .run_module import run_module

Object = dict[str, Any]
Run = Callable[..., Object]


@pytest.fixture
def run(api: FakeApi, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Restore the keys out of an archive."""

    def call(*, check: bool = False, **options: Any) -> Object:
        path = tmp_path / "a.zip"
        args = {
            "host": api.url,
            "api_key": "the-token-of-the-test",
            "name": "hpc",
            "namespace": "demo",
            "archive": str(path if path.exists() else write(path)),
            "slurm_version": "26.05",
            "state_image": "image",
            "parts": ["keys"],
        }
        return run_module(restore.main, capsys, {**args, **options}, check=check)

    return call


def test_keys_and_topology_are_brought_once(run: Run, cluster: FakeCluster) -> None:
    before = cluster.versions()
    predicted = run(check=True)
    assert cluster.versions() == before
    first = run()
    assert first["changed"] is True
    assert [step["kind"] for step in first["actions"]] == ["create", "create"]
    untold = ("done",)
    assert [{key: step[key] for key in step if key not in untold} for step in predicted["actions"]] == [
        {key: step[key] for key in step if key not in untold} for step in first["actions"]
    ]
    secret, topology = cluster.get("secrets", "hpc-auth"), cluster.get("configmaps", "hpc-topology")
    assert secret is not None
    assert secret["data"] == SECRET["data"]
    assert topology is not None
    assert topology["data"] == TOPOLOGY["data"]
    second = run()
    assert second["changed"] is False
    assert second["api_calls"]["writes"] == 0
    assert "open+sesame" not in str([predicted, first, second])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"name": "other"}, "OtherCluster"),
        ({"slurm_version": "25.11"}, "NewerRelease"),
        ({"archive": "/nowhere/a.zip"}, "Unreadable"),
        ({"database_name": "a`b"}, "Malformed"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_asked(
    run: Run, cluster: FakeCluster, options: Object, reason: str
) -> None:
    refused = run(**options)
    assert refused["failed"] is True
    assert refused["reason"] == reason
    assert refused["hint"]
    assert cluster.asked == []


def test_a_damaged_archive_is_refused_before_anything_is_asked(run: Run, cluster: FakeCluster, tmp_path: Path) -> None:
    path = write(tmp_path / "b.zip")
    path.write_bytes(path.read_bytes()[:-200])
    refused = run(archive=str(path))
    assert refused["reason"] == "Damaged"
    assert cluster.asked == []


@pytest.mark.parametrize("passphrase", [None, "wrong horse"])
def test_without_the_passphrase_nothing_is_told(run: Run, tmp_path: Path, passphrase: str | None) -> None:
    path = write(tmp_path / "b.zip", "correct horse")
    refused = run(archive=str(path), **({"passphrase": passphrase} if passphrase else {}))
    assert refused["reason"] == "WrongPassphrase"
    assert "wrong horse" not in str(refused)


def test_other_keys_are_replaced_only_when_told(run: Run, cluster: FakeCluster) -> None:
    cluster.put("secrets", "demo", {**SECRET, "data": {"slurm.key": "other", "more": "x"}})
    refused = run()
    assert refused["reason"] == "Live"
    assert "hpc-auth" in refused["msg"]
    assert run(replace=True)["changed"] is True
    secret = cluster.get("secrets", "hpc-auth")
    assert secret is not None
    assert {key: value for key, value in secret["data"].items() if value is not None} == SECRET["data"]


def test_no_cluster_is_an_error_of_backup_unless_that_is_fine(
    api: FakeApi, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    args = {"host": api.url, "api_key": "x", "name": "hpc", "namespace": "demo", "folder": str(tmp_path)}
    failed = run_module(backup.main, capsys, args)
    assert failed["reason"] == "NotFound"
    assert "hpc-controller-0" in failed["msg"]
    skipped = run_module(backup.main, capsys, {**args, "skip_absent": True})
    assert skipped["changed"] is False
    assert skipped["archive"] is None
    assert list(tmp_path.iterdir()) == []


def test_a_relative_folder_is_refused(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    refused = run_module(backup.main, capsys, {"host": api.url, "api_key": "x", "folder": "archives"})
    assert refused["reason"] == "Malformed"
    assert "'archives'" in refused["msg"]


def test_an_archive_is_no_way_to_make_other_objects(run: Run, cluster: FakeCluster, tmp_path: Path) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "intruder"}}
    parts = {**PARTS, archive.SECRETS: json.dumps([SECRET, account]).encode()}
    refused = run(archive=str(write(tmp_path / "b.zip", parts=parts)))
    assert refused["reason"] == "Damaged"
    assert cluster.asked == []


def test_an_archive_that_is_there_is_left_alone(
    api: FakeApi, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = write(tmp_path / "before-upgrade.zip")
    args = {"host": api.url, "api_key": "x", "name": "hpc", "namespace": "demo", "folder": str(tmp_path)}
    kept = run_module(backup.main, capsys, {**args, "archive_name": "before-upgrade"})
    assert kept["changed"] is False
    assert kept["bytes"] == path.stat().st_size
    assert kept["manifest"]["slurm"] == "26.05.1"
    assert kept["api_calls"]["kubernetes"] == 0
    others = run_module(backup.main, capsys, {**args, "archive_name": "before-upgrade", "name": "other"})
    assert others["reason"] == "OtherCluster"
