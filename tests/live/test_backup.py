# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster that is kept in an archive, lost with all its data, and brought back from it."""

from __future__ import annotations

import io
import re
import stat
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from minio import Minio

from .support import s3
from .support.guides import examples_of, text_of
from .support.kube import Kube
from .support.minislurm import is_ready
from .support.playbook import CHECKOUT, PlaybookResult
from .support.samples import CPU

Json = dict[str, Any]
Module = Callable[..., Json]
Playbook = Callable[..., PlaybookResult]

NAMESPACE, NAME = "live-backup", "bak"
PASSPHRASE = "correct horse battery staple"
REASON = "memory errors, Ann"
HOST_KEYS = {"ssh_host_ed25519_key": "bm90IGEgcmVhbCBvbmU="}
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
CRONJOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs"
CLAIMS = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
OPERATOR = "slurm-operator"
MARIADB = "localhost/slurm-ops/mariadb:debian13"
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

    def wait_for_no_job(self) -> None:
        """Wait until no Pod that existed for a moment is left."""
        self.kube.wait(lambda: self.kube.items(JOBS), lambda jobs: not jobs, what="no Job")

    def scheduled(self) -> tuple[str, str]:
        """Run a Job of the schedule at once, as `kubectl create job --from` does: how it ended, and its Pod's log."""
        made = self.kube.get(f"{CRONJOBS}/{NAME}-backup")
        owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": f"{NAME}-backup", "uid": made["metadata"]["uid"]}
        metadata = {"generateName": f"{NAME}-now-", "ownerReferences": [owner]}
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata,
            "spec": made["spec"]["jobTemplate"]["spec"],
        }
        name = self.kube.create(JOBS, job)["metadata"]["name"]

        def end() -> str:
            conditions = self.kube.get(f"{JOBS}/{name}")["status"].get("conditions", ())
            ends = [entry["type"] for entry in conditions if entry["status"] == "True"]
            return next((end for end in ends if end in ("Complete", "Failed")), "")

        ended: str = self.kube.wait(end, bool, timeout=120, what="the Job has ended")
        [pod] = self.kube.items(PODS, labelSelector=f"job-name={name}")
        return ended, self.kube.logs(NAMESPACE, pod["metadata"]["name"])

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
        "slurm_nodesets": [CPU],
        "slurm_home_enabled": False,
        "directory_enabled": False,
        "login_enabled": False,
        "cluster_operator_service_account": OPERATOR,
        "backup_passphrase": PASSPHRASE,
    }
    module = {"namespace": NAMESPACE, "name": NAME, "folder": str(folder), "passphrase": PASSPHRASE}
    run_playbook("site", extra_vars=variables)
    made = Cluster(kube, variables, module, folder, [])
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{NAME}-login-hostkeys"}, "data": HOST_KEYS}
    kube.create(SECRETS, secret)
    made.run("scontrol reconfigure")  # else part of the state is written 5 minutes later, and waited for
    made.run("sacctmgr -i add account research && sacctmgr -i add user alice account=research")
    made.job("--wait")
    made.job("--hold", "--job-name=held")
    made.run(f"scontrol update nodename=cpu-1 state=drain reason='{REASON}'")
    yield made
    kube.delete(f"/api/v1/namespaces/{NAMESPACE}")
    kube.wait(f"/api/v1/namespaces/{NAMESPACE}", lambda found: found is None, timeout=120, what="the namespace is gone")


def told(result: Json) -> list[tuple[str, str]]:
    return [(action["kind"], action["target"]) for action in result["actions"]]


def test_a_running_cluster_is_kept(cluster: Cluster, run_module: Module) -> None:
    options = {**cluster.module, "archive_name": "first"}
    predicted = run_module("backup", options, check=True)
    assert predicted["changed"] is True
    assert cluster.archives() == []
    assert [action["after"]["bytes"] > 1_000 for action in predicted["actions"][:2]] == [True, True]
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


