# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left of a cluster when a change of its configuration fails at any step. That it works is a live test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import config_change
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import slurm_config as under_test
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import (
    slurm_config_judge,
    slurm_config_live,
    slurm_config_take,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.lint import Verdict
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import stages

OLD = {"slurm.conf": "MinJobAge=1\nPartitionName=a Nodes=ALL\n", "prolog-x": "#!/bin/sh\n"}
NEW = {"slurm.conf": "MinJobAge=2\nPartitionName=a Nodes=ALL\n", "epilog-y": "#!/bin/sh\n"}
RESTART = {**OLD, "slurm.conf": "AuthInfo=cred_expire=9\nPartitionName=a Nodes=ALL\n"}


class Cluster:
    """The ConfigMap and the controller's Pod in one: files, which slurmctld reads at a reconfigure or a start."""

    pod, target, config_map = "slurm-controller-0", "ConfigMap ns/slurm-config", "slurm-config"

    def __init__(self, files: Mapping[str, str] | None = None) -> None:
        self.files = None if files is None else dict(files)
        self.mounted = dict(files or {})
        self.read: Mapping[str, str] = dict(files or {})
        self.pending = ""
        self.release = "26.05"
        self.alive = True
        self.jobs: list[config_change.Queued] = []
        self.fails: Callable[[str, Mapping[str, str]], bool] = lambda step, files: False
        self.log: list[str] = []
        self.started = 1
        self.away = False
        self.there = files is not None
        self.whole = True
        self.version = "26.05.5"
        self.plugins = {"n1": {"task_cgroup.so"}, "n2": {"task_cgroup.so"}}
        self.restd = Restd(self)

    # The ConfigMap
    def read_config_map(self) -> dict[str, Any] | None:
        notes = {slurm_config_live.RESTART: self.pending, slurm_config_live.RELEASE: self.release}
        notes = {key: value for key, value in notes.items() if value}
        return None if self.files is None else {"data": self.files, "metadata": {"annotations": notes}}

    def require_ours(self, live: Any) -> None:
        pass

    def apply(self, files: Mapping[str, str], notes: Any = None, *, dry_run: bool = False) -> None:
        if not dry_run:
            self.files, self.pending = dict(files), (notes or {}).get(slurm_config_live.RESTART, "")
            self.release = (notes or {}).get(slurm_config_live.RELEASE, "")
            self.log.append("write")

    def remove(self) -> None:
        self.files = None

    def note_restarts(self, daemons: Sequence[str]) -> None:
        self.pending = ",".join(daemons)

    def shown(self, files: Mapping[str, str]) -> dict[str, str]:
        return dict(files)

    wanted, lacks = slurm_config_live.ConfigPod.wanted, slurm_config_live.ConfigPod.lacks

    def standby_lacks(self, wanted: Mapping[str, str]) -> str:
        return ""

    # The Pod
    def exists(self) -> bool:
        return self.there

    def read_pod(self) -> Any:
        source = {"name": self.config_map} | ({} if self.whole else {"items": [{}]})
        return {
            "spec": {"volumes": [{"projected": {"sources": [{"configMap": source}]}}]},
            "status": {"containerStatuses": [{"name": "slurmctld", "state": {"running": {}}}]},
        } if self.there else None  # fmt: skip

    def bring(self, files: Mapping[str, str]) -> None:
        self.mounted = dict(self.files or {})
        if not self.alive:
            self.begin()  # its supervisor tries it again and again

    def look(self) -> slurm_config_live.Seen:
        hashes = {name: config_change.sha256(text) for name, text in self.mounted.items()}
        taken = self.read == self.mounted
        return slurm_config_live.Seen(
            hashes, taken, self.started, self.alive and not self.away, self.version, frozenset({"a"})
        )

    def use(self) -> tuple[frozenset[str], list[config_change.Queued]]:
        return frozenset({"n1", "n2"}), self.jobs

    def reconfigure(self) -> None:
        self.log.append("reconfigure")
        if self.fails("reconfigure", self.mounted):
            raise OperationError("slurmctld does not take the new files: error.", reason="Refused")
        self.read = dict(self.mounted)

    def end_slurmctld(self) -> None:
        self.log.append("end")
        self.begin()

    def begin(self) -> None:
        self.started += 1
        self.read = dict(self.mounted)
        self.alive = not self.fails("begin", self.mounted)

    def words(self) -> Sequence[str]:
        return ["fatal: no"]

    def cancel(self, jobs: list[int]) -> None:
        self.log.append(f"cancel {jobs}")

    # The nodes
    def lacking(self, paths: Sequence[str]) -> dict[str, list[str]]:
        return {"n1": ["/none"]} if "/none" in paths else {}

    def plugin_directory(self) -> str:
        return "/plugins"

    def plugin_files(self, directory: str) -> dict[str, set[str]]:
        return self.plugins if directory == "/plugins" else {}

    def require_taken(self, wanted: Mapping[str, str], begun: float) -> None:
        if self.fails("nodes", self.mounted):
            raise OperationError("slurmd does not take the new files (n1: error).", reason="Refused")


class Restd:
    """slurmrestd, which reads slurm.conf when its Pods are made."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.read = (cluster.files or {}).get("slurm.conf", "")

    def exists(self) -> bool:
        return True

    def has_begun_with(self, text: str) -> bool:
        return self.read == text

    def begin(self) -> None:
        self.read = (self.cluster.files or {})["slurm.conf"]

    def roll(self, files: Any) -> Callable[[], str]:
        self.cluster.log.append("roll")
        if self.cluster.fails("roll", files):
            return lambda: "nothing ever"
        self.begin()
        return lambda: ""


class Run:
    """What an operation gets."""

    def __init__(self, files: Mapping[str, str], **more: Any) -> None:
        self.params = {
            "namespace": "ns", "name": "slurm", "state": "present", "files": files, "restart": "auto",
            "create_namespace": False, "slurm_version": "26.05", "change_release": False, "on_running_jobs": "refuse",
            "wait_timeout": 0.1, "wait_sleep": 0.01, **more,
        }  # fmt: skip
        self.kubernetes = None
        self.actions: list[Any] = []
        self.progress = None
        self.warned: list[str] = []

    def warn(self, text: str) -> None:
        self.warned.append(text)


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> list[Verdict]:
    """What the second slurmctld says, one after the other; it accepts what nothing is said of."""
    said: list[Verdict] = []
    monkeypatch.setattr(slurm_config_judge, "lint", lambda *args, **more: said.pop(0) if said else Verdict(True, ()))
    return said


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, verdicts: list[Verdict]) -> Cluster:
    made = Cluster(OLD)
    monkeypatch.setattr(under_test, "ConfigPod", lambda *args: made)
    monkeypatch.setattr(under_test, "Restd", lambda *args: made.restd)
    monkeypatch.setattr(slurm_config_take, "Nodes", lambda run: made)
    monkeypatch.setattr(slurm_config_judge, "Nodes", lambda run: made)
    return made


def change(files: Mapping[str, str], **more: Any) -> tuple[Run, Mapping[str, Any]]:
    run = Run(files, **more)
    work = under_test.ConfigurationChange(run)  # type: ignore[arg-type]
    run.actions += work.plan()
    for batch in stages(run.actions):
        work.act(batch)
    work.wait()
    return run, work.result()


def kinds(run: Run) -> list[tuple[str, str]]:
    return [(action.kind, action.target.split()[0]) for action in run.actions]


def test_there_and_on(cluster: Cluster) -> None:
    run, result = change(NEW)
    assert kinds(run) == [
        ("write", "epilog-y"), ("remove", "prolog-x"), ("write", "slurm.conf"), ("reconfigure", "slurmctld"),
    ]  # fmt: skip
    assert cluster.log == ["write", "reconfigure"]
    assert cluster.read == cluster.files == NEW
    assert result["restarts"] == []
    assert [change["what"] for change in result["changes"]] == ["epilog-y", "prolog-x", "MinJobAge"]
    assert change(NEW)[0].actions == []


def test_what_needs_a_restart_gets_one_in_order(cluster: Cluster) -> None:
    run, result = change(RESTART)
    assert kinds(run)[-3:] == [("reconfigure", "slurmctld"), ("restart", "slurmctld"), ("restart", "slurmrestd")]
    assert cluster.log == ["write", "reconfigure", "end", "roll"]
    assert [(item["daemon"], item["done"]) for item in result["restarts"]] == [
        ("slurmctld", True), ("slurmrestd", True), ("slurmd", False), ("sackd", False),
    ]  # fmt: skip
    assert cluster.pending == ""
    assert len(run.warned) == 2
    assert change(RESTART)[0].actions == []


def test_a_restart_may_be_left_to_later(cluster: Cluster) -> None:
    run, result = change(RESTART, restart="never")
    assert cluster.log == ["write", "reconfigure"]
    assert [item["done"] for item in result["restarts"]] == [False] * 4
    assert cluster.pending == "slurmctld,slurmrestd"
    run, result = change(RESTART, restart="never")
    assert run.actions == []
    assert [item["daemon"] for item in result["restarts"]] == ["slurmctld", "slurmrestd"]
    run, result = change(RESTART)
    assert kinds(run) == [("restart", "slurmctld"), ("restart", "slurmrestd")]
    assert cluster.pending == ""


@pytest.mark.parametrize(
    ("files", "step", "log"),
    [
        (NEW, "reconfigure", ["write", "reconfigure", "write", "reconfigure"]),
        (NEW, "nodes", ["write", "reconfigure", "write", "reconfigure"]),
        (RESTART, "begin", ["write", "reconfigure", "end", "write"]),
    ],
)
def test_a_failure_leaves_all_as_it_was(cluster: Cluster, files: Mapping[str, str], step: str, log: list[str]) -> None:
    cluster.fails = lambda at, mounted: at == step and mounted == files
    with pytest.raises(OperationError, match=r"slurmctld says: fatal: no\. The old files are back\."):
        change(files)
    assert cluster.log == log
    assert cluster.read == cluster.mounted == cluster.files == OLD
    assert (cluster.pending, cluster.alive) == ("", True)
    assert change(OLD)[0].actions == []


def test_what_cannot_be_put_back_is_told(cluster: Cluster) -> None:
    cluster.fails = lambda at, mounted: at == "reconfigure"
    with pytest.raises(OperationError, match="Putting the old files back failed too") as raised:
        change(NEW)
    assert raised.value.reason == "NotPutBack"
    assert cluster.files == OLD


def test_a_slurmrestd_that_does_not_come_up_is_left_to_the_next_run(cluster: Cluster) -> None:
    cluster.fails = lambda at, files: at == "roll"
    with pytest.raises(OperationError, match="The restart of slurmrestd did not end"):
        change(RESTART)
    assert cluster.read == RESTART
    assert cluster.pending == "slurmrestd"
    cluster.fails = lambda at, files: False
    assert kinds(change(RESTART)[0]) == [("restart", "slurmrestd")]


def test_a_slurmrestd_that_others_made_anew_is_not_restarted_again(cluster: Cluster) -> None:
    """The controller's Pod could not take the files; role slurmrestd then had its own reason for new Pods."""
    cluster.whole = False
    change(RESTART)
    assert (cluster.log, cluster.pending) == (["write"], "slurmrestd")
    cluster.whole = True
    cluster.mounted = cluster.read = dict(RESTART)
    assert kinds(change(RESTART)[0]) == [("restart", "slurmrestd")]
    cluster.whole, cluster.pending = False, "slurmrestd"
    cluster.restd.begin()
    run, result = change(RESTART)
    assert (run.actions, result["restarts"]) == ([], [])
    # What slurmrestd has to read anew counts, whatever it had read before.
    cluster.whole = True
    assert kinds(change(OLD)[0])[-1] == ("restart", "slurmrestd")


def test_an_interrupted_run_is_finished(cluster: Cluster) -> None:
    cluster.files = dict(NEW)  # written, and no more
    run, _result = change(NEW)
    assert kinds(run) == [("reconfigure", "slurmctld")]
    assert "its Pod has other files: epilog-y, slurm.conf" in run.actions[0].why
    assert cluster.read == NEW
    cluster.files = cluster.mounted = dict(OLD)  # in the Pod, and not read
    assert [action.why for action in change(OLD)[0].actions] == ["it has not read the files since they came"]
    cluster.files = dict(NEW)
    cluster.fails = lambda at, mounted: True
    with pytest.raises(OperationError, match="before are not known"):
        change(NEW)
    assert cluster.files == NEW


@pytest.mark.parametrize("on_running_jobs", ["refuse", "cancel"])
def test_jobs_in_the_way(cluster: Cluster, on_running_jobs: str) -> None:
    cluster.jobs = config_change.parse_queue("7|a|RUNNING|ann|n1||N/A\n")
    files = {"slurm.conf": "PartitionName=b Nodes=ALL\n"}
    if on_running_jobs == "refuse":
        with pytest.raises(OperationError, match=r"job 7 of ann \(RUNNING\) in partition a") as raised:
            change(files)
        assert raised.value.reason == "JobsRunning"
        assert cluster.log == []
        return
    with pytest.raises(OperationError, match="slurmctld has no partition b"):
        change(files, on_running_jobs="cancel")
    assert cluster.log == ["cancel [7]", "write", "reconfigure", "write", "reconfigure"]


@pytest.mark.parametrize(
    ("files", "reason", "words"),
    [
        ({"slurm.conf": "ClusterName=b\nMinJobAge=1\nPartitionName=a Nodes=ALL\n"}, "NotPossible", "another name"),
        ({**OLD, "slurm.conf": "MaxNodeCount=1\nPartitionName=a Nodes=ALL\n"}, "Refused", "there are 2 nodes"),
        ({**OLD, "slurm.conf": "nonsense\n"}, "InvalidSlurmConf", "slurm.conf: Line 1"),
        ({"slurm.conf": OLD["slurm.conf"] + "Prolog=a,/b*\nPrologFlags=X\n"}, "Refused", "a is no file of the config"),
        ({"slurm.conf": OLD["slurm.conf"] + "Epilog=/none\n"}, "Refused", "/none is not there in Pod n1"),
        (
            {"slurm.conf": OLD["slurm.conf"] + "TaskPlugin=task/cgroup,task/x\n"},
            "Refused",
            r"task/x is not there in Pod n1; task/x is not there in Pod n2\.",
        ),
        ({"gres.conf": ""}, "InvalidVariables", "no slurm.conf"),
        ({**OLD, "x": 3}, "InvalidVariables", "not text: x"),
    ],
)
def test_refusals_change_nothing(cluster: Cluster, files: Mapping[str, Any], reason: str, words: str) -> None:
    with pytest.raises(OperationError, match=words) as raised:
        change(files)
    assert raised.value.reason == reason
    assert "Nothing was changed" in raised.value.hint
    assert cluster.log == []


def test_a_plugin_of_some_nodes_is_warned_of(cluster: Cluster) -> None:
    cluster.plugins["n2"] = {"mpi_pmix.so"}
    run, _result = change({"slurm.conf": OLD["slurm.conf"] + "MpiDefault=pmix\n"})
    assert "reconfigure" in cluster.log
    assert "Some nodes do not have a plugin: mpi/pmix is not there in Pod n1." in run.warned


def test_plugins_that_were_wanted_before_or_cannot_be_seen_are_no_reason(cluster: Cluster) -> None:
    cluster.plugins = {}
    change({"slurm.conf": OLD["slurm.conf"] + "MpiDefault=pmix\n"})
    cluster.plugins = {"n1": {"task_cgroup.so"}}
    change({"slurm.conf": OLD["slurm.conf"] + "MpiDefault=pmix\nMaxJobCount=9\n"})
    assert cluster.log.count("reconfigure") == 2


def test_jobs_in_a_partition_that_is_in_no_file(cluster: Cluster) -> None:
    """Of an earlier run that ended between the file and slurmctld, or made with scontrol."""
    cluster.jobs = config_change.parse_queue("7|a|RUNNING|ann|n1||N/A\n")
    cluster.files = {"slurm.conf": "MinJobAge=1\n"}
    with pytest.raises(OperationError, match="job 7 of ann"):
        change(cluster.files)
    assert cluster.log == []


def test_slurmctlds_own_refusal(cluster: Cluster, verdicts: list[Verdict]) -> None:
    verdicts.append(Verdict(False, ("fatal: Invalid node names in partition a",)))
    with pytest.raises(OperationError, match="Invalid node names in partition a") as raised:
        change(NEW)
    assert raised.value.reason == "Refused"
    assert cluster.log == []


def test_the_first_time_there_is_nobody_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Cluster()
    monkeypatch.setattr(under_test, "ConfigPod", lambda *args: made)
    run, _result = change(NEW)
    assert kinds(run) == [("write", "epilog-y"), ("write", "slurm.conf")]
    assert made.files == NEW
    assert run.warned == []
    assert change({}, state="absent")[0].actions[0].kind == "remove"
    assert made.files is None
    assert change({}, state="absent")[0].actions == []


def test_the_configuration_of_a_cluster_that_is_there_stays(cluster: Cluster) -> None:
    with pytest.raises(OperationError, match="cannot go while there is a slurmctld"):
        change({}, state="absent")


@pytest.mark.parametrize(
    ("attribute", "value", "why"),
    [
        ("whole", False, "does not show all of ConfigMap"),
        ("away", True, "does not answer"),
    ],
)
def test_files_wait_for_a_slurmctld_that_can_read_them(
    cluster: Cluster, verdicts: list[Verdict], attribute: str, value: Any, why: str
) -> None:
    verdicts.append(Verdict(False, ("fatal: of an older Slurm",)))
    setattr(cluster, attribute, value)
    run, _result = change(NEW)
    assert cluster.log == ["write"]
    assert why in run.warned[0]
    assert change(NEW)[0].actions == []


@pytest.mark.parametrize(
    ("noted", "version", "options", "why"),
    [
        ("24.11", "24.11.5", {}, "files are for Slurm 24.11, and these are for 26.05"),
        ("24.11", "26.05.5", {}, "files are for Slurm 24.11"),  # in the middle of an upgrade
        ("", "24.11.5", {}, "files are for Slurm 24.11"),
        ("26.05", "26.05.5", {"slurm_version": "25.11"}, "files are for Slurm 26.05, and these are for 25.11"),
        ("24.11", "24.11.5", {"change_release": True}, "these files are for Slurm 26.05, and slurmctld is 24.11.5"),
    ],
)
def test_files_of_another_release_are_refused(
    cluster: Cluster, noted: str, version: str, options: dict[str, Any], why: str
) -> None:
    cluster.release, cluster.version = noted, version
    with pytest.raises(OperationError, match=f"(?i){why}") as raised:
        change(NEW, **options)
    assert raised.value.reason == "OtherRelease"
    assert cluster.log == []


def test_the_release_of_the_files_changes_when_told(cluster: Cluster, verdicts: list[Verdict]) -> None:
    cluster.release = "24.11"
    run, _result = change(OLD, change_release=True)
    assert kinds(run) == [("write", "ConfigMap")]
    assert cluster.release == "26.05"
    assert change(OLD, change_release=True)[0].actions == []
    cluster.release = "24.11"
    cluster.fails = lambda step, files: step == "reconfigure" and files == NEW
    with pytest.raises(OperationError, match="The old files are back"):
        change(NEW, change_release=True)
    assert (cluster.files, cluster.release) == (OLD, "24.11")


def test_older_files_are_read_by_a_newer_slurmctld(cluster: Cluster) -> None:
    cluster.release = "24.11"
    change(NEW, slurm_version="24.11")
    assert cluster.read == NEW


def test_no_release_is_kept_where_slurmctld_was_taken_away(cluster: Cluster) -> None:
    """As restore leaves it: what comes then is of the archive's release."""
    cluster.release, cluster.there = "26.05", False
    change(OLD, slurm_version="24.11")
    assert cluster.release == "24.11"


def test_of_a_slurmctld_that_is_away_nobody_knows_the_jobs(cluster: Cluster) -> None:
    cluster.away = True
    files = {"slurm.conf": "PartitionName=b Nodes=ALL\n"}
    with pytest.raises(OperationError, match="whether jobs need them cannot be told") as raised:
        change(files)
    assert raised.value.reason == "Unreadable"
    change(files, on_running_jobs="cancel")
    assert cluster.files == files
