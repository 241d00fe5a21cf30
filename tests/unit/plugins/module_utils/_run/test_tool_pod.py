# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What killed runs left behind goes; what is another cluster's stays. That a Pod is made and gone is a live test."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.tool_pod import end_left


def test_only_this_clusters_are_taken_away() -> None:
    there = ["hpc-state-abc12", "hpc-state-state-abc12", "hpc2-state-abc12", "hpc-state-zz9zz"]
    gone: list[str] = []

    def listed(_resource: Any, namespace: str, *, labels: str) -> list[dict[str, Any]]:
        assert (namespace, labels) == ("ns", "slurm-ops.kubernetes/tool=state")
        return [{"metadata": {"name": name, "uid": name}} for name in there]

    kubernetes = SimpleNamespace(list=listed, delete=lambda _resource, _namespace, name, *, uid: gone.append(uid))
    run: Any = SimpleNamespace(params={"namespace": "ns", "name": "hpc"}, kubernetes=kubernetes)
    end_left(run, "state")
    assert gone == ["hpc-state-abc12", "hpc-state-zz9zz"]
