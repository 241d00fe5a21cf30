# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the live tests: a real Kubernetes, real Ansible runs, and real Slurm on it.

A test that finds no cluster fails; it is never skipped. Several of pytest's workers may share the tests, each with a
cluster of its own.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from xdist.workermanage import NodeManager

from .support.kube import Kube
from .support.playbook import Ansible, PlaybookResult
from .support.process import Completed
from .support.turn import turn

# Ended from outside, the tests still end what they started and remove what they made.
signal.signal(signal.SIGTERM, signal.default_int_handler)
NodeManager.EXIT_TIMEOUT = 60  # seconds that workers get for that; by itself 10

_RUN = "slurm-ops.kubernetes/live-tests"  # label of the namespaces that this run made


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "alone: measures time or looks at the whole machine; no other test runs meanwhile"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)


@pytest.fixture(scope="session")
def kubeconfig(worker_id: str) -> str:
    """Path of the kubeconfig in use; `make live` starts the sandboxes and names one for each of pytest's workers."""
    paths = os.environ.get("K8S_AUTH_KUBECONFIG") or os.environ.get("KUBECONFIG")
    if not paths:
        pytest.fail("Neither KUBECONFIG nor K8S_AUTH_KUBECONFIG names a cluster. Run the live tests with: make live")
    clusters = paths.split(os.pathsep)
    number = 0 if worker_id == "master" else int(worker_id.removeprefix("gw"))
    if number >= len(clusters):
        pytest.fail(f"Worker {worker_id} has no cluster: KUBECONFIG or K8S_AUTH_KUBECONFIG must list one for each.")
    path = clusters[number]
    if not Path(path).is_file():
        pytest.fail(f"There is no kubeconfig at {path}. Start the sandbox with: make sandbox")
    return str(Path(path).resolve())


@pytest.fixture(scope="session")
def kube(kubeconfig: str) -> Kube:
    return Kube(kubeconfig)


@pytest.fixture(scope="session")
def inventory() -> str:
    """The inventory that run_playbook takes when a test names none, relative to the checkout."""
    return os.environ.get("SLURM_OPS_TEST_INVENTORY", "inventories/sandbox")


@pytest.fixture(scope="session")
def ansible(kubeconfig: str, inventory: str, tmp_path_factory: pytest.TempPathFactory) -> Ansible:
    return Ansible(kubeconfig, tmp_path_factory.mktemp("ansible"), inventory)


@pytest.fixture(scope="session")
def run_module(ansible: Ansible) -> Callable[..., dict[str, Any]]:
    return ansible.run_module


@pytest.fixture(scope="session")
def run_playbook(ansible: Ansible) -> Callable[..., PlaybookResult]:
    return ansible.run_playbook


@pytest.fixture(scope="session")
def _namespaces(kube: Kube) -> Iterator[Callable[[str], str]]:
    """Makes namespaces, and at the end of the session waits until every one of them is gone."""
    run = secrets.token_hex(4)

    def make(stem: str) -> str:
        name = f"live-{stem[:40].strip('-')}-{secrets.token_hex(3)}"
        kube.create(
            "/api/v1/namespaces",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {_RUN: run}}},
        )
        return name

    yield make

    def left() -> list[dict[str, Any]]:
        return kube.items("/api/v1/namespaces", labelSelector=f"{_RUN}={run}")

    for namespace in left():
        if "deletionTimestamp" not in namespace["metadata"]:
            kube.delete(f"/api/v1/namespaces/{namespace['metadata']['name']}")
    kube.wait(left, lambda namespaces: not namespaces, timeout=180, what="the tests' namespaces are gone")


@pytest.fixture
def namespace(kube: Kube, request: pytest.FixtureRequest, _namespaces: Callable[[str], str]) -> Iterator[str]:
    """A new namespace for one test. Its removal goes on in the background; the session's end waits for it."""
    stem = re.sub(r"[^a-z0-9]+", "-", request.node.originalname.removeprefix("test_").lower())
    name = _namespaces(stem)
    yield name
    if kube.find(f"/api/v1/namespaces/{name}"):
        kube.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def site(run_playbook: Callable[..., PlaybookResult]) -> PlaybookResult:
    """Slurm, deployed by playbooks/site.yml as the inventory says."""
    return run_playbook("site")


@pytest.fixture(scope="session")
def slurm(kube: Kube, site: PlaybookResult) -> Callable[..., Completed]:
    """Run a command in a Pod of the deployed cluster."""
    namespace = "slurm"

    def find_pod(on: str) -> str:
        if on not in ("login", "controller"):
            return on
        selector = f"app.kubernetes.io/part-of=slurm,app.kubernetes.io/component={on}"
        pods = kube.items(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)
        running = [
            pod for pod in pods if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]
        if not running:
            raise AssertionError(f"No running Pod in namespace {namespace} has the labels {selector}")
        return str(running[0]["metadata"]["name"])

    def run(
        command: str | Sequence[str],
        *,
        on: str = "login",
        user: str | None = None,
        check: bool = True,
        timeout: float = 60,
    ) -> Completed:
        words = ["sh", "-c", command] if isinstance(command, str) else list(command)
        if user:
            words = ["runuser", "-u", user, "--", *words]
        completed = kube.exec(namespace, find_pod(on), words, timeout=timeout)
        return completed.check() if check else completed

    return run
