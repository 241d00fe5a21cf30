# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the CronJob of role backup is made of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.backup_schedule import KEYS, facts
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

CHECKOUT = Path(__file__).parents[5]
WANTED: dict[str, Any] = {
    "slurm_name": "hpc",
    "slurm_namespace": "hpc-space",
    "slurm_database_port": 3306,
    "slurm_images": {"mariadb": "db:1", "operator": "operator:1", "login": "login:1"},
    "backup_folder": "pvc://archives/slurm",
    "backup_timeout": "600",
    "backup_s3_endpoint_url": "https://s3.example.org",
    "backup_schedule_service_account": "slurm-operator",
}
SECRETS = {
    "backup_passphrase": "correct horse",
    "backup_s3_access_key": "AKIA",
    "backup_s3_secret_key": "battery staple",
}


def host(made: dict[str, Any]) -> dict[str, Any]:
    hosts: dict[str, dict[str, Any]] = made["inventory"]["slurm_clusters"]["hosts"]
    assert list(hosts) == ["hpc"]
    return hosts["hpc"]


def test_a_claim() -> None:
    made = facts(WANTED)
    assert (made["image"], made["service_account"]) == ("operator:1", "slurm-operator")
    assert made["deadline"] == 4 * 600
    assert made["secret"] == {}
    told = host(made)
    assert told["slurm_images"] == {"mariadb": "db:1"}
    assert told["backup_folder"] == "pvc://archives/slurm"
    assert told["ansible_connection"] == "local"
    assert not {"backup_s3_endpoint_url", "backup_passphrase"} & told.keys()


def test_what_is_secret_is_in_the_secret_alone() -> None:
    made = facts(WANTED | SECRETS | {"backup_folder": "s3://bucket/slurm"})
    assert made["secret"] == {
        "BACKUP_PASSPHRASE": "correct horse",
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "battery staple",
    }
    told = host(made)
    assert told["backup_s3_endpoint_url"] == "https://s3.example.org"
    assert told["backup_passphrase"] == "{{ lookup('ansible.builtin.env', 'BACKUP_PASSPHRASE') }}"
    assert not any(secret in str(made["inventory"]) for secret in SECRETS.values())


def test_keys_of_a_bucket_are_not_for_a_claim() -> None:
    assert facts(WANTED | SECRETS)["secret"] == {"BACKUP_PASSPHRASE": "correct horse"}


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"backup_folder": "/srv/backup"}, "backup_folder: must be pvc://.* the folder /srv/backup would be gone"),
        ({"backup_folder": ""}, "backup_folder: must be pvc://CLAIM/FOLDER or s3://BUCKET/PREFIX"),
        ({"backup_folder": "pvc://Not_A_Claim"}, "backup_folder: must be .*no place for archives"),
        ({"slurm_images": {"mariadb": "db:1"}}, r"slurm_images\.operator: is required"),
        ({"backup_schedule_service_account": ""}, "cluster_operator_service_account"),
        ({"backup_folder": "s3://bucket", "backup_s3_access_key": "AKIA"}, "backup_s3_secret_key go together"),
        ({"backup_timeout": 0}, "backup_timeout: must be from 1"),
    ],
)
def test_what_could_not_work_is_refused(variables: dict[str, Any], text: str) -> None:
    with pytest.raises(OperationError, match=text):
        facts(WANTED | variables)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(OperationError, match="3 problems"):
        facts({"slurm_name": "hpc"})


def test_the_role_reads_nothing_that_its_schedule_does_not_pass_on() -> None:
    """But the name of an archive, which each night's has of its own, and what only `destroy` asks for."""
    tasks = (CHECKOUT / "roles/backup/tasks/main.yml").read_text(encoding="utf-8")
    read = set(re.findall(r"\b(?:slurm|slurmctld|backup)_\w+", tasks.partition("    name:")[2])) - {"backup_result"}
    assert read - set(KEYS) == {"backup_name", "backup_skip_absent"}
    given = yaml.safe_load((CHECKOUT / "roles/backup/vars/main.yml").read_text(encoding="utf-8"))["backup_variables"]
    assert given.keys() == set(KEYS)
