# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done about accounting: in which order, what is refused, what is never removed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import accounting_settings as known
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.accounting import Accounting
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.accounting_options import Wanted, wanted
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import accounting as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.accounting import Busy
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.accounting_check import check
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action

ASSOCIATION = {name: setting.unset for name, setting in known.ASSOCIATION.items()}
QOS = {name: setting.unset for name, setting in known.QOS.items()}


def account(parent: str = "root", **settings: Any) -> dict[str, Any]:
    return {"description": "", "organization": "", "parent": parent, **ASSOCIATION, **settings}


def user(default: str, level: str = "none") -> dict[str, Any]:
    return {"admin_level": level, "default_account": default}


def there(**more: Any) -> Accounting:
    """root and normal, as slurmdbd makes them, and more."""
    accounts = {"root": account("")} | more.pop("accounts", {})
    users = {"root": user("root", "administrator")} | more.pop("users", {})
    members = {("root", "root"): ASSOCIATION} | {
        key: ASSOCIATION | item for key, item in more.pop("members", {}).items()
    }
    qos = {"normal": QOS} | more.pop("qos", {})
    return Accounting({"cpu": 1, "gres/gpu": 1001}, qos, accounts, users, members, **more)


def planned(seen: Accounting, *, prune: bool = False, busy: Busy | None = None, **options: Any) -> planner.Plan:
    described = planner.completed(wanted(**options), prune=prune)
    check(seen, described, prune=prune)
    return planner.plan(seen, described, prune=prune, busy=busy)


def steps(plan: planner.Plan) -> list[str]:
    return [f"{action.kind} {action.target}" for action in plan.actions]


def test_an_empty_slurmdbd_is_filled_from_the_top_down() -> None:
    plan = planned(
        there(),
        qos=[{"name": "high", "priority": 10, "preempt": ["low"]}, {"name": "low"}],
        accounts=[{"name": "physics", "parent": "science", "qos": ["high"]}, {"name": "science", "fairshare": 5}],
        users=[
            {"name": "alice", "accounts": ["science", {"name": "physics", "limits": {"max_jobs": 1}}]},
            {"name": "bob", "accounts": ["physics"], "admin_level": "operator"},
        ],
    )
    assert [(action.stage, action.kind, action.target, action.after) for action in plan.actions] == [
        ("new qos", "create", "qos high", {"priority": 10}),
        ("new qos", "create", "qos low", {}),
        ("qos", "change", "qos high", {"preempt": ["low"]}),
        (
            "accounts",
            "create",
            "account science",
            {"description": "science", "organization": "root", "fairshare": 5, "parent": "root"},
        ),
        (
            "accounts",
            "create",
            "account physics",
            {"description": "physics", "organization": "science", "qos": ["high"], "parent": "science"},
        ),
        (
            "new users",
            "create",
            "user alice",
            {
                "admin_level": "none",
                "default_account": "science",
                "accounts": [{"name": "science"}, {"name": "physics", "max_jobs": 1}],
            },
        ),
        (
            "new users",
            "create",
            "user bob",
            {"admin_level": "operator", "default_account": "physics", "accounts": [{"name": "physics"}]},
        ),
    ]


def test_changes_are_small_and_hold_what_was_before() -> None:
    seen = there(
        qos={"high": QOS | {"priority": 1, "grp_tres": {"cpu": 4}}},
        accounts={"science": account(max_jobs=3), "physics": account("science")},
        users={"alice": user("physics")},
        members={("physics", "alice"): {"fairshare": 4}},
    )
    plan = planned(
        seen,
        qos=[{"name": "high", "priority": 2}],
        accounts=[{"name": "science", "limits": {"max_jobs": -1}}, {"name": "physics", "parent": "root"}],
        users=[
            {
                "name": "alice",
                "accounts": [{"name": "physics", "fairshare": 5}, "science"],
                "default_account": "science",
            }
        ],
    )
    assert [(action.target, action.before, action.after) for action in plan.actions] == [
        ("qos high", {"priority": 1}, {"priority": 2}),
        ("account science", {"max_jobs": 3}, {"max_jobs": None}),
        ("account physics", {"parent": "science"}, {"parent": "root"}),
        ("association alice in physics", {"fairshare": 4}, {"fairshare": 5}),
        ("association alice in science", None, {}),
        ("user alice", {"default_account": "physics"}, {"default_account": "science"}),
    ]
    # What is sent is the whole of it, and has what was not said.
    assert plan.actions[0].subject.settings["grp_tres"] == {"cpu": 4}
    assert [action.diff for action in plan.actions][3] == ({"fairshare": 4}, {"fairshare": 5})


def test_what_is_not_said_is_left_alone() -> None:
    seen = there(
        accounts={"science": account(max_jobs=3), "old": account()},
        users={"alice": user("science"), "eve": user("old")},
        members={("science", "alice"): {"max_jobs": 1}, ("old", "eve"): {}, ("old", "alice"): {}},
    )
    assert steps(planned(seen, accounts=[{"name": "science"}], groups={"science": ["alice"]})) == []


