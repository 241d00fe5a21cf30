# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later


"""The files of a cluster: what must be in them, what a user may change, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import files, slurm_conf
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.cluster import parse_cluster
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.problems import Problems

CPU = {"name": "cpu", "replicas": 2, "cpus": 2, "memory": "4Gi"}
GPU = {"name": "gpu", "kind": "node", "gres": ["gpu:h100:8"]}


def cluster(**more: Any) -> dict[str, Any]:
    return {"name": "slurm", "namespace": "hpc", "version": "26.05", "image": "x", "nodesets": [CPU], **more}


def made(**more: Any) -> dict[str, str]:
    problems = Problems()
    found = files.files(parse_cluster(cluster(**more), problems), problems)
    assert problems.lines == []
    return found


def settings(name: str = "slurm.conf", **more: Any) -> dict[str, Any]:
    return slurm_conf.from_lines(slurm_conf.parse(made(**more)[name]))


def test_a_second_slurmctld() -> None:
    two = settings(controllers=2)
    assert two["SlurmctldHost"] == [f"slurm-controller-{n}(slurm-controller-{n}.hpc.svc.cluster.local)" for n in (0, 1)]
    assert two["SlurmctldTimeout"] == "30"
    assert "SlurmctldTimeout" not in settings()
    assert settings(controllers=2, slurm_conf={"SlurmctldTimeout": 10})["SlurmctldTimeout"] == "10"
    assert "slurm_controllers: must be from 1 to 2, is 3" in refused(controllers=3)


def refused(**more: Any) -> str:
    problems = Problems()
    files.files(parse_cluster(cluster(**more), problems), problems)
    assert problems
    return "\n".join(problems.lines)


def test_the_whole_file() -> None:
    assert made()["slurm.conf"].splitlines() == [
        "SlurmctldHost=slurm-controller-0(slurm-controller-0.hpc.svc.cluster.local)",
        "ClusterName=slurm",
        "SlurmctldPort=6817",
        "SlurmdPort=6818",
        "SlurmUser=slurm",
        "SlurmdUser=root",
        "StateSaveLocation=/var/spool/slurmctld",
        "SlurmdSpoolDir=/var/spool/slurmd",
        "SlurmctldPidFile=/run/slurmctld/slurmctld.pid",
        "SlurmdPidFile=/run/slurm/slurmd.pid",
        "SlurmctldLogFile=/var/log/slurm/slurmctld.log",
        "SlurmdLogFile=/var/log/slurm/slurmd.log",
        "MaxNodeCount=1024",
        "AuthType=auth/slurm",
        "CredType=cred/slurm",
        "SelectType=select/cons_tres",
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageHost=slurm-accounting.hpc.svc.cluster.local",
        "AccountingStoragePort=6819",
        "AuthInfo=use_client_ids",
        "AuthAltTypes=auth/jwt",
        "AuthAltParameters=jwt_key=/etc/slurm/jwt.key,jwks=/etc/slurm/jwks.json,use_jwt_client_ids",
        "SlurmctldParameters=enable_configless,reconfig_on_restart",
        "LaunchParameters=enable_nss_slurm",
        "SelectTypeParameters=CR_Core_Memory",
        "DefMemPerCPU=2048",
        "ReturnToService=2",
        "MailProg=/bin/true",
        "MetricsType=metrics/openmetrics",
        "NodeSet=cpu Feature=cpu",
        "PartitionName=cpu Nodes=cpu Default=YES MaxTime=INFINITE State=UP",
    ]


def test_lists_are_joined_and_other_keys_are_the_users() -> None:
    found = settings(
        slurm_conf={
            "slurmctldparameters": ["idle_on_node_suspend", "enable_configless"],
            "AuthAltParameters": "disable_token_creation",
            "LaunchParameters": "use_interactive_step",
            "PrologFlags": ["Alloc", "Contain"],
            "ReturnToService": 1,
            "MailProg": None,
            "DisableRootJobs": True,
        }
    )
    assert found["SlurmctldParameters"] == "enable_configless,reconfig_on_restart,idle_on_node_suspend"
    assert (
        found["AuthAltParameters"]
        == "jwt_key=/etc/slurm/jwt.key,jwks=/etc/slurm/jwks.json,use_jwt_client_ids,disable_token_creation"
    )
    assert found["LaunchParameters"] == "enable_nss_slurm,use_interactive_step"
    assert found["PrologFlags"] == "Alloc,Contain"
    assert found["ReturnToService"] == "1"
    assert found["MailProg"] == "/bin/true"
    assert found["DisableRootJobs"] == "YES"


def test_gres_brings_its_settings() -> None:
    found = settings(nodesets=[CPU, GPU], slurm_conf={"AccountingStorageTRES": "license/matlab", "GresTypes": "shard"})
    assert found["GresTypes"] == "gpu,shard"
    assert found["AccountingStorageTRES"] == "gres/gpu,license/matlab"
    # What the GPU nodes have is not known here, so the smaller share counts.
    assert found["DefMemPerCPU"] == "1024"
    # slurmctld refuses TRES of GRES when it has no accounting.
    assert "AccountingStorageTRES" not in settings(nodesets=[GPU], accounting=False)
    assert made()["gres.conf"] == "Include /etc/slurm/nodeset-gres.conf\n"
    assert "nodeset-gres.conf" in made()


def test_older_slurm() -> None:
    found = settings(version="24.11")
    assert "MetricsType" not in found
    assert found["SlurmctldParameters"] == "enable_configless"
    assert "metricstype: is not known to Slurm 24.11 (it came with 25.11)" in refused(
        version="24.11", slurm_conf={"metricstype": "metrics/openmetrics"}
    )


def test_an_older_slurm_with_a_topology_plugin_has_a_file_to_start_with() -> None:
    tree = {"TopologyPlugin": "topology/tree"}
    assert made(version="24.11", slurm_conf=tree)["topology.conf"].startswith("#")
    assert made(version="24.11", slurm_conf=tree, extra_files={"topology.conf": "x"})["topology.conf"] == "x\n"
    assert "topology.conf" not in made(version="24.11")
    assert "topology.conf" not in made(version="24.11", slurm_conf={"TopologyPlugin": "topology/flat"})
    assert "topology.conf" not in made(slurm_conf=tree)


def test_a_newer_slurm_may_have_newer_keys() -> None:
    assert settings(version="27.05", slurm_conf={"BrandNewKey": 1})["BrandNewKey"] == "1"
    assert "Slurm knows no such key" in refused(slurm_conf={"BrandNewKey": 1})


def test_scripts_and_files() -> None:
    found = made(
        prolog={"20-b": "#!/bin/sh\n", "10-a": "#!/bin/sh"},
        epilog={"x": "#!/bin/sh\n"},
        prolog_slurmctld={"y": "#!/bin/sh\n"},
        epilog_slurmctld={"z": "#!/bin/sh\n"},
        job_submit_lua="return 0\n",
        extra_files={"plugstack.conf": "required /x.so"},
    )
    lines = found["slurm.conf"].splitlines()
    assert [line for line in lines if "log=" in line or "logSlurmctld=" in line] == [
        "Prolog=prolog-10-a",
        "Prolog=prolog-20-b",
        "Epilog=epilog-x",
        "PrologSlurmctld=/etc/slurm/prolog-slurmctld-y",
        "EpilogSlurmctld=/etc/slurm/epilog-slurmctld-z",
    ]
    assert "JobSubmitPlugins=lua" in lines
    assert found["plugstack.conf"] == "required /x.so\n"


def partitions(**more: Any) -> list[dict[str, str]]:
    return list(settings(**more)["PartitionName"])


def test_partitions() -> None:
    found = partitions(
        nodesets=[
            CPU,
            {
                "name": "big",
                "partition": {"name": "large", "max_time": "2-00:00:00", "PriorityTier": 2, "default": True},
            },
            {"name": "dark", "partition": False},
        ],
        partitions=[
            {"name": "all", "nodes": "ALL", "state": "DOWN"},
            {"name": "both", "nodesets": ["cpu", "dark"], "AllowGroups": ["a", "b"]},
        ],
    )
    assert [item["PartitionName"] for item in found] == ["all", "both", "cpu", "large"]
    assert found[0] == {"PartitionName": "all", "Nodes": "ALL", "MaxTime": "INFINITE", "State": "DOWN"}
    assert found[1]["Nodes"] == "cpu,dark"
    assert found[1]["AllowGroups"] == "a,b"
    assert [item["PartitionName"] for item in found if item.get("Default") == "YES"] == ["large"]
    assert (found[3]["MaxTime"], found[3]["PriorityTier"], found[3]["Nodes"]) == ("2-00:00:00", "2", "big")


def test_one_partition_is_the_default_unless_the_user_wants_none() -> None:
    assert partitions()[0]["Default"] == "YES"
    assert partitions(nodesets=[{**CPU, "partition": {"default": False}}])[0]["Default"] == "NO"
    assert partitions(nodesets=[CPU, {"name": "b", "partition": {"Default": "YES"}}])[0].get("Default") is None


def test_nodes_outside_kubernetes() -> None:
    found = settings(
        slurm_conf={"NodeName": [{"NodeName": "metal[1-2]", "CPUs": 64}], "DownNodes": [{"DownNodes": "metal1"}]},
        partitions=[{"name": "metal", "nodes": "metal[1-2]"}],
        gres_conf={"NodeName": [{"NodeName": "metal1", "Name": "gpu", "File": "/dev/nvidia0"}]},
    )
    assert found["NodeName"] == [{"NodeName": "metal[1-2]", "CPUs": "64"}]
    assert found["PartitionName"][0]["Nodes"] == "metal[1-2]"


def test_cgroup_conf() -> None:
    assert made()["cgroup.conf"] == "CgroupPlugin=autodetect\nIgnoreSystemd=yes\n"
    changed = made(cgroup_conf={"cgroupplugin": "disabled", "ConstrainCores": True})["cgroup.conf"]
    assert changed == "CgroupPlugin=disabled\nConstrainCores=YES\nIgnoreSystemd=yes\n"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"nam": 1}, "slurm_cluster_facts.nam: unknown key (did you mean name?)"),
    ({"name": "Slurm"}, "slurm_name: 'Slurm' must be lower case"),
    ({"name": "s" * 31}, "at most 30"),
    ({"namespace": ""}, "slurm_namespace: must not be empty"),
    ({"version": "latest"}, "slurm_version: 'latest' is not a Slurm version"),
    ({"image_contract": "other"}, "slurm_image_contract: must be one of slinky, slurm_ops"),
    ({"cluster_name": "My Cluster"}, "slurm_cluster_name"),
    ({"max_node_count": 0}, "slurm_max_node_count: must be from 1"),
    ({"max_node_count": 1}, "is 1, but the NodeSets have 2 nodes"),
    ({"nodesets": {"cpu": {}}}, "slurm_nodesets: must be a list, is a dictionary"),
    ({"nodesets": [CPU, CPU]}, "cpu is also the name of slurm_nodesets[0]"),
    ({"nodesets": [{"name": "slurm-controller"}]}, "is the name of another part of this cluster"),
    ({"nodesets": [CPU, {"name": "cpu-1"}]}, "cpu-1 is also a node of NodeSet cpu"),
    ({"partitions": [{"nodes": "ALL"}]}, "slurm_partitions[0].name: is required"),
    ({"partitions": [{"name": "p"}]}, "needs either nodesets"),
    ({"partitions": [{"name": "p", "nodes": "ALL", "nodesets": ["cpu"]}]}, "needs either nodesets"),
    (
        {"partitions": [{"name": "p", "nodesets": ["gpu"]}]},
        "slurm_partitions[0]: names 'gpu', which is neither ALL nor a NodeSet (cpu)",
    ),
    ({"partitions": [{"name": "p", "nodes": "cpu-[0-1]"}]}, "names 'cpu-[0-1]'"),
    ({"partitions": [{"name": "CPU", "nodes": "ALL"}]}, "partition cpu is also defined by slurm_partitions[0]"),
    ({"partitions": [{"name": "default", "nodes": "ALL"}]}, "a meaning of its own"),
    ({"partitions": [{"name": "a b", "nodes": "ALL"}]}, "must be letters"),
    (
        {"partitions": [{"name": "p", "nodes": "ALL", "MaxTimes": 1}]},
        "slurm_partitions[0].MaxTimes: Slurm knows no such key (did you mean MaxTime?)",
    ),
    ({"partitions": [{"name": "p", "nodes": "ALL", "max_time": 1, "MaxTime": 2}]}, "is the same as max_time"),
    (
        {"partitions": [{"name": "p", "nodes": "ALL", "State": "UP\nNodeName=x"}]},
        "slurm_partitions[0].State: must not hold line breaks",
    ),
    (
        {
            "partitions": [
                {"name": "p", "nodes": "ALL", "default": True},
                {"name": "q", "nodes": "ALL", "Default": "YES"},
            ]
        },
        "slurm_partitions[1]: is a default partition, and so is p",
    ),
    ({"slurm_conf": []}, "slurm_conf: must be a dictionary, is a list"),
    (
        {"slurm_conf": {"SlurmctldParamters": "x"}},
        "slurm_conf.SlurmctldParamters: Slurm knows no such key (did you mean SlurmctldParameters?)",
    ),
    ({"slurm_conf": {"Include": "/etc/passwd"}}, "slurm_conf.Include: Slurm knows no such key"),
    ({"slurm_conf": {"Kill Wait": 1}}, "slurm_conf.Kill Wait: is not a key"),
    ({"slurm_conf": {"KillWait": 1, "killwait": 2}}, "given twice"),
    ({"slurm_conf": {"KillWait": {"a": 1}}}, "slurm_conf.KillWait: must be a string"),
    ({"slurm_conf": {"Epilog": 'x" y'}}, "must not hold a double quote"),
    ({"slurm_conf": {"KillWait": "1\nSlurmUser=root"}}, "must not hold line breaks"),
    (
        {"slurm_conf": {"ClusterName": "other"}},
        "slurm_conf.ClusterName: must be slurm, as the collection sets it; set slurm_cluster_name",
    ),
    ({"slurm_conf": {"SlurmUser": "root"}}, "must be slurm, as the collection sets it"),
    ({"slurm_conf": {"AuthType": "auth/munge"}}, "must be auth/slurm"),
    ({"slurm_conf": {"StateSaveLocation": "/tmp"}}, "must be /var/spool/slurmctld"),
    ({"slurm_conf": {"SlurmctldHost": ["a", "b"]}}, "cannot be set here; set slurm_controllers"),
    ({"slurm_conf": {"AuthAltParameters": "jwt_key=/x"}}, "contradicts jwt_key=/etc/slurm/jwt.key"),
    ({"slurm_conf": {"PartitionName": [{"PartitionName": "x"}]}}, "cannot be set here; set slurm_partitions"),
    ({"slurm_conf": {"MaxNodeCount": 5}}, "set slurm_max_node_count"),
    ({"slurm_conf": {"NodeName": ["x"]}}, "slurm_conf.NodeName[0]: must be a dictionary"),
    ({"accounting": False, "slurm_conf": {"AccountingStorageHost": "x"}}, "cannot be set here; set slurm_accounting"),
    (
        {"cgroup_conf": {"CgroupPlugn": "x"}},
        "slurm_cgroup_conf.CgroupPlugn: Slurm knows no such key (did you mean CgroupPlugin?)",
    ),
    ({"gres_conf": {"AutoDetect": "all"}}, "slurm_gres_conf.AutoDetect: must be one of off"),
    ({"gres_conf": {"Name": "gpu"}}, "the devices of a NodeSet are in its gres"),
    ({"prolog": {"../x": "#!/bin/sh"}}, "slurm_prolog.../x: "),
    ({"prolog": {"a": "echo"}}, "must begin with #!"),
    ({"prolog": {"a": 1}}, "must be the text of the file"),
    ({"extra_files": {"slurm.conf": "x"}}, "is a file that the collection itself makes"),
    ({"accounting": "yes"}, "slurm_accounting: must be true or false"),
]


@pytest.mark.parametrize(("more", "why"), REFUSED)
def test_refused(more: dict[str, Any], why: str) -> None:
    assert why in refused(**more)


def test_everything_wrong_is_told_at_once_under_the_names_of_the_variables() -> None:
    problems = Problems()
    written = cluster(max_node_count=0, slurm_conf={"KillWait": [[1]], "Nope": 1}, nodesets=[{"name": "A"}, 1])
    files.files(parse_cluster(written, problems, variables={"nodesets": "my_nodesets"}), problems)
    paths = [line.split(":")[0] for line in problems.lines]
    assert set(paths) >= {
        "slurm_max_node_count",
        "slurm_conf.KillWait",
        "slurm_conf.Nope",
        "my_nodesets[0].name",
        "my_nodesets[1]",
    }


def test_nothing_depends_on_the_order_of_dictionaries() -> None:
    forward = {"KillWait": 1, "DebugFlags": ["A", "B"], "FirstJobId": 3}
    backward = dict(reversed(forward.items()))
    assert made(slurm_conf=forward) == made(slurm_conf=backward)


def test_many_nodesets_are_quick() -> None:
    many = [{"name": f"s{number}", "replicas": 100} for number in range(300)]
    text = made(nodesets=many, max_node_count=30_000)["slurm.conf"]
    assert text.count("\nNodeSet=") == 300


@given(
    st.dictionaries(
        st.text(max_size=12), st.text(max_size=12) | st.integers() | st.lists(st.text(max_size=4), max_size=3)
    )
)
def test_free_form_keys_never_add_a_line_of_their_own(written: dict[str, Any]) -> None:
    problems = Problems()
    text = files.files(parse_cluster(cluster(slurm_conf=written), problems), problems)["slurm.conf"]
    lines = slurm_conf.parse(text)
    assert len(lines) == text.count("\n")
    required = {line.key: line.value for line in lines}
    assert required["SlurmUser"] == "slurm"
    assert required["AuthType"] == "auth/slurm"
