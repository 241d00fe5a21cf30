#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module restore."""

from __future__ import annotations

DOCUMENTATION = r"""
module: restore
short_description: Put an archive's keys, database and state in place before Slurm's daemons start
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Brings back what M(slurm_ops.kubernetes.backup) kept, so that the daemons that the roles then start go on where the
    archive was made. Users, accounts, job history, reservations, the states of nodes and the numbers of jobs continue.
  - The playbook C(slurm_ops.kubernetes.restore) does all of it, in the right order.
  - The archive is read to its end, with all checksums, before anything is changed. A namespace that has a cluster of
    that name is left alone unless O(replace) says otherwise.
  - A restore that was interrupted goes on when it is run again with the same archive. Once it was brought completely,
    running it again changes nothing.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
  - slurm_ops.kubernetes.archive
attributes:
  check_mode:
    support: partial
    details:
      - Nothing lasting is written. An archive in a claim is read from a Pod that exists for the moment, in check mode
        too.
  idempotent:
    support: partial
    details:
      - With O(replace) each run brings the data again.
  diff_mode:
    support: N/A
    details:
      - Keys are never shown, and databases have no difference that people would read.
options:
  archive:
    description:
      - The archive. A path is one on the machine that the module runs on, C(pvc://CLAIM/FOLDER/NAME) one in a
        PersistentVolumeClaim of the namespace, C(s3://BUCKET/PREFIX/NAME) one in a bucket. From there it is copied into
        a temporary folder (E(TMPDIR)).
    type: path
    required: true
  slurm_version:
    description:
      - Release of Slurm that the cluster is to run. One that is older than the archive's is refused.
    type: str
    required: true
  parts:
    description:
      - What to bring. V(keys) are the Secrets, and the topology, which slurmctld needs to read its state. They have to
        be there before the database's Pod is made. V(database) needs that Pod running. V(state) makes the claim of the
        controller's volume and fills it.
    type: list
    elements: str
    choices: [keys, database, state]
    default: [keys, database, state]
  replace:
    description:
      - Whether to write over the keys, database and state of a cluster that is there. slurmctld and slurmdbd stop, and
        their StatefulSets are gone until the roles make them again; so are the NodeSets, whose slurmds have to register
        with the state that comes back.
      - What happened since the archive was made is lost, and jobs that run end.
    type: bool
    default: false
  state_size:
    description:
      - Size of the volume for the state of slurmctld, if there is none yet.
    type: str
    default: 4Gi
  state_storage_class:
    description:
      - StorageClass of that volume. Empty means the default one.
    type: str
    default: ""
  state_access_mode:
    description:
      - Access mode of that volume. Two slurmctld need V(ReadWriteMany).
    type: str
    choices: [ReadWriteOnce, ReadWriteMany, ReadWriteOncePod]
    default: ReadWriteOnce
  state_image:
    description:
      - Image of slurmctld, for the Pod that fills the volume.
    type: str
    required: true
seealso:
  - module: slurm_ops.kubernetes.backup
notes:
  - Needs C(get), C(create) and C(patch) on Secrets, ConfigMaps and PersistentVolumeClaims, C(get) and
    C(list) on Pods, C(create) on C(pods/exec), C(create) and C(delete) on Jobs, C(get), C(list) and C(delete) on
    StatefulSets and DaemonSets. Without the right to make Namespaces, have the namespace made before.
requirements:
  - cryptography >= 3.4 (for O(passphrase))
  - minio >= 7.2 (for a bucket)
"""

EXAMPLES = r"""
- name: Bring the keys back before anything else is made
  slurm_ops.kubernetes.restore:
    namespace: hpc
    name: hpc
    archive: /srv/backup/slurm/hpc-20260102T030405Z.zip
    slurm_version: "26.05"
    state_image: ghcr.io/slinkyproject/slurmctld:26.05-ubuntu24.04
    parts: [keys]

- name: Run the database
  ansible.builtin.import_role:
    name: slurm_ops.kubernetes.database

- name: Bring the data
  slurm_ops.kubernetes.restore:
    namespace: hpc
    name: hpc
    archive: /srv/backup/slurm/hpc-20260102T030405Z.zip
    slurm_version: "26.05"
    state_image: ghcr.io/slinkyproject/slurmctld:26.05-ubuntu24.04
    parts: [database, state]
"""

RETURN = r"""
archive:
  description: The archive.
  returned: success
  type: str
  sample: /srv/backup/slurm/hpc-20260102T030405Z.zip
manifest:
  description: What is in it.
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
  description: What was done, or would be done in check mode.
  returned: always
  type: list
  elements: dict
  sample:
    - kind: load
      target: database slurm_acct_db of Pod hpc/hpc-database-0
      before:
      after:
      why: from the archive
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
  sample: {"kubernetes": 14, "slurm": 0, "writes": 5, "verbs": {"create": 2, "exec": 2, "get": 9, "patch": 1}}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 6.2
reason:
  description: One word for what went wrong, for programs.
  returned: failure
  type: str
  sample: Live
hint:
  description: What to do about it.
  returned: failure
  type: str
  sample: Nothing was changed. Restore into another namespace, or say that it is to be replaced.
"""

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_CLUSTER,
    ARGS_KUBERNETES,
    ArgumentSpec,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.data_places import ARGS_ARCHIVE
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.restore import Restore

PARTS = ["keys", "database", "state"]


def main() -> None:
    """Run the module."""
    run(
        ARGS_KUBERNETES
        + ARGS_CLUSTER
        + ARGS_ARCHIVE
        + ArgumentSpec(
            {
                "archive": {"type": "path", "required": True},
                "slurm_version": {"type": "str", "required": True},
                "parts": {"type": "list", "elements": "str", "choices": PARTS, "default": PARTS},
                "replace": {"type": "bool", "default": False},
                "state_size": {"type": "str", "default": "4Gi"},
                "state_storage_class": {"type": "str", "default": ""},
                "state_access_mode": {
                    "type": "str",
                    "choices": ["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"],
                    "default": "ReadWriteOnce",
                },
                "state_image": {"type": "str", "required": True},
            }
        ),
        Restore,
    )


if __name__ == "__main__":
    main()
