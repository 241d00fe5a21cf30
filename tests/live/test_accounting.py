# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""accounting and accounting_info against a real slurmdbd: what sacctmgr then shows, limits that hold jobs, pruning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from .support.kube import Json, Kube
from .support.minislurm import is_ready
from .support.playbook import CHECKOUT, PlaybookResult
from .support.process import Completed
from .support.samples import sandbox_slurm_conf

Run = Callable[..., Json]
Slurm = Callable[..., Completed]

# What slurmdbd has of itself; with prune, all that is not this goes.
NOTHING: Json = {
    "qos": [{"name": "normal"}],
    "accounts": [{"name": "root"}],
    "users": [{"name": "root", "accounts": ["root"]}],
    "prune": True,
}
SITE: Json = {
    "qos": [
        {"name": "high", "priority": 100, "preempt": ["low"], "limits": {"max_jobs_per_user": 2}},
        {"name": "low", "flags": ["DenyOnLimit", "NoDecay"], "preempt_mode": "requeue"},
    ],
    "accounts": [
        {"name": "physics", "parent": "science", "fairshare": 3, "qos": ["normal", "high"], "default_qos": "high"},
        {"name": "science", "description": "Faculty of science", "limits": {"grp_tres": "cpu=64,mem=2T"}},
    ],
    "users": [
        {"name": "alice", "accounts": ["physics", {"name": "science", "limits": {"max_jobs": 1}}]},
        {"name": "bob", "accounts": ["physics"], "admin_level": "operator"},
    ],
}


@pytest.fixture
def accounting(run_module: Run, site: PlaybookResult) -> Iterator[Run]:
    """Runs the module; afterwards slurmdbd has what it had."""

    def run(args: Json, **more: Any) -> Json:
        return run_module("accounting", args, **more)

    yield run
    run(NOTHING)


def steps(result: Json) -> list[str]:
    return [f"{action['kind']} {action['target']}" for action in result["actions"]]


def made(accounting: Run, args: Json) -> Json:
    """Run it three times: what is predicted is what is done, and then there is nothing to do."""
    predicted = accounting(args, check=True, diff=True)
    assert predicted["api_calls"]["writes"] == 0
    done = accounting(args, diff=True)
    assert [{**action, "done": False} for action in done["actions"]] == predicted["actions"]
    assert done["diff"] == predicted["diff"]
    assert all(action["done"] for action in done["actions"])
    again = accounting(args)
    assert (again["changed"], again["actions"], again["api_calls"]["writes"]) == (False, [], 0)
    return done


def shown(slurm: Slurm, what: str, columns: str) -> list[dict[str, str]]:
    names = columns.split(",")
    lines = slurm(f"sacctmgr -nP show {what} format={columns}", on="controller").stdout.splitlines()
    return [dict(zip(names, line.split("|"), strict=True)) for line in lines]


def associations(slurm: Slurm) -> dict[str, str]:
    """{account/user: shares} without what slurmdbd makes itself."""
    rows = shown(slurm, "assoc cluster=slurm", "account,user,share")
    return {f"{row['account']}/{row['user']}": row["share"] for row in rows if row["account"] != "root"}


def test_a_site_is_made_in_a_few_calls(accounting: Run, slurm: Slurm) -> None:
    done = made(accounting, SITE)
    assert steps(done) == [
        "create qos high",
        "create qos low",
        "change qos high",
        "create account science",
        "create account physics",
        "create user alice",
        "create user bob",
    ]
    # qos twice, accounts and their associations, two kinds of users, the limit of alice.
    assert done["api_calls"]["writes"] == 7
    assert associations(slurm) == {
        "science/": "1",
        "physics/": "3",
        "physics/alice": "1",
        "physics/bob": "1",
        "science/alice": "1",
    }
    accounts = shown(slurm, "account", "account,descr,org")
    assert {"account": "science", "descr": "Faculty of science", "org": "root"} in accounts
    assert {"account": "physics", "descr": "physics", "org": "science"} in accounts
    users = {row["user"]: row for row in shown(slurm, "user", "user,defaultaccount,admin")}
    assert users["alice"] == {"user": "alice", "defaultaccount": "physics", "admin": "None"}
    assert users["bob"]["admin"] == "Operator"
    qos = {row["name"]: row for row in shown(slurm, "qos", "name,priority,preempt,flags,preemptmode,maxjobspu")}
    assert (qos["high"]["priority"], qos["high"]["preempt"], qos["high"]["maxjobspu"]) == ("100", "low", "2")
    assert set(qos["low"]["flags"].split(",")) == {"DenyOnLimit", "NoDecay"}
    assert qos["low"]["preemptmode"] == "requeue"
    physics = shown(slurm, "assoc where account=physics user=", "account,parentname,qos,defaultqos")[0]
    assert physics["parentname"] == "science"
    assert set(physics["qos"].split(",")) == {"normal", "high"}
    assert physics["defaultqos"] == "high"


