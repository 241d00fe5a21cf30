# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job: `site` brings a Slurm cluster up, a second run does nothing, check mode tells the truth."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .support.kube import Kube
from .support.playbook import PlaybookResult
from .support.process import Completed
from .support.samples import sandbox_slurm_conf

APPLYSET = "slurm_ops.kubernetes.applyset"
CONFIG = "slurm_ops.kubernetes.slurm_config"
WRITERS = (APPLYSET, CONFIG, "slurm_ops.kubernetes.secret", "slurm_ops.kubernetes.nodeset_scale")
NOTHING = 5.5  # seconds of 16 modules that do nothing, on such a machine (seen: 5.0 to 5.8)
COMPONENTS = ("database", "accounting", "controller", "restapi", "worker", "login", "directory")


def versions(kube: Kube, namespace: str) -> dict[str, str]:
    """Every object of the cluster that Ansible writes, with its resourceVersion-independent generation and data."""
    kinds = (
        "/api/v1/namespaces/{}/configmaps",
        "/api/v1/namespaces/{}/secrets",
        "/api/v1/namespaces/{}/services",
        "/api/v1/namespaces/{}/persistentvolumeclaims",
        "/apis/apps/v1/namespaces/{}/statefulsets",
        "/apis/apps/v1/namespaces/{}/deployments",
        "/apis/apps/v1/namespaces/{}/daemonsets",
        "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    )
    return {
        f"{kind.rsplit('/', 1)[1]}/{item['metadata']['name']}": str(
            max(
                (
                    entry["time"]
                    for entry in item["metadata"].get("managedFields", [])
                    if entry["manager"] == "slurm_ops.kubernetes"
                ),
                default="",
            )
        )
        for kind in kinds
        for item in kube.items(kind.format(namespace))
    }


def test_every_component_runs(kube: Kube, site: PlaybookResult) -> None:
    for component in COMPONENTS:
        pods = kube.items(
            "/api/v1/namespaces/slurm/pods",
            labelSelector=f"app.kubernetes.io/component={component},app.kubernetes.io/part-of=slurm",
        )
        assert pods, component
        for pod in pods:
            ready = [condition["status"] for condition in pod["status"]["conditions"] if condition["type"] == "Ready"]
            assert ready == ["True"], pod["metadata"]["name"]


def test_jobs_run_on_two_nodes(slurm: Callable[..., Completed]) -> None:
    hosts = slurm("srun -N2 --time=1 hostname").stdout.split()
    assert sorted(hosts) == ["cpu-0", "cpu-1"]


@pytest.mark.alone
def test_second_run_writes_nothing_and_is_quick(
    kube: Kube, site: PlaybookResult, run_playbook: Callable[..., PlaybookResult]
) -> None:
    before = versions(kube, "slurm")
    again = run_playbook("site")
    assert [str(task) for task in again.changed] == []
    calls = {
        task.name: task.result["api_calls"]["writes"]
        for task in again.tasks
        if task.action in WRITERS and task.status == "ok"
    }
    assert len(calls) >= 8, calls
    assert set(calls.values()) == {0}, calls
    assert versions(kube, "slurm") == before
    # What Ansible itself takes for as many modules that do nothing says how fast this machine is just now. The promise
    # is for one of two cores that does nothing else.
    modules = sum("api_calls" in task.result for task in again.tasks)
    nothing = run_playbook(
        [{"hosts": "slurm_clusters", "gather_facts": False, "tasks": [{"ansible.builtin.ping": {}}] * modules}]
    )
    print(f"{again.seconds:.1f} s; {modules} modules that do nothing: {nothing.seconds:.1f} s")
    assert again.seconds * NOTHING / nothing.seconds < 15


def test_a_topology_is_left_alone_by_the_next_site(
    slurm: Callable[..., Completed], run_playbook: Callable[..., PlaybookResult]
) -> None:
    racks = [{"name": "net", "mapping": {"cpu-0": ["rack1"], "cpu-1": ["rack2"]}}]
    run_playbook("topology", extra_vars={"slurm_topologies": racks})
    try:
        assert [str(task) for task in run_playbook("site").changed] == []
        shown = slurm("scontrol show topology", on="controller").stdout
        assert all(f"SwitchName={rack}" in shown for rack in ("rack1", "rack2")), shown
    finally:
        run_playbook("topology", extra_vars={"topology_state": "absent"})
    assert [str(task) for task in run_playbook("site").changed] == []


def test_check_mode_on_the_running_cluster_predicts_nothing(
    site: PlaybookResult, run_playbook: Callable[..., PlaybookResult]
) -> None:
    predicted = run_playbook("site", check=True, diff=True)
    assert [str(task) for task in predicted.changed] == []
    assert all(not task.result.get("diff") for task in predicted.tasks if task.action in WRITERS)


def test_check_mode_on_nothing_lists_what_will_come(kube: Kube, run_playbook: Callable[..., PlaybookResult]) -> None:
    empty = {"slurm_namespace": "live-not-there-yet", "slurm_name": "new"}
    predicted = run_playbook("site", extra_vars=empty, check=True, diff=True)
    created = {
        action["target"]
        for task in predicted.tasks
        if task.action in WRITERS and not task.is_item
        for action in task.result.get("actions", [])
        if action["kind"] == "create"
    }
    for wanted in ("new-controller", "new-accounting", "new-restapi", "new-database", "new-login", "cpu", "new-auth"):
        assert any(target.endswith(wanted) for target in created), (wanted, sorted(created))
    assert kube.find("/api/v1/namespaces/live-not-there-yet") is None


def running_pods(kube: Kube) -> set[str]:
    return {
        f"{item['metadata']['uid']} {sum(entry['restartCount'] for entry in item['status']['containerStatuses'])}"
        for item in kube.items("/api/v1/namespaces/slurm/pods")
        if "deletionTimestamp" not in item["metadata"]
    }


def test_a_changed_variable_is_one_small_diff_and_no_restart(
    kube: Kube,
    slurm: Callable[..., Completed],
    run_playbook: Callable[..., PlaybookResult],
) -> None:
    pods = running_pods(kube)
    changed = {"slurm_conf": {**sandbox_slurm_conf(), "MinJobAge": 400}}
    predicted = run_playbook("site", extra_vars=changed, tags="cluster", check=True, diff=True)
    diffs = [diff for task in predicted.changed for diff in task.result["diff"]]
    assert len(diffs) == 1
    added = set(diffs[0]["after"].splitlines()) - set(diffs[0]["before"].splitlines())
    assert [line.strip() for line in added] == ["MinJobAge=400"]
    applied = run_playbook("site", extra_vars=changed)
    assert slurm("scontrol show config | grep MinJobAge").stdout.split() == ["MinJobAge", "=", "400", "sec"]
    assert [task.action for task in applied.changed] == [CONFIG]
    assert running_pods(kube) == pods
    run_playbook("site", tags="cluster")


def test_a_tag_touches_its_component_only(site: PlaybookResult, run_playbook: Callable[..., PlaybookResult]) -> None:
    only = run_playbook("site", tags="slurmrestd")
    assert {task.role for task in only.tasks if task.action == APPLYSET} == {"slurm_ops.kubernetes.slurmrestd"}
