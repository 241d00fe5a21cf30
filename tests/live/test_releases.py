# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The deploy test, the same for each release: from nothing to a directory user's job, away, and back again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .support.kube import Kube
from .support.playbook import PlaybookResult
from .support.samples import CPU


@dataclass(frozen=True)
class Cluster:
    """A cluster that this file deploys, and how a user logs in."""

    namespace: str
    variables: dict[str, Any]
    key: Path

    def ssh(self, kube: Kube, command: str) -> str:
        """Run a command as alice, over SSH from this machine."""
        service = kube.get(f"/api/v1/namespaces/{self.namespace}/services/rel-login")
        options = ["-i", str(self.key), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"]
        options += ["-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=10"]
        address = f"alice@{service['spec']['clusterIP']}"
        done = subprocess.run(
            ["ssh", *options, address, command], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module", params=["26.05", "24.11"])
def cluster(
    request: pytest.FixtureRequest,
    run_playbook: Callable[..., PlaybookResult],
    kube: Kube,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    """Variables of a whole cluster of one release in a namespace of its own; removed at the end."""
    key = tmp_path_factory.mktemp("ssh") / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    public = key.with_suffix(".pub").read_text(encoding="utf-8").strip()
    namespace = f"live-release-{request.param.replace('.', '')}"
    variables = {
        "slurm_namespace": namespace,
        "slurm_name": "rel",
        "slurm_version": request.param,
        "slurm_nodesets": [CPU],
        "directory_users": [{"name": "alice", "uid": 10001, "groups": ["hpc"], "ssh_keys": [public]}],
    }
    yield Cluster(namespace, variables, key)
    run_playbook("destroy", extra_vars={**variables, "destroy_data": True, "destroy_backup": False})
    kube.delete(f"/api/v1/namespaces/{namespace}")
    kube.wait(f"/api/v1/namespaces/{namespace}", lambda found: found is None, timeout=120, what=f"{namespace} is gone")


@pytest.mark.alone
def test_from_nothing_to_a_users_job(cluster: Cluster, kube: Kube, run_playbook: Callable[..., PlaybookResult]) -> None:
    begun = time.monotonic()
    run_playbook("site", extra_vars=cluster.variables)
    cluster.ssh(kube, "sbatch --wait -N2 --mem=50 --output=out --wrap 'srun hostname; id -un; echo $HOME'")
    seconds = time.monotonic() - begun
    lines = cluster.ssh(kube, "cat out").split()
    assert sorted(lines[:2]) == ["cpu-0", "cpu-1"]
    assert lines[2:] == ["alice", "/home/alice"]
    assert seconds < 90


def test_a_slurmctld_that_is_killed_in_its_first_minutes_comes_back(cluster: Cluster, kube: Kube) -> None:
    """By itself it has not written all of its state by then, and would not start without."""
    controller, state = "rel-controller-0", "/var/spool/slurmctld/assoc_usage"
    kube.wait(
        lambda: kube.exec(cluster.namespace, controller, ["test", "-s", state], container="slurmctld").rc,
        lambda rc: rc == 0,
        timeout=30,
        what="the whole state is written",
    )
    kill = ["pkill", "-KILL", "-o", "^slurmctld"]
    kube.exec(cluster.namespace, controller, kill, container="slurmctld").check()
    kube.wait(
        lambda: kube.exec(cluster.namespace, controller, ["scontrol", "ping"], container="slurmctld").rc,
        lambda rc: rc == 0,
        timeout=30,
        what="slurmctld answers",
    )
    assert cluster.ssh(kube, "sinfo -h -o %D").split() == ["2"]


def test_accounting_knows_the_job(cluster: Cluster, kube: Kube) -> None:
    row = kube.wait(
        lambda: cluster.ssh(kube, "sacct -n -X -P -o User,State,NNodes").strip(),
        lambda text: "COMPLETED" in text,
        what="the job's row",
    )
    assert row == "alice|COMPLETED|2"


def test_its_keys_are_rotated(cluster: Cluster, kube: Kube, run_module: Callable[..., dict[str, Any]]) -> None:
    args = {"namespace": cluster.namespace, "name": "rel", "older_than": "0", "overlap": "0"}
    assert all(action["done"] for action in run_module("key_rotation", args)["actions"])
    cluster.ssh(kube, "srun -N2 --mem=50 hostname && sacctmgr -n show qos")
    info = run_module("accounting_info", {"namespace": cluster.namespace, "name": "rel"})
    assert info["qos"], "slurmdbd believes tokens of the new key"


def test_a_second_run_changes_nothing(cluster: Cluster, run_playbook: Callable[..., PlaybookResult]) -> None:
    assert [str(task) for task in run_playbook("site", extra_vars=cluster.variables).changed] == []


def test_destroyed_and_deployed_again_it_is_the_same_cluster(
    cluster: Cluster, kube: Kube, run_playbook: Callable[..., PlaybookResult]
) -> None:
    secrets = f"/api/v1/namespaces/{cluster.namespace}/secrets/rel-auth"
    keys = kube.get(secrets)["data"]

    def states() -> list[str]:
        return cluster.ssh(kube, "sacct -n -X -P -S now-1hour -o State").split()

    before = states()
    assert set(before) == {"COMPLETED"}
    predicted = run_playbook("destroy", extra_vars=cluster.variables, check=True)
    assert predicted.changed
    assert kube.items(f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets")
    run_playbook("destroy", extra_vars=cluster.variables)
    assert kube.items(f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets") == []
    assert run_playbook("destroy", extra_vars=cluster.variables).changed == []
    run_playbook("site", extra_vars=cluster.variables)
    assert kube.get(secrets)["data"] == keys
    cluster.ssh(kube, "sbatch --wait -N2 --mem=50 --wrap true")
    kube.wait(states, lambda now: now == [*before, "COMPLETED"], what="the rows of all jobs")