def test_what_is_read_can_be_described(accounting: Run, run_module: Run) -> None:
    accounting(SITE)
    found = run_module("accounting_info")
    alice = next(user for user in found["users"] if user["name"] == "alice")
    assert (alice["default_account"], alice["admin_level"]) == ("physics", "none")
    assert sorted(alice["accounts"], key=str) == [
        {"name": "physics"},
        {"name": "science", "limits": {"max_jobs": 1}},
    ]
    described = {key: found[key] for key in ("qos", "accounts", "users")}
    again = accounting({**described, "prune": True})
    assert (again["actions"], again["api_calls"]["writes"]) == ([], 0)


# Every limit, each with a number of its own, and sacctmgr's column for it.
ASSOCIATION = {
    "grp_jobs": (11, "GrpJobs"),
    "grp_jobs_accrue": (12, "GrpJobsAccrue"),
    "grp_submit_jobs": (13, "GrpSubmit"),
    "grp_tres": ({"cpu": 14}, "GrpTRES"),
    "grp_tres_mins": ({"cpu": 15}, "GrpTRESMins"),
    "grp_tres_run_mins": ({"cpu": 16}, "GrpTRESRunMins"),
    "grp_wall": (17, "GrpWall"),
    "max_jobs": (18, "MaxJobs"),
    "max_jobs_accrue": (19, "MaxJobsAccrue"),
    "max_submit_jobs": (20, "MaxSubmit"),
    "max_tres_mins_per_job": ({"cpu": 21}, "MaxTRESMins"),
    "max_tres_per_job": ({"cpu": 22}, "MaxTRES"),
    "max_tres_per_node": ({"cpu": 23}, "MaxTRESPerNode"),
    "max_wall": (24, "MaxWall"),
    "min_prio_threshold": (25, "MinPrioThresh"),
}
QOS = {
    "grp_jobs": (31, "GrpJobs"),
    "grp_jobs_accrue": (32, "GrpJobsAccrue"),
    "grp_submit_jobs": (33, "GrpSubmit"),
    "grp_tres": ({"cpu": 34}, "GrpTRES"),
    "grp_tres_mins": ({"cpu": 35}, "GrpTRESMins"),
    "grp_tres_run_mins": ({"cpu": 36}, "GrpTRESRunMins"),
    "grp_wall": (37, "GrpWall"),
    "max_jobs_accrue_per_account": (38, "MaxJobsAccruePA"),
    "max_jobs_accrue_per_user": (39, "MaxJobsAccruePU"),
    "max_jobs_per_account": (40, "MaxJobsPA"),
    "max_jobs_per_user": (41, "MaxJobsPU"),
    "max_submit_jobs_per_account": (42, "MaxSubmitPA"),
    "max_submit_jobs_per_user": (43, "MaxSubmitPU"),
    "max_tres_mins_per_job": ({"cpu": 44}, "MaxTRESMins"),
    "max_tres_per_account": ({"cpu": 45}, "MaxTRESPA"),
    "max_tres_per_job": ({"cpu": 46}, "MaxTRES"),
    "max_tres_per_node": ({"cpu": 47}, "MaxTRESPerNode"),
    "max_tres_per_user": ({"cpu": 48}, "MaxTRESPU"),
    "max_tres_run_mins_per_account": ({"cpu": 49}, "MaxTRESRunMinsPA"),
    "max_tres_run_mins_per_user": ({"cpu": 50}, "MaxTRESRunMinsPU"),
    "max_wall": (51, "MaxWall"),
    "min_prio_threshold": (52, "MinPrioThresh"),
    "min_tres_per_job": ({"cpu": 53}, "MinTRES"),
}


