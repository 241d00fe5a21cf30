# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nodeset_rollout on real Slurms: jobs go on, windows hold, bad templates stop, killed runs go on, drains stay."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import parse

from .support.guides import inventory_of, playbook_of
from .support.kube import Json, Kube
from .support.minislurm import NAME, SMALL, MiniSlurm, is_ready, versions_there
from .support.playbook import NO_INVENTORY, PlaybookResult

ANN = "bad disk, Ann"
OURS = "k8s: rollout: cpu"
NAMES = ["cpu-0", "cpu-1", "cpu-2"]
_GENERATIONS = itertools.count(1)


def nodesets(replicas: int = 3) -> list[Json]:
    everywhere = {"kubernetes.io/os": "linux"}
    return [
        {"name": "cpu", "replicas": replicas, **SMALL},
        {"name": "metal", "kind": "node", "node_name_prefix": "m-", "node_selector": everywhere, **SMALL},
    ]


def deployed(kube: Kube, kubeconfig: str, namespace: str, version: str, replicas: int) -> Iterator[MiniSlurm]:
    assert version in versions_there(kube)
    made = MiniSlurm(kube, kubeconfig, namespace, version, nodesets(replicas))
    made.deploy()
    machines = [f"m-{item['metadata']['name']}" for item in kube.items("/api/v1/nodes")]
    made.wait_for_nodes(*NAMES[:replicas], *machines)
    # A node may be idle before its Pod's readiness was looked at.
    kube.wait(lambda: pods(made), lambda found: all(map(is_ready, found.values())), timeout=60, what="ready Pods")
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")


