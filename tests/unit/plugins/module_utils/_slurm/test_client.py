# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The client of slurmrestd against a script of answers, as the real one gave them on 24.11 and 26.05."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import hostlist
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.errors import SlurmError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.transport import Answer

PING = {"pings": [{"hostname": "c-0", "responding": True}], "meta": {"slurm": {"release": "26.05.5"}}, "errors": []}
REFUSED_TOKEN = {"errors": [{"error_number": 1007, "error": "Protocol authentication error", "description": "x"}]}


def answer(content: Any, status: int = 200) -> Answer:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return Answer(status, {}, body)


class Script:
    """A Transport that gives its answers in turn and keeps what was asked."""

    where = "here"

    def __init__(self, *answers: Answer | OperationError) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, Any]] = []
        self.tokens: list[str] = []

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Answer:
        self.asked.append((method, path, json.loads(body) if body else None))
        self.tokens.append(headers["X-SLURM-USER-TOKEN"])
        assert 0 < timeout <= 60
        found = self.answers.pop(0)
        if isinstance(found, OperationError):
            raise found
        return found


class Tokens:
    def __init__(self, renewable: bool = True) -> None:
        self.number = 1
        self.renewable = renewable

    def token(self) -> str:
        return f"t{self.number}"

    def renew(self) -> bool:
        self.number += 1
        return self.renewable


def client(*answers: Any, ping: bool = True, **more: Any) -> tuple[SlurmClient, Script]:
    script = Script(*([answer(PING)] if ping else []), *answers)
    pauses: list[float] = []
    made = SlurmClient(script, more.pop("tokens", Tokens()), pause=pauses.append, clock=lambda: sum(pauses), **more)
    if ping:
        assert made.parser == "v0.0.45"
        script.asked.clear()
        script.tokens.clear()
    return made, script


def failure(made: SlurmClient) -> SlurmError:
    with pytest.raises(SlurmError) as caught:
        made.nodes()
    return caught.value


def test_the_newest_common_parser_is_found_and_kept() -> None:
    unknown = answer(b"Unable to find requested URL endpoint.", 404)
    made, script = client(unknown, unknown, unknown, answer(PING), answer({"nodes": []}), ping=False)
    assert list(made.nodes().items) == []
    assert [path for method, path, body in script.asked] == [
        "/slurm/v0.0.45/ping/",
        "/slurm/v0.0.44/ping/",
        "/slurm/v0.0.43/ping/",
        "/slurm/v0.0.42/ping/",
        "/slurm/v0.0.42/nodes/",
    ]
    assert (made.parser, made.release) == ("v0.0.42", "26.05.5")
    assert made.first_pings() == PING["pings"]
    assert len(script.asked) == 5


def test_no_common_parser() -> None:
    made, _script = client(answer(b"", 404), ping=False, parsers=["v0.0.99"])
    with pytest.raises(OperationError) as caught:
        made.nodes()
    assert caught.value.reason == "NoCommonParser"


def test_a_missing_service_is_not_a_missing_parser() -> None:
    status = {"kind": "Status", "message": 'services "x" not found', "code": 404}
    made, script = client(answer(status, 404), ping=False)
    error = failure(made)
    assert 'services "x" not found' in error.msg
    assert len(script.asked) == 1


def test_http_200_with_errors_is_a_failure() -> None:
    made, _script = client(
        answer({"nodes": [], "errors": [{"error_number": 0, "error": "No error", "description": "gone"}]})
    )
    error = failure(made)
    assert (error.status, error.number, error.reason) == (200, 0, "SlurmRefused")
    assert error.msg == "Slurm refused to read nodes (here): gone."


@pytest.mark.parametrize(("status", "number", "reason"), [(422, 2018, "UnknownNode"), (500, 2028, "InvalidState")])
def test_slurms_numbers_become_reasons(status: int, number: int, reason: str) -> None:
    entry = {"error_number": number, "error": "Invalid", "description": "Failure to update", "source": "_update"}
    made, _script = client(answer({"errors": [entry, entry]}, status))
    with pytest.raises(SlurmError) as caught:
        made.update_nodes(["a"], state="undrain")
    assert caught.value.reason == reason
    assert (
        caught.value.msg
        == f"Slurm refused to update a to undrain (here): Invalid: Failure to update ({number}) [_update]."
    )
    assert "A part may have been done" in caught.value.hint


