# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters as Ansible calls them: what they take, and that what is wrong comes out as one readable error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.slurm_ops.kubernetes.plugins.filter import configuration, hostlist

FILTERS = {**configuration.FilterModule().filters(), **hostlist.FilterModule().filters()}
FOLDER = Path(configuration.__file__).parent
CLUSTER = {"name": "slurm", "namespace": "hpc", "version": "26.05", "image": "slurmd:1", "nodesets": [{"name": "cpu"}]}


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_every_filter_is_documented(name: str) -> None:
    documentation = yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))
    assert documentation["DOCUMENTATION"]["name"] == name
    assert documentation["EXAMPLES"]


def test_hostlists() -> None:
    assert FILTERS["slurm_hostlist_expand"](["a[1-2]", "b"]) == ["a1", "a2", "b"]
    assert FILTERS["slurm_hostlist_compress"](["a2", "a1", "a1"], sort=True, unique=True) == "a[1-2]"
    assert FILTERS["slurm_hostlist_compress"](name for name in ["a1"]) == "a1"


def test_slurm_conf_both_ways() -> None:
    settings = {"ClusterName": "demo", "PartitionName": [{"PartitionName": "a", "Default": True}]}
    text = FILTERS["to_slurm_conf"](settings)
    assert text == "ClusterName=demo\nPartitionName=a Default=YES\n"
    assert FILTERS["from_slurm_conf"](text) == {
        "ClusterName": "demo",
        "PartitionName": [{"PartitionName": "a", "Default": "YES"}],
    }


def test_a_cluster() -> None:
    files = FILTERS["slurm_files"](CLUSTER)
    assert "NodeSet=cpu Feature=cpu\n" in files["slurm.conf"]
    assert FILTERS["slurm_nodesets"](CLUSTER["nodesets"], CLUSTER)[0]["name"] == "cpu"
    assert FILTERS["slurm_nodesets"]([], CLUSTER) == []
    assert FILTERS["slurm_features"](26.05)["data_parser"] == "v0.0.45"
    assert "StoragePass" not in FILTERS["slurmdbd_conf"]({"name": "slurm", "storage_host": "db"})


def test_both_filters_tell_of_a_nodesets_mistakes() -> None:
    bad = [{"name": "cpu", "kind": "wrong"}]
    for call in (
        lambda: FILTERS["slurm_files"]({**CLUSTER, "nodesets": bad}),
        lambda: FILTERS["slurm_nodesets"](bad, CLUSTER, variables={"nodesets": "slurm_nodesets"}),
    ):
        with pytest.raises(AnsibleFilterError) as caught:
            call()
        assert "slurm_nodesets[0].kind: must be one of replica, node, is 'wrong'" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("slurm_hostlist_expand", (3,)),
        ("slurm_hostlist_expand", ("a[",)),
        ("slurm_hostlist_compress", ("a1",)),
        ("slurm_hostlist_compress", ([1],)),
        ("slurm_hostlist_compress", (["a[1]"],)),
        ("to_slurm_conf", ("text",)),
        ("to_slurm_conf", ({"A B": 1},)),
        ("from_slurm_conf", ({},)),
        ("from_slurm_conf", ("x",)),
        ("slurm_files", ("text",)),
        ("slurm_files", ({},)),
        ("slurm_nodesets", ("text", CLUSTER)),
        ("slurm_nodesets", (None, CLUSTER)),
        ("slurm_nodesets", ([{}], CLUSTER)),
        ("slurmdbd_conf", ("text",)),
        ("slurmdbd_conf", ({},)),
        ("slurm_features", ("latest",)),
    ],
)
def test_what_is_wrong_is_one_filter_error(name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(AnsibleFilterError):
        FILTERS[name](*arguments)
