#!/usr/bin/python
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module slurm_config."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_config
short_description: Change Slurm's configuration without a restart
version_added: 1.0.0
author:
  - slurm_ops.kubernetes authors (@slurm-ops)
description:
  - Makes the files in C(/etc/slurm) of slurmctld, which hands them to the nodes and login Pods, what they should be.
    They are the ConfigMap C(<name>-config).
  - Where a slurmctld runs, a second one in its Pod judges the files first. Then they are written, brought into the Pod
    at once, and read by a reconfigure, which running jobs do not notice. When slurmctld, or slurmd on a
    few nodes, does not take them, the old ones come back, and the error tells what it said.
  - Restarts what a reconfigure does not reach, and only that. slurmctld when a port or the authentication changes,
    slurmrestd when something changes that it read at its start. Daemons with jobs or sessions are named and not
    restarted.
  - Refuses what would end jobs, such as a partition that goes while jobs wait in it, and what a running cluster cannot
    change, such as its name.
  - A run that was interrupted is finished by the next one.
extends_documentation_fragment:
  - slurm_ops.kubernetes.attributes
  - slurm_ops.kubernetes.kubernetes
  - slurm_ops.kubernetes.cluster
options:
  files:
    description:
      - All files, a mapping of names to texts, as the filter P(slurm_ops.kubernetes.slurm_files#filter) makes them. A
        file that is not in it goes.
      - Needed unless O(state=absent).
    type: dict
  state:
    description:
      - V(absent) removes the ConfigMap, once there is no slurmctld.
    type: str
    choices: [present, absent]
    default: present
  slurm_version:
    description:
      - The release of Slurm that the files are for, such as V(26.05). It is noted with them. Where those that are there
        are for another one, or slurmctld is older, the new ones are refused.
    type: str
  change_release:
    description:
      - Whether the files may be for another release than those that are there. The playbook upgrade sets it in the end,
        when every daemon is of the new release.
    type: bool
    default: false
  create_namespace:
    description:
      - Make the namespace if it is not there.
    type: bool
    default: false
  on_running_jobs:
    description:
      - What happens when jobs, also those that wait, need a partition, node or GRES that goes. slurmctld would end
        them. V(cancel) cancels them first.
    type: str
    choices: [refuse, cancel]
    default: refuse
  restart:
    description:
      - Whether slurmctld and slurmrestd are restarted where a reconfigure is not enough. With V(never) that is left to
        a later run with V(auto), and told in RV(restarts).
    type: str
    choices: [auto, never]
    default: auto
  wait_timeout:
    description:
      - Seconds that each step may take, such as bringing the files to the controller.
    type: int
    default: 120
  wait_sleep:
    description:
      - Seconds between two looks, at most.
    type: int
    default: 1
notes:
  - Runs commands in the controller's Pod, so C(create) on C(pods/exec) is needed.
  - Passwords in slurm.conf, such as C(JobCompPass), are not shown in results and diffs.
seealso:
  - module: slurm_ops.kubernetes.topology
  - plugin: slurm_ops.kubernetes.slurm_files
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Bring the configuration of the variables into place
  slurm_ops.kubernetes.slurm_config:
    files: "{{ slurm_files }}"

- name: See what would change, with slurmctld's opinion of it
  slurm_ops.kubernetes.slurm_config:
    files: "{{ slurm_files }}"
  check_mode: true
  diff: true

- name: Change ports now, and restart in the maintenance window
  slurm_ops.kubernetes.slurm_config:
    files: "{{ slurm_files }}"
    restart: never
"""

RETURN = r"""
changes:
  description:
    - What differs. In files of settings key by key and record by record, other files as a whole.
  returned: success
  type: list
  elements: dict
  contains:
    file:
      description: The file.
      type: str
      sample: slurm.conf
    what:
      description: The key, the record, or the file again.
      type: str
      sample: MinJobAge
    before:
      description: The old value, V(null) if it is new.
      type: str
      sample: "300"
    after:
      description: The new value, V(null) if it goes.
      type: str
      sample: "400"
restarts:
  description:
    - Daemons that have to start anew for the change, with the keys that say so, and whether it was done.
  returned: success
  type: list
  elements: dict
  sample:
    - {daemon: slurmrestd, because: [MessageTimeout], done: true}
actions:
  description:
    - What was done, or in check mode would be, in order. The C(kind) is one of C(create), C(cancel), C(write),
      C(remove), C(reconfigure), C(restart).
  returned: always
  type: list
  elements: dict
  sample:
    - kind: reconfigure
      target: slurmctld
      before: null
      after: null
      why: to read the new files
      done: true
reason:
  description:
    - One word for why it failed, as in C(Refused), C(JobsRunning), C(NotPossible), C(OtherRelease), C(NameClash).
  returned: failure
  type: str
  sample: Refused
remaining:
  description: What is still to come, or the jobs in the way.
  returned: always
  type: list
  elements: str
  sample: []
hint:
  description: What to do next.
  returned: failure
  type: str
  sample: Nothing was changed. Correct the variables.
api_calls:
  description: Calls to each side, and how many of them could change something. Slurm is reached in its Pod.
  returned: always
  type: dict
  sample: {"kubernetes": 4, "slurm": 0, "writes": 0, "verbs": {"get": 4}}
duration:
  description: Seconds that the module took.
  returned: always
  type: float
  sample: 0.4
"""

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import (
    ARGS_CLUSTER,
    ARGS_KUBERNETES,
    ArgumentSpec,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm_config import ConfigurationChange

ARGUMENTS = (
    ARGS_KUBERNETES
    + ARGS_CLUSTER
    + ArgumentSpec(
        {
            "files": {"type": "dict"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "slurm_version": {"type": "str"},
            "change_release": {"type": "bool", "default": False},
            "create_namespace": {"type": "bool", "default": False},
            "on_running_jobs": {"type": "str", "choices": ["refuse", "cancel"], "default": "refuse"},
            "restart": {"type": "str", "choices": ["auto", "never"], "default": "auto"},
            "wait_timeout": {"type": "int", "default": 120},
            "wait_sleep": {"type": "int", "default": 1},
        },
        required_if=[("state", "present", ("files",))],
        sensitive=["files"],
    )
)


def main() -> None:
    """Run the module."""
    run(ARGUMENTS, ConfigurationChange)


if __name__ == "__main__":
    main()