@pytest.fixture(scope="module")
def mini(kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    yield from deployed(kube, kubeconfig, _namespaces("rollout"), "26.05", 3)


@pytest.fixture
def older(kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    yield from deployed(kube, kubeconfig, _namespaces("rollout-2411"), "24.11", 2)


Rollout = Callable[..., Json]


@pytest.fixture
def rollout(mini: MiniSlurm, run_module: Callable[..., Json]) -> Rollout:
    return rolling(mini, run_module)


def rolling(mini: MiniSlurm, run_module: Callable[..., Json]) -> Rollout:
    def run(
        nodeset: str = "cpu", *, check: bool = False, fails: bool = False, progress: Path | None = None, **args: Any
    ) -> Json:
        common = {"namespace": mini.namespace, "name": NAME, "nodeset": nodeset, "wait_sleep": 1}
        times = {"drain_timeout": 60, "ready_timeout": 60}
        env = {"SLURM_OPS_PROGRESS": str(progress)} if progress else None
        return run_module("nodeset_rollout", {**common, **times, **args}, check=check, fails=fails, env=env)

    return run


def new_template(mini: MiniSlurm, **changes: Any) -> None:
    """Another environment in every Pod, and what else is asked for."""
    env = [{"name": "GENERATION", "value": str(next(_GENERATIONS))}]
    size = len([item for item in nodes(mini) if item.startswith("cpu-")])
    mini.apply_nodesets([{**item, "env": env, **changes} for item in nodesets(size)])


def nodes(mini: MiniSlurm) -> dict[str, Json]:
    return {item["name"]: dict(item) for item in mini.client().nodes().items}


def pods(mini: MiniSlurm, nodeset: str = "cpu") -> dict[str, Json]:
    found = mini.kube.items(
        f"/api/v1/namespaces/{mini.namespace}/pods", labelSelector=f"slurm-ops.kubernetes/nodeset={nodeset}"
    )
    return {item["metadata"]["name"]: item for item in found}


def uids(mini: MiniSlurm, nodeset: str = "cpu") -> dict[str, str]:
    return {name: item["metadata"]["uid"] for name, item in pods(mini, nodeset).items()}


def kinds(result: Json, *, done: bool = True) -> list[tuple[str, str]]:
    return [(action["kind"], action["target"]) for action in result["actions"] if action["done"] == done]


def node_by_node(*names: str) -> list[tuple[str, str]]:
    return [pair for name in names for pair in (("drain", name), ("replace", f"Pod {name}"), ("undrain", name))]


def nothing_is_left(rollout: Rollout, nodeset: str = "cpu", **args: Any) -> Json:
    again = rollout(nodeset, **args)
    assert (again["changed"], again["api_calls"]["writes"]) == (False, 0)
    assert (again["actions"], again["nodeset"]["outdated"]) == ([], 0)
    return again


def job_on(mini: MiniSlurm, node: str, command: str) -> int:
    words = f"cd /tmp && sbatch --parsable -n1 --mem=10 --time=10 -p cpu -w {node} --wrap '{command}'"
    number = int(mini.run(words).stdout.strip())
    mini.kube.wait(lambda: job_said(mini, number), lambda text: "JobState=RUNNING" in text, timeout=40)
    return number


def job_said(mini: MiniSlurm, number: int) -> str:
    return mini.run(f"scontrol show job {number}", check=False).stdout


def in_service(record: Json | None) -> bool:
    """A record that is made anew is gone for a moment."""
    return record is not None and not parse(record["state"]).drain


class Watch:
    """Looks all the time which nodes of a NodeSet are drained or have no Pod that is ready."""

    def __init__(self, mini: MiniSlurm, names: list[str]) -> None:
        self._mini = mini
        self._names = names
        self._before = uids(mini)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.most_away = 0
        self.replaced: list[str] = []
        self.looks = 0

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_nothing: Any) -> None:
        self._stop.set()
        self._thread.join(timeout=30)

    def _look(self) -> None:
        while not self._stop.wait(0.1):
            there, known = pods(self._mini), nodes(self._mini)
            away = [
                name
                for name in self._names
                if name not in there or not is_ready(there[name]) or not in_service(known.get(name))
            ]
            self.most_away = max(self.most_away, len(away))
            for name, item in there.items():
                if item["metadata"]["uid"] != self._before.get(name) and name not in self.replaced:
                    self.replaced.append(name)
            self.looks += 1


def test_idle_nodes_go_first_and_a_job_runs_to_its_end(mini: MiniSlurm, rollout: Rollout, tmp_path: Path) -> None:
    progress = tmp_path / "progress"
    progress.touch()
    nothing_is_left(rollout)
    job = job_on(mini, "cpu-0", "until [ -e /tmp/over ]; do sleep 1; done")
    new_template(mini)
    before = uids(mini)
    predicted = rollout(check=True)
    assert uids(mini) == before
    assert (predicted["changed"], predicted["api_calls"]["writes"]) == (True, 0)
    assert predicted["batches"] == [["cpu-1"], ["cpu-2"], ["cpu-0"]]
    with Watch(mini, NAMES) as watch, ThreadPoolExecutor(1) as pool:
        run: Future[Json] = pool.submit(rollout, progress=progress)
        mini.kube.wait(lambda: nodes(mini)["cpu-0"]["reason"], lambda why: why == OURS, timeout=90, what="it drains")
        assert "JobState=RUNNING" in job_said(mini, job)
        # What it waits for is told every 10 s.
        mini.kube.wait(progress.read_text, lambda text: f"job {job} of slurm on cpu-0" in text, timeout=30)
        mini.run("touch /tmp/over", on="cpu-0")
        done = run.result(timeout=90)
    assert kinds(done) == kinds(predicted, done=False) == node_by_node("cpu-1", "cpu-2", "cpu-0")
    assert watch.replaced == ["cpu-1", "cpu-2", "cpu-0"]
    assert (watch.most_away, watch.looks > 10) == (1, True)
    said = job_said(mini, job)
    assert "JobState=COMPLETED" in said
    assert "Restarts=0" in said
    told = done["nodeset"]
    assert (told["updated"], told["outdated"], told["in_service"]) == (3, 0, 3)
    nothing_is_left(rollout)


def test_jobs_that_do_not_end(mini: MiniSlurm, rollout: Rollout) -> None:
    job = job_on(mini, "cpu-1", "sleep 500")
    new_template(mini)
    before = uids(mini)
    gave_up = rollout(max_unavailable="2", drain_timeout=3, fails=True)
    assert gave_up["reason"] == "Timeout"
    assert f"job {job} of slurm on cpu-1" in gave_up["msg"]
    assert gave_up["remaining"] == ["cpu-1"]
    assert "JobState=RUNNING" in job_said(mini, job)
    after = uids(mini)
    assert {name for name in NAMES if after[name] != before[name]} == {"cpu-0", "cpu-2"}
    # The same run again goes on, and may end it now.
    done = rollout(drain_timeout=0, on_running_jobs="requeue")
    assert kinds(done) == [("requeue", f"job {job}"), ("replace", "Pod cpu-1"), ("undrain", "cpu-1")]
    mini.client().cancel_jobs([job])
    nothing_is_left(rollout)


def test_a_bad_template_stops_and_a_good_one_heals(mini: MiniSlurm, rollout: Rollout) -> None:
    new_template(mini, image="localhost/slurm-ops/none:1", image_pull_policy="Never")
    before = uids(mini)
    failed = rollout(fails=True)
    assert failed["reason"] == "RolloutFailed"
    assert "image localhost/slurm-ops/none:1 is not on the Node" in failed["msg"]
    assert failed["remaining"] == NAMES
    assert {name for name in NAMES if uids(mini)[name] != before[name]} == {"cpu-0"}
    known = nodes(mini)
    assert known["cpu-0"]["reason"] == OURS
    assert not any(parse(known[name]["state"]).drain for name in ("cpu-1", "cpu-2"))
    # What failed counts also in the next run.
    assert rollout(fails=True)["reason"] == "RolloutFailed"
    assert {name for name in NAMES if uids(mini)[name] != before[name]} == {"cpu-0"}
    new_template(mini)
    with Watch(mini, NAMES) as watch:
        healed = rollout(max_unavailable="67%")
    assert kinds(healed)[:2] == [("replace", "Pod cpu-0"), ("undrain", "cpu-0")]
    assert (watch.most_away, watch.looks > 10) == (2, True)
    nothing_is_left(rollout)


def test_a_killed_run_goes_on(mini: MiniSlurm, rollout: Rollout) -> None:
    new_template(mini)
    before = uids(mini)
    path = f"/apis/coordination.k8s.io/v1/namespaces/{mini.namespace}/leases/{NAME}-rollout-cpu"
    with ThreadPoolExecutor(1) as pool:
        run: Future[Json] = pool.submit(rollout)
        mini.kube.wait(lambda: uids(mini), lambda now: now != before, timeout=40, what="the first Pod is replaced")
        holder = mini.kube.get(path)["spec"]["holderIdentity"]
        os.kill(int(holder.split("_")[1]), signal.SIGKILL)
        with pytest.raises(AssertionError, match="did not answer"):
            run.result(timeout=60)
    # It would give way by itself after half a minute.
    mini.kube.patch(path, {"spec": {"holderIdentity": ""}})
    begun = [name for name, item in nodes(mini).items() if item["reason"] == OURS]
    assert len(begun) == 1
    done = rollout(max_unavailable="3")
    assert kinds(done)[0] == ("undrain", begun[0])
    assert kinds(done)[1:] == node_by_node(*(name for name in NAMES if name not in begun))
    nothing_is_left(rollout)


def in_a_window(mini: MiniSlurm, rollout: Rollout, names: list[str]) -> None:
    """Reserved before it: a job that would not have ended in time does not start. In it all nodes go at once."""
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=20)
    window = {"start": start.isoformat(), "duration": 10}
    before = uids(mini)
    predicted = rollout(window=window, check=True)
    assert (kinds(predicted, done=False), predicted["api_calls"]["writes"]) == ([("reserve", "k8s-rollout-cpu")], 0)
    reserved = rollout(window=window)
    assert kinds(reserved) == [("reserve", "k8s-rollout-cpu")]
    assert (reserved["paused"], reserved["window"]["phase"], uids(mini) == before) == (True, "ahead", True)
    again = rollout(window=window)
    assert (again["changed"], again["api_calls"]["writes"]) == (False, 0)
    # Too long to end before the window.
    words = "cd /tmp && sbatch --parsable -n1 --mem=10 --time=10 -p cpu --wrap 'sleep 500'"
    job = int(mini.run(words).stdout.strip())
    time.sleep(max(0.0, (start - datetime.now(UTC)).total_seconds()))
    assert "JobState=PENDING" in job_said(mini, job)
    predicted = rollout(window=window, check=True)
    with Watch(mini, names) as watch:
        done = rollout(window=window)
    assert kinds(done) == kinds(predicted, done=False)
    assert kinds(done)[0] == ("unreserve", "k8s-rollout-cpu")
    assert (watch.most_away, done["batches"], done["window"]["phase"]) == (len(names), [names], "open")
    assert mini.run("scontrol show reservation").stdout.strip() == "No reservations in the system"
    mini.kube.wait(lambda: job_said(mini, job), lambda text: "JobState=RUNNING" in text, timeout=60, what="it starts")
    mini.client().cancel_jobs([job])
    nothing_is_left(rollout, window=window)


