# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Pods that have keys: which are asked, what they lack, and when a daemon has read its keys."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.exec import Finished
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import key_pods
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.key_pods import (
    CONTROLLER,
    LOGIN,
    WORKER,
    KeyPods,
)

Object = dict[str, Any]

DATA = {"slurm.key": b"one", "slurm.jwks": b"two", "jwt.key": b"three", "jwks.json": b"four", "jwt.jwk": b"five"}
CONTAINERS = {"slurmd": "slurmd", "login": "login", "hpc-controller-0": "slurmctld"}


def pod(name: str, kind: str, keys: Iterable[str] = ("slurm.key", "slurm.jwks", "jwks.json"), **status: Any) -> Object:
    sources = [{"secret": {"name": "hpc-auth", "items": [{"key": key, "path": key}]}} for key in keys]
    return {
        "metadata": {"name": name},
        "spec": {"volumes": [{"name": "slurm", "projected": {"sources": sources}}]},
        "status": {"containerStatuses": [{"name": CONTAINERS[kind], "state": status or {"running": {}}}]},
    }


class Api:
    """Pods, and what a command in one of them says."""

    def __init__(self) -> None:
        self.pods = {
            "slurmd": [pod("cpu-0", "slurmd"), pod("cpu-1", "slurmd", waiting={})],
            "login": [pod("hpc-login-0", "login")],
        }
        self.controller: Object | None = pod("hpc-controller-0", "hpc-controller-0")
        self.said: dict[str, str] = {}
        self.commands: list[str] = []

    def list(self, _resource: Any, _namespace: str, labels: str) -> list[Object]:
        assert labels.endswith(",app.kubernetes.io/instance=hpc")
        return self.pods[labels.partition("=")[2].partition(",")[0]]

    def get(self, _resource: Any, _namespace: str, _name: str) -> Object | None:
        return self.controller

    def map_concurrent(self, work: Any, items: list[str]) -> Iterator[Any]:
        for item in items:
            try:
                yield item, work(item)
            except OperationError as error:
                yield item, error
                return


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    found = Api()

    def run(_client: Any, _namespace: str, name: str, command: list[str], **_more: Any) -> Finished:
        found.commands.append(command[3] if len(command) > 3 else "copy")
        if name not in found.said:
            raise OperationError(f"Pod {name} does not exist", reason="NotFound")
        return Finished(0, found.said[name], "")

    monkeypatch.setattr(key_pods, "exec_in_pod", run)
    return found


def pods_of(api: Api) -> KeyPods:
    return KeyPods(api, "hpc", "hpc", "hpc-auth")  # type: ignore[arg-type]


def says(files: Iterable[str], *, came: float, began: int, configured: str = "") -> str:
    """The answer of a machine that is up for 1,000 s at the time 5,000: ticks begin at 4,000."""
    hashes = "".join(f"{hashlib.sha256(DATA[file]).hexdigest()}  {file}\n" for file in files)
    processes = f"7 {began}\n" if began else ""
    times = f"{came}\n5000.0\n1000.0\n"
    return f"=== hashes\n{hashes}=== times\n{times}=== configuration\n{configured}\n=== processes\n{processes}"


def test_who_has_keys(api: Api) -> None:
    assert pods_of(api).those(between_daemons=False) == {"hpc-controller-0": CONTROLLER}
    # One that does not run yet reads what there is when it does.
    expected = {"hpc-controller-0": CONTROLLER, "cpu-0": WORKER, "hpc-login-0": LOGIN}
    assert pods_of(api).those(between_daemons=True) == expected


def test_pods_of_an_older_template_are_named(api: Api) -> None:
    api.pods["slurmd"].append(pod("old-0", "slurmd", keys=["slurm.key"]))
    with pytest.raises(OperationError) as caught:
        pods_of(api).those(between_daemons=True)
    assert (caught.value.reason, list(caught.value.remaining)) == ("NotMounted", ["old-0"])
    api.controller = None
    with pytest.raises(OperationError) as caught:
        pods_of(api).those(between_daemons=True)
    assert caught.value.reason == "NotRunning"


TWO = ("slurm.key", "slurm.jwks")


@pytest.mark.parametrize(
    ("part", "answer", "expected"),
    [
        (WORKER, says(TWO, came=4500, began=60_000), ""),
        (WORKER, says(TWO, came=4500, began=40_000), "slurmd in Pod p has not read its keys since they came"),
        (WORKER, says(TWO, came=4500, began=40_000, configured="4501"), "slurmd in Pod p has not read its keys"),
        (WORKER, says(TWO, came=4500, began=0), "there is no slurmd in Pod p"),
        (WORKER, says(TWO[:1], came=4500, began=60_000), "Pod p does not have the Secret's slurm.jwks yet"),
        (CONTROLLER, says(TWO, came=4500, began=60_000), "does not have the Secret's jwt.key, jwks.json yet"),
        (LOGIN, says(TWO, came=4500, began=40_000, configured="4501.5"), ""),
        (LOGIN, says(TWO, came=4500, began=40_000, configured="4499.5"), "sackd in Pod p has not read its keys"),
        (LOGIN, says(TWO, came=4500, began=60_000), ""),
    ],
)
def test_when_a_daemon_has_read_its_keys(api: Api, part: Any, answer: str, expected: str) -> None:
    api.said = {"p": answer}
    found = pods_of(api).behind({"p": part}, DATA)
    assert (expected in found["p"].text) if expected else found == {}


def test_what_cannot_be_looked_at_has_not_read_them(api: Api) -> None:
    api.said = {"b": says(TWO, came=4500, began=60_000)}
    found = pods_of(api).behind({"a": WORKER, "b": WORKER}, DATA)
    assert {name: lack.text for name, lack in found.items()} == {
        "a": "Pod a does not exist",
        "b": "Pod b was not looked at",
    }
    assert all(lack.files for lack in found.values())


def test_only_login_pods_have_copies(api: Api) -> None:
    api.said = dict.fromkeys(("l", "w"), says(TWO, came=4500, began=60_000))
    pods_of(api).behind({"l": LOGIN, "w": WORKER}, DATA, copies=True)
    assert api.commands == ["copy", "look", "look"]
