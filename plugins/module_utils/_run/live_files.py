# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The Pod of slurmctld, and ConfigMaps whose files are brought into it while slurmctld runs.

Such a ConfigMap is no part of an ApplySet: a module changes it, has the kubelet bring it into the Pod at once, and has
slurmctld read it (docs/decisions/041 and 050).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import names
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import CLUSTER
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.worker import LOG_PATH
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.exec import Finished, exec_in_pod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import CONFIG_MAP, POD, STATEFUL_SET
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.controllers import (
    can_be_asked,
    command_pod,
    controller_pods,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.lint import CONTAINER, verdict
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.pod_look import hashes
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.wait import Seen, wait_until

LOG_CONTAINER = "log"
LOG = f"{LOG_PATH}/slurmctld.log"
_HASHES = "cd /etc/slurm && sha256sum *"


class ControllerPod:
    """The Pod of a cluster's slurmctld and one ConfigMap, <cluster>-<component>, of which it mounts the files."""

    def __init__(self, kubernetes: KubernetesClient, namespace: str, cluster: str, component: str) -> None:
        self._kubernetes = kubernetes
        self._namespace = namespace
        self._cluster = cluster
        self._component = component
        self._pod = ""
        self.config_map = f"{cluster}-{component}"

    def exists(self) -> bool:
        """Whether the cluster has a slurmctld, running or not."""
        return self._kubernetes.get(STATEFUL_SET, self._namespace, f"{self._cluster}-controller") is not None

    @property
    def pod(self) -> str:
        """The name of the Pod: of two, of the one in which commands are run."""
        if not self._pod:
            self._pod = command_pod(self._kubernetes, self._namespace, self._cluster)
        return self._pod

    def read_pod(self) -> Mapping[str, Any] | None:
        """The Pod as the API server has it."""
        return next(iter(self._pods()), None)

    def _pods(self) -> Sequence[Mapping[str, Any]]:
        return controller_pods(self._kubernetes, self._namespace, self._cluster)

    def _standby(self) -> list[str]:
        """The Pods whose slurmctld waits for the end of the first, as far as they can be asked."""
        found = [pod["metadata"]["name"] for pod in self._pods() if can_be_asked(pod)]
        return [name for name in found if name != self.pod]

    def run(self, command: Sequence[str], *, pod: str = "", reads: bool = True, timeout: float = 60.0) -> Finished:
        """Run a command beside slurmctld; see exec_in_pod."""
        where = pod or self.pod
        return exec_in_pod(
            self._kubernetes, self._namespace, where, command, container=CONTAINER, timeout=timeout, reads=reads
        )

    # --- the ConfigMap --------------------------------------------------------------------------------------------

    def read_config_map(self) -> dict[str, Any] | None:
        """The ConfigMap; None if there is none."""
        return self._kubernetes.get(CONFIG_MAP, self._namespace, self.config_map)

    def apply(
        self, files: Mapping[str, str], annotations: Mapping[str, str] | None = None, *, dry_run: bool = False
    ) -> None:
        """Make the ConfigMap hold these files and nothing else."""
        metadata: dict[str, Any] = {
            "name": self.config_map,
            "labels": {
                "app.kubernetes.io/name": "slurm",
                "app.kubernetes.io/instance": self._cluster,
                "app.kubernetes.io/component": self._component,
                "app.kubernetes.io/part-of": "slurm",
                "app.kubernetes.io/managed-by": "slurm_ops.kubernetes",
                CLUSTER: self._cluster,
            },
        }
        if annotations:
            metadata["annotations"] = dict(annotations)
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(files)}
        made = self._kubernetes.apply(manifest, self._namespace, force=True, resource=CONFIG_MAP, dry_run=dry_run)
        # What somebody else put there is theirs, and so stays at an apply.
        extra = dict.fromkeys((made.get("data") or {}).keys() - files.keys())
        if extra and not dry_run:
            self._kubernetes.patch(CONFIG_MAP, self._namespace, self.config_map, {"data": extra})

    def remove(self) -> None:
        """Delete the ConfigMap if it is there."""
        self._kubernetes.delete(CONFIG_MAP, self._namespace, self.config_map)

    def nudge(self, value: str) -> None:
        """Change an annotation of the Pods, so that kubelets refresh their volumes at once and not in a minute."""
        change = {"metadata": {"annotations": {f"{names.DOMAIN}/{self._component}": value}}}
        for name in (self.pod, *self._standby()):
            self._kubernetes.patch(POD, self._namespace, name, change)

    def standby_lacks(self, wanted: Mapping[str, str]) -> str:
        """What a slurmctld that waits would not find if it had to serve now; empty if nothing.

        ``wanted``: {file: its hash}, empty for one that is to be gone.
        """
        for pod in self._standby():
            found = hashes(self.run(["sh", "-c", _HASHES], pod=pod).stdout)
            if other := sorted(name for name, value in wanted.items() if found.get(name, "") != value):
                return f"{', '.join(other)} in Pod {pod} not as in Pod {self.pod}"
        return ""

    # --- slurmctld ------------------------------------------------------------------------------------------------

    def words(self) -> Sequence[str]:
        """What slurmctld last said of errors; nothing if that cannot be read."""
        try:
            # Of the role's Pod the log is a pipe, which a container of its own reads.
            said = self._kubernetes.log_tail(self._namespace, self.pod, LOG_CONTAINER, lines=20)
        except OperationError:
            said = ""
        if not said:
            try:
                said = self.run(["sh", "-c", f"[ ! -f {LOG} ] || tail -n 20 {LOG}"], timeout=10.0).stdout
            except OperationError:
                return ()
        return [word for word in verdict(said).words if word.lower().startswith(("fatal", "error"))]


def wait_while(run: Run, lacks: Callable[[], str], what: str) -> None:
    """Wait until nothing lacks; what cannot be read now may be a slurmctld that just starts."""

    def look() -> Seen:
        try:
            found = lacks()
        except OperationError as error:
            found = str(error)
        return Seen([found] if found else ())

    wait_until(look, what, timeout=run.params["wait_timeout"], interval=run.params["wait_sleep"], progress=run.progress)
