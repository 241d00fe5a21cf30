# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The topology that a cluster has: its file in a ConfigMap and in the controller's Pod, and what slurmctld shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import config_change, topology
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.topology import Topology
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.live_files import ControllerPod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.pod_look import sections
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.yaml_text import documents

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


class Controller(ControllerPod):
    """The Pod of slurmctld, and the ConfigMap with the topology that it mounts (docs/decisions/041)."""

    def __init__(self, kubernetes: KubernetesClient, namespace: str, name: str) -> None:
        super().__init__(kubernetes, namespace, name, "topology")
        self.use(yaml=True)

    def use(self, *, yaml: bool) -> None:
        """Which of the two files this Slurm reads."""
        self.file = topology.file_name(yaml=yaml)
        self.yaml = yaml

    @property
    def target(self) -> str:
        """The ConfigMap and its key, for people."""
        return f"{self.file} in ConfigMap {self._namespace}/{self.config_map}"

    def has_config_map(self) -> bool:
        """Whether there is a file of any name."""
        return self.read_config_map() is not None

    def require_mounted(self) -> None:
        """Raise OperationError (NotMounted) unless the Pod will see the ConfigMap."""
        pod = self.read_pod()
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
        text = ((self.read_config_map() or {}).get("data") or {}).get(self.file)
        return None if text is None else str(text)

    def write(self, text: str | None) -> bool:
        """Make the file what it should be, or remove it, and have the kubelet bring it into the Pod.

        Returns whether there is a Pod for it, or will be.
        """
        if text is None:
            self.remove()
        else:
            self.apply({self.file: text})
        if self.read_pod() is None and not self.exists():
            return False
        self.nudge(sha256(text) or "none")
        return True

    # --- what slurmctld has ---------------------------------------------------------------------------------------

    def look(self, topologies: Sequence[str] = ()) -> Seen:
        """Look into the Pod, with one call. A slurmctld that does not answer shows no topology."""
        wanted = topologies if self.yaml else ()
        command = ["sh", "-c", _LOOK, "look", self.file, *wanted]
        shown = sections(self.run(command).stdout)
        found = [
            topology.parse_shown(text, head.removeprefix("topology ") if self.yaml else (topologies or [""])[0])
            for head, text in shown.items()
            if head.startswith("topology ")
        ]
        return Seen(
            slurm_conf=shown.get("conf", ""),
            hash="".join(shown.get("hash", "").split()[:1]),
            file=shown.get("file", "").rstrip("\n"),
            shown={item.name: item for item in found if item is not None},
        )


def sha256(text: str | None) -> str:
    """The hash of a file's text; empty for no file."""
    return "" if text is None else config_change.sha256(text)


def read(text: str | None, *, yaml: bool, name: str = "default") -> tuple[Topology, ...]:
    """The topologies of a file; ``name`` is for the one of a topology.conf. Raises OperationError."""
    if not text:
        return ()
    if not yaml:
        return topology.parse_conf(text, name)
    found: list[Any] = documents(text, topology.YAML)
    return topology.from_data(found[0] if found else None)