def test_an_account_that_only_another_cluster_has_gets_its_association() -> None:
    seen = there(accounts={"bio": {"description": "Biology", "organization": "faculty"}})
    plan = planned(seen, accounts=[{"name": "bio"}])
    assert steps(plan) == ["create account bio"]
    assert plan.actions[0].subject.settings == {"description": "Biology", "organization": "faculty", "parent": "root"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"accounts": [{"name": "a", "parent": "scence"}]}, "accounts[a].parent: there is no account scence"),
        (
            {"accounts": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]},
            "accounts[b].parent: comes back to b",
        ),
        ({"accounts": [{"name": "science", "parent": "physics"}]}, "comes back to science"),
        ({"accounts": [{"name": "a", "qos": ["hihg"]}]}, "accounts[a].qos: there is no QOS hihg"),
        (
            {"accounts": [{"name": "a", "qos": ["high"], "default_qos": "normal"}]},
            "normal is not one of its QOS (high)",
        ),
        ({"accounts": [{"name": "a", "limits": {"grp_tres": "gpu=2"}}]}, "does not know the TRES gpu"),
        ({"users": [{"name": "alice", "accounts": ["bio"]}]}, "users[alice].accounts: there is no account bio"),
        ({"groups": {"bio": ["alice"]}}, "there is no account bio"),
        ({"qos": [{"name": "q", "preempt": ["p"]}]}, "qos[q].preempt: there is no QOS p"),
        ({"qos": [{"name": "high", "preempt": []}]}, "run: sacctmgr modify qos high set preempt=''"),
        ({"accounts": [{"name": "science", "qos": []}]}, "run: sacctmgr modify account science set qos=''"),
        ({"qos": [{"name": "low", "preempt": ["high"]}]}, "qos[low].preempt: comes back to low"),
        ({"qos": [{"name": "q", "limits": {"max_tres_per_user": {"gres/fpga": 1}}}]}, "the TRES gres/fpga"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    seen = there(
        qos={"high": QOS | {"preempt": ("low",)}, "low": QOS},
        accounts={"science": account(qos=("high",)), "physics": account("science")},
    )
    with pytest.raises(OperationError) as caught:
        planned(seen, **options)
    assert caught.value.reason == "InvalidVariables"
    assert words in str(caught.value)


def test_with_prune_a_parent_must_be_described() -> None:
    seen = there(accounts={"science": account()})
    planned(seen, accounts=[{"name": "physics", "parent": "science"}])
    with pytest.raises(OperationError, match="no account science"):
        planned(seen, accounts=[{"name": "physics", "parent": "science"}], prune=True)


FULL = there(
    qos={"high": QOS, "low": QOS, "parts": QOS},
    accounts={"science": account(max_jobs=3), "old": account(), "older": account("old"), "far": account()},
    users={"alice": user("old"), "eve": user("older"), "far": user("far")},
    members={
        ("science", "alice"): {"max_jobs": 1},
        ("old", "alice"): {},
        ("older", "eve"): {},
        ("far", "far"): {},
    },
    elsewhere=frozenset({"account far", "user far"}),
)
DESCRIBED: dict[str, Any] = {
    "qos": [{"name": "high"}],
    "accounts": [{"name": "science"}],
    "users": [{"name": "alice", "accounts": ["science"]}],
}


def test_prune_goes_from_the_bottom_up_and_keeps_what_it_must() -> None:
    plan = planned(FULL, prune=True, busy=Busy(qos={"parts": "partition p has it"}), **DESCRIBED)
    assert steps(plan) == [
        "change account science",
        "change association alice in science",
        "change user alice",
        "remove association far in far",
        "remove association alice in old",
        "remove user eve",
        "remove account older",
        "remove account old",
        "remove qos low",
    ]
    assert plan.actions[0].after == plan.actions[1].after == {"max_jobs": None}
    assert plan.actions[2].after == {"default_account": "science"}
    assert plan.kept == {"account far": "another cluster has it too", "qos parts": "partition p has it"}


def test_what_has_jobs_stays_with_all_above_it() -> None:
    busy = Busy(accounts={"older"}, members={("older", "eve")}, qos={"low": "has jobs"})
    plan = planned(FULL, prune=True, busy=busy, **DESCRIBED)
    assert not {"remove user eve", "remove account older", "remove account old", "remove qos low"} & set(steps(plan))
    assert plan.kept["user eve"] == plan.kept["account older"] == "has jobs"
    assert plan.kept["account old"] == "older is below it"


def test_a_users_association_with_jobs_stays() -> None:
    busy = Busy(accounts={"old"}, members={("old", "alice")})
    plan = planned(FULL, prune=True, busy=busy, **DESCRIBED)
    assert plan.kept["association alice in old"] == "has jobs"
    assert "remove association alice in old" not in steps(plan)
    assert "remove account old" not in steps(plan)


def test_the_default_of_a_user_who_stays_for_another_cluster_goes_last() -> None:
    seen = there(
        accounts={"a": account(), "b": account()},
        users={"far": user("a")},
        members={("a", "far"): {}, ("b", "far"): {}},
        elsewhere=frozenset({"user far"}),
    )
    assert steps(planned(seen, prune=True, users=[{"name": "root", "accounts": ["root"]}])) == [
        "remove association far in b",
        "remove association far in a",
    ]


def test_only_kinds_that_are_described_are_pruned() -> None:
    assert steps(planned(FULL, prune=True, qos=[{"name": "high"}])) == ["remove qos low", "remove qos parts"]
    plan = planned(FULL, prune=True, accounts=[{"name": "science", "limits": {"max_jobs": 3}}])
    assert steps(plan) == []
    assert plan.kept["account older"] == "has users"
    assert steps(planned(FULL, prune=True, accounts=[], users=[], qos=[], groups={})) == []


# --- a property: what is done leaves nothing to do ----------------------------------------------------------------


def carried_out(seen: Accounting, actions: list[Action]) -> Accounting:
    """A slurmdbd that does what it is told."""
    qos, accounts, users, members = (dict(item) for item in (seen.qos, seen.accounts, seen.users, seen.members))
    for action in actions:
        item = action.subject
        if action.stage in (planner.NEW_QOS, planner.QOS):
            assert set(item.settings["preempt"]) <= qos.keys()
            qos[item.name] = {**QOS, **item.settings}
        elif action.stage == planner.ACCOUNTS:
            assert item.name == "root" or item.settings["parent"] in accounts
            accounts[item.name] = account(**item.settings)
        elif action.stage == planner.NEW_USERS:
            users[item.name] = dict(item.settings)
            members |= {(name, item.name): {**ASSOCIATION, **settings} for name, settings in item.members.items()}
        elif action.stage == planner.MEMBERS:
            assert item.account in accounts
            members[item.account, item.name] = {**ASSOCIATION, **item.settings}
        elif action.stage == planner.USERS:
            assert (item.settings["default_account"], item.name) in members
            users[item.name] = dict(item.settings)
        elif action.stage == planner.OUT_MEMBERS:
            assert users[item.name]["default_account"] != item.account
            del members[item.account, item.name]
        elif action.stage == planner.OUT_USERS:
            del users[item.name]
            members = {key: value for key, value in members.items() if key[1] != item.name}
        elif action.stage == planner.OUT_ACCOUNTS:
            assert item.name not in {entry.get("parent") for entry in accounts.values()}
            assert item.name not in {name for name, _user in members}
            del accounts[item.name]
        else:
            del qos[item.name]
    return Accounting(seen.tres, qos, accounts, users, members)


LETTERS = "abcd"
LIMITS = some.fixed_dictionaries({}, optional={"max_jobs": some.integers(0, 2), "grp_tres": some.just({"cpu": 2})})


@some.composite
def descriptions(draw: some.DrawFn) -> dict[str, Any]:
    """A tree of accounts, each below one before it; users in them; QOS that preempt those before them."""
    names = draw(some.lists(some.sampled_from(LETTERS), unique=True, min_size=1))
    accounts = []
    for index, name in enumerate(names):
        parent = draw(some.sampled_from(["root", *names[:index]]))
        accounts.append({"name": name, "parent": parent, "limits": draw(LIMITS)})
    users = [
        {"name": name, "accounts": draw(some.lists(some.sampled_from(names), unique=True, min_size=1))}
        for name in draw(some.lists(some.sampled_from("xyz"), unique=True))
    ]
    order = draw(some.lists(some.sampled_from("pqr"), unique=True))
    qos = [
        {"name": name, **({"preempt": draw(some.lists(some.sampled_from(order[:index]), min_size=1))} if index else {})}
        for index, name in enumerate(order)
    ]
    return {"accounts": draw(some.permutations(accounts)), "users": users, "qos": draw(some.permutations(qos))}


@given(descriptions(), descriptions(), some.booleans())
def test_what_is_done_leaves_nothing_to_do(first: dict[str, Any], second: dict[str, Any], prune: bool) -> None:
    seen = there()
    for options in (first, second):
        described: Wanted = planner.completed(wanted(**options), prune=prune)
        try:
            check(seen, described, prune=prune)
        except OperationError:
            continue  # a circle with what is there
        seen = carried_out(seen, list(planner.plan(seen, described, prune=prune).actions))
        again = planner.plan(seen, described, prune=prune)
        assert steps(again) == []
        if prune and options["users"]:
            assert seen.accounts.keys() == {"root", *(item["name"] for item in options["accounts"])}