def test_warnings_of_a_change_are_failures_and_those_of_a_read_are_kept() -> None:
    warned = {"nodes": [], "warnings": [{"description": 'Ignoring unknown field "foo"', "source": "#/foo/"}]}
    made, _script = client(answer(warned), answer(warned))
    made.nodes()
    assert list(made.warnings) == ['Ignoring unknown field "foo" [#/foo/]']
    with pytest.raises(SlurmError) as caught:
        made.update_nodes(["a"], foo=1)
    assert caught.value.reason == "SlurmWarned"


@pytest.mark.parametrize("refusal", [answer(REFUSED_TOKEN, 511), answer(b"Authentication failure", 401)])
def test_a_refused_token_is_renewed_once(refusal: Answer) -> None:
    made, script = client(refusal, answer({"nodes": [{"name": "a"}]}))
    assert len(made.nodes().items) == 1
    assert script.tokens == ["t1", "t2"]
    made, script = client(refusal, refusal)
    assert failure(made).reason == "TokenRefused"
    assert len(script.tokens) == 2


def test_a_given_token_is_not_tried_again() -> None:
    made, script = client(answer(REFUSED_TOKEN, 511), tokens=Tokens(renewable=False))
    assert failure(made).reason == "TokenRefused"
    assert len(script.tokens) == 1


def test_ping_says_200_for_a_bad_token_and_for_a_dead_controller() -> None:
    for status, reason in (
        ("Protocol authentication error", "TokenRefused"),
        ("Unable to contact", "ControllerUnreachable"),
    ):
        dead = {"pings": [{"hostname": "c-0", "responding": False, "status": status}]}
        made, _script = client(answer(dead), answer(dead), ping=False)
        with pytest.raises(SlurmError) as caught:
            made.require_controller()
        assert caught.value.reason == reason


def test_reads_are_tried_again_and_changes_are_not() -> None:
    lost = OperationError("no answer", reason="SlurmUnreachable")
    made, script = client(lost, answer(b"", 503), answer({"nodes": []}))
    made.nodes()
    assert len(script.asked) == 3
    made, script = client(lost)
    with pytest.raises(OperationError) as caught:
        made.update_nodes(["a"], comment="x")
    assert caught.value is lost
    made, script = client(answer(b"gone", 503))
    with pytest.raises(SlurmError):
        made.update_nodes(["a"], comment="x")
    assert len(script.asked) == 1


def test_tries_end() -> None:
    made, script = client(*[answer({"errors": [{"error_number": 1800, "error": "x"}]}, 502)] * 3)
    assert failure(made).reason == "ControllerUnreachable"
    assert len(script.asked) == 3


def test_an_error_of_another_kind_is_not_hidden() -> None:
    lost = OperationError("API server", reason="Unreachable")
    made, _script = client(lost)
    with pytest.raises(OperationError) as caught:
        made.nodes()
    assert caught.value is lost


def test_what_is_not_slurm() -> None:
    forbidden = {"kind": "Status", "message": "services is forbidden", "code": 403}
    made, _script = client(answer(forbidden, 403))
    error = failure(made)
    assert (error.reason, error.status) == ("Forbidden", 403)
    assert "services/proxy" in error.hint
    made, _script = client(answer(b"<html>", 200))
    assert failure(made).reason == "SlurmUnreachable"