def test_a_window(mini: MiniSlurm, rollout: Rollout) -> None:
    new_template(mini, features=["windowed"])
    in_a_window(mini, rollout, NAMES)
    new_template(mini)
    late = {"start": "2026-01-01T00:00:00Z", "duration": 60}
    failed = rollout(window=late, fails=True)
    assert (failed["reason"], failed["remaining"], failed["api_calls"]["writes"]) == ("WindowOver", NAMES, 0)


def test_other_resources_and_a_persons_drain(mini: MiniSlurm, rollout: Rollout) -> None:
    """Records are made anew, but for the one that holds a drain."""
    mini.client().update_nodes(["cpu-2"], state="DRAIN", reason=ANN)
    new_template(mini, cpus=3, features=["fast"])
    before = uids(mini)
    refused = rollout(fails=True)
    assert (refused["reason"], refused["api_calls"]["writes"]) == ("NoneToSpare", 0)
    assert f"cpu-2  drained: {ANN}" in refused["msg"]
    predicted = rollout(max_unavailable="2", check=True)
    done = rollout(max_unavailable="2")
    expected = [("replace", "Pod cpu-2")]
    for name in ("cpu-0", "cpu-1"):
        expected += [("drain", name), ("forget", name), ("replace", f"Pod {name}")]
    assert kinds(done) == kinds(predicted, done=False) == expected
    assert all(uids(mini)[name] != before[name] for name in NAMES)
    known = nodes(mini)
    assert [known[name]["cpus"] for name in NAMES] == [3, 3, 2]
    assert "fast" in known["cpu-0"]["features"]
    assert known["cpu-2"]["reason"] == ANN
    assert parse(known["cpu-2"]["state"]).drained
    nothing_is_left(rollout, max_unavailable="2")
    mini.run("scontrol delete nodename=cpu-2")
    mini.kube.delete(f"/api/v1/namespaces/{mini.namespace}/pods/cpu-2")
    mini.kube.wait(lambda: nodes(mini).get("cpu-2", {}).get("cpus"), lambda cpus: cpus == 3, timeout=60)


