# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the module reconcile: refused, two at once, resident, by the guide, and with sides that go away."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import parse

from ..support.guides import examples_of, inventory_of, text_of
from ..support.kube import Json, Kube
from ..support.minislurm import NAME, REGISTRY, MiniSlurm
from ..support.playbook import CHECKOUT, PlaybookResult
from .scene import (
    CORDON_REASON,
    ON_NODE2,
    Reconcile,
    cordon_main_path,
    deploy,
    kinds,
    nodes,
    pod,
    shown,
    state,
    wait_until_all_is_well,
)

# --- limits and locks -------------------------------------------------------------------------------------------------


def test_refusals_change_nothing(mini: MiniSlurm, reconcile: Reconcile, node2: str) -> None:
    mini.kube.patch(node2, {"spec": {"unschedulable": True}})
    for args, reason in (({"max_actions": "50%"}, "TooManyNodes"), ({"fail_on_drift": True}, "Drift")):
        failed = reconcile(args, fails=True)
        assert failed["reason"] == reason
        assert len(failed["remaining"]) == 3
        assert failed["api_calls"]["writes"] == 0
        assert not failed["changed"]
    assert not any(parse(item["state"]).drain for item in nodes(mini).values())
    assert reconcile({"max_actions": "lots"}, fails=True)["reason"] == "Invalid"
    mini.kube.patch(node2, {"spec": {"unschedulable": None}})
    assert not reconcile({"max_actions": "50%", "fail_on_drift": True})["changed"]


@pytest.fixture
def background(reconcile: Reconcile) -> Iterator[Callable[..., Future[Json]]]:
    with ThreadPoolExecutor(max_workers=4) as pool:

        def start(args: Json, **more: Any) -> Future[Json]:
            time.sleep(0.3)  # each run has a folder of its own, by number
            return pool.submit(reconcile, args, **more)

        yield start


def test_two_runs_never_fight(
    mini: MiniSlurm, reconcile: Reconcile, node2: str, background: Callable[..., Future[Json]]
) -> None:
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{mini.namespace}/leases/{NAME}-reconcile"
    first = background({"watch": True, "duration": 14, "only": ["size"]})
    held = mini.kube.wait(lease, lambda item: item and item["spec"].get("holderIdentity"), timeout=30)
    mini.kube.patch(node2, {"spec": {"unschedulable": True}})
    failed = reconcile({"lock_timeout": 1}, fails=True)
    assert failed["reason"] == "Locked"
    assert failed["remaining"] == [held["spec"]["holderIdentity"]]
    assert not any(parse(item["state"]).drain for item in nodes(mini).values())
    # Two more wait for its end, and do each thing once between them.
    others = [background({"lock_timeout": 60}) for _count in range(2)]
    results = [other.result(timeout=90) for other in others]
    assert not first.result(timeout=30)["changed"]
    done = sorted(a["target"] for result in results for a in result["actions"] if a["kind"] == "drain" and a["done"])
    assert done == ON_NODE2
    assert not mini.kube.get(lease)["spec"]["holderIdentity"]
    mini.kube.patch(node2, {"spec": {"unschedulable": None}})
    wait_until_all_is_well(mini, reconcile)


# --- resident ---------------------------------------------------------------------------------------------------------


def api_server(kubeconfig: str) -> int:
    """Process number of the sandbox's API server."""
    sandbox = str(Path(kubeconfig).parent).encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"/kube-apiserver") and any(sandbox in word for word in words):
                return int(entry.name)
    raise AssertionError("this test stops the API server of a sandbox, and finds none")


