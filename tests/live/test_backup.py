# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster that is kept in an archive, lost with all its data, and brought back from it."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .support.kube import Kube
from .support.playbook import PlaybookResult

Json = dict[str, Any]
Module = Callable[..., Json]
Playbook = Callable[..., PlaybookResult]

NAMESPACE, NAME = "live-backup", "bak"
PASSPHRASE = "correct horse battery staple"
REASON = "memory errors, Ann"
HOST_KEYS = {"ssh_host_ed25519_key": "bm90IGEgcmVhbCBvbmU="}
NODESET = {
    "name": "cpu",
    "replicas": 2,
    "partition": {"default": True},
    "cpus": 2,
    "memory": "1Gi",
    "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}},
}
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DATABASE = f"{NAME}-database-0"


@dataclass
class Cluster:
    """The cluster of this file, and what is to be found again."""

    kube: Kube
    variables: Json
    module: Json  # options of backup
    folder: Path
    jobs: list[int]

    def run(self, command: str) -> str:
        """Run a command as SlurmUser in the controller's Pod."""
        words = ["sh", "-c", command]
        return self.kube.exec(NAMESPACE, f"{NAME}-controller-0", words, container="slurmctld").check().stdout.strip()

    def sql(self, statement: str, timeout: float = 60) -> str:
        """Run a statement as the account that the server keeps for its own user."""
        words = ["mariadb", "--no-defaults", "--user=mysql", "--batch", "--skip-column-names", "--execute", statement]
        return self.kube.exec(NAMESPACE, DATABASE, words, container="mariadb", timeout=timeout).stdout.strip()

    def job(self, *options: str) -> int:
        """Submit a job and return its number."""
        submit = "sbatch --parsable --chdir=/tmp --output=/dev/null --mem=10"
        number = int(self.run(f"{submit} {' '.join(options)} --wrap true"))
        self.jobs.append(number)
        return number

    def keys(self) -> dict[str, Json]:
        """What the Secrets hold that are to come back."""
        names = (f"{NAME}-auth", f"{NAME}-login-hostkeys")
        return {name: self.kube.get(f"{SECRETS}/{name}")["data"] for name in names}

    def archives(self) -> list[str]:
        """Everything in the folder, with what a failed run would have left."""
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.is_dir() else []


