# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is lost comes back: every Pod of the control plane, the database, the whole sandbox; jobs and nodes stay."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from .support.jobs import accounted_state, job_state, node_states
from .support.kube import Kube
from .support.process import Completed

PODS = "/api/v1/namespaces/slurm/pods"


def pod_of(kube: Kube, component: str) -> dict[str, object]:
    pods = kube.items(PODS, labelSelector=f"app.kubernetes.io/part-of=slurm,app.kubernetes.io/component={component}")
    return next(pod for pod in pods if "deletionTimestamp" not in pod["metadata"])


def replaced_and_ready(kube: Kube, component: str, uid: str) -> bool:
    for pod in kube.items(
        PODS, labelSelector=f"app.kubernetes.io/part-of=slurm,app.kubernetes.io/component={component}"
    ):
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
        if pod["metadata"]["uid"] != uid and ready:
            return True
    return False


@pytest.mark.parametrize("component", ["controller", "accounting", "database", "restapi", "directory", "login"])
def test_a_killed_pod_comes_back_and_the_job_goes_on(
    kube: Kube, slurm: Callable[..., Completed], component: str
) -> None:
    job = slurm("sbatch --parsable -N1 --mem=50 --time=5 --wrap 'sleep 120'").stdout.strip()
    kube.wait(
        lambda: job_state(slurm, job),
        lambda state: state == "RUNNING",
        what=f"job {job} runs",
    )
    pod = pod_of(kube, component)
    kube.delete(f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
    kube.wait(
        lambda: replaced_and_ready(kube, component, pod["metadata"]["uid"]),
        bool,
        timeout=90,
        what=f"{component} is replaced",
    )
    kube.wait(
        lambda: node_states(slurm, "cpu"),
        lambda states: len(states) == 2 and not any("down" in state or "*" in state for state in states),
        timeout=90,
        what="both nodes are known and answer",
    )
    assert slurm(f"squeue -h -j {job} -o %T").stdout.strip() == "RUNNING"
    slurm(f"scancel {job}")


def test_a_killed_controller_process_serves_again_within_seconds(kube: Kube, slurm: Callable[..., Completed]) -> None:
    # The process, not the Pod: what an out-of-memory kill looks like.
    slurm("pkill -KILL -o '^slurmctld'", on="controller")
    begun = time.monotonic()
    kube.wait(
        lambda: slurm("scontrol ping", on="controller", check=False).rc,
        lambda rc: rc == 0,
        timeout=30,
        what="slurmctld answers",
    )
    assert time.monotonic() - begun < 15
    pod = pod_of(kube, "controller")
    assert pod["metadata"]["name"] == "slurm-controller-0"


def restarts(kube: Kube) -> dict[str, int]:
    return {
        status["name"]: status["restartCount"] for status in pod_of(kube, "controller")["status"]["containerStatuses"]
    }


def test_a_reconfigure_keeps_the_pod(kube: Kube, slurm: Callable[..., Completed]) -> None:
    before = pod_of(kube, "controller")["metadata"]["uid"], restarts(kube)
    slurm("scontrol reconfigure", on="controller")
    kube.wait(
        lambda: slurm("scontrol ping", on="controller", check=False).rc, lambda rc: rc == 0, what="slurmctld answers"
    )
    assert (pod_of(kube, "controller")["metadata"]["uid"], restarts(kube)) == before


def test_the_database_may_be_away_for_a_while(kube: Kube, slurm: Callable[..., Completed]) -> None:
    path = "/apis/apps/v1/namespaces/slurm/statefulsets/slurm-database/scale"
    kube.patch(path, {"spec": {"replicas": 0}}, kind="merge")
    try:
        kube.wait(lambda: kube.find(f"{PODS}/slurm-database-0"), lambda pod: pod is None, what="the database is gone")
        job = slurm("sbatch --parsable -N1 --mem=50 --wrap true").stdout.strip()
    finally:
        kube.patch(path, {"spec": {"replicas": 1}}, kind="merge")
    kube.wait(
        lambda: accounted_state(slurm, job),
        lambda state: state == "COMPLETED",
        timeout=120,
        what=f"accounting has caught up with job {job}",
    )
