# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""accounting and accounting_info on a slurmdbd in memory: calls, bodies, second runs, and answers that are not true."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import pytest
import yaml

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import accounting
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, carry_out
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.token import GivenToken
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.transport import Answer
from ansible_collections.slurm_ops.kubernetes.plugins.modules import accounting as module
from ansible_collections.slurm_ops.kubernetes.plugins.modules import accounting_info

Object = dict[str, Any]


class Database:
    """slurmdbd's REST plugin, as far as these modules use it. A ``deaf`` one answers and does nothing."""

    where = "here"

    def __init__(self) -> None:
        self.qos: dict[str, Object] = {"normal": {"name": "normal"}}
        self.accounts: dict[str, Object] = {"root": {"name": "root"}}
        self.users: dict[str, Object] = {"root": {"name": "root", "administrator_level": ["Administrator"]}}
        self.associations: dict[tuple[str, str], Object] = {}
        self.jobs: list[Object] = []
        self.written: list[tuple[str, str, Any]] = []
        self.deaf = False
        self._associate({"account": "root", "user": None, "cluster": "hpc", "parent_account": ""})
        self._associate({"account": "root", "user": "root", "cluster": "hpc", "is_default": True})

    def _associate(self, item: Object) -> None:
        assert item["user"] != ""
        assert "partition" not in item
        key = (item["account"], item["user"] or "")
        number = {"id": len(self.associations) + 1}
        self.associations[key] = {"shares_raw": 1, **number, **self.associations.get(key, {}), **item, "user": key[1]}

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Answer:
        _slash, plugin, _parser, what = path.split("/", 3)
        what, _mark, query = what.partition("?")
        content = json.loads(body) if body else None
        if method != "GET":
            self.written.append((method, what, content if body else dict(parse_qsl(query))))
            if not self.deaf:
                self._write(method, what, content, dict(parse_qsl(query)))
            return Answer(200, {}, b"{}")
        lists: Object = {
            "ping/": {"pings": [{"responding": True}]},
            "jobs/": {"jobs": self.jobs, "last_update": 1},
            "partitions/": {"partitions": [{"name": "p", "qos": {"assigned": "normal"}}], "last_update": 1},
            "tres/": {"TRES": [{"type": "cpu", "name": "", "id": 1}, {"type": "gres", "name": "gpu", "id": 1001}]},
            "qos/": {"qos": list(self.qos.values())},
            "accounts/": {"accounts": list(self.accounts.values())},
            "users/": {"users": list(self.users.values())},
            "associations/": {"associations": list(self.associations.values())},
        }
        assert (plugin == "slurm") == (what in ("ping/", "jobs/", "partitions/"))
        assert what != "associations/" or "Exclude+limits+from+parents=true" in query
        return Answer(200, {}, json.dumps(lists[what]).encode())

    def _write(self, method: str, what: str, content: Any, query: Object) -> None:
        if what == "qos/":
            self.qos |= {item["name"]: {**self.qos.get(item["name"], {}), **item} for item in content["qos"]}
        elif what == "accounts/":
            self.accounts |= {item["name"]: item for item in content["accounts"]}
        elif what == "users/":
            for item in content["users"]:
                self.users[item["name"]] |= item
                for (account, user), entry in self.associations.items():
                    if user == item["name"]:
                        entry["is_default"] = account == item["default"]["account"]
        elif what == "users_association/":
            condition, about = content["association_condition"], content["user"]
            for name in condition["users"]:
                self.users[name] = {"name": name, "administrator_level": about["adminlevel"]}
                for account in condition["accounts"]:
                    default = account == about["defaultaccount"]
                    self._associate({"account": account, "user": name, "cluster": "hpc", "is_default": default})
        elif (method, what) == ("POST", "associations/"):
            for item in content["associations"]:
                # What is left out of TRES is taken away, as slurmrestd does it.
                self._associate(item)
        elif (method, what) == ("DELETE", "associations/"):
            del self.associations[query["account"], query["user"]]
        else:
            kind, _slash, name = what.partition("/")
            {"user": self.users, "account": self.accounts, "qos": self.qos}[kind].pop(name)
            gone = {"user": 1, "account": 0, "qos": 2}[kind]
            self.associations = {key: item for key, item in self.associations.items() if (*key, "")[gone] != name}


