# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Which nodes belong to a NodeSet."""

from __future__ import annotations

from .snapshot import Snapshot


def members(seen: Snapshot, nodeset: str) -> dict[str, str]:
    """{node: its Pod} of a NodeSet, by name; the records that are left of Pods that are gone have an empty Pod.

    A Pod that Slurm does not know counts under its own name.
    """
    node_of = {pod.name: node for node, pod in seen.pod_of.items()}
    pods = [pod.name for pod in seen.pods if pod.nodeset == nodeset and not pod.deleting]
    found = {node_of.get(pod, pod): pod for pod in pods}
    # The NodeSet's name is a feature of each of its nodes.
    for node in seen.slurm_nodes.values():
        if nodeset in node.features:
            found.setdefault(node.name, "")
    return dict(sorted(found.items()))
