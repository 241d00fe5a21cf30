# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written of a ConfigMap that is brought into slurmctld's Pod, and what a look into that Pod says."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import CLUSTER
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.exec import Finished
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import live_files, slurm_config_live
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm_config_live import ConfigPod

LOOK = """\
=== hashes
11aa  cgroup.conf
22bb  slurm.conf
=== times
1000.000
1100.5
200.0
=== processes
8 30000
7 20000
=== version
slurm-wlm 26.05.5
=== answer
Slurmctld(primary) at slurm-controller-0 is UP
=== partitions
cpu
gpu
"""


class Kubernetes:
    """An API server that keeps what others have put into an object."""

    def __init__(self, **objects: Any) -> None:
        self.objects = objects
        self.patches: list[Any] = []
        self.applied: list[Any] = []

    def get(self, resource: Any, namespace: str, name: str) -> Any:
        return self.objects.get(name.replace("-", "_"))

    def apply(self, manifest: Any, namespace: str, *, dry_run: bool = False, **more: Any) -> Any:
        self.applied.append((manifest, dry_run))
        return {"data": {**manifest["data"], "theirs": ""}}

    def patch(self, resource: Any, namespace: str, name: str, change: Any) -> None:
        self.patches.append(change)


def pod(kubernetes: Kubernetes) -> ConfigPod:
    return ConfigPod(kubernetes, "ns", "slurm")  # type: ignore[arg-type]


def test_nothing_but_the_files_is_left() -> None:
    kubernetes = Kubernetes()
    pod(kubernetes).apply({"slurm.conf": "A=1\n"}, {"note": "1"})
    ((manifest, _dry),) = kubernetes.applied
    assert manifest["metadata"]["name"] == "slurm-config"
    assert manifest["metadata"]["annotations"] == {"note": "1"}
    assert manifest["metadata"]["labels"][CLUSTER] == "slurm"
    assert kubernetes.patches == [{"data": {"theirs": None}}]
    pod(kubernetes).apply({"slurm.conf": "A=1\n"}, dry_run=True)
    assert len(kubernetes.patches) == 1


def test_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_files, "exec_in_pod", lambda *args, **more: Finished(0, LOOK, ""))
    assert pod(Kubernetes()).look() == slurm_config_live.Seen(
        {"cgroup.conf": "11aa", "slurm.conf": "22bb"}, True, 20000, True, "26.05.5", frozenset({"cpu", "gpu"})
    )
    silent = LOOK.replace("is UP", "is DOWN")
    monkeypatch.setattr(live_files, "exec_in_pod", lambda *args, **more: Finished(0, silent, ""))
    assert not pod(Kubernetes()).look().answers


def test_unreadable_jobs_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_files, "exec_in_pod", lambda *args, **more: Finished(1, "=== jobs\n", "slurm_load_jobs"))
    with pytest.raises(OperationError, match="does not tell its jobs: slurm_load_jobs"):
        pod(Kubernetes()).use()


def test_a_refusal_has_slurmctlds_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_files, "exec_in_pod", lambda *args, **more: Finished(1, "", "slurm_reconfigure error\n"))
    with pytest.raises(OperationError, match="does not take the new files: slurm_reconfigure error") as raised:
        pod(Kubernetes()).reconfigure()
    assert raised.value.reason == "Refused"


def test_the_topology_is_over_a_file_of_its_name() -> None:
    files = {"slurm.conf": "", "topology.conf": "# nothing\n"}
    seen = slurm_config_live.Seen({"slurm.conf": "other", "topology.conf": "other"}, True, 1, True, "", frozenset())
    plain = pod(Kubernetes())
    assert plain.lacks(files, seen, {}) == ["slurm.conf", "topology.conf"]
    covered = pod(Kubernetes(slurm_topology={"data": {"topology.conf": "SwitchName=x\n"}}))
    assert covered.shown(files) == {"slurm.conf": ""}
    assert covered.lacks({"slurm.conf": ""}, seen, {"topology.conf": ""}) == ["slurm.conf"]


def test_whose_configuration_it_is() -> None:
    ours = {"metadata": {"labels": {CLUSTER: "slurm"}}}
    pod(Kubernetes()).require_ours(None)
    pod(Kubernetes()).require_ours(ours)
    theirs = {"metadata": {"labels": {CLUSTER: "b"}, "managedFields": [{"manager": "helm"}]}}
    with pytest.raises(OperationError, match="ConfigMap ns/slurm-config exists and was made by helm") as raised:
        pod(Kubernetes()).require_ours(theirs)
    assert raised.value.reason == "NameClash"


def test_whether_the_pod_shows_every_file() -> None:
    def mounting(**source: Any) -> Any:
        sources = [{"secret": {"name": "slurm-config"}}, {"configMap": source}]
        return {"spec": {"volumes": [{"emptyDir": {}}, {"projected": {"sources": sources}}]}}

    assert slurm_config_live.mounts_whole(mounting(name="slurm-config"), "slurm-config")
    assert not slurm_config_live.mounts_whole(mounting(name="slurm-config", items=[{}]), "slurm-config")
    assert not slurm_config_live.mounts_whole(mounting(name="slurm-topology"), "slurm-config")