RunOf = Callable[..., Run]


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    made = Database()

    def client_of(_kubernetes: Any, _params: Any, calls: Counter[str]) -> SlurmClient:
        return SlurmClient(made, GivenToken("t"), calls=calls)

    monkeypatch.setattr(accounting, "client_of", client_of)
    return made


def carried_out(check: bool = False, **options: Any) -> Run:
    defaults = {"qos": None, "accounts": None, "users": None, "groups": None, "prune": False}
    run = Run({"namespace": "slurm", "name": "hpc", **defaults, **options}, "hpc")
    run._kubernetes = object()  # type: ignore[assignment]
    result = carry_out(run, accounting.AccountingChange(run), check=check)
    assert set(result) < set(yaml.safe_load(module.RETURN))
    return run


def steps(run: Run) -> list[str]:
    return [f"{action.kind} {action.target}" for action in run.actions]


SITE: Object = {
    "qos": [{"name": "high", "priority": 5, "preempt": ["low"], "limits": {"max_jobs_per_user": 2}}, {"name": "low"}],
    "accounts": [
        {"name": "physics", "parent": "science", "limits": {"grp_tres": "cpu=4,gres/gpu=1"}, "qos": ["high"]},
        {"name": "science"},
    ],
    "users": [
        {"name": "alice", "accounts": ["physics", {"name": "science", "limits": {"max_jobs": 1}}]},
        {"name": "bob", "accounts": ["physics"]},
        {"name": "carol", "accounts": ["physics"]},
    ],
}


def test_a_site_is_made_with_a_call_for_each_kind(database: Database) -> None:
    predicted = carried_out(check=True, **SITE)
    assert database.written == []
    run = carried_out(**SITE)
    assert [(action.result() | {"done": False}) for action in run.actions] == [
        action.result() for action in predicted.actions
    ]
    assert all(action.done for action in run.actions)
    assert [path for _method, path, _body in database.written] == [
        "qos/",
        "qos/",
        "accounts/",
        "associations/",
        "users_association/",
        "users_association/",
        "associations/",
    ]
    bodies = [body for _method, _path, body in database.written]
    assert [item["preempt"]["list"] for item in bodies[0]["qos"]] == [[], []]
    assert [(item["name"], item["preempt"]["list"]) for item in bodies[1]["qos"]] == [("high", ["low"])]
    assert bodies[1]["qos"][0]["priority"]["number"] == 5
    assert [(item["account"], item["user"], item["parent_account"]) for item in bodies[3]["associations"]] == [
        ("science", None, "root"),
        ("physics", None, "science"),
    ]
    assert bodies[3]["associations"][1]["max"]["tres"]["total"] == [
        {"type": "cpu", "name": "", "id": 1, "count": 4},
        {"type": "gres", "name": "gpu", "id": 1001, "count": 1},
    ]
    assert bodies[5] == {
        "association_condition": {
            "users": ["bob", "carol"],
            "accounts": ["physics"],
            "clusters": ["hpc"],
            "association": {},
        },
        "user": {"defaultaccount": "physics", "adminlevel": ["None"]},
    }
    assert [(item["account"], item["user"]) for item in bodies[6]["associations"]] == [("science", "alice")]


def test_a_second_run_writes_nothing(database: Database) -> None:
    carried_out(**SITE)
    database.written.clear()
    for prune in (False, True):
        run = carried_out(prune=prune, **SITE)
        assert (steps(run), database.written) == ([], [])
        assert run.slurm_calls == {"get": 6}  # ping, and five lists


