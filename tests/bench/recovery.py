# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the loss of slurmctld until a job starts, in a cluster of the roles: python -m tests.bench.recovery

The sandbox of $KUBECONFIG must be one without simulated Nodes, and loses a Node in the end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox import processes
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.cgroups import Cgroups
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.settings import cgroup_name, run_directory
from tests.live.support.kube import Json, Kube
from tests.live.support.minislurm import is_ready
from tests.live.support.playbook import Ansible

from . import report

NAMESPACE, NAME = "bench-recovery", "rec"
CONTROLLER, WORKER = f"{NAME}-controller-0", "cpu-0"
RUNS = 3
PAUSE = 15.0  # seconds between two losses: a process that served so long does not crash again and again
DYING = 3.0  # seconds in which a Pod that is no more in the API may still start a job
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
VARIABLES: Json = {
    "slurm_namespace": NAMESPACE,
    "slurm_name": NAME,
    "slurm_home_enabled": False,
    "directory_enabled": False,
    "login_enabled": False,
    "slurmctld_state_access_mode": "ReadWriteMany",
}
# A job that starts is the end of it. Each attempt gives up soon, so that the next one meets what has come back.
_TRY = "until timeout 5 srun --nodes=1 --ntasks=1 --mem=1 --quiet date +%s.%N 2>/dev/null; do sleep 0.1; done"
_KILL = """for process in /proc/[0-9]*; do
  case $(cat $process/comm) in slurmctld*) kill -KILL ${process#/proc/} && echo killed ;; esac
done 2>/dev/null"""


@dataclass(frozen=True)
class Loss:
    """One way to lose slurmctld, and the seconds until a job started."""

    what: str
    seconds: list[float]
    note: str


class Cluster:
    """A site with one node, away from the Node of slurmctld."""

    def __init__(self, kubeconfig: str) -> None:
        self.kube = Kube(kubeconfig)
        self.sandbox = Path(kubeconfig).parent.name
        self._kubeconfig = kubeconfig
        self._long = ""
        self._cordoned = ""

    @property
    def node(self) -> str:
        """The Node that slurmctld is on."""
        return str(self._pod(CONTROLLER)["spec"]["nodeName"])

    def deploy(self, controllers: int) -> None:
        """Deploy it, or give it as many slurmctld; a job runs for all the time."""
        nodeset = {"name": "cpu", "replicas": 1, "cpus": 8, "memory": "1Gi", "node_selector": self._host("node2")}
        pinned = {
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_prefers("node1")]}}
        }
        away = {key: {"nodeSelector": self._host("node2")} for key in ("database_pod_spec", "slurmdbd_pod_spec")}
        with tempfile.TemporaryDirectory() as scratch:
            ansible = Ansible(self._kubeconfig, Path(scratch), "inventories/sandbox")
            variables = {**VARIABLES, "slurm_nodesets": [nodeset], "slurmctld_pod_spec": pinned, **away}
            if controllers > 1:
                del variables["slurmctld_pod_spec"]  # each on a Node of its own
            ansible.run_playbook("site", extra_vars={**variables, "slurm_controllers": controllers})
        if not self._long:
            self._long = self.run(
                CONTROLLER, "sbatch --parsable --chdir=/tmp --output=/dev/null --mem=1 --wrap 'sleep inf'"
            )
        self.job()

    def remove(self) -> None:
        """Take the namespace away; its Pods go in the background."""
        self.kube.delete(f"/api/v1/namespaces/{NAMESPACE}")

    def _host(self, node: str) -> Json:
        return {"kubernetes.io/hostname": node}

    def _pod(self, name: str) -> Json:
        return self.kube.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")

    def run(self, pod: str, command: str, timeout: float = 60) -> str:
        """Run a command beside a daemon."""
        container = "slurmctld" if pod == CONTROLLER else "slurmd"
        done = self.kube.exec(NAMESPACE, pod, ["sh", "-c", command], container=container, timeout=timeout)
        return done.check().stdout.strip()

    def job(self, timeout: float = 60) -> float:
        """Try until a job has started on the node; when it did, in seconds since 1970."""
        return float(self.run(WORKER, _TRY, timeout).split()[-1])

    def until_a_job_starts(
        self, lose: Callable[[], object], mend: Callable[[], object] = lambda: None, timeout: float = 300
    ) -> float:
        """Seconds from a loss until a job started, which the job that ran before it must have survived."""
        begun = time.time()
        lose()
        try:
            started = self.job(timeout)
        finally:
            mend()
        state = self.run(WORKER, f"squeue -h -j {self._long} -o %T")
        if state != "RUNNING":
            raise AssertionError(f"The job that ran before is {state or 'forgotten'}")
        self.kube.wait(
            f"/api/v1/namespaces/{NAMESPACE}/pods/{CONTROLLER}", is_ready, timeout=120, what="slurmctld is ready"
        )
        return started - begun

    # --- ways to lose it ------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """kill -9 of the process."""
        if not self.run(CONTROLLER, _KILL):
            raise AssertionError("There was no slurmctld to kill")

    def delete(self) -> None:
        """Delete the Pod, as an eviction does."""
        self.kube.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{CONTROLLER}")

    def lose_the_node(self) -> None:
        """End everything on its Node at once, without a word to anybody."""
        node = self.node
        run = str(run_directory(self.sandbox))
        keepers = [
            process.pid
            for process in processes.everything()
            if any(f"{run}/{node}" in word for word in process.argv) and Path(process.argv[0]).name != "pause"
        ]
        for pids in (keepers, Cgroups(cgroup_name(self.sandbox)).pids(node)):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def delete_for_long(self) -> None:
        """Kill the Pod, and let its Node take no other."""
        self._cordoned = self.node
        self._cordon(self._cordoned, value=True)
        self.kube.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{CONTROLLER}", {"gracePeriodSeconds": 0})
        time.sleep(DYING)

    def let_it_come_back(self) -> None:
        """The Node takes Pods again."""
        self._cordon(self._cordoned, value=False)

    def _cordon(self, node: str, *, value: bool) -> None:
        self.kube.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": value}})

    def give_up_the_node(self, node: str) -> float:
        """When Kubernetes calls the Node lost, say that it will not come back; the time of that."""
        self.kube.wait(f"/api/v1/nodes/{node}", lambda found: not is_ready(found), timeout=120, what=f"{node} is lost")
        told = time.time()
        self.kube.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": [OUT_OF_SERVICE]}})
        return told


