# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module reconcile on made-up sides: its calls and its lock, and sides that go away or change meanwhile."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError, Unreachable
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.spread import spread
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.reconcile import RULES
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.to_slurm import OURS
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import reconcile as under_test
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, stages
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.reconcile import Reconcile
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import ARGS_SLURM
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient
from ansible_collections.slurm_ops.kubernetes.plugins.modules import reconcile

from ..module_utils._plan.reconcile_model import Model, Raw, host, nodeset, pod, slurm

CHECKOUT = Path(__file__).resolve().parents[4]
CORDONED = "k8s: cordoned: no reason given"


class Reply:
    def __init__(self, content: Any, status: int = 200) -> None:
        self.status = status
        self.headers: dict[str, str] = {}
        self.body = json.dumps(content).encode()


class Kubernetes:
    """As much of a KubernetesClient, and of slurmrestd behind it, as the module uses."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.calls: Counter[str] = Counter()
        self.server_date = "Fri, 15 Jan 2027 08:00:00 GMT"
        self.lease: dict[str, Any] | None = None
        self.away: set[str] = set()
        self.writes: list[tuple[str, Any]] = []
        self.before_write: Callable[[], None] = lambda: None

    def list(self, resource: Any, _namespace: str | None = None, *, labels: str = "") -> list[Raw]:
        self.calls["list"] += 1
        if resource.kind in self.away:
            raise Unreachable(f"{resource.kind}s cannot be read", reason="Unreachable")
        model = self.model
        assert labels == ("" if resource.kind == "Node" else "slurm-ops.kubernetes/cluster=slurm")
        sides: dict[str, Any] = {"Pod": model.pods.values(), "Node": model.hosts.values(), "StatefulSet": model.sets}
        return json.loads(json.dumps(list(sides[resource.kind])))

    def get(self, resource: Any, _namespace: str, _name: str) -> Any:
        self.calls["get"] += 1
        if resource.kind == "Lease":
            return json.loads(json.dumps(self.lease))
        return {"data": {"jwt.key": base64.b64encode(bytes(32)).decode()}}

    def create(self, manifest: dict[str, Any], _namespace: str) -> Any:
        self.calls["create"] += 1
        self.lease = {"metadata": {"resourceVersion": "1"}, "spec": dict(manifest["spec"])}

    def patch(self, resource: Any, _namespace: str | None, name: str, change: Any, **_more: Any) -> Any:
        self.calls["patch"] += 1
        if resource.kind == "Lease":
            assert self.lease is not None
            self.lease["spec"] |= change["spec"]
            return
        if name in self.away:
            raise ApiError("gone", reason="NotFound", status=404)
        self.writes.append((f"{resource.kind} {name}", change))

    def map_concurrent(self, work: Any, items: Any) -> Iterator[Any]:
        return spread(work, items, 1)

    def exchange(self, method: str, path: str, *, body: bytes | None, **_more: Any) -> Reply:
        tail = path.partition("/slurm/v0.0.45/")[2]
        if "slurm" in self.away:
            return Reply({"kind": "Status", "message": "no endpoints available"}, 503)
        if tail == "ping/":
            return Reply({"pings": [{"hostname": "c", "responding": True}]})
        if method == "GET":
            return Reply({"nodes": list(self.model.slurm.values()), "last_update": 1})
        self.before_write()
        self.writes.append((f"{method} {tail}", json.loads(body or b"null")))
        return Reply({})


class FakeRun:
    """As much of a Run as the module uses."""

    def __init__(self, kubernetes: Kubernetes, **params: Any) -> None:
        options = (reconcile.ARGUMENTS + ARGS_SLURM).options
        self.params = {name: option.get("default") for name, option in options.items()} | params
        self.kubernetes = kubernetes
        self.slurm_calls: Counter[str] = Counter()
        self.actions: list[Action] = []
        self.warnings: list[str] = []
        self.progress = self

    def say(self, _text: str) -> None:
        """Progress."""

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def run(kubernetes: Kubernetes, *, check: bool = False, **params: Any) -> tuple[FakeRun, Any]:
    """The life of an operation, as _run/module.py leads it."""
    context = FakeRun(kubernetes, **params)
    work = Reconcile(context)  # type: ignore[arg-type]
    context.actions += work.plan()
    if not check:
        for batch in stages(context.actions):
            work.act(batch)
        work.wait()
    return context, work.result()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SlurmClient.__init__.__kwdefaults__, "pause", lambda seconds: None)


def cordoned(number: int = 3) -> Kubernetes:
    names = [f"cpu-{index}" for index in range(number)]
    return Kubernetes(Model(map(slurm, names), map(pod, names), [host(cordoned=True)], [nodeset(number)]))


def kinds(context: FakeRun) -> list[str]:
    return [action.kind for action in context.actions if action.done]


def test_a_converged_pass_is_six_calls_without_a_lock() -> None:
    kubernetes = Kubernetes(Model([slurm("cpu-0")], [pod("cpu-0")], [host()], [nodeset(1)]))
    context, result = run(kubernetes)
    assert kubernetes.calls == {"list": 3, "get": 1}
    assert context.slurm_calls == {"get": 2}
    assert (result["drift"], result["counts"], result["passes"]) == ([], {"nodes": 1}, 1)


def test_drains_of_one_reason_are_one_call_under_a_lock() -> None:
    kubernetes = cordoned()
    context, result = run(kubernetes)
    assert kubernetes.writes == [
        ("POST nodes/", {"name": ["cpu-[0-2]"], "state": ["DRAIN"], "reason": CORDONED}),
    ]
    assert kinds(context) == ["drain"] * 3
    assert result["counts"] == {"nodes": 3, "drain": 3}
    assert kubernetes.lease is not None
    assert kubernetes.lease["spec"]["holderIdentity"] == ""


def test_a_lost_rack_is_one_call() -> None:
    names = [f"gpu-{index}" for index in range(500)]
    hosts = [host(f"n{index}", ready=False) for index in range(500)]
    pods = [pod(name, f"n{index}") for index, name in enumerate(names)]
    kubernetes = Kubernetes(Model(map(slurm, names), pods, hosts, [nodeset(500, "gpu")]))
    context, _result = run(kubernetes)
    assert len(context.actions) == 500
    assert [body["name"] for _target, body in kubernetes.writes] == [["gpu-[0-499]"]]


def test_check_mode_takes_no_lock_and_foretells_the_same() -> None:
    foretold, _result = run(cordoned(), check=True)
    done, _result = run(cordoned())
    assert foretold.actions == done.actions
    kubernetes = cordoned()
    run(kubernetes, check=True)
    assert kubernetes.lease is None
    assert kubernetes.writes == []


def test_what_somebody_did_while_we_waited_for_the_lock_is_not_done_again() -> None:
    kubernetes = cordoned()
    context = FakeRun(kubernetes)
    work = Reconcile(context)  # type: ignore[arg-type]
    context.actions += work.plan()
    kubernetes.model.slurm["cpu-1"] = slurm("cpu-1", "IDLE+DRAIN", CORDONED)
    kubernetes.model.slurm["cpu-2"] = slurm("cpu-2", "IDLE+DRAIN", "Ann")
    work.act(context.actions)
    work.wait()
    assert [action.target for action in context.actions if action.done] == ["cpu-0"]


def test_a_persons_drain_between_the_last_look_and_the_end_of_ours_stays() -> None:
    names = ["cpu-0", "cpu-1"]
    kubernetes = Kubernetes(
        Model([slurm(name, "IDLE+DRAIN", CORDONED) for name in names], map(pod, names), [host()], [nodeset(2)])
    )
    context = FakeRun(kubernetes)
    work = Reconcile(context)  # type: ignore[arg-type]
    context.actions += work.plan()
    look = work._look

    def then_ann_comes() -> Any:
        found = look()
        kubernetes.model.slurm["cpu-0"] = slurm("cpu-0", "IDLE+DRAIN", "Ann")
        return found

    work._look = then_ann_comes  # type: ignore[method-assign]
    work.act(context.actions)
    assert kubernetes.writes == [("POST nodes/", {"name": ["cpu-1"], "state": ["UNDRAIN"]})]


def test_no_slurmd_is_restarted_whose_record_stayed() -> None:
    """Its record was to be deleted, but a job got hold of the node."""
    kubernetes = Kubernetes(Model([slurm("cpu-0", cpus=2)], [pod("cpu-0")], [host()], [nodeset(1)]))

    def a_job_comes() -> None:
        kubernetes.model.slurm["cpu-0"] = slurm("cpu-0", "ALLOCATED+DRAIN", "k8s: registration: x", cpus=2)

    kubernetes.before_write = a_job_comes
    context, _result = run(kubernetes)
    assert kinds(context) == ["drain"]
    assert [target for target, _body in kubernetes.writes] == ["POST nodes/"]


@pytest.mark.parametrize("side", ["Pod", "Node", "StatefulSet", "slurm"])
def test_an_unreadable_side_means_no_write(side: str) -> None:
    kubernetes = cordoned()
    kubernetes.away.add(side)
    with pytest.raises(OperationError):
        run(kubernetes)
    assert kubernetes.writes == []
    assert kubernetes.lease is None


@pytest.mark.parametrize(
    ("params", "reason", "remaining"),
    [
        ({"max_actions": "2"}, "TooManyNodes", 3),
        ({"fail_on_drift": True}, "Drift", 3),
        ({"fail_on_drift": True, "watch": True}, "Drift", 3),
        ({"conditions": ["SlurmDrain"]}, "Invalid", 0),
    ],
)
def test_refusals(params: dict[str, Any], reason: str, remaining: int) -> None:
    kubernetes = cordoned()
    with pytest.raises(OperationError) as caught:
        run(kubernetes, **params)
    assert caught.value.reason == reason
    assert len(caught.value.remaining) == remaining
    assert kubernetes.writes == []


def test_a_pod_that_is_gone_meanwhile_is_not_done_and_no_failure() -> None:
    kubernetes = Kubernetes(Model([slurm("cpu-0", "ALLOCATED")], [pod("cpu-0")], [host()], [nodeset(1)]))
    kubernetes.away.add("cpu-0")
    context, _result = run(kubernetes)
    assert [(action.kind, action.done) for action in context.actions] == [("protect", False)]


def test_a_lock_that_another_holds_is_named() -> None:
    kubernetes = cordoned()
    spec = {"holderIdentity": "other", "renewTime": "x", "leaseDurationSeconds": 30}
    kubernetes.lease = {"metadata": {"resourceVersion": "1"}, "spec": spec}
    with pytest.raises(OperationError) as caught:
        run(kubernetes, lock_timeout=0)
    assert (caught.value.reason, caught.value.remaining) == ("Locked", ("other",))
    assert kubernetes.writes == []


def test_a_failure_gives_the_lock_back() -> None:
    kubernetes = cordoned()

    def fail() -> None:
        raise OperationError("no", reason="SlurmRefused")

    kubernetes.before_write = fail
    with pytest.raises(OperationError):
        run(kubernetes)
    assert kubernetes.lease is not None
    assert kubernetes.lease["spec"]["holderIdentity"] == ""


class Script:
    """Stands for the watches: what happens before each pass; time moves on by ten seconds."""

    def __init__(self, *steps: Callable[[], None]) -> None:
        self.steps = list(steps)
        self.now = 0.0

    def __call__(self, *_arguments: Any) -> Script:
        return self

    def monotonic(self) -> float:
        return self.now

    def sleep(self, _seconds: float) -> None:
        self.wait()

    def wait(self, *_arguments: Any) -> None:
        self.now += 10
        if self.steps:
            self.steps.pop(0)()


def resident(kubernetes: Kubernetes, monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], None], **params: Any) -> Any:
    script = Script(*steps)
    monkeypatch.setattr(under_test, "Alarm", script)
    monkeypatch.setattr(under_test, "time", script)
    return run(kubernetes, watch=True, duration=10 * len(steps) + 5, **params)


def test_resident_it_mends_what_comes_and_outlives_what_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    kubernetes = Kubernetes(Model([slurm("cpu-0")], [pod("cpu-0")], [host()], [nodeset(1)]))
    model = kubernetes.model
    context, result = resident(
        kubernetes,
        monkeypatch,
        lambda: model.hosts.update(n1=host(cordoned=True)),
        lambda: kubernetes.away.add("slurm"),
        lambda: None,
        kubernetes.away.clear,
        lambda: kubernetes.away.add("Node"),
        kubernetes.away.clear,
    )
    assert kinds(context) == ["drain"] * len(context.actions)
    assert [item["reason"] for item in result["interruptions"]] == ["SlurmUnreachable", "Unreachable"]
    assert len(context.warnings) == 2
    assert result["passes"] == 4
    assert kubernetes.lease is not None
    assert kubernetes.lease["spec"]["holderIdentity"] == ""


def test_resident_it_stands_by_while_another_run_holds_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    kubernetes = cordoned()
    spec = {"holderIdentity": "other", "renewTime": "x", "leaseDurationSeconds": 3000}
    kubernetes.lease = {"metadata": {"resourceVersion": "1"}, "spec": spec}
    context, result = resident(
        kubernetes, monkeypatch, lambda: None, lambda: spec.update(holderIdentity=""), lock_timeout=0
    )
    assert kinds(context) == ["drain"] * 3
    assert [item["reason"] for item in result["interruptions"]] == ["Locked"]
    assert result["counts"] == {"nodes": 3, "drain": 3}
    kubernetes.lease["spec"] |= {"holderIdentity": "other", "leaseDurationSeconds": 3000}
    with pytest.raises(OperationError) as caught:
        resident(kubernetes, monkeypatch, lambda: None, lock_timeout=0)
    assert caught.value.reason == "Locked"


def test_resident_what_fails_is_planned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm takes no change for a while; what was not done is not told as done, or twice."""
    kubernetes = cordoned()

    def refuse() -> None:
        raise OperationError("not now", reason="SlurmRefused")

    def allow() -> None:
        kubernetes.before_write = lambda: None

    kubernetes.before_write = refuse
    context, result = resident(kubernetes, monkeypatch, lambda: None, lambda: None, allow, lambda: None)
    assert [item["reason"] for item in result["interruptions"]] == ["SlurmRefused"]
    assert [(action.target, action.done) for action in context.actions[:3]] == [
        ("cpu-0", True), ("cpu-1", True), ("cpu-2", True),
    ]  # fmt: skip


