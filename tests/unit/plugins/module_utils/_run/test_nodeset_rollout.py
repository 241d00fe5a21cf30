# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module nodeset_rollout on made-up sides whose time is that of pauses: what is done, when it stops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import (
    draining,
    nodeset_rollout,
    window,
    workers,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, carry_out
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.nodeset_rollout import NodeSetRollout
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.returning import Returning
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.rollout_report import told
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.window import RolloutWindow
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.workers import WorkersReader
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.token import GivenToken
from ansible_collections.slurm_ops.kubernetes.plugins.modules import nodeset_rollout_info

from .._slurm.fake_slurm import Slurm
from .rollout_world import START, Kubernetes, Lease

Object = dict[str, Any]
OURS = "k8s: rollout: cpu"
ANN = "bad disk, Ann"


@pytest.fixture
def slurm() -> Slurm:
    return Slurm()


@pytest.fixture
def kubernetes(slurm: Slurm) -> Kubernetes:
    return Kubernetes(slurm)


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch, slurm: Slurm, kubernetes: Kubernetes) -> None:
    def client_of(_kubernetes: Any, _params: Any, calls: Counter[str]) -> SlurmClient:
        return SlurmClient(slurm, GivenToken("t"), calls=calls, pause=kubernetes.pause)

    real = workers.wait_until

    def wait_until(*args: Any, **more: Any) -> None:
        real(*args, **more, clock=lambda: kubernetes.now, pause=kubernetes.pause)

    monkeypatch.setattr(draining, "client_of", client_of)
    monkeypatch.setattr(workers, "wait_until", wait_until)
    monkeypatch.setattr(nodeset_rollout, "wait_until", wait_until)
    monkeypatch.setattr(nodeset_rollout, "Lease", Lease)
    monkeypatch.setattr(nodeset_rollout, "Returning", lambda client: Returning(client, lambda: kubernetes.now))
    monkeypatch.setattr(
        nodeset_rollout, "RolloutWindow", lambda run, name: RolloutWindow(run, name, lambda: START + kubernetes.now)
    )


Prepared = Callable[..., tuple[Run, NodeSetRollout]]


@pytest.fixture
def prepared(kubernetes: Kubernetes) -> Prepared:
    def prepare(**options: Any) -> tuple[Run, NodeSetRollout]:
        params = {
            "namespace": "hpc", "name": "slurm", "nodeset": "cpu", "max_unavailable": "1", "on_running_jobs": "wait",
            "drain_timeout": 60, "ready_timeout": 60, "failure_threshold": "1", "canary": None,
            "continue_after_canary": False, "window": None, "pause": 0, "lock_timeout": 60, "wait_sleep": 1, **options,
        }  # fmt: skip
        run = Run(params, "slurm")
        run._kubernetes = kubernetes  # type: ignore[assignment]
        return run, NodeSetRollout(run)

    return prepare


def kinds(run: Run, *, done: bool = True) -> list[tuple[str, str]]:
    return [(action.kind, action.target) for action in run.actions if action.done == done]


def node_by_node(*names: str) -> list[tuple[str, str]]:
    return [pair for name in names for pair in (("drain", name), ("replace", f"Pod {name}"), ("undrain", name))]


def nothing_is_left(prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm, **options: Any) -> None:
    kubernetes.deleted.clear()
    slurm.written.clear()
    run, work = prepared(**options)
    carry_out(run, work)
    assert (run.actions, kubernetes.deleted, slurm.written) == ([], [], [])


def test_a_new_template_reaches_every_node_one_by_one(prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm) -> None:
    nothing_is_left(prepared, kubernetes, slurm)
    kubernetes.new_template()
    run, work = prepared()
    predicted = [(action.kind, action.target) for action in work.plan()]
    result = carry_out(run, work)
    assert kinds(run) == predicted == node_by_node("cpu-0", "cpu-1", "cpu-2")
    assert result["batches"] == [["cpu-0"], ["cpu-1"], ["cpu-2"]]
    assert max(kubernetes.ever_away) == 1
    told_of = result["nodeset"]
    assert (told_of["updated"], told_of["outdated"], told_of["in_service"], result["paused"]) == (3, 0, 3, False)
    nothing_is_left(prepared, kubernetes, slurm)


