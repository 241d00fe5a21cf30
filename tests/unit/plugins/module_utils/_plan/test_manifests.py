# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests as people give them, and objects as people read them."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import manifests

Object = dict[str, Any]


def config_map(name: str = "a", **more: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def secret(**more: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **more}


def parse(text: str, _what: str) -> list[Any]:
    return list(yaml.safe_load_all(text))


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_flatten() -> None:
    given = [
        config_map("a"),
        None,
        {},
        [config_map("b"), [config_map("c")]],
        "---\n" + yaml.safe_dump_all([config_map("d"), config_map("e")]) + "---\n",
        {"apiVersion": "v1", "kind": "List", "items": [config_map("f")]},
        {"apiVersion": "v1", "kind": "ConfigMapList", "items": [config_map("g")]},
    ]
    assert [item["metadata"]["name"] for item in manifests.flatten(given, parse)] == list("abcdefg")


@pytest.mark.parametrize("given", [[5], ["just text"], [[True]]])
def test_what_is_no_manifest(given: list[Any]) -> None:
    with pytest.raises(OperationError) as caught:
        manifests.flatten(given, parse)
    assert caught.value.reason == "Malformed"


def test_checked_drops_nulls_and_what_the_server_makes() -> None:
    given = config_map(
        metadata={
            "name": "a",
            "labels": None,
            "creationTimestamp": None,
            "uid": "u",
            "resourceVersion": "1",
            "generation": 1,
            "managedFields": [],
            "annotations": {"x": "y", "z": None},
        },
        data={"k": "v", "n": None},
        status={"phase": "x"},
    )
    assert manifests.checked(given) == config_map(metadata={"name": "a", "annotations": {"x": "y"}}, data={"k": "v"})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": "ConfigMap", "metadata": {"name": "a"}}, "no apiVersion"),
        ({"apiVersion": "v1", "metadata": {"name": "a"}}, "no kind"),
        ({"apiVersion": "v1", "kind": 5, "metadata": {"name": "a"}}, "no kind"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "no metadata"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": "x"}, "no metadata"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}, "no name"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": 5}}, "no name"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}}, "generateName"),
        (config_map(metadata={"name": "a", "labels": {"x": 1}}), "metadata.labels.x is not a string"),
        (config_map(metadata={"name": "a", "annotations": {"x": True}}), "metadata.annotations.x is not a string"),
        (config_map(metadata={"name": "a", "labels": ["x"]}), "metadata.labels is not a mapping"),
        (secret(data={"k": "s3cret%"}), "data.k is not base64"),
        (secret(data={"k": 5}), "data.k is not base64"),
        (secret(stringData={"k": 12345}), "stringData.k is not a string"),
        (secret(data="s3cret"), "data is not a mapping"),
    ],
)
def test_malformed_manifests_are_refused_without_their_values(given: Object, words: str) -> None:
    with pytest.raises(OperationError) as caught:
        manifests.checked(given)
    assert caught.value.reason == "Malformed"
    assert words in caught.value.msg
    assert "s3cret" not in str(caught.value)
    assert "12345" not in str(caught.value)


def test_string_data_becomes_data_and_wins() -> None:
    given = secret(data={"a": b64("old"), "b": b64("x")[:2] + "\n" + b64("x")[2:]}, stringData={"a": "new"})
    assert manifests.checked(given)["data"] == {"a": b64("new"), "b": b64("x")}
    assert "stringData" not in manifests.checked(given)


def with_restart(text: str) -> Object:
    annotations = {"slurm-ops.kubernetes/restart-on": text}
    template = {"metadata": {"annotations": annotations}, "spec": {}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": template}}


def test_restart_references() -> None:
    found = manifests.restart_references(with_restart("configmap/a, secret/b,ConfigMap/c/slurm.conf,"))
    assert found == [("ConfigMap", "a", ""), ("Secret", "b", ""), ("ConfigMap", "c", "slurm.conf")]
    assert manifests.restart_references(config_map()) == []
    assert manifests.restart_references({**with_restart(""), "spec": {"template": None}}) == []


@pytest.mark.parametrize("text", ["service/a", "configmap", "configmap/", "a"])
def test_restart_references_that_make_no_sense(text: str) -> None:
    with pytest.raises(OperationError):
        manifests.restart_references(with_restart(text))


def test_content_of_what_is_referred_to() -> None:
    live = {"data": {"a": "1"}, "metadata": {"resourceVersion": "5"}}
    assert manifests.content(live) == {"data": {"a": "1"}, "binaryData": {}}
    assert manifests.content(live, "a") == {"data": "1"}
    assert manifests.content(live, "b") == {}
    assert manifests.content(None) is None


def test_digests_do_not_depend_on_order() -> None:
    assert manifests.digest({"a": 1, "b": [1, 2]}) == manifests.digest({"b": [1, 2], "a": 1})
    assert manifests.digest([1, 2]) != manifests.digest([2, 1])


def test_readable_has_no_server_noise() -> None:
    live = config_map(
        metadata={
            "name": "a",
            "uid": "u",
            "resourceVersion": "5",
            "generation": 1,
            "creationTimestamp": "t",
            "managedFields": [{}],
            "annotations": {
                "slurm-ops.kubernetes/applied": "x",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
            },
        },
        status={"x": 1},
        data={"k": "v"},
    )
    assert manifests.readable(live) == config_map(data={"k": "v"})


def test_secrets_are_masked_but_changes_are_seen() -> None:
    before, after = (
        secret(data={"same": "AA==", "other": "AA==", "gone": "AA=="}),
        secret(data={"same": "AA==", "other": "BB==", "new": "CC=="}),
    )
    hidden_before, hidden_after = manifests.masked(before, after)
    assert hidden_before["data"] == {"same": "(hidden)", "other": "(hidden)", "gone": "(hidden)"}
    assert hidden_after["data"] == {"same": "(hidden)", "other": "(hidden, changed)", "new": "(hidden)"}
    assert manifests.masked(None, after)[1]["data"]["other"] == "(hidden)"
    assert manifests.masked(before, None) == ({**before, "data": dict.fromkeys(before["data"], "(hidden)")}, None)
    assert manifests.masked(config_map(data={"a": "1"}), None)[0]["data"] == {"a": "1"}
