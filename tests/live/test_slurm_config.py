# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module slurm_config against real slurmctlds: read without a restart, refused, put back, restarted if need be."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.filter.configuration import slurm_files

from .support.guides import playbook_of
from .support.kube import Json, Kube
from .support.minislurm import ANYWHERE, NAME, SMALL, MiniSlurm, is_ready, versions_there
from .support.playbook import NO_INVENTORY, PlaybookResult

Run = Callable[..., Json]
PARTITIONS = [{"name": "all", "nodes": "ALL", "default": True}]
SPARE = [*PARTITIONS, {"name": "spare", "nodes": "ALL"}]
# A quiet machine takes 1 to 2 s; the tests' machine does other things too.
AT_ONCE = 20.0


def cluster(kube: Kube, kubeconfig: str, namespace: str, version: str) -> MiniSlurm:
    nodesets = [
        {"name": "cpu", "replicas": 2, **SMALL},
    ]
    made = MiniSlurm(kube, kubeconfig, namespace, version, nodesets, partitions=PARTITIONS)
    made.deploy()
    made.wait_for_nodes("cpu-0", "cpu-1")
    return made


@pytest.fixture(scope="module")
def mini(kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    made = cluster(kube, kubeconfig, _namespaces("config"), versions_there(kube)[0])
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")


@pytest.fixture(scope="module")
def old(kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    version = versions_there(kube)[-1]
    assert version < "25.05"
    made = cluster(kube, kubeconfig, _namespaces("config-old"), version)
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")


def files(mini: MiniSlurm, conf: Mapping[str, Any] | None = None, **facts: Any) -> dict[str, str]:
    """The cluster's files with these keys of slurm.conf, and other facts, changed."""
    return slurm_files({**mini.facts, "slurm_conf": {**ANYWHERE, **(conf or {})}, **facts})


def runner(mini: MiniSlurm, run_module: Run) -> Run:
    def run(wanted: Mapping[str, str], args: Json | None = None, **more: Any) -> Json:
        where = {"namespace": mini.namespace, "name": NAME, "slurm_version": mini.version}
        return run_module("slurm_config", {**where, "files": wanted, **(args or {})}, **more)

    return run


@pytest.fixture
def change(mini: MiniSlurm, run_module: Run) -> Run:
    return runner(mini, run_module)


def steps(result: Json) -> list[tuple[str, str]]:
    return [(action["kind"], action["target"].split()[0]) for action in result["actions"]]


def pod(mini: MiniSlurm) -> tuple[str, int]:
    """Which Pod slurmctld is in, and how often its container began again."""
    found = mini.kube.get(f"/api/v1/namespaces/{mini.namespace}/pods/{NAME}-controller-0")
    return found["metadata"]["uid"], found["status"]["containerStatuses"][0]["restartCount"]


def config_map(mini: MiniSlurm) -> Json:
    found: Json = mini.kube.get(f"/api/v1/namespaces/{mini.namespace}/configmaps/{NAME}-config")
    return found


def setting(mini: MiniSlurm, key: str) -> str:
    return mini.run(f"scontrol show config | sed -n 's/^{key} *= //p'").stdout.strip()


def submit(mini: MiniSlurm, options: str = "") -> str:
    return mini.run(f"cd /tmp && sbatch --parsable --mem=10 {options} --wrap 'sleep 300'", on="cpu-0").stdout.strip()


def job_state(mini: MiniSlurm, job: str) -> str:
    return mini.run(f"scontrol -o show job {job} | sed 's/.*JobState=\\([A-Z_]*\\).*/\\1/'").stdout.strip()


@pytest.fixture
def job(mini: MiniSlurm) -> Iterator[str]:
    """A job that runs, and must still when the test has ended."""
    yield from running(mini)


def running(mini: MiniSlurm) -> Iterator[str]:
    number = submit(mini, "-w cpu-0")
    mini.kube.wait(lambda: job_state(mini, number), lambda state: state == "RUNNING", timeout=30, what="the job runs")
    yield number
    assert job_state(mini, number) == "RUNNING"
    mini.client().cancel_jobs([int(number)])


def assert_settled(change: Run, wanted: Mapping[str, str]) -> None:
    """A second run does nothing."""
    again = change(wanted)
    assert (again["changed"], again["actions"], again["api_calls"]["writes"]) == (False, [], 0)


def check_a_change(mini: MiniSlurm, change: Run) -> None:
    before, version = pod(mini), config_map(mini)["metadata"]["resourceVersion"]
    wanted = files(mini, {"MinJobAge": 777})
    assert_settled(change, files(mini))
    predicted = change(wanted, check=True, diff=True)
    assert steps(predicted) == [("write", "slurm.conf"), ("reconfigure", "slurmctld")]
    (diff,) = predicted["diff"]
    assert set(diff["after"].splitlines()) - set(diff["before"].splitlines()) == {"MinJobAge=777"}
    assert predicted["api_calls"]["writes"] == 0
    assert config_map(mini)["metadata"]["resourceVersion"] == version
    found = change(wanted)
    print(f"{mini.version}: {found['duration']} s from the start of the module to its effect, of {found['api_calls']}")
    assert steps(found) == steps(predicted)
    assert all(action["done"] for action in found["actions"])
    assert found["changes"] == [{"file": "slurm.conf", "what": "MinJobAge", "before": None, "after": "777"}]
    assert found["duration"] < AT_ONCE
    assert setting(mini, "MinJobAge") == "777 sec"
    assert "MinJobAge=777\n" in mini.run("cat /run/slurm/conf/slurm.conf", on="cpu-1").stdout
    assert pod(mini) == before
    assert mini.run("ls /tmp").stdout == ""  # the second slurmctld has left nothing
    assert_settled(change, wanted)


def test_a_change_takes_effect_without_a_restart(mini: MiniSlurm, change: Run, job: str) -> None:
    check_a_change(mini, change)


LUA = """\
function slurm_job_submit(job, partitions, user)
  if job.name == "unwanted" then return slurm.ERROR end
  return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, user) return slurm.SUCCESS end
"""
PROLOG = '#!/bin/sh\ntouch "/tmp/prolog-@@-$SLURM_JOB_ID"\n'


def test_lua_and_prolog_come_change_and_go(mini: MiniSlurm, change: Run, job: str) -> None:
    before = pod(mini)
    wanted = files(mini, job_submit_lua=LUA, prolog={"mark": PROLOG.replace("@@", "one")})
    found = change(wanted)
    assert {("write", "job_submit.lua"), ("write", "prolog-mark")} < set(steps(found))
    refused = mini.run("cd /tmp && sbatch --job-name=unwanted --mem=10 --wrap true", on="cpu-0", check=False)
    assert refused.rc != 0
    mini.run("cd /tmp && srun --job-name=wanted --mem=10 -N2 true", on="cpu-0")
    assert "prolog-one-" in mini.run("ls /tmp", on="cpu-1").stdout
    wanted = files(mini, job_submit_lua=LUA.replace("unwanted", "other"), prolog={"mark": PROLOG.replace("@@", "two")})
    found = change(wanted)
    assert steps(found) == [("write", "job_submit.lua"), ("write", "prolog-mark"), ("reconfigure", "slurmctld")]
    mini.run("cd /tmp && srun --job-name=unwanted --mem=10 -N2 true", on="cpu-0")
    assert "prolog-two-" in mini.run("ls /tmp", on="cpu-1").stdout
    found = change(files(mini))
    assert {("remove", "job_submit.lua"), ("remove", "prolog-mark")} < set(steps(found))
    assert "prolog-mark" not in mini.run("ls /etc/slurm").stdout
    assert pod(mini) == before
    assert_settled(change, files(mini))


# {what is wrong: (lines at the end of slurm.conf, what slurmctld says of them)}
BAD = {
    "unknown node": ("PartitionName=bad Nodes=nowhere[1-2]\n", "nowhere"),
    "plugin": ("SchedulerType=sched/nonsense\n", "sched/nonsense"),
    "key": ("NoSuchKey=1\n", "NoSuchKey"),
    "syntax": ("what is this\n", "is not key=value"),
    "MaxNodeCount": ("MaxNodeCount=1\n", "there are 2 nodes"),
    "topology": ("PartitionName=bad Nodes=ALL Topology=nowhere\n", "opology"),
    "node twice": ("NodeName=x State=CLOUD\nNodeName=x State=CLOUD\n", "Duplicated NodeHostName x"),
    "partition twice": ("PartitionName=all Nodes=ALL\n", "duplicate entry for partition all"),
    "value": ("PartitionName=bad Nodes=ALL MaxTime=ab\n", 'Bad value "ab" for MaxTime'),
    "prolog": ("Prolog=/etc/slurm/none\n", "/etc/slurm/none is not there in Pod cpu-0"),
    "plugin of tasks": ("TaskPlugin=task/affinity,task/nonsense\n", "plugin: task/nonsense is not there in Pod cpu-0"),
    "plugin of commands": ("CliFilterPlugins=nonsense\n", "cli_filter/nonsense is not there in Pod cpu-1"),
    "plugin of jobs": ("PrologFlags=Contain\nNamespaceType=namespace/no\n", "namespace/no is not there in Pod cpu-0"),
    "plugin of slurmd": ("ProctrackType=proctrack/nonsense\n", "proctrack/nonsense is not there in Pod cpu-0"),
    "MPI": ("MpiDefault=nonsense\n", "mpi/nonsense is not there in Pod cpu-0"),
    "epilog": ("Epilog=none\n", "none is no file of the configuration"),
}
# {file: (its text, what slurmctld says of it)}
BAD_FILES = {
    "cgroup.conf": ("NoSuchKey=yes\n", "NoSuchKey"),
    "topology.yaml": ("- topology: a\n  tree: {switches: [{switch: a, children: b}]}\n", "has invalid child (b)"),
    "acct_gather.conf": ("NoSuchKey=yes\n", "NoSuchKey"),
}


def test_what_slurmctld_would_refuse_changes_nothing(
    mini: MiniSlurm, run_playbook: Callable[..., PlaybookResult]
) -> None:
    before = config_map(mini)["metadata"]["resourceVersion"]
    good = files(mini)
    wrong = {what: {**good, "slurm.conf": good["slurm.conf"] + lines} for what, (lines, _words) in BAD.items()}
    wrong |= {name: {**good, name: text} for name, (text, _words) in BAD_FILES.items()}
    wrong["Lua"] = files(mini, job_submit_lua="function (")
    wrong["Lua without functions"] = files(mini, job_submit_lua="x = 1")
    where = {"namespace": mini.namespace, "name": NAME}
    tasks = [
        {"name": what, "slurm_ops.kubernetes.slurm_config": {**where, "files": bad}, "ignore_errors": True}
        for what, bad in wrong.items()
    ]
    play = {"name": "Bad files", "hosts": "localhost", "gather_facts": False, "tasks": tasks}
    done = run_playbook([play], inventory=NO_INVENTORY)
    for what in wrong:
        failed = done.task(what).result
        assert failed["reason"] in ("Refused", "InvalidSlurmConf"), (what, failed)
        assert (BAD | BAD_FILES).get(what, ("", ""))[1] in failed["msg"], (what, failed["msg"])
        assert (failed["changed"], failed["api_calls"]["writes"]) == (False, 0), what
    assert config_map(mini)["metadata"]["resourceVersion"] == before


def test_plugins_that_nodes_have_are_no_reason(mini: MiniSlurm, change: Run) -> None:
    wanted = {
        "TaskPlugin": "task/affinity",
        "MpiDefault": "pmi2",
        "CliFilterPlugins": ["lua"],
        "PrologFlags": "Contain",
    }
    for key, plugin in (("NamespaceType", "namespace/tmpfs"), ("JobContainerType", "job_container/tmpfs")):
        predicted = change(files(mini, {**wanted, key: plugin}), check=True)
        assert ("reconfigure", "slurmctld") in steps(predicted)


def check_the_way_back(mini: MiniSlurm, change: Run) -> None:
    before, there = pod(mini), config_map(mini)["data"]
    # The second slurmctld writes no job records, and loads no plugin of slurmd's.
    wrong = [
        ("slurmctld", "jobcomp", files(mini, {"JobCompType": "jobcomp/nonsense"})),
        ("slurmd", "nonsense.so", {**files(mini), "plugstack.conf": "required nonsense.so\n"}),
    ]
    for who, word, bad in wrong:
        failed = change(bad, {"wait_timeout": 30}, fails=True)
        assert "The old files are back" in failed["msg"], failed["msg"]
        assert f"{who} does not take the new files" in failed["msg"], failed["msg"]
        assert word in failed["msg"], failed["msg"]
        assert not failed["changed"]
        assert config_map(mini)["data"] == there
        assert "nonsense" not in mini.run("cat /etc/slurm/*").stdout
    assert pod(mini) == before
    mini.run("cd /tmp && srun --mem=10 -w cpu-1 true", on="cpu-1")
    assert "nonsense" not in mini.run("cat /run/slurm/conf/*", on="cpu-1").stdout
    mini.wait_for_nodes("cpu-1")
    assert_settled(change, files(mini))


def test_what_slurmctld_or_slurmd_does_not_take_is_put_back(mini: MiniSlurm, change: Run, job: str) -> None:
    check_the_way_back(mini, change)


def test_a_running_cluster_keeps_its_name(mini: MiniSlurm, change: Run) -> None:
    wanted = files(mini)
    wanted["slurm.conf"] = wanted["slurm.conf"].replace(f"ClusterName={NAME}\n", "ClusterName=other\n")
    failed = change(wanted, fails=True)
    assert failed["reason"] == "NotPossible"
    assert "ClusterName (from slurm to other)" in failed["msg"]
    assert failed["api_calls"]["writes"] == 0


def test_a_partition_with_jobs_stays_unless_they_may_end(mini: MiniSlurm, change: Run, job: str) -> None:
    change(files(mini, partitions=SPARE))
    waiting = submit(mini, "-p spare --hold")
    both = submit(mini, "-p spare,all --hold")
    failed = change(files(mini), fails=True)
    assert failed["reason"] == "JobsRunning"
    assert failed["remaining"] == [f"job {waiting} of root (PENDING) in partition spare"]
    assert failed["api_calls"]["writes"] == 0
    assert job_state(mini, waiting) == "PENDING"
    cancel = {"on_running_jobs": "cancel"}
    predicted = change(files(mini), cancel, check=True)
    assert steps(predicted) == [("cancel", "1"), ("write", "slurm.conf"), ("reconfigure", "slurmctld")]
    assert steps(change(files(mini), cancel)) == steps(predicted)
    assert job_state(mini, waiting) == "CANCELLED"
    assert job_state(mini, both) == "PENDING"
    mini.client().cancel_jobs([int(both)])
    assert_settled(change, files(mini))


def test_a_run_that_is_killed_between_write_and_reconfigure_is_finished(mini: MiniSlurm, change: Run, job: str) -> None:
    """Killed while it waits for a slurmctld that does not answer."""
    wanted = files(mini, {"MinJobAge": 666})
    stop = "until grep -q MinJobAge=666 /etc/slurm/slurm.conf; do sleep 0.02; done; pkill -STOP -x slurmctld.*"
    with ThreadPoolExecutor(1) as pool:
        stopped = pool.submit(mini.run, f"timeout 50 sh -c '{stop}'")
        try:
            with pytest.raises(AssertionError, match="not done in"):
                change(wanted, timeout=15)
            stopped.result()
        finally:
            mini.run("pkill -CONT -x slurmctld.*")
    mini.kube.wait(lambda: setting(mini, "MinJobAge"), lambda text: text.endswith("sec"), what="it answers")
    assert {kind for kind, _target in steps(change(wanted))} <= {"reconfigure"}
    assert setting(mini, "MinJobAge") == "666 sec"
    assert_settled(change, wanted)
    change(files(mini))


def test_an_interrupted_run_is_finished(mini: MiniSlurm, change: Run) -> None:
    """The ConfigMap is written, and nothing more was done."""
    wanted = files(mini, {"MinJobAge": 555})
    core = f"/api/v1/namespaces/{mini.namespace}"
    mini.kube.patch(f"{core}/configmaps/{NAME}-config", {"data": wanted})
    found = change(wanted)
    assert steps(found) == [("reconfigure", "slurmctld")]
    assert setting(mini, "MinJobAge") == "555 sec"
    # The files have come to the Pod, and slurmctld has not read them.
    back = files(mini)
    mini.kube.patch(f"{core}/configmaps/{NAME}-config", {"data": back})
    mini.kube.patch(f"{core}/pods/{NAME}-controller-0", {"metadata": {"annotations": {"test": "nudge"}}})
    mini.kube.wait(
        lambda: mini.run("cat /etc/slurm/slurm.conf").stdout, lambda text: text == back["slurm.conf"], timeout=90
    )
    (action,) = change(back)["actions"]
    assert (action["kind"], action["why"]) == ("reconfigure", "it has not read the files since they came")
    assert_settled(change, back)


def check_a_restart(mini: MiniSlurm, change: Run) -> None:
    before, restd = pod(mini), restd_pods(mini)
    wanted = files(mini, {"AuthInfo": ["cred_expire=200"]})
    later = change(wanted, {"restart": "never"})
    assert [(item["daemon"], item["done"]) for item in later["restarts"]] == [
        ("slurmctld", False), ("slurmrestd", False), ("slurmd", False), ("sackd", False),
    ]  # fmt: skip
    assert pod(mini) == before
    begun = time.monotonic()
    found = change(wanted)
    print(f"{mini.version}: {time.monotonic() - begun:.1f} s with the restarts of slurmctld and slurmrestd")
    assert steps(found) == [("restart", "slurmctld"), ("restart", "slurmrestd")]
    assert [item["done"] for item in found["restarts"]] == [True, True]
    assert pod(mini) == before  # its process is another one
    assert not restd & restd_pods(mini)
    assert setting(mini, "AuthInfo") == "use_client_ids,cred_expire=200"
    mini.wait_for_nodes("cpu-1")  # which asks slurmrestd
    assert_settled(change, wanted)


def restd_pods(mini: MiniSlurm) -> set[str]:
    """slurmrestd's Pods that are ready."""
    found = mini.kube.items(
        f"/api/v1/namespaces/{mini.namespace}/pods", labelSelector="app.kubernetes.io/component=restapi"
    )
    return {item["metadata"]["uid"] for item in found if is_ready(item) and "deletionTimestamp" not in item["metadata"]}


def test_what_needs_a_restart_gets_one_and_the_job_goes_on(mini: MiniSlurm, change: Run, job: str) -> None:
    check_a_restart(mini, change)
    back = files(mini)
    assert change(back, {"restart": "never"})["restarts"]
    # Somebody else makes slurmrestd's Pods anew, as role slurmrestd does when it has a reason of its own.
    mini.scale("restapi", 0)
    mini.scale("restapi", 1)
    assert steps(change(back)) == [("restart", "slurmctld")]
    assert_settled(change, back)


def test_somebody_elses_configuration_is_not_touched(mini: MiniSlurm, change: Run) -> None:
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other-config"}, "data": {"a": "b"}}
    path = f"/api/v1/namespaces/{mini.namespace}/configmaps/other-config"
    mini.kube.apply(path, theirs)
    failed = change(files(mini), {"name": "other"}, fails=True)
    assert failed["reason"] == "NameClash"
    assert mini.kube.get(path)["data"] == {"a": "b"}


def test_before_there_is_a_slurmctld_the_files_are_only_written(mini: MiniSlurm, change: Run) -> None:
    path = f"/api/v1/namespaces/{mini.namespace}/configmaps/new-config"
    predicted = change(files(mini), {"name": "new"}, check=True)
    assert mini.kube.find(path) is None
    found = change(files(mini), {"name": "new"})
    assert steps(found) == steps(predicted)
    assert {kind for kind, _target in steps(found)} == {"write"}
    assert mini.kube.get(path)["data"] == files(mini)
    again = change(files(mini), {"name": "new"})
    assert (again["actions"], again["api_calls"]["writes"]) == ([], 0)
    assert steps(change({}, {"name": "new", "state": "absent"})) == [("remove", "ConfigMap")]
    assert mini.kube.find(path) is None
    failed = change({}, {"state": "absent"}, fails=True)
    assert failed["reason"] == "InUse"


def test_the_examples_of_the_guide(
    mini: MiniSlurm, change: Run, run_playbook: Callable[..., PlaybookResult], tmp_path: Path
) -> None:
    facts = {"slurm_namespace": mini.namespace, "slurm_cluster_facts": mini.facts, "slurm_conf": ANYWHERE}
    done = run_playbook(playbook_of("configuration.md", mini, tmp_path), extra_vars=facts)
    assert [task.changed for task in done.tasks] == [True, False]
    assert setting(mini, "MinJobAge") == "900 sec"
    change(files(mini))


def test_an_older_slurm(old: MiniSlurm, run_module: Run) -> None:
    change = runner(old, run_module)
    for number in running(old):
        assert number
        check_a_change(old, change)
        change(files(old))
        check_the_way_back(old, change)
        check_a_restart(old, change)
