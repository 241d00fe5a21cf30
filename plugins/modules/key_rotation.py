#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module key_rotation."""

from __future__ import annotations

DOCUMENTATION = r"""
module: key_rotation
short_description: Replace the keys of a running Slurm cluster
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Replaces the key by which Slurm's daemons know each other, and the keys that sign tokens for slurmrestd, when they
    are older than O(older_than). Jobs, SSH sessions and requests go on meanwhile.
  - Old and new key are good side by side. First every daemon is given both, then the new one signs, and when
    O(overlap) is over every daemon forgets the old one. Each step waits until every daemon has read its keys, which is
    seen in its Pod, and nothing is taken away before.
  - A run that was interrupted is finished by the next one, whatever the age of the keys. A second run changes nothing.
  - slurmctld, slurmd and sackd read new keys by a reconfigure. slurmdbd reads them only when it starts, so its Pod is
    replaced twice. slurmctld keeps what it has to record; requests about accounting wait or fail for some seconds.
  - The first rotation of the keys of tokens changes these from HS256, of which Slurm has only one key, to RS256. Tokens
    that C(scontrol token) makes are HS256 always. They end when the old key does.
  - Keys are generated here, go to the API server and nowhere else, and are never shown.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
options:
  auth_secret:
    description:
      - Secret with the keys. By default the name of the cluster with C(-auth) appended.
    type: str
  which:
    description:
      - The keys to rotate. V(slurm) is that of the daemons, C(slurm.key). V(jwt) are those of tokens.
    type: list
    elements: str
    choices: [jwt, slurm]
    default: [jwt, slurm]
  older_than:
    description:
      - Rotate keys that sign for longer than this, such as V(90d), V(12h) or V(30m). The date is kept in an annotation
        of the Secret; without one, keys are as old as the Secret. V(0) rotates with every run.
    type: str
    default: 90d
  overlap:
    description:
      - How long the old key stays good after the new one signs, such as V(10m) or V(1d). Tokens that live longer than
        this may end early. Those of this collection's modules live for ten minutes.
    type: str
    default: 10m
  wait:
    description:
      - Whether to wait until O(overlap) is over, and end the old key. With V(false) that is left to the next run after
        RV(rotations[].retires_after).
    type: bool
    default: true
  wait_timeout:
    description:
      - Seconds that each step may take, such as bringing new keys to all daemons. O(overlap) does not count.
    type: int
    default: 300
  wait_sleep:
    description:
      - Seconds between two looks, at most.
    type: int
    default: 2
notes:
  - Runs commands in the Pods that have keys, so C(create) on C(pods/exec) is needed, and C(patch) on C(secrets),
    C(pods) and C(statefulsets).
  - Take a backup after a rotation. An older one has older keys.
requirements:
  - cryptography >= 3.4 (for V(jwt), and from then on for what makes tokens)
seealso:
  - module: slurm_ops.kubernetes.secret
  - plugin: slurm_ops.kubernetes.token
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: Keys of this quarter
  slurm_ops.kubernetes.key_rotation:
    namespace: hpc
    older_than: 90d

- name: Somebody may have seen the key of tokens
  slurm_ops.kubernetes.key_rotation:
    namespace: hpc
    which: [jwt]
    older_than: 1h
    overlap: "0"

- name: Users have tokens for a day, so the old key ends with tomorrow's run
  slurm_ops.kubernetes.key_rotation:
    namespace: hpc
    overlap: 1d
    wait: false
"""

RETURN = r"""
rotations:
  description: The keys of O(which), without what is in them.
  returned: success
  type: list
  elements: dict
  contains:
    key:
      description: One of O(which).
      type: str
      sample: jwt
    made:
      description: Since when the key that is in use signs.
      type: str
      sample: "2026-11-21T18:05:02Z"
    phase:
      description:
        - V(settled), V(added), which is both keys and the old one signs, V(switched), which is both keys and the new
          one signs, or V(retired), which not every daemon has read yet.
      type: str
      sample: settled
    retires_after:
      description: When the time of the old key is over; only if RV(rotations[].phase) is V(switched).
      type: str
      sample: "2026-11-22T18:05:02Z"
  sample:
    - {key: slurm, made: "2026-11-21T18:05:02Z", phase: settled, retires_after: null}
actions:
  description:
    - What was done, or in check mode would be, in order. The C(kind) is one of C(add), C(switch), C(retire) and
      C(finish) of the Secret, C(restart) of slurmdbd, C(reload) of the other daemons.
  returned: always
  type: list
  elements: dict
  sample:
    - kind: switch
      target: Secret hpc/hpc-auth
      before: old and new key, the old one signs
      after: old and new key, the new one signs
      why: "jwt, slurm: the new key is to sign"
      done: true
remaining:
  description: What is still to come, or the Pods in the way.
  returned: always
  type: list
  elements: str
  sample: []
reason:
  description: One word for why it failed, as in C(NotMounted), C(NoKey), C(Conflict), C(Timeout).
  returned: failure
  type: str
  sample: NotMounted
hint:
  description: What to do next.
  returned: failure
  type: str
  sample: Run site, and for workers rollout. Nothing was changed.
api_calls:
  description: Calls to each side, and how many of them could change something. Slurm is reached in its Pods.
  returned: always
  type: dict
  sample: {"kubernetes": 1, "slurm": 0, "writes": 0, "verbs": {"get": 1}}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 0.1
"""

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_CLUSTER,
    ARGS_KUBERNETES,
    ArgumentSpec,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.key_rotation import KeyRotation
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import run

ARGUMENTS = (
    ARGS_KUBERNETES
    + ARGS_CLUSTER
    + ArgumentSpec(
        {
            "auth_secret": {"type": "str", "no_log": False},
            "which": {"type": "list", "elements": "str", "choices": ["jwt", "slurm"], "default": ["jwt", "slurm"]},
            "older_than": {"type": "str", "default": "90d"},
            "overlap": {"type": "str", "default": "10m"},
            "wait": {"type": "bool", "default": True},
            "wait_timeout": {"type": "int", "default": 300},
            "wait_sleep": {"type": "int", "default": 2},
        }
    )
)


def main() -> None:
    """Run the module."""
    run(ARGUMENTS, KeyRotation)


if __name__ == "__main__":
    main()
