# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between two configurations, what that needs, and whom it would hurt."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import config_change
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.config_change import Change, Gone

CONF = """\
ClusterName=slurm
SlurmctldPort=6817
JobCompPass=old
CommunicationParameters=NoAddrCache
GresTypes=gpu,shard
NodeName=n[1-4] CPUs=2
NodeName=DEFAULT CPUs=1
PartitionName=cpu Nodes=ALL
PartitionName=gpu Nodes=gpu
"""


def conf(*replaced: tuple[str, str]) -> dict[str, str]:
    text = CONF
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new)
    return {"slurm.conf": text}


def changes(*replaced: tuple[str, str]) -> list[Change]:
    return config_change.changes(conf(), conf(*replaced))


def test_settings_by_key_and_records_by_name() -> None:
    found = changes(("SlurmctldPort=6817", "SlurmctldPort=7000"), ("PartitionName=gpu Nodes=gpu\n", "MinJobAge=5\n"))
    assert found == [
        Change("slurm.conf", "SlurmctldPort", "6817", "7000"),
        Change("slurm.conf", "PartitionName=gpu", "partitionname=gpu nodes=gpu", None),
        Change("slurm.conf", "MinJobAge", None, "5"),
    ]
    assert config_change.summary(found) == "SlurmctldPort changes; PartitionName=gpu goes; MinJobAge is new"
    assert config_change.summary([*found, *found]).endswith("MinJobAge is new; 3 more")


def test_other_files_are_one_change_each() -> None:
    old = {"job_submit.lua": "a", "prolog-x": "#!/bin/sh\n", "slurm.conf": "A=1\n"}
    new = {"job_submit.lua": "b", "epilog-y": "#!/bin/sh\n", "slurm.conf": "# A comment.\nA=1\n"}
    found = config_change.changes(old, new)
    assert found == [
        Change("epilog-y", "epilog-y", None, "present"),
        Change("job_submit.lua", "job_submit.lua", "present", "present"),
        Change("prolog-x", "prolog-x", "present", None),
        Change("slurm.conf", "slurm.conf", "present", "present"),
    ]
    assert [config_change.summary([change]) for change in found] == [
        "not there yet",
        "as asked",
        "as asked",
        "as asked",
    ]
    assert config_change.restarts(found) == {}


def test_a_password_is_never_shown() -> None:
    (found,) = changes(("JobCompPass=old", 'JobCompPass="new one"'))
    assert found == Change("slurm.conf", "JobCompPass", "(hidden)", "(hidden)")
    assert config_change.without_secrets('A=1 StoragePass = "a b"\nJobCompPass=c#d\nPluginDir=/x\n') == (
        "A=1 StoragePass = (hidden)\nJobCompPass=(hidden)\nPluginDir=/x\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("MinJobAge=1", "MinJobAge=2", {}),
        ("SlurmctldPort=1", "SlurmctldPort=2", {"slurmctld": 1, "slurmrestd": 1, "slurmd": 1, "sackd": 1}),
        ("SlurmdPort=1", "SlurmdPort=2", {"slurmctld": 1, "slurmd": 1}),
        ("MessageTimeout=1", "messagetimeout=2", {"slurmrestd": 1}),
        ("AuthAltTypes=auth/jwt", "", {"slurmctld": 1, "slurmrestd": 1}),
        ("CommunicationParameters=NoAddrCache", "", {"slurmrestd": 1}),
        (
            "CommunicationParameters=NoAddrCache",
            "CommunicationParameters=NoAddrCache,EnableIPv6",
            {"slurmctld": 1, "slurmrestd": 1, "slurmd": 1},
        ),
    ],
)
def test_what_a_reconfigure_does_not_reach(old: str, new: str, expected: Mapping[str, int]) -> None:
    found = config_change.changes({"slurm.conf": old}, {"slurm.conf": new})
    assert len(found) == 1
    needed = config_change.restarts(found)
    assert {daemon: len(keys) for daemon, keys in needed.items()} == expected
    assert list(needed) == list(expected)  # and in this order


def test_what_a_running_cluster_cannot_change() -> None:
    found = changes(("ClusterName=slurm", "ClusterName=other\nStateSaveLocation=/x"))
    assert config_change.impossible(found) == [
        "ClusterName (from slurm to other): slurmctld does not start with the state of a cluster of another name",
        "StateSaveLocation (from nothing to /x): slurmctld would forget all jobs and nodes",
    ]
    assert config_change.impossible([Change("cgroup.conf", "ClusterName", "a", "b")]) == []


QUEUE = """\
1|cpu|RUNNING|ann|n1|(null)|N/A
2|gpu|PENDING|bob|||gres/gpu:1
3|cpu,gpu|PENDING|bob|||N/A
4|cpu|PENDING|ann||n4|gres:shard:2
nonsense
"""


def test_jobs_that_would_end() -> None:
    jobs = config_change.parse_queue(QUEUE)
    assert [job.job_id for job in jobs] == [1, 2, 3, 4]
    new = conf(("PartitionName=gpu Nodes=gpu\n", ""), ("n[1-4]", "n[1-3]"), ("gpu,shard", "gpu"))
    going = config_change.gone(conf(), new)
    assert going == Gone(frozenset({"gpu"}), frozenset({"n4"}), frozenset({"shard"}))
    assert config_change.victims(going, jobs) == {
        2: "job 2 of bob (PENDING) in partition gpu",
        4: "job 4 of ann (PENDING) in node n4 and GRES shard",
    }
    assert config_change.victims(config_change.gone(conf(), conf()), jobs) == {}
    assert not config_change.gone(conf(), {"slurm.conf": "no pair"})


def test_nodes_and_their_limit() -> None:
    assert config_change.nodes(CONF) == {"n1", "n2", "n3", "n4"}
    assert config_change.nodes("no pair") == frozenset()
    assert config_change.node_limit("A=1\nmaxnodecount=1\nMaxNodeCount=12\n") == 12
    assert config_change.node_limit(CONF) is None
    assert config_change.partitions(CONF) == {"cpu", "gpu"}


FILES = st.dictionaries(
    st.sampled_from(["slurm.conf", "cgroup.conf", "prolog-1"]), st.sampled_from(["A=1\n", "A=2\n", "A=1\nB=2\n", "bad"])
)


@given(FILES, FILES)
def test_nothing_differs_only_if_all_is_equal(old: dict[str, str], new: dict[str, str]) -> None:
    found = config_change.changes(old, new)
    different = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    assert {change.file for change in found} == different
    before, after = new, old
    back = [(change.file, change.what) for change in config_change.changes(before, after)]
    assert sorted(back) == sorted((change.file, change.what) for change in found)


def test_keys_that_a_pod_does_not_show_yet() -> None:
    files = {
        "slurm.conf": "AuthType=auth/slurm\nAuthAltParameters=jwt_key=/etc/slurm/jwt.key,jwks=/etc/slurm/jwks.json,x\n"
    }
    assert config_change.absent_keys(files, {"slurm.conf", "jwt.key"}) == ["jwks.json"]
    assert config_change.absent_keys(files, {"slurm.conf", "jwks.json"}) == []
    assert config_change.absent_keys({"slurm.conf": "AuthType=auth/slurm\n"}, ()) == []