def test_resident(
    mini: MiniSlurm, kubeconfig: str, reconcile: Reconcile, node2: str, background: Callable[..., Future[Json]]
) -> None:
    """It follows both sides within seconds, and outlives what goes away."""
    run = background({"watch": True, "duration": 80, "interval": 20, "poll": 2}, timeout=200)
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{mini.namespace}/leases/{NAME}-reconcile"
    mini.kube.wait(lease, lambda item: item and item["spec"].get("holderIdentity"), timeout=30)

    def drained(yes: bool, timeout: float = 10) -> None:
        mini.kube.wait(
            lambda: [state(mini, name).drain for name in ON_NODE2],
            lambda drains: drains == [yes] * 3,
            timeout=timeout,
            what=f"nodes on node2 are {'' if yes else 'not '}drained",
        )

    begun = time.monotonic()
    mini.kube.patch(node2, {"spec": {"unschedulable": True}})
    drained(True)
    assert time.monotonic() - begun < 5
    mini.client().update_nodes(["cpu-0"], state="undrain")
    drained(True)
    mini.kube.patch(node2, {"spec": {"unschedulable": None}})
    drained(False)
    # The API server hangs for 20 s.
    process = api_server(kubeconfig)
    os.kill(process, signal.SIGSTOP)
    try:
        time.sleep(20)
    finally:
        os.kill(process, signal.SIGCONT)
    mini.kube.patch(node2, {"spec": {"unschedulable": True}})
    drained(True, timeout=45)
    # slurmrestd is killed, and slurmctld starts again.
    mini.scale("restapi", 0)
    mini.kube.patch(node2, {"spec": {"unschedulable": None}})
    time.sleep(3)
    mini.scale("restapi", 1)
    drained(False, timeout=30)
    mini.run("pkill slurmctld")
    mini.kube.patch(node2, {"spec": {"unschedulable": True}})
    drained(True, timeout=45)
    mini.kube.patch(node2, {"spec": {"unschedulable": None}})
    drained(False, timeout=30)
    found = run.result(timeout=120)
    assert found["duration"] < 130
    told = [item["reason"] for item in found["interruptions"]]
    assert told[0] == "Slow", found["interruptions"]
    assert set(told) & {"SlurmUnreachable", "ControllerUnreachable"}
    assert all(action["done"] for action in found["actions"])
    wait_until_all_is_well(mini, reconcile)


def test_a_side_that_cannot_be_read_means_no_write(mini: MiniSlurm, reconcile: Reconcile, node2: str) -> None:
    mini.scale("restapi", 0)
    mini.kube.patch(node2, {"spec": {"unschedulable": True}})
    failed = reconcile(fails=True)
    assert failed["reason"] == "SlurmUnreachable"
    assert failed["api_calls"]["writes"] == 0
    mini.kube.patch(node2, {"spec": {"unschedulable": None}})
    mini.scale("restapi", 1)
    assert reconcile({"name": "other"}, fails=True)["reason"] == "NoKey"


def test_the_guide(mini: MiniSlurm, run_playbook: Callable[..., PlaybookResult], node2: str) -> None:
    """The commands of docs/guides/reconcile.md, as they stand there, but for the time to stay."""
    command = r"^    ansible-playbook slurm_ops\.kubernetes\.reconcile -i inventory/(.*)$"
    commands = re.findall(command, text_of("reconcile.md"), re.MULTILINE)
    assert len(commands) == 3
    mini.kube.patch(node2, {"metadata": {"annotations": {CORDON_REASON: "disk"}}, "spec": {"unschedulable": True}})
    for command in commands:
        given = dict(re.findall(r"-e (\w+)=(\S+)", command))
        given |= {"reconcile_watch_seconds": 3} if "reconcile_watch_seconds" in given else {}
        variables = {"slurm_namespace": mini.namespace, "reconcile_max_actions": "75%", **given}
        result = run_playbook("reconcile", extra_vars=variables, check="--check" in command)
        last = "\n".join(result.tasks[-1].result["msg"])
        assert last.startswith(f"{mini.namespace}/slurm: 4 nodes, ")
        if command == commands[0]:
            assert "cpu-0: to be drained: k8s: cordoned: disk" in last
            assert not any(state(mini, name).drain for name in ON_NODE2)
    assert all(state(mini, name).drain for name in ON_NODE2)


