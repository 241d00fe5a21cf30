# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accounting: what REST says, what people describe, and the way back to REST."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import accounting_settings as known
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.accounting import accounting
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.accounting_options import (
    minutes,
    tres,
    wanted,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

IDS = {"cpu": 1, "mem": 2, "gres/gpu": 1001}
NONE = {"set": False, "infinite": True, "number": 0}


def number(value: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": value}


def test_settings_of_an_association_are_read() -> None:
    found = known.read(
        known.ASSOCIATION,
        {
            "shares_raw": 0x7FFFFFFF,
            "qos": ["normal", "high"],
            "default": {"qos": "high"},
            "priority": NONE,
            "max": {
                "jobs": {"active": number(0), "per": {"wall_clock": number(90), "count": NONE}},
                "tres": {
                    "total": [{"type": "gres", "name": "gpu", "id": 1001, "count": 8}, {"type": "cpu", "count": 4}]
                },
            },
        },
    )
    assert {name: value for name, value in found.items() if value != known.ASSOCIATION[name].unset} == {
        "fairshare": "parent",
        "qos": ("high", "normal"),
        "default_qos": "high",
        "max_jobs": 0,
        "max_wall": 90,
        "grp_tres": {"cpu": 4, "gres/gpu": 8},
    }


def test_settings_of_a_qos_are_read() -> None:
    found = known.read(
        known.QOS,
        {
            "priority": number(5),
            # 26.05 names the mode "DISABLED" when slurm.conf decides; older ones leave the list empty.
            "preempt": {"mode": ["DISABLED"], "list": ["low"], "exempt_time": NONE},
            "flags": ["DENY_LIMIT", "NO_DECAY", "SOMETHING_NEW"],
            "usage_factor": number(1),
            "limits": {"grace_time": 30, "factor": {"set": True, "infinite": False, "number": 1.5}},
        },
    )
    assert {name: value for name, value in found.items() if value != known.QOS[name].unset} == {
        "priority": 5,
        "preempt": ("low",),
        "flags": ("DenyOnLimit", "NoDecay"),
        "grace_time": 30,
        "limit_factor": 1.5,
    }
    assert found["preempt_mode"] == "cluster"
    assert known.read(known.QOS, {"preempt": {"mode": []}})["preempt_mode"] == "cluster"
    assert known.read(known.QOS, {"preempt": {"mode": ["REQUEUE", "GANG"]}})["preempt_mode"] == "requeue"


@pytest.mark.parametrize("table", [known.ASSOCIATION, known.QOS], ids=["association", "qos"])
def test_what_is_written_is_read_again(table: dict[str, known.Setting]) -> None:
    samples = {
        known.NUMBER: 7,
        known.MINUTES: 90,
        known.REAL: 0.5,
        known.TRES: {"cpu": 4, "gres/gpu": 2},
        known.QOS_LIST: ("a", "b"),
        known.QOS_NAME: "a",
        known.SHARES: "parent",
        known.SECONDS: 60,
        known.FLAGS: ("DenyOnLimit", "Relative"),
        known.MODE: "requeue",
        known.TEXT: "text",
    }
    full = {name: samples[setting.kind] for name, setting in table.items()}
    empty = {name: setting.unset for name, setting in table.items()}
    assert known.read(table, known.write(table, full, {}, IDS)) == full
    assert known.read(table, known.write(table, empty, full, IDS)) == empty
    assert len({setting.path for setting in table.values()}) == len(table)


def test_a_tres_that_goes_is_named() -> None:
    body = known.write(known.QOS, {"grp_tres": {"cpu": 4}}, {"grp_tres": {"cpu": 8, "gres/gpu": 2}}, IDS)
    assert body["limits"]["max"]["tres"]["total"] == [
        {"type": "cpu", "name": "", "id": 1, "count": 4},
        {"type": "gres", "name": "gpu", "id": 1001, "count": -1},
    ]


def test_lists_become_one_state() -> None:
    found = accounting(
        "hpc",
        tres=[{"type": "cpu", "name": "", "id": 1}, {"type": "gres", "name": "gpu", "id": 1001}],
        qos=[{"name": "normal"}],
        accounts=[
            {"name": "root", "coordinators": []},
            {
                "name": "physics",
                "description": "d",
                "organization": "o",
                "coordinators": [{"name": "eve", "direct": True}, {"name": "fay", "direct": False}],
            },
            {"name": "other"},
        ],
        users=[{"name": "alice", "administrator_level": ["Operator"]}, {"name": "bob", "administrator_level": []}],
        associations=[
            {"cluster": "hpc", "account": "root", "user": "", "parent_account": ""},
            {"cluster": "hpc", "account": "physics", "user": "", "parent_account": "root", "shares_raw": 3},
            {"cluster": "hpc", "account": "physics", "user": "alice", "is_default": True},
            {"cluster": "hpc", "account": "physics", "user": "alice", "partition": "gpu", "shares_raw": 9},
            {"cluster": "two", "account": "other", "user": "bob"},
        ],
    )
    assert found.tres == {"cpu": 1, "gres/gpu": 1001}
    assert found.accounts["physics"]["parent"] == "root"
    assert found.accounts["physics"]["fairshare"] == 3
    assert "parent" not in found.accounts["other"]
    assert found.users == {
        "alice": {"admin_level": "operator", "default_account": "physics"},
        "bob": {"admin_level": "none", "default_account": ""},
    }
    assert list(found.members) == [("physics", "alice")]
    assert found.members["physics", "alice"]["fairshare"] == 1
    assert found.coordinators["physics"] == ["eve"]
    assert found.elsewhere == {"account other", "user bob"}


@pytest.mark.parametrize(
    ("written", "counts"),
    [
        ("cpu=4,mem=10G,gres/gpu=2", {"cpu": 4, "gres/gpu": 2, "mem": 10240}),
        ({"mem": "2T", "cpu": 4}, {"cpu": 4, "mem": 2 * 1024**2}),
        ({"mem": "2048K"}, {"mem": 2}),
        ({"billing": "1K"}, {"billing": 1024}),
        ("", {}),
        ({}, {}),
    ],
)
def test_tres(written: Any, counts: dict[str, int]) -> None:
    assert tres(written) == counts


@pytest.mark.parametrize(
    "written", ["cpu", "cpu=x", {"cpu": -2}, {"cpu": 1.5}, {"mem": "1K"}, ["cpu=1"], {"cpu": None}]
)
def test_tres_that_cannot_be(written: Any) -> None:
    with pytest.raises(ValueError, match="must"):
        tres(written)


@pytest.mark.parametrize(
    ("written", "found"),
    [(90, 90), ("90", 90), ("90:00", 90), ("1:30:00", 90), ("7-0", 10080), ("1-02:30", 1590), ("7-00:00:00", 10080)],
)
def test_times(written: Any, found: int) -> None:
    assert minutes(written) == found


@pytest.mark.parametrize("written", [True, -5, "1:30:30", "a day", "1-", 1.5])
def test_times_that_cannot_be(written: Any) -> None:
    with pytest.raises(ValueError, match="must be"):
        minutes(written)


def test_only_what_is_said_is_wanted() -> None:
    found = wanted(
        accounts=[
            {"name": "physics", "limits": {"max_jobs": -1, "grp_tres": -1, "max_wall": "1-0"}, "qos": ["b", "a"]}
        ],
        users=[{"name": "alice", "accounts": ["physics", {"name": "bio", "fairshare": "parent"}]}],
        groups={"bio": ["bob", "alice"]},
        qos=[{"name": "high", "flags": ["denyonlimit"], "priority": "7", "usage_factor": 2}],
    )
    assert found.accounts == {"physics": {"max_jobs": None, "grp_tres": {}, "max_wall": 1440, "qos": ("a", "b")}}
    assert found.users == {"alice": {}, "bob": {}}
    assert found.members == {
        ("physics", "alice"): {},
        ("bio", "alice"): {"fairshare": "parent"},
        ("bio", "bob"): {},
    }
    assert found.qos == {"high": {"flags": ("DenyOnLimit",), "priority": 7, "usage_factor": 2.0}}
    nothing = wanted(accounts=[], users=[], groups={}, qos=[])
    assert (nothing.accounts, nothing.users, nothing.qos) == (None, None, None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"accounts": [{"name": "Physics"}]}, "accounts[0].name: 'Physics' must be"),
        ({"accounts": [{"name": "a"}, {"name": "a"}]}, "accounts[1].name: a is described twice"),
        ({"accounts": [{"name": "a", "limits": {"max_job": 1}}]}, "max_job: unknown key (did you mean max_jobs?)"),
        ({"accounts": [{"name": "a", "limits": {"max_jobs": "many"}}]}, "limits.max_jobs: must be a whole number"),
        ({"accounts": [{"name": "a", "limits": {"max_jobs_per_user": 1}}]}, "max_jobs_per_user: unknown key"),
        ({"accounts": [{"name": "root", "parent": "a"}]}, "accounts[root].parent: root has none"),
        ({"users": [{"name": "al ice", "accounts": ["a"]}]}, "must be a login name"),
        ({"users": [{"name": "alice"}]}, "users[alice].accounts: must name at least one account"),
        ({"users": [{"name": "alice", "accounts": ["a", "a"]}]}, "a is named twice"),
        (
            {"users": [{"name": "alice", "accounts": ["a"], "default_account": "b"}]},
            "default_account: b is not one of the accounts of alice",
        ),
        ({"groups": {"a": "alice"}}, "groups.a: must be a list of users, is a string"),
        ({"groups": {"a": ["Alice"]}}, "groups.a: 'Alice' must be a login name"),
        ({"qos": [{"name": "q", "flags": ["DenyLimit"]}]}, "did you mean DenyOnLimit?"),
        ({"qos": [{"name": "q", "usage_factor": "x"}]}, "qos[q].usage_factor: must be a number"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OperationError) as caught:
        wanted(**options)
    assert caught.value.reason == "InvalidVariables"
    assert words in str(caught.value)


def test_what_is_shown_can_be_described() -> None:
    settings = {
        "fairshare": 2,
        "qos": ("a",),
        "max_jobs": 3,
        "grp_tres": {"cpu": 1},
        "default_qos": "",
        "priority": None,
    }
    shown = known.shown(known.ASSOCIATION, settings)
    assert shown == {"fairshare": 2, "qos": ["a"], "limits": {"max_jobs": 3, "grp_tres": {"cpu": 1}}}
    described = wanted(accounts=[{"name": "x", **shown}]).accounts
    assert described == {"x": {"fairshare": 2, "qos": ("a",), "max_jobs": 3, "grp_tres": {"cpu": 1}}}