def test_every_limit_is_the_one_of_its_name_and_can_be_taken_away(accounting: Run, slurm: Slurm) -> None:
    def limits(table: dict[str, Any]) -> Json:
        return {name: value for name, (value, _column) in table.items()}

    def columns(table: dict[str, Any], what: str) -> dict[str, str]:
        return shown(slurm, what, ",".join(column for _value, column in table.values()))[0]

    def expected(table: dict[str, Any]) -> dict[str, str]:
        found = {}
        for value, column in table.values():
            text = f"cpu={value['cpu']}" if isinstance(value, dict) else str(value)
            found[column] = f"00:{text}:00" if column in ("GrpWall", "MaxWall") else text
        return found

    extra = {
        "grace_time": 60,
        "usage_factor": 2,
        "usage_threshold": 0.5,
        "limit_factor": 1.5,
        "preempt_exempt_time": 90,
    }
    accounts = [{"name": "all", "fairshare": "parent", "priority": 5, "limits": limits(ASSOCIATION)}]
    made(accounting, {"qos": [{"name": "all", "limits": limits(QOS), **extra}], "accounts": accounts})
    assert columns(ASSOCIATION, "assoc where account=all") == expected(ASSOCIATION)
    assert columns(QOS, "qos where name=all") == expected(QOS)
    more = "GraceTime,UsageFactor,UsageThreshold,LimitFactor,PreemptExemptTime"
    assert list(shown(slurm, "qos where name=all", more)[0].values()) == [
        "00:01:00", "2.000000", "0.500000", "1.500000", "00:01:30",
    ]  # fmt: skip
    assert shown(slurm, "assoc where account=all", "share,priority") == [{"share": "parent", "priority": "5"}]
    # Away again: one by one with -1, and all that are not described with prune.
    gone = made(
        accounting,
        {
            "qos": [{"name": "all", "limits": dict.fromkeys(QOS, -1), **dict.fromkeys(extra, -1)}],
            "accounts": [{"name": "all", "fairshare": -1, "limits": {"max_jobs": -1, "grp_tres": {"node": 2}}}],
        },
    )
    assert steps(gone) == ["change qos all", "change account all"]
    assert gone["actions"][1]["after"] == {"fairshare": 1, "grp_tres": {"node": 2}, "max_jobs": None}
    assert set(columns(QOS, "qos where name=all").values()) == {""}
    left = columns(ASSOCIATION, "assoc where account=all")
    assert (left["MaxJobs"], left["GrpTRES"], left["GrpJobs"]) == ("", "node=2", "11")
    made(accounting, {"accounts": [{"name": "all"}], "prune": True})
    assert set(columns(ASSOCIATION, "assoc where account=all").values()) == {""}


def test_lists_and_places_change(accounting: Run, slurm: Slurm) -> None:
    accounting(SITE)
    done = made(
        accounting,
        {
            "qos": [{"name": "high", "preempt": ["normal"]}, {"name": "low", "flags": [], "preempt_mode": "cluster"}],
            "accounts": [{"name": "physics", "parent": "root", "qos": ["low"], "default_qos": "low"}],
            "users": [{"name": "alice", "accounts": ["physics", "science"], "default_account": "science"}],
        },
    )
    assert steps(done) == ["change qos high", "change qos low", "change account physics", "change user alice"]
    assert done["actions"][3]["before"] == {"default_account": "physics"}
    qos = {row["name"]: row for row in shown(slurm, "qos", "name,preempt,flags,preemptmode")}
    assert (qos["high"]["preempt"], qos["low"]["flags"], qos["low"]["preemptmode"]) == ("normal", "", "cluster")
    physics = shown(slurm, "assoc where account=physics user=", "parentname,qos,defaultqos")[0]
    assert physics == {"parentname": "root", "qos": "low", "defaultqos": "low"}
    assert shown(slurm, "user name=alice", "defaultaccount") == [{"defaultaccount": "science"}]
    made(accounting, {"accounts": [{"name": "physics", "default_qos": ""}, {"name": "science", "parent": "physics"}]})
    assert shown(slurm, "assoc where account=science user=", "parentname") == [{"parentname": "physics"}]
    swapped = {"accounts": [{"name": "physics", "parent": "science"}, {"name": "science", "parent": "root"}]}
    assert steps(made(accounting, swapped)) == ["change account science", "change account physics"]
    refused = accounting({"accounts": [{"name": "physics", "qos": []}]}, fails=True)
    assert "run: sacctmgr modify account physics set qos=''" in refused["msg"]