def test_a_busy_node_comes_last_and_its_job_is_not_touched(
    prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm
) -> None:
    kubernetes.new_template()
    slurm.job(7, "cpu-0", time_limit=10, end_time=START)
    run, work = prepared()
    with pytest.raises(OperationError) as caught:
        carry_out(run, work)
    assert (caught.value.reason, caught.value.remaining) == ("Timeout", ("cpu-0",))
    assert "job 7 of ann on cpu-0" in caught.value.msg
    assert kubernetes.deleted == ["cpu-1", "cpu-2"]
    assert slurm.nodes["cpu-0"]["reason"] == OURS
    # It ends, and the next run goes on.
    slurm.end(7, "COMPLETED")
    run, work = prepared()
    carry_out(run, work)
    assert kinds(run) == [("replace", "Pod cpu-0"), ("undrain", "cpu-0")]
    nothing_is_left(prepared, kubernetes, slurm)


@pytest.mark.parametrize("policy", ["requeue", "cancel"])
def test_jobs_are_ended_when_their_time_is_over_if_asked(
    prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm, policy: str
) -> None:
    kubernetes.new_template()
    slurm.job(7, "cpu-0")
    run, work = prepared(on_running_jobs=policy, drain_timeout=5)
    carry_out(run, work)
    assert (policy, "job 7") in kinds(run)
    assert [what for method, what, _body in slurm.written if what.startswith("jobs")] == [
        "jobs/requeue" if policy == "requeue" else "jobs/"
    ]
    assert kubernetes.now > 5


def test_a_job_that_ends_in_time_is_not_ended(prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm) -> None:
    kubernetes.new_template()
    slurm.job(7, "cpu-0")
    run, work = prepared(on_running_jobs="cancel")
    run.actions += work.plan()
    assert ("cancel", "job 7") in kinds(run, done=False)
    slurm.end(7, "COMPLETED")
    work.act(run.actions)
    assert ("cancel", "job 7") not in kinds(run, done=False) + kinds(run)


def test_the_window(prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm) -> None:
    kubernetes.new_template()
    result = carry_out(*prepared(max_unavailable="67%"))
    assert result["batches"] == [["cpu-0", "cpu-1"], ["cpu-2"]]
    assert max(kubernetes.ever_away) == 2


def test_what_never_becomes_ready_stops_it_and_a_good_template_heals(
    prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm
) -> None:
    kubernetes.new_template(broken="ErrImageNeverPull")
    run, work = prepared()
    with pytest.raises(OperationError) as caught:
        carry_out(run, work)
    assert caught.value.reason == "RolloutFailed"
    assert "image here/slurmd is not on the Node" in caught.value.msg
    assert caught.value.remaining == ("cpu-0", "cpu-1", "cpu-2")
    assert kubernetes.deleted == ["cpu-0"]
    assert kubernetes.now < 30
    assert "DRAIN" not in slurm.nodes["cpu-1"]["state"]
    kubernetes.new_template()
    run, work = prepared()
    carry_out(run, work)
    assert kinds(run) == [("replace", "Pod cpu-0"), ("undrain", "cpu-0"), *node_by_node("cpu-1", "cpu-2")]
    nothing_is_left(prepared, kubernetes, slurm)


def test_a_failure_gives_back_what_was_drained_and_not_replaced(
    prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm
) -> None:
    kubernetes.new_template(broken="ErrImageNeverPull")
    slurm.job(7, "cpu-1")
    slurm.job(8, "cpu-2")
    run, work = prepared(max_unavailable="2")
    with pytest.raises(OperationError):
        carry_out(run, work)
    assert kubernetes.deleted == ["cpu-0"]
    assert kinds(run) == [("drain", "cpu-0"), ("replace", "Pod cpu-0"), ("drain", "cpu-1"), ("undrain", "cpu-1")]
    assert all("DRAIN" not in slurm.nodes[name]["state"] for name in ("cpu-1", "cpu-2"))


def test_what_does_not_come_back_in_time_fails(prepared: Prepared, kubernetes: Kubernetes) -> None:
    kubernetes.new_template(broken="ContainerCreating")
    with pytest.raises(OperationError) as caught:
        carry_out(*prepared(ready_timeout=40))
    assert caught.value.reason == "RolloutFailed"
    assert kubernetes.now > 40


def test_some_may_fail_if_the_threshold_says_so(prepared: Prepared, kubernetes: Kubernetes) -> None:
    kubernetes.new_template(broken="ErrImageNeverPull")
    with pytest.raises(OperationError) as caught:
        carry_out(*prepared(max_unavailable="3", failure_threshold="2"))
    assert caught.value.reason == "RolloutFailed"
    assert kubernetes.deleted == ["cpu-0", "cpu-1", "cpu-2"]


