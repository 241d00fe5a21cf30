# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of live nodes, and tokens that Slurm accepts."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .support.playbook import NO_INVENTORY, PlaybookResult
from .support.process import Completed

INVENTORY = """
plugin: slurm_ops.kubernetes.slurm
strict: true
groups:
  broken: not slurm_node.usable
keyed_groups:
  - {prefix: node, key: slurm_node.kubernetes_node}
compose:
  ansible_kubectl_pod: slurm_node.pod
"""


@pytest.fixture
def listed(kubeconfig: str, site: PlaybookResult, tmp_path: Path) -> Callable[..., Completed]:
    """What ansible-inventory says of the deployed cluster."""

    def run(*what: str, more: str = "") -> Completed:
        path = tmp_path / "live.slurm.yml"
        path.write_text(INVENTORY + more, encoding="utf-8")
        command = ["ansible-inventory", "-i", str(path), *what]
        environment = {**os.environ, "K8S_AUTH_KUBECONFIG": kubeconfig}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
        return Completed(" ".join(command), done.returncode, done.stdout, done.stderr)

    return run


def test_nodes_are_hosts_in_groups(listed: Callable[..., Completed], slurm: Callable[..., Completed]) -> None:
    slurm("scontrol update nodename=cpu-1 state=drain reason=inspection", on="controller")
    try:
        everything = listed("--list").check()
        variables = json.loads(listed("--host", "cpu-1").check().stdout)
    finally:
        slurm("scontrol update nodename=cpu-1 state=undrain", on="controller")
    found = json.loads(everything.stdout)
    assert "slurm_nodes" in found, everything.stderr
    assert found["slurm_nodes"]["hosts"] == ["cpu-0", "cpu-1"]
    assert found["nodeset_cpu"]["hosts"] == found["partition_cpu"]["hosts"] == ["cpu-0", "cpu-1"]
    assert found["state_drained"]["hosts"] == found["broken"]["hosts"] == ["cpu-1"]
    assert variables["slurm_node"]["reason"] == "inspection"
    assert variables["slurm_node"]["namespace"] == "slurm"
    assert variables["ansible_kubectl_pod"] == "cpu-1"
    node = variables["slurm_node"]["kubernetes_node"]
    assert "cpu-1" in found[f"node_{node}"]["hosts"]


def test_a_side_that_cannot_be_read_is_no_empty_inventory(listed: Callable[..., Completed]) -> None:
    found = listed("--list", more="name: nosuch\n")
    assert "nosuch-auth" in found.stderr
    assert "slurm_nodes" not in found.stdout


TOKENS = """
- name: Use tokens
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Read with a token
      slurm_ops.kubernetes.cluster_info:
        slurm_token: "{{ lookup('slurm_ops.kubernetes.token', 'slurm', lifespan=60) }}"
    - name: Make no token for nobody
      ansible.builtin.debug:
        msg: "{{ lookup('slurm_ops.kubernetes.token', '') }}"
      ignore_errors: true
    - name: Make no token without a key
      ansible.builtin.debug:
        msg: "{{ lookup('slurm_ops.kubernetes.token', 'alice', name='nosuch') }}"
      ignore_errors: true
"""


def test_slurm_accepts_the_token_of_the_lookup(
    site: PlaybookResult, run_playbook: Callable[..., PlaybookResult], tmp_path: Path
) -> None:
    playbook = tmp_path / "tokens.yml"
    playbook.write_text(TOKENS, encoding="utf-8")
    result = run_playbook(playbook, inventory=NO_INVENTORY)
    read = result.task("Read with a token").result
    assert [node["name"] for node in read["nodes"]] == ["cpu-0", "cpu-1"]
    assert read["readable"]["slurm"]
    assert "needs the name of a user" in result.task("Make no token for nobody").result["msg"]
    assert "slurm/nosuch-auth does not exist" in result.task("Make no token without a key").result["msg"]
