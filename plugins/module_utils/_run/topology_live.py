# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The topology that a cluster has: its file in a ConfigMap and in the controller's Pod, and what slurmctld shows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import names, topology
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.topology import Topology
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.worker import LOG_PATH
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import paths
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.exec import exec_in_pod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.lint import CONTAINER, verdict
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.yaml_text import documents

LOG_CONTAINER = "log"
LOG = f"{LOG_PATH}/slurmctld.log"
CONFIG_MAP = paths.Resource("v1", "ConfigMap", "configmaps", True)
POD = paths.Resource("v1", "Pod", "pods", True)
STATEFULSET = paths.Resource("apps/v1", "StatefulSet", "statefulsets", True)
# An annotation of the Pod: any change of one makes the kubelet refresh the Pod's volumes at once, not in a minute.
NUDGE = f"{names.DOMAIN}/topology"
_MARK = "=== "
_LOOK = r"""
file=$1; shift
printf '=== conf\n'; cat /etc/slurm/slurm.conf
printf '\n=== hash\n'; [ ! -f "/etc/slurm/$file" ] || sha256sum <"/etc/slurm/$file"
printf '=== file\n'; [ ! -f "/etc/slurm/$file" ] || cat "/etc/slurm/$file"; echo
if [ $# -eq 0 ]; then printf '=== topology \n'; scontrol show topology; fi
for name in "$@"; do printf '=== topology %s\n' "$name"; scontrol show topology "$name"; done
exit 0
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look into the controller's Pod shows: slurm.conf, the topology file and its hash (empty: there is none),
    and the topologies as slurmctld has them."""

    slurm_conf: str
    hash: str
    file: str
    shown: Mapping[str, Topology]


