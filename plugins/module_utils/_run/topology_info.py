# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module topology_info's work: the topology that slurmctld has, with what its nodes do."""

from __future__ import annotations

from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import topology_report, topology_svg, versions
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import snapshot
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.topology import FLAT, compress
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import saved_file, topology_live
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import client_of
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.topology_live import Controller


class TopologyInfo:
    """An Operation whose only action is to write the picture, where one is asked for."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._params = run.params
        self._picture = ""
        self._result: dict[str, Any] = {}

    def plan(self) -> list[Action]:
        """Read slurmctld's nodes and topology."""
        slurm = client_of(self._run.kubernetes, self._params, self._run.slurm_calls)
        slurm.require_controller()
        yaml = versions.parse_version(slurm.release).at_least(25, 5)
        controller = Controller(self._run.kubernetes, self._params["namespace"], self._params["name"])
        controller.use(yaml=yaml)
        text = controller.look().file
        in_file = topology_live.read(text, yaml=yaml)
        shown = controller.look([item.name for item in in_file if item.kind != FLAT]).shown if in_file else {}
        nodes = snapshot(slurm_nodes=slurm.nodes().items).slurm_nodes
        states = {name: node.state for name, node in nodes.items()}
        # What slurmctld has counts; only it does not tell which topology is the default.
        found = [(item, topology_report.units(shown.get(item.name, item), states)) for item in in_file]
        lines = [line for item, units in found for line in topology_report.lines(item, units)]
        self._picture = topology_svg.picture(found, f"Slurm cluster {self._params['namespace']}/{self._params['name']}")
        self._result = {
            "file": controller.file,
            "content": f"{text}\n" if text else "",
            "topologies": [
                {
                    "name": item.name,
                    "type": item.kind,
                    "default": item.default,
                    "block_sizes": list(item.block_sizes),
                    "switches": [unit.plain() for unit in units],
                    "outside": compress(nodes.keys() - shown[item.name].leaf_of().keys()) if item.name in shown else "",
                }
                for item, units in found
            ],
            "places": {name: node.topology for name, node in sorted(nodes.items())},
            "text": "\n".join(lines) or "Slurm has no topology: all nodes are alike to it.",
        }
        return saved_file.plan(self._params["svg_dest"], self._picture)

    def act(self, actions: Any) -> None:
        """Write the picture."""
        saved_file.save(self._params["svg_dest"], self._picture)
        actions[0].done = True

    def wait(self) -> None:
        """Nothing to wait for."""

    def result(self) -> dict[str, Any]:
        """Return what was read."""
        return self._result
