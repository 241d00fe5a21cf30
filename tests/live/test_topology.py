# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module topology against real slurmctlds: labels to trees, changes in a safe order, refusals, and the way back."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .support.guides import examples_of, text_of
from .support.kube import Json, Kube
from .support.minislurm import ANYWHERE, NAME, SMALL, MiniSlurm, is_ready, versions_there
from .support.playbook import PlaybookResult

ZONE, LEAF = "example.org/zone", "example.org/leaf"
NAMES = ["cpu-0", "cpu-1", "gpu-0", "gpu-1"]
Run = Callable[..., Json]


def label(kube: Kube, node: str, zone: str | None, leaf: str | None) -> None:
    kube.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {ZONE: zone, LEAF: leaf}}})


@pytest.fixture(scope="module")
def nodes(kube: Kube) -> Iterator[list[str]]:
    """Two Nodes, which lose the labels of these tests in the end."""
    found = sorted(item["metadata"]["name"] for item in kube.items("/api/v1/nodes"))[:2]
    yield found
    for name in found:
        label(kube, name, None, None)


def cluster(kube: Kube, kubeconfig: str, namespace: str, version: str, nodes: list[str], **facts: Any) -> MiniSlurm:
    """Two NodeSets of two nodes, each on a Node of its own."""
    nodesets = [
        {
            "name": name,
            "replicas": 2,
            **SMALL,
            "node_selector": {"kubernetes.io/hostname": node},
        }
        for name, node in zip(("cpu", "gpu"), nodes, strict=True)
    ]
    partitions = [{"name": "all", "nodes": "ALL", "default": True}]
    made = MiniSlurm(kube, kubeconfig, namespace, version, nodesets, partitions=partitions, **facts)
    made.deploy()
    made.wait_for_nodes(*NAMES)
    return made


