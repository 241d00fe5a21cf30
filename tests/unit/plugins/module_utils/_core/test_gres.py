# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GRES of NodeSets."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.gres import Gres, gres_conf, parse_gres
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.problems import Problems


def parsed(*written: Any) -> tuple[Gres, ...]:
    problems = Problems()
    found = parse_gres(written, "gres", problems)
    assert problems.lines == []
    return found


def refused(*written: Any) -> str:
    problems = Problems()
    parse_gres(written, "gres", problems)
    assert problems
    return "\n".join(problems.lines)


@pytest.mark.parametrize(
    ("written", "spec", "conf"),
    [
        ("gpu:h100:8", "gpu:h100:8", "AutoDetect=nvidia\n"),
        ("gpu:2", "gpu:2", "AutoDetect=nvidia\n"),
        ("licence:4", "licence:4", "AutoDetect=off\n"),
        ("bandwidth:lustre:no_consume:4G", "bandwidth:lustre:no_consume:4G", "AutoDetect=off\n"),
        (
            {"name": "gpu", "type": "h100", "files": "/dev/nvidia[0-7]", "cores": "0-31"},
            "gpu:h100:8",
            "AutoDetect=off\nName=gpu Type=h100 File=/dev/nvidia[0-7] Cores=0-31\n",
        ),
        (
            {"name": "gpu", "count": 2, "auto_detect": "nvml"},
            "gpu:2",
            "AutoDetect=nvml\n",
        ),
        (
            {"name": "nic", "count": 2, "files": ["/dev/a0", "/dev/b1"], "flags": ["explicit"]},
            "nic:2",
            "AutoDetect=off\nName=nic File=/dev/a0,/dev/b1 Flags=explicit\n",
        ),
        (
            {"name": "shard", "count": 8, "flags": "CountOnly"},
            "shard:8",
            "AutoDetect=off\nName=shard Count=8 Flags=CountOnly\n",
        ),
    ],
)
def test_gres(written: Any, spec: str, conf: str) -> None:
    found = parsed(written)
    assert [item.spec for item in found] == [spec]
    assert gres_conf(found, "off") == conf


def test_the_clusters_auto_detect_is_for_gpus_without_files() -> None:
    assert gres_conf(parsed("gpu:8"), "rsmi") == "AutoDetect=rsmi\n"
    assert gres_conf(parsed({"name": "gpu", "files": "/dev/x0"}), "rsmi").startswith("AutoDetect=off\n")
    assert gres_conf((), "nvml") == "AutoDetect=off\n"


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (["gpu:h100"], "has no count"),
        (["gpu"], "has no count"),
        (["a:b:c:4"], "too many parts"),
        ([3], "must be text such as"),
        ([{"name": "gpu"}], "count: is required"),
        ([{"count": 1, "files": "/dev/x"}], "name: is required"),
        ([{"name": "gpu", "count": 1, "file": "/dev/x"}], "did you mean files?"),
        ([{"name": "gpu", "count": 3, "files": "/dev/nvidia[0-7]"}], "declares 3 but names 8"),
        ([{"name": "gpu", "count": 1, "files": "/dev/x Flags=y"}], "must be device paths"),
        ([{"name": "gpu", "count": 1, "files": "/dev/x[0"}], "Invalid host list"),
        ([{"name": "gpu", "count": "x", "files": "/dev/x"}], "must be a number such as 8 or 4G"),
        ([{"name": "gpu", "count": 1, "cores": "a"}], "must be numbers such as"),
        ([{"name": "gpu", "count": 1, "auto_detect": "magic"}], "must be one of off, nvidia"),
        ([{"name": "gpu", "count": 1, "auto_detect": "off"}], "needs files or an auto_detect"),
        ([{"name": "gpu", "count": 1, "flags": ["nonsense"]}], "is none of CountOnly"),
        (["gpu:a:1", "gpu:a:2"], "declared twice"),
        (["gpu:a:1", "gpu:2"], "some have none"),
        (["gpu:a:1", {"name": "gpu", "type": "b", "files": "/dev/x"}], "some gpu have files"),
        (
            [
                {"name": "gpu", "type": "a", "count": 1, "auto_detect": "nvml"},
                {"name": "gpu", "type": "b", "count": 1, "auto_detect": "nvidia"},
            ],
            "one auto_detect",
        ),
        (["gp\nu:1"], "must be letters"),
        (["gpu,x:1"], "must be letters"),
    ],
)
def test_refused(written: list[Any], why: str) -> None:
    assert why in refused(*written)