def test_kind_node(mini: MiniSlurm, rollout: Rollout) -> None:
    """A canary first, then the others with new records; the names of the nodes stay."""
    names = sorted(name for name in nodes(mini) if name.startswith("m-"))
    new_template(mini)
    before = set(uids(mini, "metal").values())
    first = rollout("metal", canary="1")
    assert (first["paused"], [kind for kind, _target in kinds(first)]) == (True, ["drain", "replace", "undrain"])
    assert len(before & set(uids(mini, "metal").values())) == len(names) - 1
    assert rollout("metal", canary="1")["api_calls"]["writes"] == 0
    new_template(mini, cpus=4)
    predicted = rollout("metal", max_unavailable="50%", check=True)
    done = rollout("metal", max_unavailable="50%")
    assert kinds(done) == kinds(predicted, done=False)
    assert [kind for kind, _target in kinds(done)] == ["drain", "forget", "replace"] * len(names)
    known = nodes(mini)
    assert [known[name]["cpus"] for name in names] == [4] * len(names)
    assert not before & set(uids(mini, "metal").values())
    nothing_is_left(rollout, "metal")


def test_the_examples_of_the_guide_and_the_playbook(
    mini: MiniSlurm,
    run_module: Callable[..., Json],
    run_playbook: Callable[..., PlaybookResult],
    rollout: Rollout,
    tmp_path: Path,
) -> None:
    new_template(mini)
    found = run_module("nodeset_rollout_info", {"namespace": mini.namespace, "name": NAME})
    assert {item["name"]: item["outdated"] for item in found["nodesets"]}["cpu"] == 3
    assert (found["changed"], found["api_calls"]["writes"]) == (False, 0)
    done = run_playbook(playbook_of("rollout.md", mini, tmp_path), inventory=NO_INVENTORY)
    assert [task.changed for task in done.tasks] == [False, True, False, False]
    new_template(mini)
    inventory = inventory_of(mini, tmp_path)
    wanted = {"rollout_nodeset": "cpu", "rollout_max_unavailable": "100%", "rollout_canary": "", "rollout_pause": ""}
    predicted = run_playbook("rollout", inventory=inventory, extra_vars=wanted, check=True)
    assert predicted.tasks[-1].result["msg"][2] == "would be taken in this order: cpu-[0-2]"
    done = run_playbook("rollout", inventory=inventory, extra_vars=wanted)
    assert done.tasks[-1].result["msg"][0] == "cpu: 3 of 3 nodes have the newest template"
    assert run_playbook("rollout", inventory=inventory, extra_vars=wanted).changed == []


