# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of ours that have nothing to do, against kubernetes.core's on the same objects, as whole runs of Ansible."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.live.support.minislurm import NAME

from .measure import Row, in_turn, seconds
from .scene import Scene

OBJECTS = 100
KINDS = ["v1/Pod", "v1/Node", "apps/v1/StatefulSet", "apps/v1/DaemonSet", "apps/v1/Deployment"]
REPEATED = 10  # tasks in one run, so that Ansible's own start counts little


class _Ansible:
    """Runs plays of one task on this machine, with a folder that has kubernetes.core beside our own."""

    def __init__(self, kubeconfig: str, scratch: Path, peers: Path) -> None:
        self._scratch = scratch
        self._environment = {
            **os.environ,
            "K8S_AUTH_KUBECONFIG": kubeconfig,
            "ANSIBLE_COLLECTIONS_PATH": f"{os.environ['SLURM_OPS_COLLECTIONS']}:{peers}",
        }

    def run(self, action: str, arguments: dict[str, Any], times: int = 1, items: list[str] | None = None) -> None:
        """Carry out a task, again and again or for each item; it must succeed."""
        loop: list[Any] = items if items is not None else list(range(times))
        play = {"hosts": "localhost", "gather_facts": False, "tasks": [{action: arguments, "loop": loop}]}
        path = self._scratch / "play.json"
        path.write_text(json.dumps([play]), encoding="utf-8")
        command = ["ansible-playbook", "-i", "/dev/null", str(path)]
        subprocess.run(command, env=self._environment, check=True, capture_output=True, cwd=self._scratch)


def tasks(scene: Scene, kubeconfig: str, scratch: Path, peers: Path) -> Iterator[Row]:
    """One object and a hundred, all as they are wanted already."""
    ansible = _Ansible(kubeconfig, scratch, peers)
    names = [f"bench-{number}" for number in range(OBJECTS)]
    manifests = [_config_map(name) for name in names]
    where = {"namespace": scene.namespace}
    one = {**where, "name": "bench-one", "manifests": [_config_map("single")]}
    ansible.run("slurm_ops.kubernetes.applyset", one)
    many = {**where, "name": "bench-many", "manifests": manifests}
    ansible.run("slurm_ops.kubernetes.applyset", many)

    def core(name: str) -> dict[str, Any]:
        return {**where, "state": "present", "definition": _config_map(name)}

    ours, other = in_turn(
        lambda: ansible.run("slurm_ops.kubernetes.applyset", one, REPEATED),
        lambda: ansible.run("kubernetes.core.k8s", core("single"), REPEATED),
        3,
    )
    what = "a task that applies one object, as wanted already"
    yield Row(what, ours / REPEATED, other / REPEATED, "kubernetes.core.k8s", "not slower", ours <= other)

    scale = {**where, "name": NAME, "nodesets": [], "wait": False}
    peer = {**where, "kind": "StatefulSet", "name": f"{NAME}-controller", "replicas": 1}
    ours, other = in_turn(
        lambda: ansible.run("slurm_ops.kubernetes.nodeset_scale", scale, REPEATED),
        lambda: ansible.run("kubernetes.core.k8s_scale", peer, REPEATED),
        3,
    )
    what = "a task that scales, to the size that is there"
    yield Row(what, ours / REPEATED, other / REPEATED, "kubernetes.core.k8s_scale", "not slower", ours <= other)

    asked = {**where, "api_version": "{{ item.split('/')[:-1] | join('/') }}", "kind": "{{ item.split('/') | last }}"}
    ours, other = in_turn(
        lambda: ansible.run("slurm_ops.kubernetes.cluster_info", {**where, "name": NAME}),
        lambda: ansible.run("kubernetes.core.k8s_info", asked, items=KINDS),
        3,
    )
    what = f"read a cluster of {scene.size:,} nodes (theirs: its Kubernetes side, kind by kind)"
    yield Row(what, ours, other, "kubernetes.core.k8s_info", "not slower", ours <= other)

    ours = seconds(lambda: ansible.run("slurm_ops.kubernetes.applyset", many))
    other = seconds(lambda: ansible.run("kubernetes.core.k8s", core("{{ item }}"), items=names))
    what = f"{OBJECTS} objects, as wanted already"
    yield Row(what, ours, other, "kubernetes.core.k8s in a loop", "at least 10 times faster", other >= 10 * ours)


def _config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"content": "x" * 1000}}