@pytest.fixture(scope="module")
def mini(kube: Kube, kubeconfig: str, nodes: list[str], _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    made = cluster(kube, kubeconfig, _namespaces("topology"), versions_there(kube)[0], nodes)
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")


@pytest.fixture
def topology(mini: MiniSlurm, run_module: Run) -> Run:
    return runner(mini, run_module)


def runner(mini: MiniSlurm, run_module: Run) -> Run:
    def run(args: Json, **more: Any) -> Json:
        return run_module("topology", {"namespace": mini.namespace, "name": NAME, "apply": True, **args}, **more)

    return run


LABELS: Json = {"topologies": [{"name": "net", "labels": [ZONE, LEAF]}]}
BOTH: Json = {
    "topologies": [
        {"name": "net", "labels": [ZONE, LEAF], "default": True},
        {"name": "nvlink", "type": "block", "labels": [LEAF], "block_sizes": [2, 4]},
    ]
}


def steps(result: Json) -> list[tuple[str, str, Any]]:
    return [(action["kind"], action["target"], action["after"]) for action in result["actions"]]


def places(mini: MiniSlurm) -> dict[str, str]:
    return {str(item["name"]): str(item["topology"]) for item in mini.client().nodes().items}


def assert_settled(topology: Run, args: Json) -> None:
    """A second run does nothing."""
    again = topology(args)
    assert (again["changed"], again["actions"], again["api_calls"]["writes"]) == (False, [], 0)


def test_labels_become_a_tree(mini: MiniSlurm, kube: Kube, nodes: list[str], topology: Run) -> None:
    label(kube, nodes[0], "z1", "l1")
    label(kube, nodes[1], "z1", "l2")
    predicted = topology(LABELS, check=True, diff=True)
    assert steps(predicted) == [
        ("write", f"topology.yaml in ConfigMap {mini.namespace}/slurm-topology", None),
        ("reconfigure", "slurmctld", None),
        ("place", "cpu-[0-1]", "net:l1"),
        ("place", "gpu-[0-1]", "net:l2"),
    ]
    assert predicted["api_calls"]["writes"] == 0
    assert "\n      - switch: l1\n        nodes: cpu-[0-1]\n" in predicted["diff"][0]["after"]
    assert set(places(mini).values()) == {""}
    found = topology(LABELS)
    assert steps(found) == steps(predicted)
    assert all(action["done"] for action in found["actions"])
    assert places(mini) == {"cpu-0": "net:l1", "cpu-1": "net:l1", "gpu-0": "net:l2", "gpu-1": "net:l2"}
    shown = mini.run("scontrol show topology net").stdout
    assert "SwitchName=root Level=2" in shown
    assert "SwitchName=l2 Level=0 LinkSpeed=0 Nodes=gpu-[0-1]" in shown
    assert mini.run("cat /etc/slurm/topology.yaml").stdout == found["content"] == predicted["content"]
    assert mini.run("ls /tmp").stdout == ""  # the second slurmctld has left nothing
    assert_settled(topology, LABELS)


def test_a_switch_that_goes_is_left_first_and_slurmctld_starts_again(
    mini: MiniSlurm, kube: Kube, nodes: list[str], topology: Run
) -> None:
    label(kube, nodes[1], "z1", "l3")
    predicted = topology(LABELS, check=True, diff=True)
    before, after = (predicted["diff"][0][key].splitlines() for key in ("before", "after"))
    changes = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
    assert changes == [
        "-         children: l[1-2]",
        "+         children: l[1,3]",
        "-       - switch: l2",
        "+       - switch: l3",
    ]
    job = mini.run("cd /tmp && sbatch --parsable -w gpu-0 --mem=10 --wrap 'sleep 300'", on="cpu-0").stdout.strip()
    running = f"squeue -h -j {job} -o '%T %N'"
    kube.wait(lambda: mini.run(running).stdout, lambda found: found == "RUNNING gpu-0\n", timeout=30)
    found = topology(LABELS)
    assert mini.run(running).stdout == "RUNNING gpu-0\n"
    assert steps(found) == steps(predicted)
    assert [action[0] for action in steps(found)] == ["leave", "write", "reconfigure", "place"]
    assert found["actions"][0]["target"] == "gpu-[0-1]"
    assert found["actions"][0]["before"] == "net:l2"
    assert places(mini)["gpu-0"] == "net:l3"
    pod = f"/api/v1/namespaces/{mini.namespace}/pods/slurm-controller-0"
    mini.run("kill 1")  # the container starts again, with the state that was saved
    kube.wait(
        lambda: kube.get(pod),
        lambda item: is_ready(item) and item["status"]["containerStatuses"][0]["restartCount"] == 1,
        timeout=90,
        what="slurmctld has started again",
    )
    mini.client().cancel_jobs([int(job)])
    mini.wait_for_nodes(*NAMES)
    assert "Nodes=gpu-[0-1]" in mini.run("scontrol show topology net | grep SwitchName=l3").stdout
    assert_settled(topology, LABELS)


def test_a_node_without_labels_is_reported_and_usable(
    mini: MiniSlurm, kube: Kube, nodes: list[str], topology: Run, tmp_path: Path
) -> None:
    label(kube, nodes[0], "z1", "l1")
    label(kube, nodes[1], None, "l3")
    only_file = topology({**LABELS, "apply": False, "dest": str(tmp_path / "topology.yaml")})
    assert [step[0] for step in steps(only_file)] == ["save"]
    assert (tmp_path / "topology.yaml").read_text() == only_file["content"]
    assert only_file["api_calls"]["writes"] == 0
    found = topology(LABELS)
    assert found["unplaced"] == {"net": "gpu-[0-1]"}
    assert places(mini)["gpu-1"] == "net:unplaced"
    assert "SwitchName=unplaced Level=0 LinkSpeed=0 Nodes=gpu-[0-1]" in mini.run("scontrol show topology net").stdout
    mini.run("cd /tmp && srun -t 1 --mem=10 -w gpu-0 true && srun -t 1 --mem=10 -N4 true", on="cpu-0")


def test_tree_and_blocks_in_one_file(mini: MiniSlurm, kube: Kube, nodes: list[str], topology: Run) -> None:
    label(kube, nodes[0], "z1", "l1")
    label(kube, nodes[1], "z1", "l2")
    topology(BOTH)
    assert places(mini) == dict.fromkeys(NAMES[:2], "net:l1,nvlink:l1") | dict.fromkeys(NAMES[2:], "net:l2,nvlink:l2")
    shown = mini.run("scontrol show topology nvlink").stdout
    assert "BlockName=l1 BlockIndex=0 Nodes=cpu-[0-1] BlockSize=2" in shown
    assert "BlockName=l2 BlockIndex=1 Nodes=gpu-[0-1] BlockSize=2" in shown
    assert_settled(topology, BOTH)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            {"topologies": [{"name": "net", "mapping": {"cpu-[0-1]": ["z1", "r1"], "gpu-[0-1]": ["z2", "r1"]}}]},
            ["switch r1", "below z1 for cpu-0", "below z2 for gpu-0"],
        ),
        (
            {"topologies": [{"name": "nvlink", "type": "block", "labels": [LEAF], "block_sizes": [2, 6]}]},
            ["block_sizes", "6 is not 2 doubled"],
        ),
        (
            {
                "content": "- topology: t\n  tree:\n    switches:\n      - {switch: s, nodes: 'cpu-[0-1],x-7'}\n"
                "      - {switch: r, nodes: 'cpu-1'}\n"
            },
            ["cpu-1 is in switch s and in switch r", "does not know x-7", "2 islands", "cluster_default"],
        ),
    ],
    ids=["two parents", "sizes", "a file of one's own"],
)
def test_what_is_wrong_is_told_with_names(mini: MiniSlurm, topology: Run, args: Json, words: list[str]) -> None:
    failed = topology(args, fails=True)
    assert failed["reason"] == "InvalidVariables"
    assert all(word in failed["msg"] for word in words), failed["msg"]
    assert failed["api_calls"]["writes"] == 0