def test_a_database_that_goes_away_in_the_middle_leaves_no_archive(
    cluster: Cluster, run_module: Module, tmp_path: Path
) -> None:
    kube, progress = cluster.kube, tmp_path / "progress"
    progress.touch()
    there = cluster.archives()
    second = {**cluster.module, "archive_name": "second"}
    uid = kube.get(f"{PODS}/{DATABASE}")["metadata"]["uid"]
    with ThreadPoolExecutor() as pool:
        # A lock holds the dump up, once it is under way.
        lock = pool.submit(cluster.sql, f"LOCK TABLES slurm_acct_db.{NAME}_job_table WRITE; SELECT SLEEP(120)", 120)
        kube.wait(lambda: cluster.sql("SHOW PROCESSLIST"), lambda text: "SLEEP(120)" in text, what="the lock")
        # A run that is killed leaves what nobody takes for an archive, and is in no other run's way.
        with pytest.raises(AssertionError, match="not done in"):
            run_module("backup", second, timeout=12, env={"SLURM_OPS_PROGRESS": str(progress)})
        assert progress.read_text().splitlines() == [
            f"{NAME}: copying the state of slurmctld",
            f"{NAME}: copying database slurm_acct_db of Pod {NAMESPACE}/{DATABASE}",
        ]
        assert cluster.archives() == sorted([".second.zip.part", *there])
        backup = pool.submit(run_module, "backup", second, fails=True)
        kube.wait(
            lambda: cluster.sql("SHOW PROCESSLIST"),
            lambda text: text.count("Waiting for table metadata lock") == 2,
            what="the dump waits",
        )
        kube.delete(f"{PODS}/{DATABASE}", gracePeriodSeconds=1)
        failed = backup.result()
        lock.result()
    assert failed["reason"] in ("Unreachable", "CommandFailed", "ExecFailed")
    assert "slurm_acct_db" in failed["msg"]
    assert failed["changed"] is False
    assert cluster.archives() == there
    kube.wait(
        f"{PODS}/{DATABASE}",
        lambda pod: is_ready(pod) and pod["metadata"]["uid"] != uid,
        timeout=120,
        what="the database is back",
    )