def test_update_time() -> None:
    listing = {"nodes": [{"name": "a"}], "last_update": {"set": True, "infinite": False, "number": 99}}
    made, script = client(
        answer(listing),
        answer(b"", 304),
        answer({"errors": [{"error": "Unable to query partitions"}]}, 500),
        answer({**listing, "last_update": 100}),
    )
    first = made.nodes()
    assert (first.changed, first.last_update) == (True, 99)
    second = made.nodes(first.last_update)
    assert (second.changed, second.last_update, list(second.items)) == (False, 99, [])
    third = made.nodes(second.last_update)
    assert (third.changed, third.last_update) == (True, 100)
    assert [path for method, path, body in script.asked] == [
        "/slurm/v0.0.45/nodes/",
        "/slurm/v0.0.45/nodes/?update_time=99",
        "/slurm/v0.0.45/nodes/?update_time=99",
        "/slurm/v0.0.45/nodes/",
    ]


def test_a_full_read_that_fails_with_500_fails() -> None:
    made, script = client(answer({"errors": [{"error": "x"}]}, 500))
    assert failure(made).status == 500
    assert len(script.asked) == 1


def test_bulk_changes_are_one_call_each() -> None:
    calls: Counter[str] = Counter()
    good = answer({"errors": [], "warnings": []})
    made, script = client(good, good, good, good, good, calls=calls)
    made.update_nodes([f"w-{number}" for number in range(1000)], state="drain", reason="k8s: x")
    made.delete_nodes(["w-1", "w-0"])
    made.create_nodes("NodeName=x State=EXTERNAL")
    made.cancel_jobs([3, 4], signal="SIGTERM")
    made.reconfigure()
    assert script.asked == [
        ("POST", "/slurm/v0.0.45/nodes/", {"name": ["w-[0-999]"], "state": ["DRAIN"], "reason": "k8s: x"}),
        ("DELETE", "/slurm/v0.0.45/node/w-%5B0-1%5D", None),
        ("POST", "/slurm/v0.0.45/new/node/", {"node_conf": "NodeName=x State=EXTERNAL"}),
        ("DELETE", "/slurm/v0.0.45/jobs/", {"jobs": ["3", "4"], "signal": "SIGTERM"}),
        ("GET", "/slurm/v0.0.45/reconfigure/", None),
    ]
    assert calls == {"get": 1, "update": 1, "delete": 1, "create": 1, "cancel": 1, "reconfigure": 1}


def test_records_are_deleted_without_a_comma_in_the_path() -> None:
    # slurmrestd answers 404 (24.11: 400) to a path with a comma, encoded or not.
    good = answer({"errors": [], "warnings": []})
    made, script = client(*[good] * 20)
    names = ["cpu-0", "cpu-1", "cpu-2", "cpu-5", "gpu-1", "login", "a1-b1", "a2-b2", "a1-b2"]
    made.delete_nodes(names)
    found = [unquote(path.removeprefix("/slurm/v0.0.45/node/")) for _method, path, _body in script.asked]
    assert not any("," in path for path in found)
    assert sorted(name for path in found for name in hostlist.expand(path)) == sorted(names)
    assert "cpu-[0-2]" in found


def test_nothing_to_change_is_no_call() -> None:
    made, script = client()
    made.update_nodes([], state="drain", reason="x")
    made.delete_nodes([])
    made.cancel_jobs([])
    assert script.asked == []


@pytest.mark.parametrize("state", ["drain", "DOWN", "fail"])
def test_a_reason_is_enforced(state: str) -> None:
    made, script = client()
    with pytest.raises(OperationError) as caught:
        made.update_nodes(["a"], state=state, reason=" ")
    assert caught.value.reason == "ReasonMissing"
    assert script.asked == []


def test_other_reads() -> None:
    made, _script = client(
        answer({"statistics": {"jobs_running": 1}}),
        answer({"jobs": [{"job_id": 1}]}),
        answer({"partitions": [{"name": "p"}]}),
        answer({"jobs": [{"job_id": "1", "state": ["RUNNING"]}]}),
        answer({"pings": [{"hostname": "c"}]}),
    )
    assert made.diag() == {"jobs_running": 1}
    assert len(made.jobs().items) == 1
    assert made.partitions().items == [{"name": "p"}]
    assert made.job_states()[0]["state"] == ["RUNNING"]
    assert made.ping() == [{"hostname": "c"}]