def test_a_persons_drain_is_replaced_and_stays(prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm) -> None:
    kubernetes.new_template("Feature=cpu CPUs=4")
    slurm.nodes["cpu-1"] |= {"state": ["IDLE", "DRAIN", "DYNAMIC_NORM"], "reason": ANN}
    run, work = prepared(max_unavailable="2")
    carry_out(run, work)
    # The records of the others are made anew; its own holds the drain.
    assert kinds(run)[0] == ("replace", "Pod cpu-1")
    assert kinds(run)[1:4] == [("drain", "cpu-0"), ("forget", "cpu-0"), ("replace", "Pod cpu-0")]
    assert (slurm.nodes["cpu-1"]["reason"], slurm.nodes["cpu-1"]["cpus"]) == (ANN, 2)
    assert [slurm.nodes[name]["cpus"] for name in ("cpu-0", "cpu-2")] == [4, 4]
    nothing_is_left(prepared, kubernetes, slurm, max_unavailable="2")


def test_a_record_that_is_made_anew_keeps_its_place(prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm) -> None:
    kubernetes.new_template("Feature=cpu CPUs=4")
    slurm.nodes["cpu-0"]["topology"] = "tree:s1"
    carry_out(*prepared())
    assert slurm.nodes["cpu-0"]["topology"] == "tree:s1"


def test_what_a_person_set_down_is_left_alone_and_told(
    prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm
) -> None:
    kubernetes.new_template()
    slurm.nodes["cpu-1"] |= {"state": ["DOWN", "DYNAMIC_NORM"], "reason": ANN}
    run, work = prepared(max_unavailable="2")
    result = carry_out(run, work)
    assert kubernetes.deleted == ["cpu-0", "cpu-2"]
    assert result["nodeset"]["left_alone"] == ["cpu-1"]
    assert "cpu-1 keeps its old Pod" in run.warnings[0]


def test_a_drain_set_by_a_person_meanwhile_is_respected(
    prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm
) -> None:
    kubernetes.new_template()
    run, work = prepared(max_unavailable="2")
    run.actions += work.plan()
    slurm.nodes["cpu-2"] |= {"state": ["IDLE", "DRAIN", "DYNAMIC_NORM"], "reason": ANN}
    work.act(run.actions)
    assert slurm.nodes["cpu-2"]["reason"] == ANN
    assert ("replace", "Pod cpu-2") in kinds(run)
    assert not {("drain", "cpu-2"), ("undrain", "cpu-2")} & set(kinds(run) + kinds(run, done=False))


def test_none_to_spare(prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm) -> None:
    kubernetes.new_template()
    slurm.nodes["cpu-1"] |= {"state": ["IDLE", "DRAIN", "DYNAMIC_NORM"], "reason": ANN}
    run, work = prepared()
    with pytest.raises(OperationError) as caught:
        carry_out(run, work)
    assert (caught.value.reason, slurm.written, kubernetes.deleted) == ("NoneToSpare", [], [])


def test_a_canary_and_then_the_others(prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm) -> None:
    kubernetes.new_template()
    run, work = prepared(canary="1", max_unavailable="3")
    result = carry_out(run, work)
    assert (kinds(run), result["paused"]) == (node_by_node("cpu-0"), True)
    nothing_is_left(prepared, kubernetes, slurm, canary="1", max_unavailable="3")
    run, work = prepared(max_unavailable="3")
    assert not carry_out(run, work)["paused"]
    assert kinds(run) == node_by_node("cpu-1", "cpu-2")


def test_a_canary_that_is_gone_on_from(prepared: Prepared, kubernetes: Kubernetes) -> None:
    kubernetes.new_template()
    run, work = prepared(canary="1", continue_after_canary=True, max_unavailable="3", pause=20)
    result = carry_out(run, work)
    assert result["batches"] == [["cpu-0"], ["cpu-1", "cpu-2"]]
    assert kubernetes.deleted == ["cpu-0", "cpu-1", "cpu-2"]
    assert kubernetes.now > 20 + 5 + 5