def test_who_was_removed_can_come_back(accounting: Run, slurm: Slurm) -> None:
    accounting(SITE)
    gone = made(accounting, {**SITE, "users": SITE["users"][:1], "prune": True})
    assert steps(gone) == ["remove user bob"]
    back = made(accounting, {"groups": {"physics": ["bob"]}})
    assert steps(back) == ["create user bob"]
    assert "physics/bob" in associations(slurm)
    removed = made(accounting, NOTHING)
    assert steps(removed) == [
        "remove user alice",
        "remove user bob",
        "remove account physics",
        "remove account science",
        "remove qos high",
        "remove qos low",
    ]
    assert associations(slurm) == {}


def test_a_database_that_goes_away_in_the_middle(kube: Kube, accounting: Run, slurm: Slurm) -> None:
    """Accounts cannot be written, and then there is no database; the next run does the rest."""
    pods, database = "/api/v1/namespaces/slurm/pods", "slurm-database-0"
    uid = kube.get(f"{pods}/{database}")["metadata"]["uid"]

    def sql(statement: str) -> str:
        words = ["mariadb", "--no-defaults", "--user=mysql", "--batch", "--skip-column-names", "--execute", statement]
        return kube.exec("slurm", database, words, container="mariadb", timeout=120).stdout

    with ThreadPoolExecutor() as pool:
        lock = pool.submit(sql, "LOCK TABLES slurm_acct_db.acct_table READ; SELECT SLEEP(100)")
        kube.wait(lambda: sql("SHOW PROCESSLIST"), lambda text: "SLEEP(100)" in text, what="the lock")
        run = pool.submit(accounting, SITE, fails=True)
        kube.wait(lambda: sql("SHOW PROCESSLIST"), lambda text: "Waiting for table" in text, what="a write waits")
        kube.delete(f"{pods}/{database}", gracePeriodSeconds=1)
        failed = run.result()
        lock.result()
    assert failed["changed"] is True
    done = [f"{action['kind']} {action['target']}" for action in failed["actions"] if action["done"]]
    assert done == ["create qos high", "create qos low", "change qos high"]
    assert "create account physics" in failed["remaining"]
    kube.wait(
        f"{pods}/{database}",
        lambda pod: pod and is_ready(pod) and pod["metadata"]["uid"] != uid,
        timeout=120,
        what="the database is back",
    )
    again: Json = kube.wait(lambda: accounting(SITE, fails=None), lambda result: not result.get("failed"), timeout=60)
    assert steps(again)[0] == "create account science"
    assert accounting(SITE)["actions"] == []


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"accounts": [{"name": "a", "parent": "nowhere", "qos": ["hihg"]}]}, ["account nowhere", "QOS hihg"]),
        ({"accounts": [{"name": "a", "limits": {"grp_tres": {"gres/nic": 1}}}]}, ["TRES gres/nic", "limits.grp_tres"]),
        ({"users": [{"name": "Alice", "accounts": ["root"]}]}, ["users[0].name", "lower case"]),
    ],
    ids=["names", "tres", "case"],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    run_module: Run, site: PlaybookResult, args: Json, words: list[str]
) -> None:
    failed = run_module("accounting", args, fails=True)
    assert failed["reason"] == "InvalidVariables"
    assert all(word in failed["msg"] for word in words), failed["msg"]
    assert failed["api_calls"]["writes"] == 0


@pytest.fixture(scope="module")
def enforced(run_playbook: Callable[..., PlaybookResult], site: PlaybookResult) -> Iterator[None]:
    """slurmctld holds jobs to limits; afterwards it does not, as the sandbox has it."""
    conf = {
        **sandbox_slurm_conf(),
        "AccountingStorageEnforce": ["associations", "limits", "qos"],
        "PriorityType": "priority/multifactor",
        # So that a job whose limit was raised is looked at soon.
        "SchedulerParameters": ["sched_interval=2", "bf_interval=2"],
    }
    run_playbook("site", extra_vars={"slurm_conf": conf}, tags="cluster")
    yield
    run_playbook("site", tags="cluster")