def test_what_is_read_can_be_described(database: Database) -> None:
    carried_out(**SITE)
    database.written.clear()
    run = Run({"namespace": "slurm", "name": "hpc"}, "hpc")
    run._kubernetes = object()  # type: ignore[assignment]
    found = dict(accounting.report(run))
    assert set(found) < set(yaml.safe_load(accounting_info.RETURN))
    assert {"name": "physics", "parent": "science", "fairshare": 1} not in found["accounts"]
    assert found.pop("tres") == ["cpu", "gres/gpu"]
    assert [item["name"] for item in found["users"]] == ["alice", "bob", "carol", "root"]
    run = carried_out(prune=True, **found)
    assert (steps(run), database.written) == ([], [])


def test_changes_carry_what_is_not_said(database: Database) -> None:
    carried_out(**SITE)
    database.accounts["physics"]["coordinators"] = [{"name": "bob", "direct": True}]
    database.written.clear()
    run = carried_out(accounts=[{"name": "physics", "description": "Physics"}], groups={"science": ["bob"]})
    assert steps(run) == ["change account physics", "create association bob in science"]
    bodies = {path: body for _method, path, body in database.written[:2]}
    assert bodies["accounts/"]["accounts"][0]["coordinators"] == [{"name": "bob"}]
    assert bodies["accounts/"]["accounts"][0]["organization"] == "science"
    assert len(bodies["associations/"]["associations"][0]["max"]["tres"]["total"]) == 2


def test_prune_removes_and_tells_what_it_keeps(database: Database) -> None:
    carried_out(**SITE)
    database.jobs = [
        {"job_id": 1, "account": "physics", "user_name": "bob", "qos": "low", "job_state": ["RUNNING"]},
        {"job_id": 2, "account": "science", "user_name": "alice", "qos": "high", "job_state": ["COMPLETED"]},
        {"job_id": 3, "account": "physics", "user_name": "carol", "qos": "x", "job_state": ["FAILED", "COMPLETING"]},
    ]
    database.written.clear()
    described = {"accounts": [{"name": "physics", "parent": "root"}], "groups": {"physics": ["alice"]}}
    run = carried_out(prune=True, qos=[{"name": "high", "priority": 6}], **described)
    assert steps(run) == [
        "change qos high",
        "change account physics",
        "remove association alice in science",
        "remove account science",
    ]
    assert run._warnings == [
        "Not removed: user bob (has jobs).",
        "Not removed: user carol (has jobs).",
        "Not removed: qos low (has jobs).",
    ]
    assert [(method, path) for method, path, _body in database.written[2:]] == [
        ("DELETE", "associations/"),
        ("DELETE", "account/science"),
    ]
    assert database.written[2][2] == {"account": "science", "user": "alice", "cluster": "hpc"}
    database.jobs = []
    run = carried_out(prune=True, **described)
    assert steps(run) == ["remove user bob", "remove user carol"]


def test_slurmctld_need_not_know_the_names_of_users(database: Database) -> None:
    carried_out(**SITE)
    bobs = database.associations["physics", "bob"]["id"]
    job = {"job_id": 1, "account": "physics", "user_name": "", "qos": "x", "job_state": ["RUNNING"]}
    database.jobs = [{**job, "association_id": bobs}]
    described = {"accounts": [{"name": "physics"}], "users": [{"name": "carol", "accounts": ["physics"]}]}
    run = carried_out(prune=True, **described)
    assert run._warnings == ["Not removed: user bob (has jobs)."]
    # One whose association is not known may be anybody's of its account.
    database.jobs = [{**job, "association_id": 0}]
    run = carried_out(prune=True, **{**described, "users": [{"name": "dave", "accounts": ["physics"]}]})
    assert run._warnings == ["Not removed: user bob (has jobs).", "Not removed: user carol (has jobs)."]


def test_an_answer_that_is_not_true_is_told(database: Database) -> None:
    database.deaf = True
    with pytest.raises(OperationError) as caught:
        carried_out(accounts=[{"name": "physics"}])
    assert caught.value.reason == "NotAsAsked"
    assert caught.value.remaining == ("create account physics",)


def test_nothing_is_written_when_something_is_unknown(database: Database) -> None:
    with pytest.raises(OperationError, match="there is no QOS hgih"):
        carried_out(accounts=[{"name": "physics"}, {"name": "bio", "qos": ["hgih"]}])
    assert database.written == []