def test_kind_node(prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm) -> None:
    """Its Pods have new names, its nodes the old ones, also while Slurm has no record of them."""
    kubernetes.new_template("Feature=cpu CPUs=4")
    old = sorted(name for name in kubernetes.pods if name.startswith("metal"))
    run, work = prepared(nodeset="metal")
    result = carry_out(run, work)
    assert [kind for kind, _target in kinds(run)] == ["drain", "forget", "replace"] * 2
    assert sorted(kubernetes.deleted) == old
    assert [item["name"] for item in result["nodeset"]["nodes"]] == ["m-n1", "m-n2"]
    assert [slurm.nodes[name]["cpus"] for name in ("m-n1", "m-n2")] == [4, 4]
    nothing_is_left(prepared, kubernetes, slurm, nodeset="metal")


def test_an_interrupted_run_goes_on(prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm) -> None:
    kubernetes.new_template()
    for kind in ("cpu", "metal"):
        first = {"cpu": "cpu-0", "metal": "m-n1"}[kind]
        pod = {item["slurm"]: name for name, item in kubernetes.pods.items()}[first]
        reason = f"k8s: rollout: {kind}"
        slurm.nodes[first] |= {"state": ["IDLE", "DRAIN", "DYNAMIC_NORM"], "reason": reason}
        kubernetes.delete(None, "hpc", pod, uid=kubernetes.pods[pod]["metadata"]["uid"])
        kubernetes.pause(2.5)  # the new Pod is there, not ready; Slurm knows the old one
        run, work = prepared(nodeset=kind)
        carry_out(run, work)
        assert kinds(run)[0] == ("undrain", first)
        assert len(kinds(run)) == 1 + 3 * (2 if kind == "cpu" else 1)
        nothing_is_left(prepared, kubernetes, slurm, nodeset=kind)


def test_a_template_that_its_controller_has_not_seen_is_waited_for(prepared: Prepared, kubernetes: Kubernetes) -> None:
    kubernetes.new_template()
    kubernetes.observed_at = 3.0
    _run, work = prepared()
    assert len(work.plan()) == 9
    assert kubernetes.now >= 3


def test_a_node_whose_record_went_before_the_interruption_comes_back(
    prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm
) -> None:
    kubernetes.new_template("Feature=cpu CPUs=4")
    del slurm.nodes["cpu-0"]
    kubernetes.delete(None, "hpc", "cpu-0", uid=kubernetes.pods["cpu-0"]["metadata"]["uid"])
    run, work = prepared()
    carry_out(run, work)
    assert kinds(run)[0] == ("drain", "cpu-1")
    assert max(kubernetes.ever_away) == 1
    assert [slurm.nodes[f"cpu-{number}"]["cpus"] for number in range(3)] == [4, 4, 4]
    # Between the record and the Pod: nothing runs on a node that Slurm does not know.
    kubernetes.new_template("Feature=cpu CPUs=6")
    del slurm.nodes["cpu-2"]
    run, work = prepared()
    carry_out(run, work)
    assert kinds(run)[0] == ("replace", "Pod cpu-2")
    nothing_is_left(prepared, kubernetes, slurm)


def test_another_template_meanwhile_ends_the_run(prepared: Prepared, kubernetes: Kubernetes) -> None:
    kubernetes.new_template()
    run, work = prepared()
    run.actions += work.plan()
    kubernetes.new_template()
    with pytest.raises(OperationError) as caught:
        work.act(run.actions)
    assert (caught.value.reason, kubernetes.deleted) == ("TemplateChanged", [])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"nodeset": "nope"}, "NotFound"),
        ({"max_unavailable": "0"}, "Invalid"),
        ({"max_unavailable": "some"}, "Invalid"),
        ({"failure_threshold": "0"}, "Invalid"),
        ({"canary": "-1"}, "Invalid"),
    ],
)
def test_bad_options(prepared: Prepared, kubernetes: Kubernetes, options: Object, reason: str) -> None:
    kubernetes.new_template()
    with pytest.raises(OperationError) as caught:
        carry_out(*prepared(**options))
    assert (caught.value.reason, kubernetes.deleted) == (reason, [])


def test_the_info_twin_counts_all_nodesets(prepared: Prepared, kubernetes: Kubernetes) -> None:
    kubernetes.new_template()
    run, work = prepared(nodeset=None)
    found = nodeset_rollout_info.read(run)
    assert found["outdated"] == 5
    assert [(item["name"], item["outdated"], item["in_service"]) for item in found["nodesets"]] == [
        ("cpu", 3, 3),
        ("metal", 2, 2),
    ]
    reader = WorkersReader(run, work._draining)
    assert told(reader.read("cpu")[0], 0.0)["nodes"][0]["revision"] == "1"