def test_resident_it_begins_also_when_slurm_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    kubernetes = cordoned()
    kubernetes.away.add("slurm")
    context, result = resident(kubernetes, monkeypatch, lambda: None, kubernetes.away.clear)
    assert kinds(context) == ["drain"] * 3
    assert result["interruptions"][0]["reason"] == "SlurmUnreachable"


def test_resident_it_tells_of_answers_that_took_long(monkeypatch: pytest.MonkeyPatch) -> None:
    kubernetes = Kubernetes(Model([slurm("cpu-0")], [pod("cpu-0")], [host()], [nodeset(1)]))
    lists = kubernetes.list

    def slowly(*arguments: Any, **more: Any) -> Any:
        under_test.time.sleep(4)  # ten seconds of the script
        return lists(*arguments, **more)

    def from_now_on() -> None:
        kubernetes.list = slowly  # type: ignore[method-assign]

    _context, result = resident(kubernetes, monkeypatch, from_now_on, lambda: None)
    assert [item["reason"] for item in result["interruptions"]] == ["Slow"]


def test_resident_that_never_saw_both_sides_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    kubernetes = cordoned()
    kubernetes.away.add("slurm")
    with pytest.raises(OperationError) as caught:
        resident(kubernetes, monkeypatch, lambda: None)
    assert caught.value.reason == "SlurmUnreachable"


def test_what_is_returned_is_what_is_documented() -> None:
    documented = yaml.safe_load(reconcile.RETURN)
    _context, result = run(cordoned())
    common = {"actions", "api_calls", "duration", "reason", "remaining", "hint"}
    assert set(documented) == {*result, *common}


def test_the_real_run_has_what_the_operation_uses() -> None:
    assert {"params", "kubernetes", "slurm_calls", "progress", "warn", "actions"} <= set(dir(Run({}, "x")))


def test_the_guide_names_every_rule_reason_and_variable() -> None:
    guide = (CHECKOUT / "docs" / "guides" / "reconcile.md").read_text(encoding="utf-8")
    playbook = (CHECKOUT / "playbooks" / "reconcile.yml").read_text(encoding="utf-8")
    assert {name for name in RULES if f"\n| `{name}` |" not in guide} == set()
    assert {word for word in OURS if f"`{word}" not in guide} == set()
    variables = set(re.findall(r"reconcile_(?!result)\w+", playbook))
    assert variables == set(re.findall(r"reconcile_\w+", guide))
