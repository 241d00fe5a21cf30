# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left of a cluster when a change of its topology fails at any step. That it works is a live test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.topology import Topology
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import topology as under_test
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import topology_live
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.lint import Verdict
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import stages

NODES = ["n1", "n2"]
OLD = {"n1": ["z", "l1"], "n2": ["z", "l2"]}
NEW = {"n1": ["z", "l1"], "n2": ["z", "l3"]}


class Cluster:
    """Slurm's REST API and the controller's Pod in one: a file, what was read of it, and places of nodes."""

    release = "26.05.5"

    def __init__(self) -> None:
        self.file: str | None = None
        self.read: Sequence[Topology] = ()
        self.places = dict.fromkeys(NODES, "")
        self.dead_with = ""  # a text in a file with which slurmctld dies
        self.refuses = ""  # a place that slurmctld refuses
        self.dead = False
        self.log: list[str] = []
        self.target, self.pod, self.yaml = "ConfigMap", "slurm-controller-0", True

    # Slurm
    def require_controller(self) -> None:
        pass

    def nodes(self) -> Any:
        if self.dead:
            raise OperationError("dead", reason="SlurmUnreachable")
        items = [
            {"name": name, "state": ["IDLE", "DYNAMIC_NORM"], "topology": place} for name, place in self.places.items()
        ]
        return type("Listing", (), {"items": items})

    def ping(self) -> list[dict[str, Any]]:
        return [{"responding": not self.dead}]

    def reconfigure(self) -> None:
        self.log.append("reconfigure")
        self.dead = bool(self.dead_with and self.dead_with in (self.file or ""))
        if not self.dead:
            self.read = topology_live.read(self.file, yaml=True)

    def update_nodes(self, names: Iterable[str], *, topology_str: str) -> None:
        self.log.append(f"{','.join(names)} to {topology_str or 'nowhere'}")
        if topology_str and topology_str == self.refuses:
            raise OperationError("Slurm refused", reason="UnknownTopology")
        self.places.update(dict.fromkeys(names, topology_str))

    # The Pod
    def exists(self) -> bool:
        return True

    def use(self, *, yaml: bool) -> None:
        pass

    def require_mounted(self) -> None:
        pass

    def text(self) -> str | None:
        return self.file

    def write(self, text: str | None) -> bool:
        self.log.append("write")
        self.file = text
        if self.dead and self.dead_with not in (text or ""):
            self.dead = False  # the kubelet starts it again
        return True

    def standby_lacks(self, wanted: Mapping[str, str]) -> str:
        return ""

    def words(self) -> Sequence[str]:
        return ["fatal: no such switch"] if self.dead else []

    def look(self, names: Sequence[str] = ()) -> topology_live.Seen:
        shown = {item.name: item for item in self.read if item.name in names}
        return topology_live.Seen("", topology_live.sha256(self.file), self.file or "", shown)


class Run:
    """What an operation gets."""

    def __init__(self, places: Mapping[str, Any]) -> None:
        keys = ("labels", "mapping_file", "ibnetdiscover", "nodesets", "block_sizes")
        usual = {"type": "tree", "default": False, "root": "root", "unplaced": "unplaced", "names": "value"}
        topologies = [{"name": "net", "mapping": places, **dict.fromkeys(keys), **usual}]
        self.params = {
            "namespace": "ns", "name": "slurm", "state": "present", "apply": True, "dest": None, "content": None,
            "topologies": topologies, "ignore_unknown": False, "wait_timeout": 1, "wait_sleep": 0,
        }  # fmt: skip
        self.kubernetes = type("Kubernetes", (), {"list": staticmethod(lambda *args, **more: [])})
        self.slurm_calls: Counter[str] = Counter()
        self.actions: list[Any] = []
        self.progress = None
        self.warned: list[str] = []

    def warn(self, text: str) -> None:
        self.warned.append(text)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(under_test, "client_of", lambda *args: made)
    monkeypatch.setattr(under_test, "Controller", lambda *args: made)
    monkeypatch.setattr(under_test, "lint", lambda *args, **more: Verdict(True, ()))
    return made


def change(places: Mapping[str, Any]) -> Run:
    run = Run(places)
    work = under_test.TopologyChange(run)  # type: ignore[arg-type]
    run.actions += work.plan()
    for batch in stages(run.actions):
        work.act(batch)
    work.wait()
    return run


def state(cluster: Cluster) -> tuple[str | None, dict[str, str], Sequence[Topology]]:
    return cluster.file, dict(cluster.places), cluster.read


def test_there_and_on(cluster: Cluster) -> None:
    change(OLD)
    assert cluster.places == {"n1": "net:l1", "n2": "net:l2"}
    cluster.log.clear()
    change(NEW)
    assert cluster.log == ["n2 to nowhere", "write", "reconfigure", "n2 to net:l3"]
    assert change(NEW).actions == []


@pytest.mark.parametrize(
    ("fault", "value", "log"),
    [
        # slurmctld dies of the new file: the old one is there before anything is asked of slurmctld.
        (
            "dead_with",
            "l3",
            ["n2 to nowhere", "write", "reconfigure", "write", "reconfigure", "n2 to net:l2"],
        ),
        # A node cannot go to its new place: it is out of it before the file that has the place goes.
        (
            "refuses",
            "net:l3",
            [
                "n2 to nowhere", "write", "reconfigure", "n2 to net:l3", "n2 to nowhere", "write", "reconfigure",
                "n2 to net:l2",
            ],
        ),
    ],
)  # fmt: skip
def test_a_failure_leaves_all_as_it_was(cluster: Cluster, fault: str, value: str, log: list[str]) -> None:
    change(OLD)
    before = state(cluster)
    cluster.log.clear()
    setattr(cluster, fault, value)
    with pytest.raises(OperationError, match="The old topology is back") as raised:
        change(NEW)
    assert ("slurmctld says: fatal: no such switch" in str(raised.value)) == (fault == "dead_with")
    assert cluster.log == log
    assert state(cluster) == before


def test_what_cannot_be_put_back_is_told(cluster: Cluster) -> None:
    change(OLD)
    cluster.dead_with = "tree"  # dies of any file
    with pytest.raises(OperationError, match="Putting the old topology back failed too") as raised:
        change(NEW)
    assert raised.value.reason == "NotPutBack"
    assert "slurm-controller-0" in raised.value.hint
    assert "l2" in (cluster.file or "")  # the old file is there all the same


def test_a_node_that_goes_meanwhile_is_left_out(cluster: Cluster) -> None:
    change(OLD)
    run = Run(NEW)
    work = under_test.TopologyChange(run)  # type: ignore[arg-type]
    run.actions += work.plan()
    del cluster.places["n2"]
    cluster.log.clear()
    work.act(stages(run.actions)[0])
    assert "n2" not in cluster.places
    assert cluster.log == [" to nowhere"]


def test_nothing_is_done_when_the_second_slurmctld_refuses(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "lint", lambda *args, **more: Verdict(False, ("fatal: no",)))
    with pytest.raises(OperationError, match="fatal: no"):
        change(OLD)
    assert cluster.log == []