def test_slurmctlds_own_refusal_changes_nothing(mini: MiniSlurm, kube: Kube, topology: Run) -> None:
    """A partition that names a topology which goes: only slurmctld can tell, and says so before anything is changed."""
    core = f"/api/v1/namespaces/{mini.namespace}"
    good = kube.get(f"{core}/configmaps/slurm-config")["data"]["slurm.conf"]
    bad = good + "PartitionName=picky Nodes=ALL Topology=nvlink\n"

    def mounted(text: str) -> None:
        kube.patch(f"{core}/configmaps/slurm-config", {"data": {"slurm.conf": text}})
        kube.patch(f"{core}/pods/slurm-controller-0", {"metadata": {"annotations": {"test": str(len(text))}}})
        kube.wait(lambda: mini.run("cat /etc/slurm/slurm.conf").stdout, lambda found: found == text, timeout=90)

    before = places(mini)
    mounted(bad)
    failed = topology(LABELS, fails=True)
    assert failed["reason"] == "Refused"
    assert "Invalid partition topology" in failed["msg"]
    assert failed["api_calls"]["writes"] == 0
    assert places(mini) == before
    mounted(good)
    assert_settled(topology, BOTH)


def test_what_slurmctld_does_not_take_is_put_back(mini: MiniSlurm, kube: Kube, topology: Run) -> None:
    """A record that REST hides (FUTURE) names a block that goes: slurmctld refuses to read the new file."""
    mini.run("scontrol create NodeName=ghost State=FUTURE Topology=nvlink:l2")
    before, file = places(mini), mini.run("cat /etc/slurm/topology.yaml").stdout
    failed = topology({**LABELS, "wait_timeout": 20}, fails=True)
    assert "The old topology is back" in failed["msg"], failed["msg"]
    assert "Invalid node topology specified" in failed["msg"], failed["msg"]
    assert not failed["changed"]
    assert places(mini) == before
    assert mini.run("cat /etc/slurm/topology.yaml").stdout == file
    assert "BlockName=l2" in mini.run("scontrol show topology nvlink").stdout
    mini.run("scontrol delete NodeName=ghost")


def test_a_topology_goes_as_a_whole(mini: MiniSlurm, kube: Kube, topology: Run) -> None:
    found = topology({"state": "absent"})
    assert [step[0] for step in steps(found)] == ["leave", "leave", "remove", "reconfigure"]
    assert set(places(mini).values()) == {""}
    assert kube.find(f"/api/v1/namespaces/{mini.namespace}/configmaps/slurm-topology") is None
    assert "SwitchName" not in mini.run("scontrol show topology", check=False).stdout
    assert_settled(topology, {"state": "absent"})
    # Of a cluster that is no more, as playbook destroy leaves it.
    left = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "gone-topology"},
        "data": {"topology.yaml": ""},
    }
    kube.apply(f"/api/v1/namespaces/{mini.namespace}/configmaps/gone-topology", left)
    assert steps(topology({"state": "absent", "name": "gone"}))[0][0] == "remove"
    assert kube.find(f"/api/v1/namespaces/{mini.namespace}/configmaps/gone-topology") is None


@pytest.fixture
def old(kube: Kube, kubeconfig: str, nodes: list[str], _namespaces: Callable[[str], str]) -> Iterator[MiniSlurm]:
    version = versions_there(kube)[-1]
    assert version < "25.05"
    conf = {**ANYWHERE, "TopologyPlugin": "topology/tree"}
    made = cluster(kube, kubeconfig, _namespaces("topology-old"), version, nodes, slurm_conf=conf)
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")