def test_archives_in_a_claim(cluster: Cluster, run_module: Module) -> None:
    """With the rights of the operator's Role; only the newest is kept."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "archives"}, "spec": spec}
    options = {
        **cluster.module,
        "folder": "pvc://archives/hpc",
        "keep": 1,
        "database_image": MARIADB,
        "impersonate_user": f"system:serviceaccount:{NAMESPACE}:{OPERATOR}",
    }
    failed = run_module("backup", options, fails=True)
    assert failed["reason"] == "NotFound"
    assert "archives" in failed["msg"]
    cluster.kube.create(CLAIMS, claim)
    # A database elsewhere is reached from a Pod, too. That it is elsewhere is a matter of names: this one is reached by
    # its Service, with a client in another Pod.
    first = run_module("backup", {**options, "database_host": f"{NAME}-database"})
    assert first["archive"].startswith(f"pvc://archives/hpc/{NAME}-20")
    assert [kind for kind, _target in told(first)] == ["copy"] * 4 + ["write"]
    sizes = {part["name"]: part["bytes"] for part in first["manifest"]["parts"]}
    assert sizes["database.sql.gz"] > 5_000
    second = run_module("backup", options)
    assert told(second)[-1] == ("remove", first["archive"])
    predicted = run_module("backup", options, check=True)
    assert told(predicted)[-2:] == [("write", predicted["archive"]), ("remove", second["archive"])]

    args = {**cluster.module, "slurm_version": "26.05", "state_image": "none", "database_image": MARIADB}
    del args["folder"]
    assert run_module("restore", {**args, "archive": second["archive"]}, fails=True)["reason"] == "Live"
    assert run_module("restore", {**args, "archive": first["archive"]}, fails=True)["reason"] == "NotFound"
    cluster.wait_for_no_job()


def test_a_schedule_makes_archives_in_the_cluster(
    cluster: Cluster, run_playbook: Playbook, run_module: Module, namespace: str
) -> None:
    """With the variables of the guide, but for the name of the image."""
    kube = cluster.kube
    nightly = examples_of("backup.md")[2]
    assert list(nightly.pop("slurm_images")) == ["operator"]
    assert nightly["cluster_operator_service_account"] == OPERATOR
    folder = nightly["backup_folder"]

    def site(check: bool = False, **more: str) -> tuple[list[tuple[str, str]], PlaybookResult]:
        wanted = {**cluster.variables, **nightly, **more}
        done = run_playbook("site", tags="backup", check=check, diff=True, extra_vars=wanted)
        return told(done.task("Apply the schedule of backups").result), done

    predicted, _run = site(check=True)
    assert kube.items(CRONJOBS) == []
    made, run = site()
    assert made == predicted
    assert [kind for kind, _target in made] == ["create"] * 4
    assert PASSPHRASE not in run.output
    again, run = site()
    assert again == []
    assert run.task("Apply the schedule of backups").result["api_calls"]["writes"] == 0
    inventory = kube.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}-backup-inventory")
    assert PASSPHRASE not in str(inventory)

    ended, log = cluster.scheduled()
    assert ended == "Complete", log
    assert PASSPHRASE not in log
    [archive] = set(re.findall(rf"{folder}/{NAME}-20\w+\.zip", log))
    args = {key: cluster.module[key] for key in ("namespace", "name", "passphrase")}
    args |= {"slurm_version": "26.05", "state_image": "none", "database_image": MARIADB, "archive": archive}
    # It was read to its end, before it was seen that there is a cluster.
    assert run_module("restore", args, check=True, fails=True)["reason"] == "Live"

    site(backup_folder="pvc://elsewhere/slurm")
    ended, log = cluster.scheduled()
    assert ended == "Failed"
    assert f"There is no PersistentVolumeClaim {NAMESPACE}/elsewhere" in log

    # Its Pods may run where nothing is allowed that they do not need.
    level = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    kube.patch(f"/api/v1/namespaces/{namespace}", level)
    template = kube.get(f"{CRONJOBS}/{NAME}-backup")["spec"]["jobTemplate"]["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "backup"}, "spec": template["spec"]}
    pod["spec"] = {**pod["spec"], "serviceAccountName": "default", "serviceAccount": "default"}
    kube.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)

    gone, _run = site(backup_schedule="")
    assert {kind for kind, _target in gone} == {"delete"}
    assert kube.items(CRONJOBS) == []
    assert kube.find(f"{SECRETS}/{NAME}-backup") is None
    cluster.wait_for_no_job()


def test_the_guide(cluster: Cluster, run_playbook: Playbook, run_module: Module, tmp_path: Path) -> None:
    """Its commands as they stand there but for the folder. Those for a schedule: see the test of it."""
    tasks, variables, _schedule = examples_of("backup.md")
    options = yaml.safe_load((CHECKOUT / "roles/backup/meta/argument_specs.yml").read_text(encoding="utf-8"))
    assert variables.keys() <= options["argument_specs"]["main"]["options"].keys()
    command = r"ansible-playbook slurm_ops\.kubernetes\.backup -i \S+ -e backup_folder=/\S+"
    assert len(re.findall(command, text_of("backup.md"))) == 2
    given = {**cluster.variables, "backup_folder": str(tmp_path)}
    assert len(run_playbook("backup", extra_vars=given, check=True).changed) == 1
    [task] = tasks
    given = {**cluster.module, **task["slurm_ops.kubernetes.backup"], "passphrase": PASSPHRASE, "folder": str(tmp_path)}
    assert run_module("backup", given, check=True)["archive"] == str(tmp_path / "before-upgrade.zip")


@pytest.fixture(scope="module")
def bucket() -> Iterator[tuple[Json, Minio]]:
    """Variables for a bucket, and a client that looks into it."""
    with s3.serving() as (url, client):
        keys = {"backup_s3_access_key": s3.KEYS[0], "backup_s3_secret_key": s3.KEYS[1]}
        yield {"backup_folder": f"s3://{s3.BUCKET}/slurm", "backup_s3_endpoint_url": url, **keys}, client


def test_archives_in_a_bucket(cluster: Cluster, run_playbook: Playbook, bucket: tuple[Json, Minio]) -> None:
    """One that takes more than one part; the oldest goes, and what is not ours stays."""
    where, client = bucket

    def there() -> list[str]:
        return [str(entry.object_name) for entry in client.list_objects(s3.BUCKET, recursive=True)]

    old = [f"slurm/{NAME}-2026010{day}T000000Z.zip" for day in range(1, 4)]
    others = [f"slurm/{NAME}-before-upgrade.zip", f"slurm/{NAME}-2-20260101T000000Z.zip", "slurm/old/a.zip", "a.zip"]
    for name in (*old, *others):
        client.put_object(s3.BUCKET, name, io.BytesIO(b"x"), 1)
    cluster.run("head -c 7M /dev/urandom > /var/spool/slurmctld/padding")
    wanted = {**cluster.variables, **where, "backup_keep": "2"}
    predicted = run_playbook("backup", extra_vars=wanted, check=True).task("Keep the cluster in an archive").result
    assert there() == sorted([*old, *others])
    done = run_playbook("backup", extra_vars=wanted).task("Keep the cluster in an archive").result
    removed = [("remove", f"s3://{s3.BUCKET}/{name}") for name in old[:2]]
    assert told(predicted)[-2:] == told(done)[-2:] == removed
    name = done["archive"].removeprefix(f"s3://{s3.BUCKET}/")
    assert there() == sorted([*others, old[2], name])
    found = client.stat_object(s3.BUCKET, name)
    assert found.size == done["bytes"] > 7 * 2**20
    assert str(found.etag).endswith("-2")  # it went in two parts
    nowhere = {**wanted, "backup_folder": "s3://nobodys/slurm"}
    failed = run_playbook("backup", extra_vars=nowhere, fails=True).failed[-1].result
    assert failed["reason"] == "NotFound"
    assert s3.KEYS[1] not in str(failed)


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


def test_data_goes_only_when_it_was_kept(cluster: Cluster, run_playbook: Playbook) -> None:
    """A cluster that is half gone cannot be kept; destroy says so at once, and how to go on without."""
    kube, controller = cluster.kube, f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/{NAME}-controller"
    kube.patch(controller, {"spec": {"replicas": 0}})
    pod = f"{PODS}/{NAME}-controller-0"
    kube.wait(pod, lambda found: found is None, what="slurmctld is gone")
    for folder in ({}, {"backup_folder": str(cluster.folder)}):
        going = {**cluster.variables, "destroy_data": True, **folder}
        refused = run_playbook("destroy", extra_vars=going, fails=True)
        assert "destroy_backup=false" in refused.failed[-1].result["msg"]
        assert (f"{NAME}-controller-0" if folder else "backup_folder") in refused.failed[-1].result["msg"]
        assert refused.changed == []
    assert cluster.archives() == ["first.zip"]
    kube.patch(controller, {"spec": {"replicas": 1}})
    kube.wait(pod, is_ready, timeout=120, what="slurmctld is back")


def test_a_lost_cluster_comes_back(
    cluster: Cluster, run_playbook: Playbook, run_module: Module, bucket: tuple[Json, Minio], tmp_path: Path
) -> None:
    kube, jobs, keys = cluster.kube, cluster.jobs, cluster.keys()
    history = "sacct -n -X -P -a -S now-1hour -o JobID,State | sort"
    kube.wait(lambda: cluster.run(history), lambda text: f"{jobs[0]}|COMPLETED" in text, what="the job's row")
    rows = cluster.run(history)
    padding = cluster.run("sha256sum /var/spool/slurmctld/padding")

    # It is kept once more right before its data goes; its schedule goes, too.
    *_others, nightly = examples_of("backup.md")
    run_playbook("site", tags="backup", extra_vars={**cluster.variables, **nightly})
    assert kube.items(CRONJOBS)
    going = {**cluster.variables, **bucket[0], "destroy_data": True}
    gone = run_playbook("destroy", extra_vars=going)
    assert kube.items(CRONJOBS) == []
    archive = gone.task("Keep the cluster in an archive").result["archive"]
    assert [claim["metadata"]["name"] for claim in kube.items(CLAIMS)] == ["archives"]
    assert kube.find(f"{SECRETS}/{NAME}-auth") is None

    wanted = {**cluster.variables, **bucket[0], "restore_archive": archive}
    predicted = run_playbook("restore", extra_vars=wanted, check=True)
    steps = [told(task.result) for task in predicted.action("slurm_ops.kubernetes.restore")]
    assert [kind for kind, _target in steps[1]] == ["create", "load", "load"]
    assert kube.find(f"{SECRETS}/{NAME}-auth") is None
    # The Pod that is to fill the volume never gets ready.
    where = {key.removeprefix("backup_"): value for key, value in bucket[0].items() if key.startswith("backup_s3")}
    options = {
        **{key: cluster.module[key] for key in ("namespace", "name", "passphrase")},
        **where,
        "archive": archive,
        "slurm_version": "26.05",
        "state_size": "1Gi",
        "state_image": "localhost/slurm-ops/none:1",
    }
    failed = run_module("restore", {**options, "parts": ["keys", "state"]}, fails=True)
    assert failed["reason"] == "ImagePull"
    assert told(failed) == [*steps[0], steps[1][0], steps[1][2]]
    assert [action["done"] for action in failed["actions"]] == [True] * (len(failed["actions"]) - 1) + [False]
    # Nor does it in a run that is killed while it waits.
    progress = tmp_path / "progress"
    progress.touch()
    env = {"SLURM_OPS_PROGRESS": str(progress)}
    with pytest.raises(AssertionError, match="not done in"):
        run_module("restore", {**options, "parts": ["keys", "state"]}, timeout=4, env=env)
    assert progress.read_text() == f"{NAME}: loading {steps[1][2][1]}\n"
    # The next run goes on from there, and takes away what that one left.
    assert len(kube.items(JOBS)) == 1
    restored = run_playbook("restore", extra_vars=wanted)
    assert [told(task.result) for task in restored.action("slurm_ops.kubernetes.restore")] == [[], steps[1][1:]]
    cluster.wait_for_no_job()

    assert cluster.keys() == keys
    assert cluster.run(history) == rows
    assert cluster.run("sha256sum /var/spool/slurmctld/padding") == padding
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

    again = run_module("restore", options)
    assert again["changed"] is False
    assert again["api_calls"]["writes"] == 0


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
