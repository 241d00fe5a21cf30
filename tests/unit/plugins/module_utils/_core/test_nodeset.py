# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later


"""NodeSets as users write them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.nodeset import KEYS, NodeSet, parse_nodeset
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.problems import Problems


def parsed(contract: str = "slinky", **written: Any) -> NodeSet:
    problems = Problems()
    found = parse_nodeset({"name": "cpu", **written}, "nodesets[0]", problems, contract)
    assert problems.lines == []
    assert found is not None
    return found


def refused(contract: str = "slinky", **written: Any) -> list[str]:
    problems = Problems()
    parse_nodeset({"name": "cpu", **written}, "nodesets[0]", problems, contract)
    assert problems
    return problems.lines


def limits(**amounts: Any) -> dict[str, Any]:
    return {"limits": amounts}


@pytest.mark.parametrize(
    ("written", "conf"),
    [
        ({}, "Feature=cpu"),
        ({"features": ["ib", "cpu", "ib"]}, "Feature=cpu,ib"),
        ({"resources": limits(cpu="3900m", memory="16Gi")}, "CPUs=3 Feature=cpu RealMemory=16384"),
        ({"resources": limits(cpu="500m")}, "CPUs=1 Feature=cpu"),
        ({"resources": limits(cpu=4), "cpus": 8}, "CPUs=8 Feature=cpu"),
        ({"resources": limits(memory="16Gi"), "memory": "8Gi"}, "Feature=cpu RealMemory=8192"),
        (
            {"memory": "8Gi", "reserved_memory": "1Gi", "cpus": 8, "reserved_cores": 2},
            "CoreSpecCount=2 CPUs=8 Feature=cpu MemSpecLimit=1024 RealMemory=8192",
        ),
        ({"mem_spec_limit": 100}, "Feature=cpu MemSpecLimit=100"),
        ({"gres": ["gpu:h100:8", "licence:2"]}, "Feature=cpu Gres=gpu:h100:8,licence:2"),
        (
            {"extra_conf": {"weight": 10, "TRESWeights": "CPU=1.0,Mem=0.25G"}},
            "Feature=cpu TRESWeights=CPU=1.0,Mem=0.25G Weight=10",
        ),
        # A shape given by the user is not contradicted by what the limits say.
        (
            {
                "resources": limits(cpu=8),
                "extra_conf": {"Boards": 1, "SocketsPerBoard": 2, "CoresPerSocket": 2, "ThreadsPerCore": 2},
            },
            "Boards=1 CoresPerSocket=2 Feature=cpu SocketsPerBoard=2 ThreadsPerCore=2",
        ),
    ],
)
def test_conf(written: dict[str, Any], conf: str) -> None:
    assert parsed(**written).conf == conf


def test_defaults() -> None:
    found = parsed()
    assert (found.kind, found.replicas, found.partition, found.cpus, found.memory_mib) == ("replica", 1, {}, None, None)
    assert parsed(kind="node").replicas is None
    assert parsed(partition=False).partition is None
    assert parsed().pod.security_context == {"privileged": True}
    assert parsed(security_context={}).pod.security_context == {}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"name": "CPU"}, "nodesets[0].name: 'CPU' must be lower case"),
    ({"name": "a" * 41}, "at most 40"),
    ({"name": "all"}, "a meaning of its own in Slurm"),
    ({"name": None}, "name: is required"),
    ({"name": ["x"]}, "must be a string, is a list"),
    ({"replica": 3}, "nodesets[0].replica: unknown key (did you mean replicas?)"),
    ({"kind": "daemonset"}, "must be one of replica, node"),
    ({"replicas": -1}, "must be from 0"),
    ({"replicas": True}, "must be a whole number, is a boolean"),
    ({"replicas": "many"}, "must be a whole number, is a string"),
    ({"kind": "node", "replicas": 2}, "has no meaning for kind: node"),
    ({"kind": "node", "volume_claim_templates": [{"metadata": {"name": "x"}, "spec": {}}]}, "is for kind: replica"),
    ({"node_name_prefix": "g-"}, "is for kind: node"),
    ({"kind": "node", "node_name_prefix": "G"}, "must be lower case"),
    ({"image": "a b"}, "is not an image reference"),
    ({"image_pull_policy": "Sometimes"}, "must be Always"),
    ({"resources": {"limit": {}}}, "nodesets[0].resources.limit: must be requests or limits"),
    ({"resources": limits(cpu="four")}, "nodesets[0].resources.limits.cpu: 'four' is not a Kubernetes quantity"),
    ({"resources": limits(memory="-1Gi")}, "must not be negative"),
    ({"resources": limits(memory="1Gi"), "memory": "2Gi"}, "more than the limit of 1024 MiB"),
    ({"memory": 16}, "less than one MiB"),
    ({"memory": {"x": 1}}, "must be a quantity"),
    ({"memory": "1Gi", "reserved_memory": "1Gi"}, "nothing is left for jobs"),
    ({"reserved_memory": "1Gi", "mem_spec_limit": 5}, "give one of them"),
    ({"cpus": 2, "reserved_cores": 2}, "is 2 of 2 CPUs"),
    ({"cpus": "lots"}, "must be a whole number"),
    ({"features": ["a b"]}, "nodesets[0].features[0]"),
    ({"features": ["a&b"]}, "must be letters"),
    ({"partition": "yes"}, "must be true, false or a dictionary"),
    ({"extra_conf": {"Wieght": 1}}, "did you mean Weight?"),
    ({"extra_conf": {"NodeName": "x"}}, "Slurm knows no such key"),
    ({"extra_conf": {"Features": "x"}}, "is the NodeSet's own option features"),
    ({"extra_conf": {"port": 1}}, "cannot be set"),
    ({"extra_conf": {"Weight": 1, "weight": 2}}, "given twice"),
    ({"extra_conf": {"Weight": "1 State=DOWN"}}, "no blanks, no quotes"),
    ({"extra_conf": {"Weight": "1'; reboot; '"}}, "no blanks, no quotes"),
    ({"extra_conf": {"Weight": "$(reboot)"}}, "no blanks, no quotes"),
    ({"extra_conf": {"Weight": "%(ENV_X)s"}}, "no blanks, no quotes"),
    ({"extra_conf": {"Weight": "1\nNodeName=x"}}, "no blanks, no quotes"),
    ({"extra_conf": {"Topology": ""}}, "no blanks, no quotes"),
    ({"extra_slurmd_args": ["-vv; reboot"]}, "a shell reads it"),
    ({"extra_slurmd_args": ["--conf=x"]}, "is set by the NodeSet itself"),
    ({"extra_slurmd_args": ["-N"]}, "is set by the NodeSet itself"),
    ({"topology_labels": ["a b"]}, "is not a label key"),
    ({"node_selector": {"a": "b c"}}, "is not a label value"),
    ({"labels": {"slurm-ops.kubernetes/nodeset": "x"}}, "is set by the collection itself"),
    ({"annotations": {"app.kubernetes.io/x": "x"}}, "is set by the collection itself"),
    ({"tolerations": ["x"]}, "nodesets[0].tolerations[0]: must be a dictionary"),
    ({"affinity": []}, "must be a dictionary, is a list"),
    ({"sidecars": [{"name": "slurmd", "image": "x"}]}, "also the name of another container"),
    ({"sidecars": [{"name": "a"}]}, "sidecars[0].image: is required"),
    ({"sidecars": [{"image": "x"}]}, "sidecars[0].name: is required"),
    (
        {"init_containers": [{"name": "a", "image": "x"}], "sidecars": [{"name": "a", "image": "x"}]},
        "another container",
    ),
    ({"volumes": [{"name": "slurm-etc"}]}, "that the NodeSet itself uses"),
    ({"volumes": [{"name": "a"}, {"name": "a"}]}, "is there twice"),
    ({"volume_mounts": [{"name": "a", "mountPath": "/a"}]}, "is no volume of this NodeSet"),
    ({"volumes": [{"name": "a"}], "volume_mounts": [{"name": "a", "mountPath": "/etc/slurm/"}]}, "is mounted already"),
    ({"volumes": [{"name": "a"}], "volume_mounts": [{"name": "a", "mountPath": "a"}]}, "must be an absolute path"),
    (
        {"volumes": [{"name": "a"}], "shared_memory": "1Gi", "volume_mounts": [{"name": "a", "mountPath": "/dev/shm"}]},
        "already",
    ),
    ({"volume_claim_templates": [{"name": "x"}]}, "needs metadata.name and spec"),
    ({"env": {"POD_CPUS": "1"}}, "is set by the NodeSet itself"),
    ({"env": {"A B": "1"}}, "must be a name"),
    ({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}, "is there twice"),
    ({"env": {"A": [1]}}, "must be a string, is a list"),
    ({"shared_memory": "big"}, "is not a Kubernetes quantity"),
    ({"shared_memory": 0}, "must be more than nothing"),
    ({"priority_class_name": "A B"}, "must be labels of lower case"),
    ({"image_pull_secrets": [1]}, "must be the name of a Secret"),
    ({"services": {"a": "#!/bin/sh\n"}}, "needs images of the contract slurm_ops"),
    ({"gres": ["gpu"]}, "nodesets[0].gres[0]"),
    ({"gres": "gpu:1"}, "nodesets[0].gres: must be a list"),
]


@pytest.mark.parametrize(("written", "why"), REFUSED)
def test_refused(written: dict[str, Any], why: str) -> None:
    assert why in "\n".join(refused(**written))


def test_services_of_our_images() -> None:
    found = parsed(
        "slurm_ops", services={"b": "#!/bin/sh\nexec b", "a": "#!/bin/sh\nexec a\n"}, oneshots={"x": "#!/bin/sh\n"}
    )
    assert found.pod.services == {"a": "#!/bin/sh\nexec a\n", "b": "#!/bin/sh\nexec b\n"}
    text = "\n".join(refused("slurm_ops", services={"slurmd": "#!/bin/sh\n", "A": "#!/x\n", "c": "echo"}))
    assert "slurmd: is a service that the image runs itself" in text
    assert "services.A: must be lower case" in text
    assert "services.c: must be the text of a script" in text


def test_environment_in_both_forms() -> None:
    assert parsed(env={"A": True, "B": 2}).pod.env == ({"name": "A", "value": "true"}, {"name": "B", "value": "2"})
    secret = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    assert parsed(env=[secret]).pod.env == (secret,)


def test_what_is_no_dictionary() -> None:
    problems = Problems()
    assert parse_nodeset("cpu", "nodesets[3]", problems, "slinky") is None
    assert problems.lines == ["nodesets[3]: must be a dictionary with at least a name"]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(KEYS), anything, max_size=6))
def test_whatever_is_written_is_taken_or_told_and_never_smuggled(written: dict[str, Any]) -> None:
    problems = Problems()
    found = parse_nodeset(written, "n", problems, "slurm_ops")
    assert found is not None
    if not problems:
        # Safe in single quotes, for a shell and for Slurm: pairs of word=value with single blanks between them.
        assert re.fullmatch(r"\w+=[A-Za-z0-9_.,:/+@=\[\]()*-]+( \w+=[A-Za-z0-9_.,:/+@=\[\]()*-]+)*", found.conf)
        assert all(re.fullmatch(r"[A-Za-z0-9_.,:/+@=\[\]-]+", argument) for argument in found.extra_slurmd_args)
