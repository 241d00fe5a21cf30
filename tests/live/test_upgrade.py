# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the oldest release to the newest while a job runs, and back again from the archive that was made before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from .support.guides import examples_of
from .support.kube import Kube
from .support.minislurm import is_ready
from .support.playbook import NO_INVENTORY, PlaybookResult
from .support.samples import CPU

Json = dict[str, Any]
Module = Callable[..., Json]
Playbook = Callable[..., PlaybookResult]

NAMESPACE, NAME = "live-upgrade", "upg"
OLD, NEW = "24.11", "26.05"
IMAGES = {
    name: f"localhost/slurm-ops/{name}:{NEW}" for name in ("slurmctld", "slurmdbd", "slurmrestd", "slurmd", "login")
}
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CONFIG = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}-config"
CONTROLLER, LOGIN = f"{NAME}-controller-0", f"{NAME}-login-0"
ORDER = ["slurmdbd", "slurmctld", "slurmrestd", "NodeSet cpu", "login", "configuration"]


@dataclass
class Cluster:
    """The cluster of this file."""

    kube: Kube
    variables: Json
    folder: Path
    jobs: list[int] = field(default_factory=list)

    def run(self, command: str, *, on: str = CONTROLLER, user: str = "") -> str:
        """Run a command in a Pod."""
        words = ["sh", "-c", command]
        container = {CONTROLLER: "slurmctld", LOGIN: "login"}.get(on, "slurmd")
        words = ["runuser", "-u", user, "--", *words] if user else words
        return self.kube.exec(NAMESPACE, on, words, container=container).check().stdout.strip()

    def job(self, script: str, *options: str) -> int:
        """Submit a job of alice's from the login Pod and return its number."""
        submit = f"sbatch --parsable --chdir=/tmp --output=/dev/null --mem=10 {' '.join(options)} --wrap"
        number = int(self.run(f'{submit} "{script}"', on=LOGIN, user="alice"))
        self.jobs.append(number)
        return number

    def history(self, *jobs: int) -> list[str]:
        """What accounting knows of jobs and their steps."""
        numbers = ",".join(map(str, jobs))
        asked = f"sacct -n -P -j {numbers} -o JobID,User,State,Start,End,NodeList,ExitCode"
        return self.run(asked, on=LOGIN, user="alice").splitlines()

    def wait_for(self, job: int) -> None:
        """Wait until accounting knows that a job completed."""
        rows = self.kube.wait(
            lambda: self.history(job),
            lambda rows: rows and rows[0].split("|")[2] not in ("PENDING", "RUNNING"),
            timeout=150,
            what="the job has ended",
        )
        assert rows[0].startswith(f"{job}|alice|COMPLETED|"), rows

    def pods(self) -> dict[str, str]:
        """{Pod: uid}, without those that are made for a moment."""
        found = [pod["metadata"] for pod in self.kube.items(PODS)]
        return {pod["name"]: pod["uid"] for pod in found if "job-name" not in (pod.get("labels") or {})}

    def archives(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.is_dir() else []

    def slurmds(self, nodes: str = "cpu-[0-1]") -> list[str]:
        """The releases of nodes."""
        return [text.rpartition(".")[0] for text in self.run(f"sinfo -h -N -n '{nodes}' -o %v").split()]


@pytest.fixture(scope="module")
def cluster(kube: Kube, run_playbook: Playbook, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A site of the oldest release, with a job in accounting."""
    folder = tmp_path_factory.mktemp("upgrade") / "archives"
    variables = {
        "slurm_namespace": NAMESPACE,
        "slurm_name": NAME,
        "slurm_nodesets": [CPU],
        "directory_users": [{"name": "alice", "uid": 10001, "groups": ["hpc"]}],
        "backup_folder": str(folder),
    }
    run_playbook("site", extra_vars={**variables, "slurm_version": OLD})
    made = Cluster(kube, variables, folder)
    made.job("srun -n2 true", "--wait", "-N2")
    made.wait_for(made.jobs[0])
    yield made
    run_playbook("destroy", extra_vars={**variables, "destroy_data": True, "destroy_backup": False})
    kube.delete(f"/api/v1/namespaces/{NAMESPACE}")
    kube.wait(f"/api/v1/namespaces/{NAMESPACE}", lambda found: found is None, timeout=120, what="the namespace is gone")


@pytest.mark.parametrize("tags", [None, "slurmctld,nodeset"])
def test_site_is_no_upgrade(cluster: Cluster, run_playbook: Playbook, tags: str | None) -> None:
    """Nor is a part of it, which has not role cluster."""
    before = cluster.pods()
    refused = run_playbook("site", extra_vars={**cluster.variables, "slurm_version": NEW}, tags=tags, fails=True)
    assert refused.failed[-1].result["reason"] == "OtherRelease"
    assert "playbook upgrade" in refused.failed[-1].result["msg"]
    assert [str(task) for task in refused.changed] == []
    assert cluster.pods() == before
    if tags:
        same = run_playbook("site", extra_vars={**cluster.variables, "slurm_version": OLD}, tags=tags)
        assert [str(task) for task in same.changed] == []
        print(f"the check of a part: {same.task('Refuse another release of Slurm').seconds:.1f} s")


def test_a_database_that_is_down_is_known_before_anything_is_touched(cluster: Cluster, run_module: Module) -> None:
    database = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/{NAME}-database"
    before, files = cluster.pods(), cluster.kube.get(CONFIG)["data"]

    def scale(replicas: int) -> None:
        cluster.kube.patch(database, {"spec": {"replicas": replicas}})
        pod = f"{PODS}/{NAME}-database-0"
        cluster.kube.wait(pod, lambda found: is_ready(found) if replicas else found is None, timeout=120, what="it")

    scale(0)
    args = {"namespace": NAMESPACE, "name": NAME, "files": files, "slurm_version": NEW, "images": IMAGES}
    refused = run_module("upgrade_check", args, fails=True)
    scale(1)
    assert refused["reason"] == "NotReady"
    assert "the database does not run" in refused["msg"]
    away = {f"{NAME}-database-0"}
    assert cluster.pods().keys() == before.keys()
    assert {name: uid for name, uid in cluster.pods().items() if name not in away}.items() <= before.items()


@pytest.mark.parametrize(
    ("options", "reason", "why"),
    [
        ({"slurm_version": "26.11"}, "NotReady", "Go to 26.05 first"),
        ({"images": {**IMAGES, "slurmdbd": "localhost/slurm-ops/slurmdbd:none"}}, "ImagePull", "slurmdbd:none"),
        (
            {"images": {**IMAGES, "slurmd": f"localhost/slurm-ops/slurmd:{OLD}"}},
            "NotReady",
            "its image holds Slurm 24.11",
        ),
        ({"plugin": "priority/gone"}, "Refused", "priority/gone"),
    ],
)
def test_what_cannot_be_is_known_before_anything_is_touched(
    cluster: Cluster, run_module: Module, options: Json, reason: str, why: str
) -> None:
    before = cluster.pods()
    files = cluster.kube.get(CONFIG)["data"]
    if plugin := options.get("plugin"):
        files = {**files, "slurm.conf": f"PriorityType={plugin}\n{files['slurm.conf']}"}
    wanted = {"slurm_version": NEW, "images": IMAGES, **{key: options[key] for key in options if key != "plugin"}}
    args = {"namespace": NAMESPACE, "name": NAME, "files": files, **wanted}
    refused = run_module("upgrade_check", args, fails=True)
    assert refused["reason"].startswith(reason)
    assert why in refused["msg"]
    assert cluster.pods() == before


def test_check_mode_shows_the_plan(cluster: Cluster, run_playbook: Playbook, tmp_path: Path) -> None:
    before = cluster.pods()
    predicted = run_playbook("upgrade", extra_vars={**cluster.variables, "slurm_version": NEW}, check=True)
    plan = predicted.task("See what is to be upgraded, and whether it can be").result
    assert [step["name"] for step in plan["steps"]] == ORDER
    assert all(step["after"].startswith(NEW) for step in plan["steps"])
    shown = "\n".join(predicted.task("Show the plan").result["msg"])
    assert "1. backup" in shown
    assert "2. slurmdbd       24.11.5 -> 26.05" in shown
    assert "v0.0.40, v0.0.41; clients of those go to v0.0.42 first" in shown
    assert cluster.pods() == before
    assert cluster.archives() == []
    play = {
        "name": "Examples of the guide",
        "hosts": "localhost",
        "gather_facts": False,
        "module_defaults": {"group/slurm_ops.kubernetes.slurm": {"namespace": NAMESPACE, "name": NAME}},
        "tasks": [task for example in examples_of("upgrade.md") for task in example],
    }
    examples = tmp_path / "examples.yml"
    examples.write_text(yaml.safe_dump([play], sort_keys=False), encoding="utf-8")
    assert run_playbook(examples, inventory=NO_INVENTORY).tasks[-1].result["msg"] == ", ".join(ORDER)


def test_a_running_job_survives_and_nothing_is_forgotten(cluster: Cluster, run_playbook: Playbook) -> None:
    kube = cluster.kube
    history = cluster.history(cluster.jobs[0])
    running = cluster.job("until [ -e /tmp/go ]; do sleep 0.5; done; srun -n1 id -un | grep -qx alice", "-w cpu-0")
    started = kube.wait(lambda: cluster.run(f"squeue -h -j {running} -o '%T %S'"), lambda text: "RUNNING" in text)

    def in_the_middle() -> None:
        """slurmctld is new, and the node of the job and the login Pod are not."""
        try:
            kube.wait(
                lambda: kube.find(f"{PODS}/{CONTROLLER}"),
                lambda pod: pod and pod["spec"]["containers"][0]["image"].endswith(NEW) and is_ready(pod),
                timeout=240,
                what="the new slurmctld",
            )
            assert cluster.run(f"squeue -h -j {running} -o '%T %S'") == started
            kube.wait(lambda: cluster.slurmds("cpu-1"), lambda found: found == [NEW], timeout=120, what="a new slurmd")
            assert cluster.slurmds("cpu-0") == [OLD]
            found = kube.get(CONFIG)
            assert found["metadata"]["annotations"]["slurm-ops.kubernetes/release"] == OLD
            assert "MetricsType" not in found["data"]["slurm.conf"]
            # An old client asks the new slurmctld and slurmdbd.
            said = cluster.run(
                f"sinfo -V; squeue -h -j {running} -o %T; sacct -n -X -P -j {running} -o State", on=LOGIN
            )
            assert said.split()[1:] == ["24.11.5", "RUNNING", "RUNNING"]
        finally:
            cluster.run("touch /tmp/go", on="cpu-0")

    with ThreadPoolExecutor() as pool:
        watch = pool.submit(in_the_middle)
        upgraded = run_playbook("upgrade", extra_vars={**cluster.variables, "slurm_version": NEW})
        watch.result()
    cluster.wait_for(running)
    assert f"{running}.0|" in "\n".join(cluster.history(running))
    assert cluster.history(cluster.jobs[0]) == history
    assert cluster.slurmds() == [NEW, NEW]
    assert upgraded.task("Say what is left").result["msg"] == f"{NAME}: nothing is left to upgrade"
    found = kube.get(CONFIG)
    assert found["metadata"]["annotations"]["slurm-ops.kubernetes/release"] == NEW
    assert "MetricsType" in found["data"]["slurm.conf"]
    assert [name.startswith(f"{NAME}-before-{NEW}-") for name in cluster.archives()] == [True]
    assert cluster.job("true", "--wait") == running + 1


def test_a_second_run_changes_nothing(cluster: Cluster, run_playbook: Playbook) -> None:
    again = run_playbook("upgrade", extra_vars={**cluster.variables, "slurm_version": NEW})
    assert [str(task) for task in again.changed] == []
    assert len(cluster.archives()) == 1


def test_there_is_no_way_back_but_the_archive(cluster: Cluster, run_playbook: Playbook) -> None:
    last = cluster.jobs[-1]
    back = {**cluster.variables, "slurm_version": OLD}
    refused = run_playbook("upgrade", extra_vars=back, fails=True)
    assert "The way back is the playbook restore" in refused.failed[-1].result["msg"]
    archive = {"restore_archive": str(cluster.folder / cluster.archives()[0]), "restore_replace": True}
    run_playbook("restore", extra_vars={**back, **archive, "nodeset_rollout": True})
    assert cluster.slurmds() == [OLD, OLD]
    assert cluster.history(cluster.jobs[0])[0].startswith(f"{cluster.jobs[0]}|alice|COMPLETED|")
    assert cluster.history(last) == []
    # What ran when the archive was made is queued again.
    assert cluster.run("squeue -h -o %A").split() == [str(cluster.jobs[1])]
    cluster.run(f"scancel {cluster.jobs[1]}")
    job = cluster.job("srun -n2 true", "-N2")
    cluster.wait_for(job)
