# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_drain on a made-up Slurm: what is written in how many calls, and how waits end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import drain, draining, scontrol
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.drain import NodeDrain
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, carry_out, stages
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.errors import SlurmError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.token import GivenToken

from .._slurm.fake_slurm import Slurm

ANN = "bad disk, Ann"
OPTIONS = {
    "namespace": "hpc", "name": "slurm", "state": "drained", "nodes": None, "nodeset": None, "kubernetes_nodes": None,
    "label_selector": None, "reason": "disk", "reason_pattern": None, "cordon": False, "force": False,
    "on_running_jobs": "wait", "wait": True, "wait_timeout": 60, "wait_sleep": 2,
}  # fmt: skip


class Clock:
    """Time that only pauses pass; something may happen at a second."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events: list[tuple[float, Callable[[], None]]] = []

    def pause(self, seconds: float) -> None:
        self.now += seconds
        due = [event for event in self.events if event[0] <= self.now]
        self.events = [event for event in self.events if event[0] > self.now]
        for _at, happen in due:
            happen()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    real = draining.wait_until

    def wait_until(*args: Any, **more: Any) -> None:
        real(*args, **more, clock=lambda: made.now, pause=made.pause)

    monkeypatch.setattr(draining, "wait_until", wait_until)
    return made


@pytest.fixture
def slurm() -> Slurm:
    made = Slurm()
    for number in range(4):
        made.node(f"w-{number}")
    return made


@pytest.fixture(autouse=True)
def client(monkeypatch: pytest.MonkeyPatch, slurm: Slurm, clock: Clock) -> None:
    def client_of(_kubernetes: Any, _params: Any, calls: Counter[str]) -> SlurmClient:
        return SlurmClient(slurm, GivenToken("t"), calls=calls, pause=clock.pause, clock=lambda: clock.now)

    monkeypatch.setattr(draining, "client_of", client_of)


def prepared(**options: Any) -> tuple[Run, NodeDrain]:
    run = Run({**OPTIONS, **options}, "slurm")
    run._kubernetes = SimpleNamespace(warnings=())  # type: ignore[assignment]  # nothing here asks Kubernetes
    return run, NodeDrain(run)


def kinds(actions: list[Action]) -> list[tuple[str, str, bool]]:
    return [(action.kind, action.target, action.done) for action in actions]


def test_one_call_drains_all_and_a_second_run_writes_nothing(slurm: Slurm) -> None:
    run, work = prepared(nodes=["w-[0-2]"])
    result = carry_out(run, work)
    assert slurm.written == [("POST", "nodes/", {"name": ["w-[0-2]"], "state": ["DRAIN"], "reason": "k8s: disk"})]
    assert result["drained"] == ["w-0", "w-1", "w-2"]
    slurm.written.clear()
    run, work = prepared(nodes=["w-[0-2]"])
    carry_out(run, work)
    assert (run.actions, slurm.written) == ([], [])


def test_a_plan_reads_only(slurm: Slurm) -> None:
    run, work = prepared(nodes=["w-0"])
    run.actions += work.plan()
    assert kinds(run.actions) == [("drain", "w-0", False)]
    assert slurm.written == []
    assert work.result()["nodes"][0]["state"] == "idle"


def test_unknown_names_are_refused_before_anything_is_written(slurm: Slurm) -> None:
    with pytest.raises(OperationError) as caught:
        carry_out(*prepared(nodes=["w-0", "x-1"]))
    assert (caught.value.reason, slurm.written) == ("UnknownNode", [])


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"reason": "  "}, "ReasonMissing"), ({"on_running_jobs": "cancel", "wait": False}, "InvalidOptions")],
)
def test_what_makes_no_sense_is_refused(slurm: Slurm, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(OperationError) as caught:
        carry_out(*prepared(nodes=["w-0"], **options))
    assert (caught.value.reason, slurm.written) == (reason, [])


def test_the_deadline_names_the_jobs_and_leaves_them(slurm: Slurm) -> None:
    slurm.job(7, "w-[0-1]")
    with pytest.raises(OperationError) as caught:
        carry_out(*prepared(nodes=["w-[0-1]"]))
    assert caught.value.reason == "Timeout"
    assert caught.value.remaining == ("job 7 of ann on w-[0-1] (no time limit)",)
    assert "stay drained" in caught.value.hint
    assert len(slurm.written) == 1


def test_without_wait_nothing_is_waited_for(slurm: Slurm, clock: Clock) -> None:
    slurm.job(7, "w-0")
    result = carry_out(*prepared(nodes=["w-0"], wait=False))
    assert (result["draining"], clock.now) == (["w-0"], 0)
    assert result["nodes"][0]["jobs"][0]["job_id"] == 7


@pytest.mark.parametrize(("policy", "call"), [("requeue", ("POST", "jobs/requeue")), ("cancel", ("DELETE", "jobs/"))])
def test_jobs_are_ended_after_their_time(slurm: Slurm, clock: Clock, policy: str, call: tuple[str, str]) -> None:
    slurm.job(7, "w-0")
    slurm.job(8, "w-1")
    clock.events.append((30, lambda: slurm.end(8, "COMPLETED")))
    run, work = prepared(nodes=["w-[0-1]"], on_running_jobs=policy)
    result = carry_out(run, work)
    assert clock.now >= 60
    assert slurm.written[1:] == [(*call, {"jobs": ["7"]})]
    assert kinds(run.actions) == [("drain", "w-0", True), ("drain", "w-1", True), (policy, "job 7", True)]
    assert result["drained"] == ["w-0", "w-1"]


def test_jobs_that_end_in_time_are_not_touched(slurm: Slurm, clock: Clock) -> None:
    slurm.job(7, "w-0")
    clock.events.append((30, lambda: slurm.end(7, "COMPLETED")))
    run, work = prepared(nodes=["w-0"], on_running_jobs="cancel")
    carry_out(run, work)
    assert kinds(run.actions) == [("drain", "w-0", True)]


def test_what_cannot_be_requeued_is_told_and_left(slurm: Slurm, clock: Clock) -> None:
    slurm.job(7, "w-0", batch_flag=False)
    run, work = prepared(nodes=["w-0"], on_running_jobs="requeue")
    with pytest.raises(OperationError) as caught:
        carry_out(run, work)
    assert caught.value.reason == "Timeout"
    assert clock.now == pytest.approx(60 + drain.GRACE, abs=5)
    assert "job 7 of ann" in run.warnings[0]
    assert len(slurm.written) == 1


def test_a_job_that_began_just_before_the_drain_is_ended_too(slurm: Slurm) -> None:
    run, work = prepared(nodes=["w-0"], on_running_jobs="cancel", wait_timeout=1)
    run.actions += work.plan()
    slurm.job(9, "w-0")
    for batch in stages(run.actions):
        work.act(batch)
    work.wait()
    assert kinds(run.actions) == [("drain", "w-0", True), ("cancel", "job 9", True)]


def test_a_person_was_quicker(slurm: Slurm) -> None:
    run, work = prepared(nodes=["w-[0-1]"])
    run.actions += work.plan()
    slurm.node("w-0", "IDLE+DRAIN", ANN)
    for batch in stages(run.actions):
        work.act(batch)
    work.wait()
    assert kinds(run.actions) == [("drain", "w-1", True)]
    assert slurm.nodes["w-0"]["reason"] == ANN
    assert "w-0 was drained by somebody else meanwhile" in run.warnings[0]


def test_a_person_took_over_what_was_to_be_given_back(slurm: Slurm) -> None:
    slurm.node("w-0", "IDLE+DRAIN", "k8s: disk")
    run, work = prepared(nodes=["w-0"], state="undrained")
    run.actions += work.plan()
    slurm.node("w-0", "IDLE+DRAIN", ANN)
    for batch in stages(run.actions):
        work.act(batch)
    assert (run.actions, slurm.written) == ([], [])


def test_who_gives_a_node_back_ends_the_wait(slurm: Slurm, clock: Clock) -> None:
    slurm.job(7, "w-0")
    clock.events.append((10, lambda: slurm.nodes["w-0"].update(state=["MIXED"], reason="")))
    with pytest.raises(OperationError) as caught:
        carry_out(*prepared(nodes=["w-0"]))
    assert caught.value.reason == "DrainLost"
    assert clock.now < 25


def test_jobs_on_a_node_that_somebody_gave_back_are_not_ended(slurm: Slurm, clock: Clock) -> None:
    slurm.job(7, "w-0")
    slurm.job(8, "w-1")
    clock.events.append((57, lambda: slurm.nodes["w-0"].update(state=["MIXED"], reason="")))
    run, work = prepared(nodes=["w-[0-1]"], on_running_jobs="cancel")
    with pytest.raises(OperationError) as caught:
        carry_out(run, work)
    assert caught.value.reason == "DrainLost"
    assert slurm.written[1:] == [("DELETE", "jobs/", {"jobs": ["8"]})]


def test_a_slurm_that_restarts_is_waited_for(slurm: Slurm, clock: Clock) -> None:
    slurm.job(7, "w-0")

    def down(_method: str, _path: str) -> None:
        raise OperationError("connection refused", reason="SlurmUnreachable")

    def up() -> None:
        slurm.before = lambda _method, _path: None
        slurm.end(7)

    clock.events += [(5, lambda: setattr(slurm, "before", down)), (40, up)]
    assert carry_out(*prepared(nodes=["w-0"]))["drained"] == ["w-0"]
    assert clock.now >= 40


def test_a_slurm_that_stays_away_ends_the_wait_in_time(slurm: Slurm, clock: Clock) -> None:
    slurm.job(7, "w-0")

    def down(_method: str, _path: str) -> None:
        raise OperationError("connection refused", reason="SlurmUnreachable")

    clock.events.append((5, lambda: setattr(slurm, "before", down)))
    with pytest.raises(OperationError) as caught:
        carry_out(*prepared(nodes=["w-0"]))
    assert caught.value.reason == "Timeout"
    assert "Slurm does not answer" in caught.value.msg
    assert clock.now < 120


@pytest.mark.parametrize(("seconds", "reason"), [(30, ""), (100, "SlurmRefused")])
def test_a_slurm_that_breaks_off_may_be_going_down(slurm: Slurm, clock: Clock, seconds: int, reason: str) -> None:
    slurm.job(7, "w-0")

    def broken(_method: str, _path: str) -> None:
        raise SlurmError("Connection reset by peer", status=500, number=0, reason="SlurmRefused")

    def up() -> None:
        slurm.before = lambda _method, _path: None
        slurm.end(7)

    clock.events += [(5, lambda: setattr(slurm, "before", broken)), (5 + seconds, up)]
    run, work = prepared(nodes=["w-0"], wait_timeout=300)
    if reason:
        with pytest.raises(OperationError) as caught:
            carry_out(run, work)
        assert caught.value.reason == reason
    else:
        assert carry_out(run, work)["drained"] == ["w-0"]


def test_other_errors_end_the_wait_at_once(slurm: Slurm, clock: Clock) -> None:
    slurm.job(7, "w-0")

    def refuse(_method: str, _path: str) -> None:
        raise OperationError("no", reason="TokenRefused")

    clock.events.append((5, lambda: setattr(slurm, "before", refuse)))
    with pytest.raises(OperationError) as caught:
        carry_out(*prepared(nodes=["w-0"]))
    assert (caught.value.reason, clock.now < 15) == ("TokenRefused", True)


def test_a_half_done_batch_is_told(slurm: Slurm) -> None:
    run, work = prepared(nodes=["w-[0-2]"])
    run.actions += work.plan()

    def break_off(method: str, _path: str) -> None:
        if method == "POST":
            slurm.node("w-0", "IDLE+DRAIN", "k8s: disk")
            raise OperationError("broken off", reason="SlurmRefused")

    slurm.before = break_off
    with pytest.raises(OperationError):
        work.act(run.actions)
    assert kinds(run.actions) == [("drain", "w-0", True), ("drain", "w-1", False), ("drain", "w-2", False)]


def test_nodes_that_stay_away_are_told_when_given_back(slurm: Slurm) -> None:
    slurm.node("w-0", "DOWN+DRAIN", "k8s: disk")
    slurm.node("w-1", "UNKNOWN+DRAIN+INVALID_REG", "k8s: disk")
    run, work = prepared(nodes=["w-[0-1]"], state="undrained")
    result = carry_out(run, work)
    assert "DOWN" in run.warnings[0]
    assert "INVALID_REG" in run.warnings[1]
    assert "DOWN" in result["nodes"][0]["note"]


@pytest.mark.parametrize(("rc", "parser"), [(0, "v0.0.42"), (1, "v0.0.42")])
def test_older_slurms_requeue_by_scontrol(slurm: Slurm, monkeypatch: pytest.MonkeyPatch, rc: int, parser: str) -> None:
    slurm.parser = parser
    slurm.job(7, "w-0")
    commands: list[Any] = []

    def exec_in_pod(_kubernetes: Any, namespace: str, pod: str, command: list[str], **_more: Any) -> Any:
        commands.append((namespace, pod, *command))
        if not rc:
            slurm.end(7, "PENDING")
        return type("Finished", (), {"rc": rc, "stdout": "", "stderr": "Access denied\n"})

    monkeypatch.setattr(scontrol, "exec_in_pod", exec_in_pod)
    monkeypatch.setattr(scontrol, "command_pod", lambda *_: "slurm-controller-0")
    run, work = prepared(nodes=["w-0"], on_running_jobs="requeue", wait_timeout=0)
    if rc:
        with pytest.raises(OperationError) as caught:
            carry_out(run, work)
        assert caught.value.reason == "RequeueFailed"
        assert "Access denied" in caught.value.msg
    else:
        assert carry_out(run, work)["drained"] == ["w-0"]
    assert commands == [("hpc", "slurm-controller-0", "scontrol", "requeue", "7")]
    assert kinds(run.actions)[-1] == ("requeue", "job 7", not rc)


def test_nodes_that_did_not_change_are_not_read_again(slurm: Slurm) -> None:
    reader = draining.Draining(prepared(nodes=["w-0"])[0])
    before = reader.nodes()
    slurm.unchanged, reads = True, slurm.reads
    assert (reader.nodes(), slurm.reads) == (before, reads)
    slurm.unchanged = False
    slurm.node("w-0", "IDLE+DRAIN", "burn-in")
    assert reader.nodes()["w-0"].state.drained
