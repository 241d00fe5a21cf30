# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Worker Pods of NodeSets: what Kubernetes is told."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.cluster import parse_cluster
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.names import NODE_NAME_ANNOTATION
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.problems import Problems
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.worker import worker


def workers(*nodesets: dict[str, Any], **more: Any) -> tuple[list[dict[str, Any]], Problems]:
    problems = Problems()
    facts = {"name": "slurm", "namespace": "hpc", "version": "26.05", "image": "slurmd:1", **more}
    cluster = parse_cluster(facts, problems, nodesets=nodesets)
    taken: dict[str, str] = {}
    return [worker(nodeset, cluster, problems, taken) for nodeset in cluster.nodesets], problems


def one(nodeset: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    found, problems = workers({"name": "cpu", **(nodeset or {})}, **more)
    assert problems.lines == []
    return found[0]


def mounts(found: dict[str, Any]) -> dict[str, str]:
    return {item["mountPath"]: item["name"] for item in found["volume_mounts"]}


def test_replica() -> None:
    found = one({"replicas": 3, "features": ["x"], "volume_claim_templates": [{"metadata": {"name": "s"}, "spec": {}}]})
    assert (found["workload"], found["replicas"]) == ("StatefulSet", 3)
    assert found["args"] == [
        "-Z",
        "--conf-server",
        "slurm-controller-0.hpc.svc.cluster.local:6817",
        "--conf",
        "'Feature=cpu,x'",
    ]
    assert "command" not in found["container"]
    assert found["labels"]["slurm-ops.kubernetes/nodeset"] == "cpu"
    assert found["selector"].items() <= found["labels"].items()
    assert found["pod_spec"]["dnsConfig"] == {"searches": ["slurm-workers.hpc.svc.cluster.local"]}
    assert found["volume_claim_templates"] == [{"metadata": {"name": "s"}, "spec": {}}]
    assert found["node_selector"] == {}


def test_node() -> None:
    found = one({"kind": "node", "node_name_prefix": "g-", "extra_slurmd_args": ["-vv"]})
    assert (found["workload"], found["replicas"]) == ("DaemonSet", None)
    assert found["args"][-3:] == [
        "-N",
        "$(cat /etc/slurm-ops/nodeset/node-name.$NODE_NAME 2>/dev/null || echo g-${NODE_NAME%%.*})",
        "-vv",
    ]
    assert {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}} in found["env"]
    assert found["node_selector"] == {"slurm-ops.kubernetes/nodeset": "cpu"}
    assert one({"kind": "node", "node_selector": {"a": "b"}})["node_selector"] == {"a": "b"}
    assert one({"kind": "node", "affinity": {"nodeAffinity": {}}})["node_selector"] == {}


def test_arguments_hold_no_double_quotes() -> None:
    # The public images put them into a double-quoted line of supervisord.
    found = one({"kind": "node", "gres": ["gpu:1"], "extra_conf": {"Weight": 3}})
    assert not any('"' in argument or "\\" in argument for argument in found["args"])