def _prefers(node: str) -> Json:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {"weight": 100, "preference": {"matchExpressions": [expression]}}


def losses(cluster: Cluster) -> Iterator[Loss]:
    """Each way to lose slurmctld; the Node comes last, since it does not come back."""
    cluster.deploy(controllers=2)
    longer = []
    for _run in range(RUNS):
        longer.append(cluster.until_a_job_starts(cluster.delete_for_long, cluster.let_it_come_back))
        time.sleep(PAUSE)
    yield Loss("the first of two, for longer", longer, "the second waits 30 s for a sign of it (SlurmctldTimeout)")
    cluster.deploy(controllers=1)
    for what, lose, note in (
        ("`kill -9` of slurmctld", cluster.kill, "its supervisor starts it again in the same Pod"),
        ("its Pod is deleted", cluster.delete, "the StatefulSet makes another, on the same volume"),
    ):
        seconds = []
        for _run in range(RUNS):
            seconds.append(cluster.until_a_job_starts(lose))
            time.sleep(PAUSE)
        yield Loss(what, seconds, note)
    node = cluster.node
    with ThreadPoolExecutor() as pool:
        begun = time.time()
        given_up = []

        def lose() -> None:
            cluster.lose_the_node()
            given_up.append(pool.submit(cluster.give_up_the_node, node))

        total = cluster.until_a_job_starts(lose)
        told = given_up[0].result() - begun
    note = f"the Node was NotReady after {told:.1f} s and then tainted out-of-service; {total - told:.1f} s more"
    yield Loss("its Node is lost", [total], note)


def table(rows: list[Loss]) -> str:
    """The rows for the page."""
    lines = ["| lost | a job starts after | runs | from | to | how |", "|---|---|---|---|---|---|"]
    for row in rows:
        median, low, high = statistics.median(row.seconds), min(row.seconds), max(row.seconds)
        lines.append(f"| {row.what} | {median:.1f} s | {len(row.seconds)} | {low:.1f} s | {high:.1f} s | {row.note} |")
    return "\n".join(lines)


def main() -> None:
    cluster = Cluster(os.environ["KUBECONFIG"])
    rows = []
    try:
        for row in losses(cluster):
            rows.append(row)
            print(table([row]).splitlines()[-1], flush=True)
    finally:
        cluster.remove()
    report.write(report.RECOVERY, table(rows))
    print(f"Written to {report.PAGE}")


if __name__ == "__main__":
    main()
