# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What a CronJob that runs the playbook backup is made of, from the variables of role backup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .archive_place import BUCKET, FOLDER, Place, parse_place
from .errors import OperationError
from .fields import Fields
from .problems import Problems

# All that role backup reads, but what is secret and the name of an archive: each night's has one of its own.
TOLD = (
    "slurm_name",
    "slurm_namespace",
    "slurm_auth_secret",
    "slurm_database_host",
    "slurm_database_port",
    "slurm_database_user",
    "slurm_database_name",
    "slurm_database_secret",
    "slurm_database_secret_key",
    "slurm_image_pull_policy",
    "slurm_image_pull_secrets",
    "slurmctld_pod_spec",
    "backup_folder",
    "backup_keep",
    "backup_timeout",
)
TOLD_OF_BUCKETS = ("backup_s3_endpoint_url", "backup_s3_region")
KEYS = (
    *TOLD,
    *TOLD_OF_BUCKETS,
    "slurm_images",
    "backup_passphrase",
    "backup_s3_access_key",
    "backup_s3_secret_key",
    "backup_schedule_service_account",
)
# The streams of one run: the state, the dump, the archive into its place; and what is waited for beside them.
STREAMS = 4
PASSPHRASE = "BACKUP_PASSPHRASE"


def facts(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that the template of a schedule needs; raises OperationError (InvalidVariables).

    ``image``, ``service_account``, ``deadline`` (seconds); ``inventory``: the inventory of the run; ``secret``: data of
    the Secret that is its environment (empty: none).
    """
    problems = Problems()
    fields = Fields(variables, "", problems, KEYS)
    place = _place(fields)
    images = fields.mapping("slurm_images")
    if not images.get("operator"):
        problems.add(
            "slurm_images.operator",
            "is required for backup_schedule: an image with this collection, as role images builds",
        )
    account = fields.text("backup_schedule_service_account")
    if not account:
        problems.add(
            "backup_schedule_service_account",
            "is required for backup_schedule; cluster_operator_service_account has one made that has the rights",
        )
    made = {
        "image": images.get("operator"),
        "service_account": account,
        "deadline": STREAMS * fields.integer("backup_timeout", 3600, minimum=1),
        "inventory": _inventory(fields, place, images),
        "secret": _secret(fields, place),
    }
    problems.raise_if_any("The schedule of backups")
    return made


def _place(fields: Fields) -> Place:
    nowhere = Place(FOLDER, "", "")
    folder = fields.text("backup_folder")
    wanted = "must be pvc://CLAIM/FOLDER or s3://BUCKET/PREFIX for backup_schedule"
    if not folder:
        fields.problems.add("backup_folder", wanted)
        return nowhere
    try:
        place = parse_place(folder)
    except OperationError as error:
        fields.problems.add("backup_folder", f"{wanted}: {error.msg}")
        return nowhere
    if place.kind == FOLDER:
        fields.problems.add("backup_folder", f"{wanted}: the folder {folder} would be gone with the Pod")
    return place


def _inventory(fields: Fields, place: Place, images: Mapping[str, Any]) -> dict[str, Any]:
    told = (*TOLD, *TOLD_OF_BUCKETS) if place.kind == BUCKET else TOLD
    host = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        **{key: fields.raw(key) for key in told if fields.given(key)},
    }
    if images.get("mariadb"):
        host["slurm_images"] = {"mariadb": images["mariadb"]}
    if fields.text("backup_passphrase"):
        host["backup_passphrase"] = f"{{{{ lookup('ansible.builtin.env', '{PASSPHRASE}') }}}}"
    return {"slurm_clusters": {"hosts": {fields.text("slurm_name", required=True): host}}}


def _secret(fields: Fields, place: Place) -> dict[str, str]:
    secret = {PASSPHRASE: fields.text("backup_passphrase")}
    if place.kind == BUCKET:
        key, secret_key = fields.text("backup_s3_access_key"), fields.text("backup_s3_secret_key")
        if bool(key) != bool(secret_key):
            fields.problems.add("backup_s3_access_key", "and backup_s3_secret_key go together")
        secret |= {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret_key}
    return {name: value for name, value in secret.items() if value}