@contextmanager
def account(mini: MiniSlurm) -> Iterator[str]:
    """A ServiceAccount with the operator's Role and, for the moment, the ClusterRole of docs/guides/rbac.md."""
    kube, namespace, version = mini.kube, mini.namespace, "rbac.authorization.k8s.io/v1"
    rules = yaml.safe_load((CHECKOUT / "roles/cluster/files/operator-rules.yaml").read_text(encoding="utf-8"))["rules"]
    shown_there = examples_of("rbac.md")[-1]
    assert shown_there["kind"] == "ClusterRole"
    name = f"{namespace}-{shown_there['metadata']['name']}"
    made = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ops"}}
    kube.apply(f"/api/v1/namespaces/{namespace}/serviceaccounts/ops", made)
    subject = {"kind": "ServiceAccount", "name": "ops", "namespace": namespace}
    rbac = f"/apis/{version}"
    for kind, where, own in (
        ("Role", f"{rbac}/namespaces/{namespace}/", rules),
        ("ClusterRole", f"{rbac}/", shown_there["rules"]),
    ):
        role = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "rules": own}
        kube.apply(f"{where}{kind.lower()}s/{name}", role)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        binding = {"apiVersion": version, "kind": f"{kind}Binding", "metadata": {"name": name}}
        kube.apply(f"{where}{kind.lower()}bindings/{name}", {**binding, "subjects": [subject], "roleRef": reference})
    try:
        yield "ops"
    finally:
        kube.delete(f"{rbac}/clusterroles/{name}")
        kube.delete(f"{rbac}/clusterrolebindings/{name}")


def test_the_rights_of_the_guide_are_enough(mini: MiniSlurm, reconcile: Reconcile, node2: str) -> None:
    with account(mini) as name:
        account_of = {"impersonate_user": f"system:serviceaccount:{mini.namespace}:{name}"}
        mini.client().update_nodes(ON_NODE2, state="drain", reason="burn-in")
        reconcile({**account_of, "cordon": True})
        assert mini.kube.get(node2)["spec"]["unschedulable"]
        mini.client().update_nodes(ON_NODE2, state="undrain")
        mini.client().delete_nodes(["cpu-0"])
        done = reconcile({**account_of, "grace": 1})
        assert {"uncordon", "show", "restart"} == {kind for kind, _target in kinds(done)}
        assert not reconcile({**account_of, "watch": True, "duration": 2})["interruptions"]
    failed = reconcile(account_of, fails=True)
    assert failed["reason"] == "Forbidden"
    mini.wait_for_nodes("cpu-0")
    wait_until_all_is_well(mini, reconcile)


def test_the_deployment_of_the_guide(mini: MiniSlurm, tmp_path: Path) -> None:
    """As it stands there, but for the names of image and account."""
    kube, namespace = mini.kube, mini.namespace
    deployment = examples_of("reconcile.md")[0]
    name = deployment["metadata"]["name"]
    inventory = Path(inventory_of(mini, tmp_path)).read_text(encoding="utf-8")
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slurm-inventory"}}
    kube.create(f"/api/v1/namespaces/{namespace}/configmaps", {**config_map, "data": {"hosts.yml": inventory}})
    pod_spec = deployment["spec"]["template"]["spec"]
    version = yaml.safe_load((CHECKOUT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    pod_spec["containers"][0]["image"] = f"{REGISTRY}/operator:{version}"
    deployment["metadata"]["namespace"] = namespace
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"

    def update_and_see(state: str, reasons: list[str]) -> None:
        mini.client().update_nodes(["cpu-0"], state=state, reason="burn-in")
        kube.wait(
            lambda: pod(mini, "cpu-0"), lambda item: list(shown(item).values()) == reasons, what=f"{state} is shown"
        )

    with account(mini) as pod_spec["serviceAccountName"]:
        kube.create(f"{path}?fieldValidation=Strict", deployment)
        try:
            update_and_see("drain", ["burn-in"])
            update_and_see("undrain", [])
        finally:
            kube.delete(f"{path}/{name}")
    there = f"/api/v1/namespaces/{namespace}/pods"
    selector = f"app.kubernetes.io/name={name}"
    kube.wait(lambda: kube.items(there, labelSelector=selector), lambda pods: not pods, what="its Pod is gone")


@pytest.fixture
def oldest(kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    made = deploy("24.11", kube, kubeconfig, _namespaces("reconcile-2411"))
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")


def test_on_the_oldest_release(oldest: MiniSlurm, run_module: Callable[..., Json], node2: str) -> None:
    def run(args: Json | None = None, **more: Any) -> Json:
        return run_module("reconcile", {"namespace": oldest.namespace, "name": NAME, **(args or {})}, **more)

    cordon_main_path(oldest, run, node2)