@pytest.fixture
def scontrol(monkeypatch: pytest.MonkeyPatch, slurm: Slurm) -> list[str]:
    """What scontrol was told; reservations that it makes are there, and those that it deletes are not."""
    told_it: list[str] = []

    def run(_run: Run, arguments: Sequence[str], what: str, **_more: str) -> None:
        told_it.append(what)
        given = dict(word.split("=", 1) for word in arguments[1:])
        slurm.reservations.clear()
        if arguments[0] != "delete":
            start = int(given["StartTime"].removeprefix("uts"))
            slurm.reservations.append(
                {
                    "name": given["ReservationName"],
                    "start_time": {"set": True, "number": start},
                    "end_time": {"set": True, "number": start + 60 * int(given["Duration"])},
                    "node_list": given["Nodes"],
                    "flags": ["MAINT", "IGNORE_JOBS"],
                }
            )

    monkeypatch.setattr(window, "scontrol", run)
    return told_it


def begins_in(seconds: int, minutes: int = 2) -> Object:
    start = datetime.fromtimestamp(START + seconds, UTC)
    return {"start": start.isoformat(), "duration": minutes}


def test_a_window_is_reserved_before_and_drained_in(
    prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm, scontrol: list[str]
) -> None:
    kubernetes.new_template()
    hour = begins_in(50)
    run, work = prepared(window=hour)
    result = carry_out(run, work)
    assert kinds(run) == [("reserve", "k8s-rollout-cpu")]
    assert (result["paused"], result["window"]["phase"], kubernetes.deleted, slurm.written) == (True, "ahead", [], [])
    assert slurm.reservations[0]["node_list"] == "cpu-[0-2]"
    again, work = prepared(window=hour)
    carry_out(again, work)
    assert (again.actions, len(scontrol)) == ([], 1)
    moved, work = prepared(window=begins_in(60))
    carry_out(moved, work)
    assert kinds(moved) == [("reserve", "k8s-rollout-cpu")]
    kubernetes.pause(60)
    run, work = prepared(window=begins_in(60))
    result = carry_out(run, work)
    assert kinds(run)[0] == ("unreserve", "k8s-rollout-cpu")
    assert sorted(kinds(run)[1:]) == sorted(node_by_node("cpu-0", "cpu-1", "cpu-2"))
    assert (result["batches"], max(kubernetes.ever_away)) == ([["cpu-0", "cpu-1", "cpu-2"]], 3)
    assert (slurm.reservations, result["window"]["phase"]) == ([], "open")
    assert slurm.written[0][2]["state"] == ["DRAIN"], "the drains hold before the reservation goes"


def test_when_the_window_ends_what_was_not_begun_is_given_back(
    prepared: Prepared, kubernetes: Kubernetes, slurm: Slurm, scontrol: list[str]
) -> None:
    kubernetes.new_template()
    slurm.job(7, "cpu-1")
    run, work = prepared(window=begins_in(0, 1), drain_timeout=3600)
    with pytest.raises(OperationError) as caught:
        carry_out(run, work)
    assert (caught.value.reason, caught.value.remaining) == ("WindowOver", ("cpu-1",))
    assert sorted(kubernetes.deleted) == ["cpu-0", "cpu-2"]
    assert not any("DRAIN" in node["state"] for name, node in slurm.nodes.items() if name.startswith("cpu"))
    assert slurm.jobs[7]["job_state"] == ["RUNNING"]
    late, work = prepared(window=begins_in(0, 1))
    with pytest.raises(OperationError) as caught:
        carry_out(late, work)
    assert (caught.value.reason, late.actions, scontrol) == ("WindowOver", [], [])


def test_when_nothing_is_left_to_roll_out_the_reservation_goes(
    prepared: Prepared, slurm: Slurm, scontrol: list[str]
) -> None:
    slurm.reservations.append({"name": "k8s-rollout-cpu", "node_list": "cpu-0", "flags": ["MAINT"]})
    for done in ([("unreserve", "k8s-rollout-cpu")], []):
        run, work = prepared(window=begins_in(50))
        carry_out(run, work)
        assert kinds(run) == done
    assert (slurm.reservations, len(scontrol)) == ([], 1)
