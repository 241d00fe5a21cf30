# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets that are made once."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import secret
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.secret import Wanted, entries, plan

Object = dict[str, Any]


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def live(data: dict[str, str] | None = None, **more: Any) -> Object:
    metadata = {"name": "s", "namespace": "demo", "uid": "u", "resourceVersion": "7", **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data or {}, **more}


def wanted(data: Object | None = None, **more: Any) -> Wanted:
    return Wanted("s", "demo", entries(data or {}), **more)


def test_entries_and_the_keys_they_make() -> None:
    found = entries(
        {
            "a": {"bytes": "16"},
            "b": {"password": None},
            "c": {"password": {"length": 12, "characters": "ba"}},
            "d": {"ssh_host_key": "ed25519"},
            "e": {"tls": {"common_name": "x", "dns_names": ["x"]}},
            "f": {"value": "v"},
        }
    )
    assert [entry.keys for entry in found] == [
        ("a",),
        ("b",),
        ("c",),
        ("d", "d.pub"),
        ("ca.crt", "tls.crt", "tls.key"),
        ("f",),
    ]
    assert found[0].arguments == {"count": 16}
    assert found[1].arguments["length"] == 32
    assert found[2].arguments == {"length": 12, "characters": "ab"}
    assert found[4].arguments["days"] == 3650


@pytest.mark.parametrize(
    "data",
    [
        {"a": "s3cret"},
        {"a": {}},
        {"a": {"bytes": 1, "value": "s3cret"}},
        {"a": {"s3cret": 1}},
        {"a": {"bytes": "s3cret"}},
        {"a": {"bytes": 0}},
        {"a": {"bytes": True}},
        {"a": {"bytes": 2_000_000}},
        {"a": {"password": "s3cret"}},
        {"a": {"password": {"length": 4}}},
        {"a": {"password": {"characters": "x"}}},
        {"a": {"password": {"size": 9}}},
        {"a": {"ssh_host_key": "s3cret"}},
        {"a": {"tls": {}}},
        {"a": {"tls": {"common_name": "x", "dns_names": "x"}}},
        {"a": {"tls": {"common_name": "x" * 65}}},
        {"a": {"value": 5}},
        {"a": {"text": ""}},
        {"a": {"tls": {"common_name": "x"}}, "b": {"tls": {"common_name": "y"}}},
        {"a": {"ssh_host_key": "rsa"}, "a.pub": {"value": "s3cret"}},
    ],
)
def test_wrong_entries_are_refused_and_not_quoted(data: Object) -> None:
    with pytest.raises(OperationError) as caught:
        entries(data)
    assert caught.value.reason == "Malformed"
    if "s3cret" not in data.get("a", {}):
        assert "s3cret" not in str(caught.value)


def test_a_new_secret() -> None:
    change, (action,) = plan(wanted({"k": {"bytes": 8}, "v": {"value": "text"}}, labels={"a": "b"}), None)
    assert (action.kind, action.target, action.before) == ("create", "Secret demo/s", None)
    assert action.after == {"k": "(hidden)", "v": "(hidden)"}
    manifest = change.manifest(wanted(), {"k": "AAAA"})
    assert manifest["data"] == {"k": "AAAA", "v": b64("text")}
    assert manifest["metadata"]["labels"] == {"a": "b"}
    assert b64("text") not in str((action.result(), action.diff))


def test_what_exists_is_kept() -> None:
    data = {
        "k": {"bytes": 8},
        "p": {"password": None},
        "h": {"ssh_host_key": "rsa"},
        "t": {"tls": {"common_name": "x"}},
    }
    have = dict.fromkeys(["k", "p", "h", "h.pub", "ca.crt", "tls.crt", "tls.key", "other"], b64("x"))
    assert plan(wanted(data), live(have)) == (secret.Change(), [])


def test_what_is_missing_is_added_and_nothing_else_sent() -> None:
    change, (action,) = plan(wanted({"k": {"bytes": 8}, "n": {"bytes": 8}}), live({"k": b64("x")}))
    assert action.kind == "update"
    assert action.why == "n missing"
    assert change.manifest(wanted(), {"n": "AAAA"})["data"] == {"n": "AAAA"}
    assert action.before == {"k": "(hidden)"}
    assert action.after == {"k": "(hidden)", "n": "(hidden)"}


def test_a_given_value_is_updated_when_it_differs() -> None:
    assert plan(wanted({"v": {"value": "same"}}), live({"v": b64("same")}))[1] == []
    change, (action,) = plan(wanted({"v": {"value": "new"}}), live({"v": b64("old")}))
    assert change.values == {"v": b64("new")}
    assert action.after == {"v": "(hidden, changed)"}
    assert "given value of v differs" in action.why


def test_a_text_is_put_there_once_and_may_be_changed_by_others() -> None:
    change, _actions = plan(wanted({"t": {"text": "first"}}), live({}))
    assert [entry.arguments for entry, _keys in change.generate] == [{"text": "first"}]
    assert plan(wanted({"t": {"text": "first"}}), live({"t": b64("second")}))[1] == []


def test_an_empty_key_counts_as_missing() -> None:
    change, _actions = plan(wanted({"k": {"bytes": 8}}), live({"k": ""}))
    assert change.placeholders == {"k": ""}


def test_a_public_key_is_made_from_its_private_key() -> None:
    change, (action,) = plan(wanted({"h": {"ssh_host_key": "rsa"}}), live({"h": b64("private")}))
    assert [keys for _entry, keys in change.generate] == [("h.pub",)]
    assert action.why == "h.pub missing"


@pytest.mark.parametrize(
    ("data", "have"),
    [
        ({"t": {"tls": {"common_name": "x"}}}, {"tls.crt": "AA==", "tls.key": "AA=="}),
        ({"h": {"ssh_host_key": "rsa"}}, {"h.pub": "AA=="}),
    ],
)
def test_halves_are_not_completed_with_something_else(data: Object, have: dict[str, str]) -> None:
    with pytest.raises(OperationError) as caught:
        plan(wanted(data), live(have))
    assert caught.value.reason == "Incomplete"


def test_labels_and_annotations_are_set_beside_others() -> None:
    have = live({}, metadata={"labels": {"a": "1", "mine": "x"}})
    change, (action,) = plan(wanted(labels={"a": "2"}, annotations={"n": "1"}), have)
    assert (change.labels, change.annotations) == ({"a": "2"}, {"n": "1"})
    assert action.diff is not None
    assert action.diff[1]["metadata"]["labels"] == {"a": "2", "mine": "x"}
    assert plan(wanted(labels={"a": "1"}), have)[1] == []


def test_another_type_is_refused() -> None:
    with pytest.raises(OperationError) as caught:
        plan(wanted(type="kubernetes.io/tls"), live())
    assert caught.value.reason == "Immutable"


def test_immutable() -> None:
    change, (action,) = plan(wanted(immutable=True), live({"k": b64("x")}))
    assert change.manifest(wanted(), {})["immutable"] is True
    assert action.why == "not immutable yet"
    assert plan(wanted(immutable=True), live(immutable=True))[1] == []
    with pytest.raises(OperationError) as caught:
        plan(wanted({"k": {"bytes": 8}}), live(immutable=True))
    assert "k would have to be set" in caught.value.msg


def test_absent() -> None:
    assert secret.plan_absent(wanted(), None) == []
    (action,) = secret.plan_absent(wanted(), live({"k": b64("x")}))
    assert (action.kind, action.before, action.after) == ("delete", {"k": "(hidden)"}, None)
