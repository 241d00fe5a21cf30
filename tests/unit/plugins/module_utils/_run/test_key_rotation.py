# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""key_rotation: one Secret, a few daemons, and what happens when a run ends at any point."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import key_rotation as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import key_rotation
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.key_pods import CONTROLLER, LOGIN, WORKER, Lack
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, carry_out
from ansible_collections.slurm_ops.kubernetes.plugins.modules import key_rotation as module

Object = dict[str, Any]

SECRET: Object = {
    "metadata": {"name": "hpc-auth", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "data": {
        name: base64.b64encode(value).decode()
        for name, value in {"slurm.key": b"o" * 1024, "jwt.key": b"j" * 32, "jwks.json": b'{"keys": []}'}.items()
    },
}
PARTS = {"hpc-controller-0": CONTROLLER, "cpu-0": WORKER, "hpc-login-0": LOGIN}


class Cluster:
    """The API server's Secret and the daemons, each with what it has read."""

    def __init__(self) -> None:
        self.secret: Object | None = copy.deepcopy(SECRET)
        self.read: dict[str, Object] = {}
        self.pods: dict[str, Object] = {}  # what their files are
        self.calls: list[str] = []
        self.deaf: set[str] = set()
        self.fail_after: int | None = None
        for name in (*PARTS, "slurmdbd"):
            self.read[name] = dict(SECRET["data"])

    # --- the client ---
    def get(self, _resource: Any, _namespace: str, _name: str) -> Object | None:
        self.calls.append("get")
        return copy.deepcopy(self.secret)

    def patch(self, _resource: Any, _namespace: str, _name: str, change: Object) -> Object:
        assert self.secret is not None
        if change["metadata"]["resourceVersion"] != self.secret["metadata"]["resourceVersion"]:
            raise ApiError("changed", status=409, reason="Conflict")
        self._count("patch")
        data = {**self.secret["data"], **change.get("data", {})}
        self.secret["data"] = {name: value for name, value in data.items() if value is not None}
        version = str(int(self.secret["metadata"]["resourceVersion"]) + 1)
        self.secret["metadata"] |= {"annotations": change["metadata"]["annotations"], "resourceVersion": version}
        return copy.deepcopy(self.secret)

    def _count(self, what: str) -> None:
        self.calls.append(what)
        if self.fail_after is not None:
            self.fail_after -= 1
            if self.fail_after < 0:
                raise OperationError("the machine went down", reason="Down")

    # --- KeyPods ---
    def those(self, *, between_daemons: bool) -> Mapping[str, Any]:
        return PARTS if between_daemons else {"hpc-controller-0": CONTROLLER}

    def behind(self, pods: Mapping[str, Any], _data: planner.Data, *, copies: bool = False) -> dict[str, Lack]:
        assert self.secret is not None
        found = {}
        for name in pods:
            if self.pods.get(name, SECRET["data"]) != self.secret["data"]:
                found[name] = Lack(f"Pod {name} does not have them", files=True)
            elif self.read[name] != self.secret["data"]:
                found[name] = Lack(f"{name} has not read them")
        return found

    def nudge(self, pods: list[str]) -> None:
        self._count("nudge")
        assert self.secret is not None
        self.pods |= {name: dict(self.secret["data"]) for name in pods}

    def reconfigure(self) -> None:
        self._count("reconfigure")
        self.read |= {name: value for name, value in self.pods.items() if name not in self.deaf}
        self.check()

    def ask_again(self, _pods: Mapping[str, Any]) -> None:
        self._count("ask again")

    def has_slurmdbd(self) -> bool:
        return True

    def slurmdbd_is_behind(self, _data: planner.Data) -> str:
        assert self.secret is not None
        return "" if self.read["slurmdbd"] == self.secret["data"] else "older keys"

    def restart_slurmdbd(self) -> None:
        self._count("restart")
        assert self.secret is not None
        self.read["slurmdbd"] = dict(self.secret["data"])
        self.check()

    def check(self) -> None:
        """Everybody who signs is believed by everybody, at any moment."""
        for signer in self.read.values():
            key = signing(signer)
            assert all(key in believed(other) for other in self.read.values())


def signing(data: Mapping[str, str]) -> str:
    if "slurm.jwks" in data:
        keys = json.loads(base64.b64decode(data["slurm.jwks"]))["keys"]
        return str(next(key["k"] for key in keys if key.get("use") == "default"))
    return base64.urlsafe_b64encode(base64.b64decode(data["slurm.key"])).rstrip(b"=").decode()


def believed(data: Mapping[str, str]) -> set[str]:
    if "slurm.jwks" in data:
        return {key["k"] for key in json.loads(base64.b64decode(data["slurm.jwks"]))["keys"]}
    return {signing(data)}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    found = Cluster()
    monkeypatch.setattr(key_rotation, "KeyPods", lambda *_arguments: found)
    monkeypatch.setattr(key_rotation, "REACHED_WITHIN", 0)
    # One of RSA takes a second to be made.
    monkeypatch.setattr(key_rotation.keys, "token_key", lambda kid: {"kid": kid, "n": "AQ", "e": "AQAB", "d": "AQ"})
    monkeypatch.setattr(key_rotation.time, "sleep", lambda _seconds: None)
    return found


def carried_out(cluster: Cluster, *, check: bool = False, **options: Any) -> Run:
    defaults = {name: option.get("default") for name, option in module.ARGUMENTS.options.items()}
    quick = {"wait_timeout": 0, "wait_sleep": 0, "overlap": "0"}
    run = Run({**defaults, "namespace": "hpc", "name": "hpc", **quick, **options}, "hpc")
    run._kubernetes = cluster  # type: ignore[assignment]
    result = carry_out(run, key_rotation.KeyRotation(run), check=check)
    assert set(result) < set(yaml.safe_load(module.RETURN))
    return run


def kinds(run: Run) -> list[str]:
    return [action.kind for action in run.actions]


def test_a_rotation_and_then_nothing_more(cluster: Cluster) -> None:
    predicted = carried_out(cluster, check=True)
    assert "patch" not in cluster.calls
    run = carried_out(cluster)
    assert kinds(run) == kinds(predicted)
    assert kinds(run) == ["add", "restart", "reload", "switch", "reload", "retire", "restart", "reload", "finish"]
    assert all(action.done for action in run.actions)
    assert set(cluster.secret["data"]) == {"slurm.key", "jwt.key", "jwks.json", "jwt.jwk"}  # type: ignore[index]
    shown = str([action.result() for action in run.actions])
    assert not any(value in shown for value in cluster.secret["data"].values())  # type: ignore[index]
    cluster.calls.clear()
    assert kinds(carried_out(cluster)) == []
    assert cluster.calls == ["get"]


def ended_well(cluster: Cluster, which: list[str]) -> bool:
    try:
        carried_out(cluster, which=which, older_than="0")
    except OperationError:
        return False
    return True


@pytest.mark.parametrize("which", [["slurm"], ["jwt"], ["jwt", "slurm"]])
def test_a_run_that_ends_at_any_point_is_finished_by_the_next(cluster: Cluster, which: list[str]) -> None:
    for calls in range(40):
        cluster.fail_after = calls
        if ended_well(cluster, which):
            assert calls > 8
            return
        cluster.fail_after = None
        carried_out(cluster, which=which)
        assert all(item.phase == planner.SETTLED for item in planner.rotations(cluster.secret or {}).values())
    pytest.fail("it never got to its end")


def test_who_does_not_read_holds_it_and_is_named(cluster: Cluster) -> None:
    cluster.deaf = {"cpu-0"}
    with pytest.raises(OperationError) as caught:
        carried_out(cluster)
    assert caught.value.reason == "Timeout"
    assert "cpu-0 has not read them" in str(caught.value)
    assert "ask again" in cluster.calls
    assert planner.rotations(cluster.secret or {})["slurm"].phase == planner.ADDED


def test_somebody_elses_change_is_not_lost(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def restart() -> None:
        assert cluster.secret is not None
        cluster.read["slurmdbd"] = dict(cluster.secret["data"])
        cluster.secret["metadata"]["resourceVersion"] = "77"

    monkeypatch.setattr(cluster, "restart_slurmdbd", restart)
    with pytest.raises(OperationError) as caught:
        carried_out(cluster)
    assert caught.value.reason == "Conflict"


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"data": {"slurm.key": "eA=="}}, "NoKey"), ({"immutable": True}, "Immutable"), (None, "NoKey")],
)
def test_what_cannot_be_is_refused(cluster: Cluster, change: Object | None, reason: str) -> None:
    cluster.secret = None if change is None else {**SECRET, **change}
    with pytest.raises(OperationError) as caught:
        carried_out(cluster)
    assert caught.value.reason == reason
    assert "patch" not in cluster.calls


@pytest.mark.parametrize("text", ["", "soon", "-1", "10x", "1.5h"])
def test_spans_that_are_none_are_refused(cluster: Cluster, text: str) -> None:
    with pytest.raises(OperationError) as caught:
        carried_out(cluster, older_than=text)
    assert caught.value.reason == "InvalidVariables"