SCRIPT = "#!/bin/sh\n: {}\n"
OF_THE_ROLE: Json = {"name": "cpu", "replicas": 1, **SMALL, "oneshots": {"10-tune": SCRIPT.format(1)}}


@pytest.fixture
def bare(kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    """A cluster whose NodeSets are the role's to make."""
    made = MiniSlurm(kube, kubeconfig, _namespaces("rollout-role"), "26.05", [OF_THE_ROLE])
    made.nodesets = []
    made.deploy()
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")


def test_the_role_says_what_is_old_or_replaces_it(
    bare: MiniSlurm, run_playbook: Callable[..., PlaybookResult], tmp_path: Path
) -> None:
    """Other CPUs, and another start script, which is in a file of the NodeSet and not in its Pods."""
    variables = {
        "slurm_image_contract": "slurm_ops",
        "slurm_image_registry": "localhost/slurm-ops",
        "slurm_image_tag": "26.05",
        "slurm_accounting": False,
        "slurm_home_enabled": False,
    }
    play = {"name": "Role", "hosts": "slurm_clusters", "gather_facts": False, "roles": ["slurm_ops.kubernetes.nodeset"]}

    def apply(**more: Any) -> PlaybookResult:
        changed = {"slurm_nodesets": [{**OF_THE_ROLE, **more.pop("nodeset", {})}]}
        return run_playbook([play], inventory=inventory_of(bare, tmp_path), extra_vars={**variables, **changed, **more})

    apply()
    other = {"cpus": 3, "oneshots": {"10-tune": SCRIPT.format(2)}}
    said = apply(nodeset=other)
    assert said.task("Say how many are old").result["msg"].startswith("1 Pods have an older template (cpu).")
    assert nodes(bare)["cpu-0"]["cpus"] == 2
    replaced = apply(nodeset=other, nodeset_rollout=True)
    assert [task.name for task in replaced.changed] == ["Replace them"]
    assert nodes(bare)["cpu-0"]["cpus"] == 3
    assert apply(nodeset=other, nodeset_rollout=True).changed == []
    # The script alone.
    said = apply(nodeset={**other, "oneshots": {"10-tune": SCRIPT.format(3)}})
    assert said.task("Say how many are old").status == "ok"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"nodeset": "nope"}, "NodeSet nope is not in namespace"),
        ({"max_unavailable": "0"}, "max_unavailable is '0'; it must be at least 1"),
        ({"window": {"start": "tonight", "duration": 60}}, "window.start is 'tonight', which is no time with a zone"),
        ({"canary": "some"}, "canary is 'some', which is neither a number of nodes nor a share"),
    ],
)
def test_bad_input(rollout: Rollout, args: Json, words: str) -> None:
    failed = rollout(**args, fails=True)
    assert words in failed["msg"]
    assert failed["api_calls"]["writes"] == 0


def test_an_older_slurm(older: MiniSlurm, run_module: Callable[..., Json]) -> None:
    """24.11: a job that is waited for, drains given back, and a record that is made anew."""
    rollout = rolling(older, run_module)
    job = job_on(older, "cpu-0", "sleep 15")
    new_template(older)
    assert kinds(rollout(canary="1")) == node_by_node("cpu-1")
    new_template(older, cpus=3)
    done = rollout(max_unavailable="2")
    assert [kind for kind, _target in kinds(done)] == ["drain", "forget", "replace"] * 2
    assert "JobState=COMPLETED" in job_said(older, job)
    assert [nodes(older)[name]["cpus"] for name in ("cpu-0", "cpu-1")] == [3, 3]
    nothing_is_left(rollout)
    new_template(older)
    in_a_window(older, rollout, ["cpu-0", "cpu-1"])
