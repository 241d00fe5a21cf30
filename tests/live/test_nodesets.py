# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NodeSets: both kinds, GRES that is verified, and going smaller without harm to jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .support.jobs import job_state
from .support.kube import Kube
from .support.playbook import PlaybookResult
from .support.process import Completed

SCALE = "slurm_ops.kubernetes.nodeset_scale"
CPU: dict[str, Any] = {
    "name": "cpu",
    "replicas": 2,
    "partition": {"default": True},
    "cpus": 2,
    "memory": "1Gi",
    "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
}
POOL: dict[str, Any] = {**CPU, "name": "pool", "replicas": 1, "partition": True}
# Devices that look like GPUs to Slurm: clones of /dev/null, made when the worker starts.
FAKE_GPUS = "#!/bin/sh\nfor i in 0 1; do [ -e /dev/fakegpu$i ] || mknod /dev/fakegpu$i c 1 3; done\n"
GPU: dict[str, Any] = {
    "name": "gpu",
    "kind": "node",
    "node_selector": {"kubernetes.io/hostname": "node1"},
    "node_name_prefix": "g-",
    "cpus": 1,
    "memory": "500Mi",
    "gres": [{"name": "gpu", "type": "h100", "count": 2, "files": "/dev/fakegpu[0-1]"}],
    "oneshots": {"10-gpus": FAKE_GPUS},
    "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
}


@pytest.fixture
def nodesets(
    run_playbook: Callable[..., PlaybookResult], site: PlaybookResult
) -> Iterator[Callable[..., PlaybookResult]]:
    """Deploy with these NodeSets beside the inventory's own; afterwards there is only that one again."""

    def deploy(*more: dict[str, Any], **options: Any) -> PlaybookResult:
        variables = {"slurm_nodesets": [CPU, *more], **options.pop("extra_vars", {})}
        return run_playbook("site", extra_vars=variables, **options)

    yield deploy
    run_playbook("site", extra_vars={"nodeset_on_running_jobs": "cancel"})


def nodes_of(slurm: Callable[..., Completed], partition: str) -> list[str]:
    return sorted(slurm(f"sinfo -h -N -p {partition} -o %N", check=False).stdout.split())


def running_job(kube: Kube, slurm: Callable[..., Completed], node: str) -> str:
    job = slurm(f"sbatch --parsable -p pool -w {node} --mem=50 --time=10 --wrap 'sleep 600'").stdout.strip()
    kube.wait(
        lambda: job_state(slurm, job),
        lambda state: state == "RUNNING",
        what=f"job {job} runs",
    )
    return job


def test_a_nodeset_grows_and_shrinks_from_the_top(
    slurm: Callable[..., Completed], nodesets: Callable[..., PlaybookResult]
) -> None:
    nodesets({**POOL, "replicas": 3})
    assert nodes_of(slurm, "pool") == ["pool-0", "pool-1", "pool-2"]
    predicted = nodesets({**POOL, "replicas": 1}, check=True, tags="nodeset")
    smaller = nodesets({**POOL, "replicas": 1}, tags="nodeset")
    expected = [
        ("drain", "pool-2"),
        ("drain", "pool-1"),
        ("scale", "NodeSet pool"),
        ("forget", "pool-2"),
        ("forget", "pool-1"),
    ]
    for result in (predicted, smaller):
        actions = result.action(SCALE)[0].result["actions"]
        assert [(action["kind"], action["target"]) for action in actions] == expected
    assert nodes_of(slurm, "pool") == ["pool-0"]
    assert nodesets({**POOL, "replicas": 1}, tags="nodeset").changed == []


def test_a_removed_nodeset_goes_unless_jobs_run_on_it(
    kube: Kube, slurm: Callable[..., Completed], nodesets: Callable[..., PlaybookResult]
) -> None:
    nodesets(POOL)
    job = running_job(kube, slurm, "pool-0")
    refused = nodesets(tags="nodeset", fails=True)
    assert f"job {job}" in str(refused.failed[-1].result["msg"])
    assert refused.failed[-1].result["reason"] == "RunningJobs"
    assert slurm("sinfo -h -N -p pool -o %T").stdout.strip() == "mixed"

    gave_up = nodesets(
        tags="nodeset", fails=True, extra_vars={"nodeset_on_running_jobs": "wait", "nodeset_wait_timeout": 5}
    )
    assert gave_up.failed[-1].result["reason"] == "Timeout"
    assert slurm(f"squeue -h -j {job} -o %T").stdout.strip() == "RUNNING"
    assert slurm("sinfo -h -N -p pool -o %T").stdout.strip() == "draining"

    nodesets(extra_vars={"nodeset_on_running_jobs": "cancel"})
    assert kube.find("/apis/apps/v1/namespaces/slurm/statefulsets/pool") is None
    assert "pool-0" not in slurm("sinfo -h -N -o %N").stdout
    assert slurm(f"sacct -n -X -j {job} -o State").stdout.split()[0] == "CANCELLED"


def test_a_drain_by_a_person_stays(
    kube: Kube, slurm: Callable[..., Completed], nodesets: Callable[..., PlaybookResult]
) -> None:
    nodesets(POOL)
    slurm("scontrol update nodename=pool-0 state=drain reason='bad disk, Ann'", on="controller")
    assert nodesets(POOL).changed == []
    assert slurm("sinfo -h -N -p pool -o '%T %E'").stdout.strip() == "drained bad disk, Ann"


def test_gpus_of_a_node_are_registered_and_usable(
    slurm: Callable[..., Completed], nodesets: Callable[..., PlaybookResult]
) -> None:
    nodesets(GPU)
    assert nodes_of(slurm, "gpu") == ["g-node1"]
    assert slurm("srun -p gpu --gres=gpu:h100:2 --mem=50 sh -c 'echo $CUDA_VISIBLE_DEVICES'").stdout.strip() == "0,1"
    assert nodesets(GPU).changed == []


def test_missing_devices_are_told(nodesets: Callable[..., PlaybookResult]) -> None:
    short = {**GPU, "oneshots": {"10-gpus": FAKE_GPUS.replace("0 1", "0")}}
    broken = nodesets(short, fails=True, tags="cluster,slurmctld,nodeset", extra_vars={"nodeset_wait_timeout": 60})
    text = str(broken.failed[-1].result["msg"])
    assert "DaemonSet slurm/gpu" in text
    assert "Pod slurm/gpu-" in text
    assert "/dev/fakegpu1" in text, "slurmd's own words say which device it did not find"


def test_labelling_a_node_adds_a_worker(
    kube: Kube, slurm: Callable[..., Completed], nodesets: Callable[..., PlaybookResult]
) -> None:
    def label(value: str | None) -> None:
        kube.patch("/api/v1/nodes/node2", {"metadata": {"labels": {"example.org/slurm": value}}}, kind="merge")

    by_label = {
        **CPU,
        "name": "metal",
        "kind": "node",
        "partition": True,
        "node_selector": {"example.org/slurm": "yes"},
    }
    del by_label["replicas"]
    nodesets(by_label)
    assert nodes_of(slurm, "metal") == []
    label("yes")
    try:
        kube.wait(
            lambda: nodes_of(slurm, "metal"), lambda nodes: nodes == ["node2"], timeout=60, what="node2 registers"
        )
        assert slurm("srun -p metal --mem=50 hostname").rc == 0
    finally:
        label(None)