class Controller:
    """The Pod of slurmctld, and the ConfigMap with the topology that it mounts.

    The ConfigMap is no part of an ApplySet: the roles neither make it nor prune it (docs/decisions/041).
    """

    def __init__(self, kubernetes: KubernetesClient, namespace: str, name: str) -> None:
        self._kubernetes = kubernetes
        self._namespace = namespace
        self._cluster = name
        self.pod = f"{name}-controller-0"
        self.config_map = f"{name}-topology"
        self.use(yaml=True)

    def use(self, *, yaml: bool) -> None:
        """Which of the two files this Slurm reads."""
        self.file = topology.file_name(yaml=yaml)
        self.yaml = yaml

    @property
    def target(self) -> str:
        """The ConfigMap and its key, for people."""
        return f"{self.file} in ConfigMap {self._namespace}/{self.config_map}"

    def exists(self) -> bool:
        """Whether the cluster has a slurmctld, running or not."""
        name = f"{self._cluster}-controller"
        return self._kubernetes.get(STATEFULSET, self._namespace, name) is not None

    def has_config_map(self) -> bool:
        """Whether there is a file of any name."""
        return self._kubernetes.get(CONFIG_MAP, self._namespace, self.config_map) is not None

    def require_mounted(self) -> None:
        """Raise OperationError (NotMounted) unless the Pod will see the ConfigMap."""
        pod = self._kubernetes.get(POD, self._namespace, self.pod)
        if pod is None:
            raise OperationError(
                f"There is no Pod {self._namespace}/{self.pod}.",
                reason="NotFound",
                hint="Check the name of the Slurm cluster and its namespace.",
            )
        sources = [
            source.get("configMap", {}).get("name")
            for volume in pod["spec"].get("volumes") or ()
            for source in (volume.get("projected") or {}).get("sources") or ()
        ]
        if self.config_map not in sources:
            raise OperationError(
                f"Pod {self._namespace}/{self.pod} does not mount ConfigMap {self.config_map}.",
                reason="NotMounted",
                hint="Run the playbook site once (role slurmctld), so that the controller's Pod has it.",
            )

    # --- the file -------------------------------------------------------------------------------------------------

    def text(self) -> str | None:
        """The file as the ConfigMap has it; None if there is none."""
        found = self._kubernetes.get(CONFIG_MAP, self._namespace, self.config_map)
        text = ((found or {}).get("data") or {}).get(self.file)
        return None if text is None else str(text)

    def write(self, text: str | None) -> bool:
        """Make the file what it should be, or remove it, and have the kubelet bring it into the Pod.

        Returns whether there is a Pod for it, or will be.
        """
        if text is None:
            self._kubernetes.delete(CONFIG_MAP, self._namespace, self.config_map)
        else:
            labels = {
                "app.kubernetes.io/name": "slurm",
                "app.kubernetes.io/instance": self._cluster,
                "app.kubernetes.io/component": "topology",
                "app.kubernetes.io/part-of": "slurm",
                "app.kubernetes.io/managed-by": "slurm_ops.kubernetes",
                f"{names.DOMAIN}/cluster": self._cluster,
            }
            manifest = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": self.config_map, "labels": labels},
                "data": {self.file: text},
            }
            self._kubernetes.apply(manifest, self._namespace, force=True, resource=CONFIG_MAP)
        change = {"metadata": {"annotations": {NUDGE: sha256(text) or "none"}}}
        if self._kubernetes.get(POD, self._namespace, self.pod) is None and not self.exists():
            return False
        self._kubernetes.patch(POD, self._namespace, self.pod, change)
        return True

    # --- what slurmctld has ---------------------------------------------------------------------------------------

    def look(self, topologies: Sequence[str] = ()) -> Seen:
        """Look into the Pod, with one call. A slurmctld that does not answer shows no topology."""
        wanted = topologies if self.yaml else ()
        command = ["sh", "-c", _LOOK, "look", self.file, *wanted]
        ended = exec_in_pod(
            self._kubernetes, self._namespace, self.pod, command, container=CONTAINER, timeout=60.0, reads=True
        )
        sections = _sections(ended.stdout)
        found = [
            topology.parse_shown(text, head.removeprefix("topology ") if self.yaml else (topologies or [""])[0])
            for head, text in sections.items()
            if head.startswith("topology ")
        ]
        return Seen(
            slurm_conf=sections.get("conf", ""),
            hash="".join(sections.get("hash", "").split()[:1]),
            file=sections.get("file", "").rstrip("\n"),
            shown={item.name: item for item in found if item is not None},
        )

    def words(self) -> Sequence[str]:
        """What slurmctld last said of errors; nothing if that cannot be read."""
        try:
            # Of the role's Pod the log is a pipe, which a container of its own reads.
            said = self._kubernetes.log_tail(self._namespace, self.pod, LOG_CONTAINER, lines=20)
        except OperationError:
            said = ""
        if not said:
            command = ["sh", "-c", f"[ ! -f {LOG} ] || tail -n 20 {LOG}"]
            try:
                said = exec_in_pod(
                    self._kubernetes, self._namespace, self.pod, command, container=CONTAINER, timeout=10.0, reads=True
                ).stdout
            except OperationError:
                return ()
        return [word for word in verdict(said).words if word.lower().startswith(("fatal", "error"))]


def sha256(text: str | None) -> str:
    """The hash of a file's text; empty for no file."""
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def read(text: str | None, *, yaml: bool, name: str = "default") -> tuple[Topology, ...]:
    """The topologies of a file; ``name`` is for the one of a topology.conf. Raises OperationError."""
    if not text:
        return ()
    if not yaml:
        return topology.parse_conf(text, name)
    found: list[Any] = documents(text, topology.YAML)
    return topology.from_data(found[0] if found else None)


def _sections(output: str) -> dict[str, str]:
    sections: dict[str, str] = {}
    head = ""
    for line in output.splitlines():
        if line.startswith(_MARK):
            head = line.removeprefix(_MARK).removesuffix("\n")
            sections[head] = ""
        else:
            sections[head] = sections.get(head, "") + line + "\n"
    return sections