@pytest.fixture(scope="module")
def cluster(kube: Kube, run_playbook: Playbook, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A site with an account, a job that ended, one that is held, and a node that a person drained."""
    folder = tmp_path_factory.mktemp("backup") / "archives"
    variables = {
        "slurm_namespace": NAMESPACE,
        "slurm_name": NAME,
        "slurm_nodesets": [NODESET],
        "slurm_home_enabled": False,
        "directory_enabled": False,
        "login_enabled": False,
        "backup_passphrase": PASSPHRASE,
    }
    module = {"namespace": NAMESPACE, "name": NAME, "folder": str(folder), "passphrase": PASSPHRASE}
    run_playbook("site", extra_vars=variables)
    made = Cluster(kube, variables, module, folder, [])
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{NAME}-login-hostkeys"}, "data": HOST_KEYS}
    kube.create(SECRETS, secret)
    made.run("sacctmgr -i add account research && sacctmgr -i add user alice account=research")
    made.job("--wait")
    made.job("--hold", "--job-name=held")
    made.run(f"scontrol update nodename=cpu-1 state=drain reason='{REASON}'")
    yield made
    run_playbook("destroy", extra_vars={**variables, "destroy_data": True, "destroy_backup": False})
    kube.delete(f"/api/v1/namespaces/{NAMESPACE}")
    kube.wait(f"/api/v1/namespaces/{NAMESPACE}", lambda found: found is None, timeout=120, what="the namespace is gone")


def told(result: Json) -> list[tuple[str, str]]:
    return [(action["kind"], action["target"]) for action in result["actions"]]


def test_a_running_cluster_is_kept(cluster: Cluster, run_module: Module) -> None:
    options = {**cluster.module, "archive_name": "first"}
    predicted = run_module("backup", options, check=True)
    assert predicted["changed"] is True
    assert cluster.archives() == []
    assert [action["after"]["bytes"] > 10_000 for action in predicted["actions"][:2]] == [True, True]
    done = run_module("backup", options)
    assert told(done) == told(predicted)
    assert all(action["done"] for action in done["actions"])
    assert done["api_calls"]["writes"] == 0
    assert cluster.archives() == ["first.zip"]
    archive = cluster.folder / "first.zip"
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert done["bytes"] == archive.stat().st_size
    assert done["manifest"]["encrypted"] is True
    assert done["manifest"]["slurm"].startswith("26.05")
    assert "research" not in str(done)
    before = archive.read_bytes()
    again = run_module("backup", options)
    assert again["changed"] is False
    assert archive.read_bytes() == before


def test_a_database_elsewhere_is_reached_from_a_pod_for_the_moment(cluster: Cluster, run_module: Module) -> None:
    """That it is elsewhere is a matter of names: this one is reached by its Service, with a client in another Pod."""
    options = {
        **cluster.module,
        "archive_name": "elsewhere",
        "database_host": f"{NAME}-database",
        "database_image": "localhost/slurm-ops/mariadb:debian13",
    }
    done = run_module("backup", options)
    sizes = {part["name"]: part["bytes"] for part in done["manifest"]["parts"]}
    assert sizes["database.sql.gz"] > 5_000
    assert done["api_calls"]["verbs"]["create"] == 1
    assert done["api_calls"]["verbs"]["delete"] == 1
    (cluster.folder / "elsewhere.zip").unlink()
    cluster.kube.wait(
        lambda: cluster.kube.items(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"), lambda jobs: not jobs, what="no Job"
    )


def test_a_full_disk_leaves_no_archive(cluster: Cluster, run_module: Module, tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(tmp_path)], check=True)
    try:
        failed = run_module("backup", {**cluster.module, "folder": str(tmp_path)}, fails=True)
        assert list(tmp_path.iterdir()) == []
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    assert failed["reason"] == "Unwritable"
    assert "No space left" in failed["msg"]
    assert failed["changed"] is False


def test_a_database_that_goes_away_in_the_middle_leaves_no_archive(cluster: Cluster, run_module: Module) -> None:
    kube = cluster.kube
    there = cluster.archives()
    uid = kube.get(f"{PODS}/{DATABASE}")["metadata"]["uid"]
    with ThreadPoolExecutor() as pool:
        # A lock holds the dump up, once it is under way.
        lock = pool.submit(cluster.sql, f"LOCK TABLES slurm_acct_db.{NAME}_job_table WRITE; SELECT SLEEP(120)", 120)
        kube.wait(lambda: cluster.sql("SHOW PROCESSLIST"), lambda text: "SLEEP(120)" in text, what="the lock")
        backup = pool.submit(run_module, "backup", {**cluster.module, "archive_name": "second"}, fails=True)
        kube.wait(
            lambda: cluster.sql("SHOW PROCESSLIST"),
            lambda text: "Waiting for table metadata lock" in text,
            what="the dump waits",
        )
        assert any(name.startswith(".second") for name in cluster.archives())
        kube.delete(f"{PODS}/{DATABASE}", gracePeriodSeconds=1)
        failed = backup.result()
        lock.result()
    assert failed["reason"] in ("Unreachable", "CommandFailed", "ExecFailed")
    assert "slurm_acct_db" in failed["msg"]
    assert failed["changed"] is False
    assert cluster.archives() == there
    kube.wait(
        f"{PODS}/{DATABASE}",
        lambda pod: (
            pod
            and pod["metadata"]["uid"] != uid
            and any(entry["type"] == "Ready" and entry["status"] == "True" for entry in pod["status"]["conditions"])
        ),
        timeout=120,
        what="the database is back",
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "Live"),
        ({"slurm_version": "25.11"}, "NewerRelease"),
        ({"passphrase": "another"}, "WrongPassphrase"),
        ({"archive": "cut"}, "Damaged"),
    ],
)
def test_what_must_not_be_restored_changes_nothing(
    cluster: Cluster, run_module: Module, options: Json, reason: str, tmp_path: Path
) -> None:
    archive = cluster.folder / "first.zip"
    if options.get("archive"):
        data = archive.read_bytes()
        archive = tmp_path / "cut.zip"
        archive.write_bytes(data[: len(data) // 2])
    args = {key: cluster.module[key] for key in ("namespace", "name", "passphrase")}
    args |= {"slurm_version": "26.05", "state_image": "none", **options, "archive": str(archive)}
    refused = run_module("restore", args, fails=True)
    assert refused["reason"] == reason
    assert refused["api_calls"]["writes"] == 0


def test_a_lost_cluster_comes_back(cluster: Cluster, run_playbook: Playbook) -> None:
    kube, jobs, keys = cluster.kube, cluster.jobs, cluster.keys()
    history = "sacct -n -X -P -a -S now-1hour -o JobID,State | sort"
    kube.wait(lambda: cluster.run(history), lambda text: f"{jobs[0]}|COMPLETED" in text, what="the job's row")
    rows = cluster.run(history)

    # It is kept once more right before its data goes, since a folder is given.
    going = {**cluster.variables, "destroy_data": True, "backup_folder": str(cluster.folder)}
    gone = run_playbook("destroy", extra_vars=going)
    archive = gone.task("Keep the cluster in an archive").result["archive"]
    assert cluster.archives() == sorted(["first.zip", Path(archive).name])
    assert kube.items(f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims") == []
    assert kube.find(f"{SECRETS}/{NAME}-auth") is None
    assert run_playbook("destroy", extra_vars=going).changed == []

    wanted = {**cluster.variables, "restore_archive": archive}
    predicted = run_playbook("restore", extra_vars=wanted, check=True)
    assert kube.find(f"{SECRETS}/{NAME}-auth") is None
    restored = run_playbook("restore", extra_vars=wanted)
    steps = [told(task.result) for task in predicted.action("slurm_ops.kubernetes.restore")]
    assert steps == [told(task.result) for task in restored.action("slurm_ops.kubernetes.restore")]
    assert [kind for kind, _target in steps[1]] == ["create", "load", "load"]
    assert kube.items(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs") == []

    assert cluster.keys() == keys
    assert cluster.run(history) == rows
    assert cluster.run("sacctmgr -n -P show user alice format=user,defaultaccount") == "alice|research"
    assert cluster.run(f"squeue -h -j {jobs[1]} -o '%j %T %r'") == "held PENDING JobHeldUser"
    node = kube.wait(
        lambda: cluster.run("scontrol -o show node cpu-1"),
        lambda text: "NOT_RESPONDING" not in text,
        timeout=90,
        what="the drained node answers",
    )
    assert "IDLE+DRAIN" in node
    assert f"Reason={REASON} " in node
    assert cluster.job("--nodelist=cpu-0", "--wait") == jobs[1] + 1
    cluster.run(f"scontrol release {jobs[1]}")
    kube.wait(lambda: cluster.run(history), lambda text: f"{jobs[1]}|COMPLETED" in text, what="the held job's row")

    assert [str(task) for task in run_playbook("restore", extra_vars=wanted).changed] == []


def test_a_cluster_that_is_there_is_replaced_when_told(cluster: Cluster, run_playbook: Playbook) -> None:
    """Back to the first archive, whose database had not the second cluster's jobs."""
    last = cluster.jobs[-1]
    first = {**cluster.variables, "restore_archive": str(cluster.folder / "first.zip")}
    refused = run_playbook("restore", extra_vars=first, fails=True)
    assert "is to be replaced" in refused.failed[-1].result["msg"]
    assert cluster.run(f"sacct -n -X -P -j {last} -o State") == "COMPLETED"
    run_playbook("restore", extra_vars={**first, "restore_replace": True})
    assert cluster.run(f"sacct -n -X -P -j {last} -o State") == ""
    assert cluster.run(f"squeue -h -j {cluster.jobs[1]} -o '%j %T %r'") == "held PENDING JobHeldUser"
    assert f"Reason={REASON} " in cluster.run("scontrol -o show node cpu-1")
