# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""slurmdbd.conf."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import slurmdbd_conf
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.problems import Problems


def rendered(**more: Any) -> tuple[list[str], list[str]]:
    problems = Problems()
    facts = {"name": "slurm", "namespace": "hpc", "version": "26.05", "storage_host": "db", **more}
    return slurmdbd_conf.render(facts, problems).splitlines(), problems.lines


def test_the_whole_file_has_no_password() -> None:
    lines, problems = rendered(
        conf={"purgejobafter": "12months", "AuthInfo": "x", "DebugFlags": ["DB_QUERY", "DB_JOB"]}
    )
    assert problems == []
    assert lines == [
        "DbdHost=slurm-accounting-0",
        "DbdPort=6819",
        "SlurmUser=slurm",
        "AuthType=auth/slurm",
        "AuthInfo=use_client_ids,x",
        "AuthAltTypes=auth/jwt",
        "AuthAltParameters=jwt_key=/etc/slurm/jwt.key,jwks=/etc/slurm/jwks.json,use_jwt_client_ids",
        "PidFile=/run/slurmdbd/slurmdbd.pid",
        "StorageType=accounting_storage/mysql",
        "StorageHost=db",
        "StoragePort=3306",
        "StorageUser=slurm",
        "StorageLoc=slurm_acct_db",
        "DebugFlags=DB_QUERY,DB_JOB",
        "PurgeJobAfter=12months",
    ]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"storage_host": None}, "slurmdbd.storage_host: is required"),
        ({"storage_port": 0}, "must be from 1"),
        ({"storage_user": "a\nStoragePass=x"}, "must not hold line breaks"),
        ({"storage_loc": 'a"b'}, "double quote"),
        ({"name": "A"}, "must be lower case"),
        ({"conf": {"StoragePass": "x"}}, "slurmdbd_settings.StoragePass: is a secret"),
        ({"conf": {"storagepassscript": "x"}}, "is a secret"),
        ({"conf": {"SlurmUser": "root"}}, "must be slurm, as the collection sets it"),
        ({"conf": {"PurgeJobsAfter": 1}}, "did you mean PurgeJobAfter?"),
        ({"conf": {"DebugLevel": "a\nb"}}, "must not hold line breaks"),
        ({"conf": {"debuglevel": 1, "DebugLevel": 2}}, "given twice"),
        ({"conf": {"AuthAltParameters": "jwt_key=/x"}}, "contradicts"),
        ({"extra": 1}, "slurmdbd.extra: unknown key"),
    ],
)
def test_refused(more: dict[str, Any], why: str) -> None:
    assert why in "\n".join(rendered(**more)[1])