def test_an_older_slurm(old: MiniSlurm, kube: Kube, nodes: list[str], run_module: Run) -> None:
    """topology.conf, and nodes have no place of their own."""
    label(kube, nodes[0], "z1", "l1")
    label(kube, nodes[1], "z1", "l2")
    topology = runner(old, run_module)
    found = topology(LABELS)
    assert [step[0] for step in steps(found)] == ["write", "reconfigure"]
    assert "SwitchName=l1 Nodes=cpu-[0-1]\n" in found["content"]
    shown = "SwitchName=l1 Level=0 LinkSpeed=1 Nodes=cpu-[0-1]"
    assert shown in old.run("scontrol show topology").stdout
    assert_settled(topology, LABELS)
    failed = topology({"topologies": [{"name": "b", "type": "block", "labels": [LEAF]}]}, fails=True)
    assert failed["reason"] == "PluginNotSet"
    failed = topology(BOTH, fails=True)
    assert "25.05" in failed["msg"]
    # A run that was interrupted between the file and the reconfigure.
    label(kube, nodes[0], "z1", "l9")
    core, text = f"/api/v1/namespaces/{old.namespace}", topology(LABELS, check=True)["content"]
    kube.patch(f"{core}/configmaps/slurm-topology", {"data": {"topology.conf": text}})
    kube.patch(f"{core}/pods/slurm-controller-0", {"metadata": {"annotations": {"test": "nudge"}}})
    kube.wait(lambda: old.run("cat /etc/slurm/topology.conf").stdout, lambda found: found == text, timeout=90)
    (action,) = topology(LABELS)["actions"]
    assert (action["kind"], action["why"].rpartition(": ")[2]) == ("reconfigure", "topology net has no l9")
    assert "SwitchName=l9 Level=0 LinkSpeed=1 Nodes=cpu-[0-1]" in old.run("scontrol show topology").stdout
    assert_settled(topology, LABELS)


FABRIC = """\
Switch\t41 "S-1"\t\t# "MF0;leaf1:MQM9700/U1" enhanced port 0 lid 1 lmc 0
[1]\t"S-3"[1]\t\t# "MF0;spine1:MQM9700/U1" lid 3 4xNDR
Switch\t41 "S-2"\t\t# "MF0;leaf2:MQM9700/U1" enhanced port 0 lid 2 lmc 0
[1]\t"S-3"[2]\t\t# "MF0;spine1:MQM9700/U1" lid 3 4xNDR
Switch\t41 "S-3"\t\t# "MF0;spine1:MQM9700/U1" enhanced port 0 lid 3 lmc 0
Ca\t1 "H-1"\t\t# "@FIRST@ mlx5_0"
[1](b83f01) \t"S-1"[2]\t\t# lid 4 lmc 0 "MF0;leaf1:MQM9700/U1" lid 1 4xNDR
Ca\t1 "H-2"\t\t# "@SECOND@ mlx5_0"
[1](b83f02) \t"S-2"[2]\t\t# lid 5 lmc 0 "MF0;leaf2:MQM9700/U1" lid 2 4xNDR
"""
LAST = """\
network (tree, default)
  root    4 nodes  4 free  0 busy  0 away
    z1    4 nodes  4 free  0 busy  0 away
      l1  2 nodes  2 free  0 busy  0 away  cpu-[0-1]
      l2  2 nodes  2 free  0 busy  0 away  gpu-[0-1]
"""


def test_the_examples_of_the_guide(
    mini: MiniSlurm, kube: Kube, nodes: list[str], run_playbook: Callable[..., PlaybookResult], tmp_path: Path
) -> None:
    tree, survey, blocks, tasks = examples_of("topology.md")
    label(kube, nodes[0], "z1", "l1")
    label(kube, nodes[1], "z1", "l2")
    fabric, picture = tmp_path / "fabric.txt", tmp_path / "topology.svg"
    fabric.write_text(FABRIC.replace("@FIRST@", nodes[0]).replace("@SECOND@", nodes[1]))
    cluster = {"slurm_namespace": mini.namespace, "slurm_name": NAME}

    def playbook(example: Json, **more: Any) -> str:
        run = run_playbook("topology", extra_vars={**cluster, **example, **more})
        return "\n".join(run.task("Show the topology").result["msg"])

    told = playbook(tree)
    assert "place gpu-[0-1]: nowhere to network:l2" in told
    assert told.endswith(LAST.rstrip())
    assert all(line.strip() in text_of("topology.md") for line in LAST.splitlines())
    assert "nvlink (block, block sizes 2)" in playbook(blocks)
    assert "topology (tree, default)" in playbook(survey)
    shown = run_playbook("topology", extra_vars={**cluster, "topology_state": "show", "topology_svg": str(picture)})
    assert [task.name for task in shown.changed] == ["Read what slurmctld has"]  # it has drawn
    assert "topology (tree, default)" in "\n".join(shown.task("Show the topology").result["msg"])
    play = {"hosts": "localhost", "gather_facts": False, "tasks": tasks}
    (tmp_path / "guide.yml").write_text(yaml.safe_dump([play]))
    (tmp_path / "look.yml").write_text(yaml.safe_dump([{**play, "tasks": tasks[-1:]}]))
    done = run_playbook(tmp_path / "guide", extra_vars={**cluster, "fabric_file": str(fabric), "picture": str(picture)})
    assert "- switch: leaf2\n        nodes: gpu-[0-1]\n" in done.tasks[1].result["content"]
    assert [task.changed for task in done.tasks] == [True, False, True, True]
    assert not run_playbook(tmp_path / "look", extra_vars={**cluster, "picture": str(picture)}).changed
    assert "4 of 4 free" in picture.read_text(encoding="utf-8")
