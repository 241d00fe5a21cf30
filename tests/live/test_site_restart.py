# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole sandbox goes away and comes back, as a machine does: nodes, jobs and accounting are still there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .support.jobs import accounted_state, job_state, node_states
from .support.kube import Json, Kube
from .support.minislurm import is_ready
from .support.playbook import PlaybookResult
from .support.process import Completed


@pytest.fixture
def sandbox_name(kubeconfig: str) -> str:
    """The sandbox that the tests run on; a cluster of somebody's own is not ours to restart."""
    path = Path(kubeconfig)
    if path.parent.parent.name != "sandbox":
        pytest.skip("The cluster in use is not a sandbox of this collection.")
    return path.parent.name


def restarts(pod: Json) -> int:
    return sum(container["restartCount"] for container in pod["status"]["containerStatuses"])


def test_everything_is_back_after_a_restart(
    kube: Kube,
    slurm: Callable[..., Completed],
    run_playbook: Callable[..., PlaybookResult],
    sandbox_name: str,
) -> None:
    slurm("sbatch --wait --mem=50 --job-name=before --wrap true")
    job = slurm("sbatch --parsable --requeue -N1 --mem=50 --job-name=across --wrap 'sleep 20'").stdout.strip()
    kube.wait(
        lambda: job_state(slurm, job),
        lambda state: state == "RUNNING",
        what=f"job {job} runs",
    )

    sandbox = {"sandbox_name": sandbox_name, "sandbox_images_build": False}
    run_playbook("sandbox", extra_vars={**sandbox, "sandbox_state": "stopped"})
    run_playbook("sandbox", extra_vars={**sandbox, "sandbox_state": "present"})

    kube.wait(
        lambda: kube.items("/api/v1/namespaces/slurm/pods"),
        lambda pods: all(is_ready(pod) and restarts(pod) for pod in pods),
        timeout=120,
        what="every Pod is ready again",
    )
    kube.wait(
        lambda: node_states(slurm, "cpu"),
        lambda states: len(states) == 2 and set(states) <= {"idle", "mixed", "allocated"},
        timeout=180,
        what="both nodes are back",
    )
    # slurmctld misses the job's process when the node registers the next time, and holds the job for two minutes then.
    kube.wait(
        lambda: job_state(slurm, job),
        lambda state: state == "PENDING",
        timeout=330,
        what=f"job {job}, whose process is gone, is in the queue again",
    )
    slurm(f"scontrol update jobid={job} starttime=now")
    kube.wait(
        lambda: accounted_state(slurm, job),
        lambda state: state == "COMPLETED",
        timeout=90,
        what=f"job {job} has completed",
    )
    assert "COMPLETED" in slurm("sacct -n -X --name=before -o State").stdout
    assert run_playbook("site").changed == []
