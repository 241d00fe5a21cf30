# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the options of module topology come to, on a made-up cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import Snapshot, snapshot
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.topology import Topology
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.topology_input import Wanted, wanted

LABELS = ["zone", "leaf"]
NODES = {
    "node1": {"zone": "z1", "leaf": "l1"},
    "node2.example.org": {"zone": "z1", "leaf": "l2"},
    "node3": {"zone": "z1"},
}
PODS = {"gpu-0": "node1", "gpu-1": "node2.example.org", "cpu-0": "node3"}


def cluster(without: str = "") -> Snapshot:
    """Three nodes; Slurm still knows the one that is ``without`` a Pod."""
    return snapshot(
        pods=[
            {
                "metadata": {"name": name, "labels": {"app.kubernetes.io/component": "worker"}},
                "spec": {"nodeName": node},
            }
            for name, node in PODS.items()
            if name != without
        ],
        nodes=[{"metadata": {"name": name, "labels": labels}} for name, labels in NODES.items()],
        slurm_nodes=[{"name": name, "state": ["IDLE"], "features": [name[:3]]} for name in PODS],
    )


def one(**more: Any) -> dict[str, Any]:
    keys = ("labels", "mapping", "mapping_file", "ibnetdiscover", "nodesets", "block_sizes")
    usual = {"type": "tree", "default": False, "root": "root", "unplaced": "unplaced", "names": "value"}
    return {"name": "net", **dict.fromkeys(keys), **usual, **more}


def asked(
    *topologies: dict[str, Any], seen: Snapshot | None = None, present: Sequence[Topology] = (), **more: Any
) -> Wanted:
    params = {"state": "present", "content": None, "topologies": list(topologies), "ignore_unknown": False, **more}
    return wanted(params, seen or cluster(), present, yaml=True)


def leaves(found: Wanted) -> dict[str, str]:
    return found.topologies[0].leaf_of()


def refusal(*topologies: dict[str, Any], **more: Any) -> str:
    with pytest.raises(OperationError) as raised:
        asked(*topologies, **more)
    return raised.value.msg


def test_labels() -> None:
    found = asked(one(labels=LABELS))
    assert leaves(found) == {"gpu-0": "l1", "gpu-1": "l2", "cpu-0": "unplaced"}
    assert found.unplaced == {"net": ["cpu-0"]}
    assert found.topologies[0].default


@pytest.mark.parametrize(
    "shape",
    [
        one(labels=LABELS),
        one(labels=LABELS, names="path"),
        one(labels=LABELS, type="block"),
        one(labels=LABELS, type="block", names="path"),
    ],
    ids=["tree", "tree of paths", "blocks", "blocks of paths"],
)
def test_a_node_without_a_pod_keeps_its_place(shape: dict[str, Any]) -> None:
    before = asked(shape)
    without = cluster(without="gpu-1")
    after = asked(shape, seen=without, present=before.topologies)
    assert after.topologies == before.topologies
    assert after.kept == {"gpu-1"}
    # One that was never placed has none to keep, nor has one whose tree had other levels.
    assert asked(shape, seen=without).unplaced == {"net": ["cpu-0", "gpu-1"]}


def test_nodesets_and_the_nodes_outside() -> None:
    found = asked(one(labels=["leaf"], type="block", nodesets=["gpu"], block_sizes=[1]))
    assert leaves(found) == {"gpu-0": "l1", "gpu-1": "l2"}
    assert found.notes == [
        "cpu-0: not in the default topology net, so jobs get these nodes only through a partition with another Topology"
    ]
    flat = asked(one(name="plain", type="flat", default=True), one(labels=["leaf"], nodesets=["gpu"], type="block"))
    assert flat.notes == []
    assert [item.default for item in flat.topologies] == [True, False]


def test_a_mapping_of_slurm_nodes_and_kubernetes_nodes(tmp_path: Path) -> None:
    mapping = {"gpu-0": ["z", "a"], "node2": ["z", "b"], "cpu-[0]": ["z", "b"]}
    found = asked(one(mapping=mapping))
    assert leaves(found) == {"gpu-0": "a", "gpu-1": "b", "cpu-0": "b"}
    (tmp_path / "racks.yml").write_text("gpu-0: [z, a]\nnode2: [z, b]\ncpu-0: [z, b]\n")
    assert asked(one(mapping_file=str(tmp_path / "racks.yml"))).topologies == found.topologies


def test_a_mapping_with_mistakes() -> None:
    assert "Slurm does not know x[1-2]" in refusal(one(mapping={"x[1-2]": ["a"], "gpu-0": ["a"]}))
    assert leaves(asked(one(mapping={"x[1-2]": ["a"], "gpu-0": ["a"]}), ignore_unknown=True))["gpu-0"] == "a"
    assert "gpu-0 is in the mapping twice" in refusal(one(mapping={"gpu-0": ["a"], "gpu-[0-1]": ["b"]}))
    assert "must be a list of names" in refusal(one(mapping={"gpu-0": {"leaf": "a"}}))


def test_a_fabric(tmp_path: Path) -> None:
    text = 'Switch 41 "S-1" # "MF0;leaf1:M/U1"\nCa 1 "H-1" # "node2 mlx5_0"\n[1](b8) "S-1"[2]\n'
    (tmp_path / "fabric.txt").write_text(text)
    found = asked(one(ibnetdiscover=str(tmp_path / "fabric.txt")))
    assert leaves(found) == {"gpu-1": "leaf1", "gpu-0": "unplaced", "cpu-0": "unplaced"}


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (one(), "needs one of labels, mapping, mapping_file, ibnetdiscover; has none"),
        (one(labels=["a"], mapping={"gpu-0": ["a"]}), "has labels, mapping"),
        (one(type="flat", labels=["a"]), "is flat"),
        (one(labels=LABELS, block_sizes=[2]), "only a topology of type block"),
        (one(labels=LABELS, nodesets=["none"]), "Slurm knows none of these nodesets"),
    ],
)
def test_options_that_do_not_go_together(shape: dict[str, Any], words: str) -> None:
    assert words in refusal(shape)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(one(mapping_file=str(tmp_path / "missing")))
    (tmp_path / "list.yml").write_text("- a\n")
    assert "one YAML mapping" in refusal(one(mapping_file=str(tmp_path / "list.yml")))
    assert "has no topology" in refusal(content="[]")
    assert refusal()  # an empty list of topologies


def test_absent_is_nothing() -> None:
    assert asked(state="absent").topologies == ()
