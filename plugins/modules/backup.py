#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module backup."""

from __future__ import annotations

DOCUMENTATION = r"""
module: backup
short_description: Keep a Slurm cluster in an archive, while it runs
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Writes one file with all that a Slurm cluster needs to go on elsewhere. That is the state of slurmctld, the
    accounting database, the keys, and for reading the configuration.
  - Nothing is stopped. The state is copied first, after slurmctld has had the time to write down what it knows; the
    dump of the database, taken in one transaction, shows the moment after that.
  - Everything is streamed from the Pods into the file. The file has another name until it is complete and was read back
    with its checksums, so an archive under its own name is whole. One for a claim or a bucket is made in a temporary
    folder (E(TMPDIR)) first.
  - Home directories, the images and the variables of the inventory are not in it.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
  - slurm_ops.kubernetes.archive
attributes:
  check_mode:
    support: partial
    details:
      - Nothing lasting is written. What is in a claim is seen from a Pod that exists for the moment, in check mode too.
  idempotent:
    support: partial
    details:
      - Each run makes an archive. With O(archive_name), an archive of that name that is there is left alone.
  diff_mode:
    support: N/A
    details:
      - Archives have no difference that people would read.
options:
  folder:
    description:
      - Place for archives. A path is a folder on the machine that the module runs on, made with mode C(0700) if it is
        not there. C(pvc://CLAIM/FOLDER) is a folder in a PersistentVolumeClaim of the namespace, C(s3://BUCKET/PREFIX)
        a prefix in a bucket that is there.
    type: path
    required: true
  archive_name:
    description:
      - Name of the archive. Default is the name of the cluster and the time in UTC, as in
        C(slurm-20260102T030405Z.zip).
    type: str
  keep:
    description:
      - How many archives of the cluster there are to be at most; the oldest go once the new one is in its place. V(0)
        keeps all.
      - Only archives whose name is the default one count, and none is removed when O(archive_name) is given.
    type: int
    default: 0
  skip_absent:
    description:
      - Whether it is no error, and nothing is done, when the namespace has neither the controller of such a cluster nor
        the volume with its state.
    type: bool
    default: false
seealso:
  - module: slurm_ops.kubernetes.restore
notes:
  - Needs C(get) and C(list) on Pods, Secrets and ConfigMaps, and C(create) on C(pods/exec); for a database elsewhere
    or archives in a claim also C(create) and C(delete) on Jobs and C(get) on PersistentVolumeClaims.
requirements:
  - cryptography >= 3.4 (for O(passphrase))
  - minio >= 7.2 (for a bucket)
"""

EXAMPLES = r"""
- name: Keep the cluster, and the last seven archives
  slurm_ops.kubernetes.backup:
    namespace: hpc
    name: hpc
    folder: /srv/backup/slurm
    keep: 7
    passphrase: "{{ vault_backup_passphrase }}"

- name: Keep it in a bucket of a MinIO
  slurm_ops.kubernetes.backup:
    namespace: hpc
    name: hpc
    folder: s3://backup/slurm
    s3_endpoint_url: https://minio.example.org
    s3_access_key: slurm
    s3_secret_key: "{{ vault_backup_s3_secret_key }}"
"""

RETURN = r"""
archive:
  description: The archive, as M(slurm_ops.kubernetes.restore) takes it; null if there is no cluster to keep.
  returned: success
  type: str
  sample: /srv/backup/slurm/hpc-20260102T030405Z.zip
bytes:
  description: Its size. Null in check mode, unless it is there already.
  returned: success
  type: int
  sample: 48211
manifest:
  description: What is in it. In check mode it has no parts yet.
  returned: success
  type: dict
  sample:
    cluster: hpc
    namespace: hpc
    slurm: 26.05.1
    made: "2026-01-02T03:04:05+00:00"
    encrypted: true
    parts:
      - {name: state.tar.gz, bytes: 21312, sha256: 9f86d081884c7d65}
      - {name: database.sql.gz, bytes: 22160, sha256: 60303ae22b998861}
actions:
  description:
    - What was done, or would be done in check mode. The sizes are those in the Pods, before compression; that of a
      database elsewhere is not known before.
    - The copies and the writing are done together or not at all.
  returned: always
  type: list
  elements: dict
  sample:
    - kind: copy
      target: StateSaveLocation of Pod hpc/hpc-controller-0
      before:
      after: {bytes: 66012}
      why: state.tar.gz
      done: true
remaining:
  description: What is still to be done. Empty on success.
  returned: always
  type: list
  elements: str
  sample: []
api_calls:
  description: How many calls were made to the API server, by verb; C(writes) counts those that could change something.
  returned: always
  type: dict
  sample: {"kubernetes": 12, "slurm": 0, "writes": 0, "verbs": {"get": 11, "list": 1}}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 9.1
reason:
  description: One word for what went wrong, for programs.
  returned: failure
  type: str
  sample: Unwritable
hint:
  description: What to do about it.
  returned: failure
  type: str
  sample: Check folder, rights and free space. No archive was left there.
"""

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_CLUSTER,
    ARGS_KUBERNETES,
    ArgumentSpec,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.backup import Backup
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.data_places import ARGS_ARCHIVE
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import run


def main() -> None:
    """Run the module."""
    run(
        ARGS_KUBERNETES
        + ARGS_CLUSTER
        + ARGS_ARCHIVE
        + ArgumentSpec(
            {
                "folder": {"type": "path", "required": True},
                "archive_name": {"type": "str"},
                "keep": {"type": "int", "default": 0},
                "skip_absent": {"type": "bool", "default": False},
            }
        ),
        Backup,
    )


if __name__ == "__main__":
    main()