def test_every_key_is_always_there() -> None:
    full = one(
        {
            "image": "other:2",
            "resources": {"limits": {"cpu": 2, "memory": "2Gi"}},
            "gres": [{"name": "nic", "count": 1}],
            "sidecars": [{"name": "a", "image": "a"}],
            "init_containers": [{"name": "b", "image": "b"}],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "volume_mounts": [{"name": "v", "mountPath": "/v"}],
            "env": {"A": "1"},
            "security_context": {"privileged": False},
            "pod_security_context": {"fsGroup": 1},
            "host_network": True,
            "priority_class_name": "high",
            "service_account_name": "sa",
            "image_pull_secrets": ["p"],
            "tolerations": [{"operator": "Exists"}],
            "affinity": {"podAffinity": {}},
            "node_selector": {"x": "y"},
            "shared_memory": "1Gi",
            "services": {"s": "#!/bin/sh\n"},
            "oneshots": {"o": "#!/bin/sh\n"},
            "termination_grace_period_seconds": 5,
            "labels": {"team": "a"},
            "annotations": {"n": "1"},
            "topology_labels": ["rack"],
            "image_pull_policy": "Never",
        },
        image_contract="slurm_ops",
        image_pull_policy="Always",
        image_pull_secrets=["q", {"name": "p"}],
        home_claim="slurm-home",
        auth_secret="keys",
    )
    empty = one()
    assert set(full) == set(empty)
    spec = full["pod_spec"]
    assert spec["hostNetwork"] is True
    assert spec["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert [item["name"] for item in spec["containers"]] == ["slurmd", "a"]
    assert [item["name"] for item in spec["initContainers"]] == ["log", "b"]
    assert spec["imagePullSecrets"] == [{"name": "q"}, {"name": "p"}]
    assert spec["automountServiceAccountToken"] is True
    assert full["container"]["imagePullPolicy"] == "Never"
    assert full["expected"] == {"cpus": 2, "memory_mib": 2048, "gres": "nic:1"}
    assert full["labels"]["team"] == "a"
    assert {"service.s", "oneshot.o", "gres.conf"} <= set(full["files"])
    restart_on = full["annotations"]["slurm-ops.kubernetes/restart-on"].split(",")
    assert restart_on == [f"configmap/{full['files_name']}/{key}" for key in ("gres.conf", "oneshot.o", "service.s")]
    assert mounts(full) == {
        "/etc/slurm": "slurm-etc",
        "/etc/slurm-ops/nodeset": "slurm-files",
        "/var/spool/slurmd": "slurm-spool",
        "/var/log/slurm": "slurm-log",
        "/etc/slurm-ops/services": "services",
        "/etc/slurm-ops/oneshots": "oneshots",
        "/dev/shm": "shared-memory",
        "/home": "slurm-home",
        "/v": "v",
    }
    volumes = {item["name"]: item for item in full["volumes"]}
    assert set(volumes) == set(mounts(full).values())
    assert volumes["services"]["configMap"]["items"] == [{"key": "service.s", "path": "s/run", "mode": 0o755}]
    assert volumes["slurm-etc"]["projected"]["sources"][0]["secret"]["name"] == "keys"
    assert set(empty["pod_spec"]) == {
        "automountServiceAccountToken",
        "enableServiceLinks",
        "dnsConfig",
        "initContainers",
        "containers",
        "volumes",
    }
    assert empty["pod_spec"]["automountServiceAccountToken"] is False


def test_a_home_of_the_users_own_is_kept() -> None:
    own = {"volumes": [{"name": "nfs", "nfs": {}}], "volume_mounts": [{"name": "nfs", "mountPath": "/home/"}]}
    assert mounts(one(own, home_claim="slurm-home"))["/home/"] == "nfs"


def node(name: str, annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": annotations or {}, "labels": labels or {}}}


def test_names_of_nodes() -> None:
    nodes = [
        node("a.example.org", labels={"pool": "x"}),
        node("b", {NODE_NAME_ANNOTATION: "special"}, {"pool": "x"}),
        node("c", labels={"pool": "y"}),
    ]
    found = one({"kind": "node", "node_selector": {"pool": "x"}, "node_name_prefix": "w-"}, nodes=nodes)
    assert found["node_names"] == {"a.example.org": "w-a", "b": "special"}
    assert found["files"] == {"gres.conf": "AutoDetect=off\n", "node-name.b": "special\n"}


def test_names_collide_over_all_nodesets() -> None:
    nodes = [node("cpu-0", labels={"x": "1"}), node("z", labels={"x": "1"}), node("z.other", labels={"y": "1"})]
    problems = workers(
        {"name": "cpu", "replicas": 2},
        {"name": "n", "kind": "node", "node_selector": {"x": "1"}},
        {"name": "m", "kind": "node", "node_selector": {"y": "1"}},
        nodes=nodes,
    )[1]
    assert len(problems) == 2
    assert "cpu-0 is also that of NodeSet cpu" in problems.lines[0]
    assert "z is also that of Node z" in problems.lines[1]


@pytest.mark.parametrize("version", ["24.11", "25.05"])
def test_probes_before_25_11(version: str) -> None:
    assert "tcpSocket" in one(version=version)["readiness_probe"]


def test_an_image_is_needed() -> None:
    assert "slurm_nodesets[0].image: is required (or slurm_images.slurmd)" in workers({"name": "a"}, image="")[1].lines


def test_the_result_shares_nothing_with_what_was_given() -> None:
    given = {"name": "cpu", "labels": {"a": "b"}, "tolerations": [{"operator": "Exists"}]}
    found = one(given)
    found["labels"]["c"] = "d"
    found["tolerations"][0]["x"] = "y"
    assert given == {"name": "cpu", "labels": {"a": "b"}, "tolerations": [{"operator": "Exists"}]}