def test_limits_hold_jobs_and_jobs_hold_what_would_go(
    kube: Kube, slurm: Slurm, accounting: Run, enforced: None
) -> None:
    args = {
        "accounts": [{"name": "physics", "fairshare": 30}, {"name": "bio", "limits": {"grp_tres": {"cpu": 1}}}],
        "users": [
            {"name": "alice", "accounts": [{"name": "physics", "fairshare": 7, "limits": {"max_jobs": 1}}, "bio"]},
            {"name": "bob", "accounts": ["bio"]},
        ],
    }
    accounting(args)

    def submit(user: str, account: str) -> str:
        command = f"cd /tmp && sbatch --parsable -o /dev/null -A {account} -n1 --mem=50 -t5 --wrap 'sleep 300'"
        return slurm(command, user=user).stdout.strip()

    def becomes(job: str, state: str) -> None:
        def look() -> str:
            return slurm(f"squeue -h -j {job} -o '%T %r'", on="controller").stdout.strip()

        kube.wait(look, lambda found: found == state, timeout=60, what=f"job {job} is {state}")

    jobs = []
    try:
        for user, account, state in (
            ("alice", "physics", "RUNNING None"),
            ("alice", "physics", "PENDING AssocMaxJobsLimit"),
            ("bob", "bio", "RUNNING None"),
            ("alice", "bio", "PENDING AssocGrpCpuLimit"),
        ):
            jobs.append(submit(user, account))
            becomes(jobs[-1], state)
        refused = slurm("cd /tmp && sbatch -A physics --wrap true", user="bob", check=False)
        assert "Invalid account" in refused.stderr
        shares = slurm("sshare -nPA physics -u alice --format=Account,User,RawShares", on="controller").stdout
        assert {"physics||30", "physics|alice|7"} == {line.strip() for line in shares.splitlines()}
        # A limit that is raised lets the job go.
        accounting({"groups": {"physics": ["alice"]}, "accounts": [{"name": "bio", "limits": {"grp_tres": -1}}]})
        becomes(jobs[3], "RUNNING None")
        # What has jobs stays.
        kept = accounting(
            {**NOTHING, "accounts": [{"name": "physics"}], "users": [{"name": "alice", "accounts": ["physics"]}]}
        )
        assert kept["kept"] == {
            "user bob": "has jobs",
            "association alice in bio": "has jobs",
            "account bio": "has jobs",
        }
        assert steps(kept) == ["change association alice in physics"]
    finally:
        slurm(["scancel", *jobs], on="controller", check=False)
    kube.wait(lambda: slurm("squeue -h", on="controller").stdout, lambda queue: not queue, what="the queue is empty")
    gone = accounting(
        {"accounts": [{"name": "physics"}], "users": [{"name": "alice", "accounts": ["physics"]}], "prune": True}
    )
    assert steps(gone) == ["remove association alice in bio", "remove user bob", "remove account bio"]


def test_the_guide(accounting: Run, run_playbook: Callable[..., PlaybookResult], slurm: Slurm, tmp_path: Path) -> None:
    guide = (CHECKOUT / "docs/guides/accounting.md").read_text(encoding="utf-8")
    variables = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", guide, re.M | re.S)]
    assert len(variables) == 3
    told = [line.strip() for line in re.findall(r"^    .*$", guide, re.M)]

    def message(result: PlaybookResult) -> list[str]:
        return [line.strip() for line in result.tasks[-1].result["msg"] if line.strip()]

    first = message(run_playbook("accounting", extra_vars=variables[0]))
    assert first == told[told.index("slurm/slurm: changed") :][: len(first)]
    assert steps(accounting({"accounts": variables[1]["slurm_accounts"]})) == ["change account biology"]
    saved = tmp_path / "accounting.yml"
    whole = {**variables[0], **variables[2], "accounting_prune": "true", "accounting_save": str(saved)}
    predicted = message(run_playbook("accounting", extra_vars=whole, check=True))
    assert predicted[0] == "slurm/slurm: would be changed"
    assert predicted[1:3] == ["change account biology", "create user carol"]
    assert message(run_playbook("accounting", extra_vars=whole))[1:3] == predicted[1:3]
    assert "physics/carol" in associations(slurm)
    again = run_playbook("accounting", extra_vars={**yaml.safe_load(saved.read_text()), "accounting_prune": True})
    assert message(again)[0] == "slurm/slurm: nothing to change"
