# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server's answers are made into."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import explain

FORBIDDEN = (
    'statefulsets.apps is forbidden: User "system:serviceaccount:demo:ci" cannot list resource "statefulsets" in API '
    'group "apps" in the namespace "demo"'
)
CLUSTER = 'nodes is forbidden: User "ann" cannot list resource "nodes" in API group "" at the cluster scope'
UNFIT = "failed to create typed patch object (n/t; /v1, Kind=Service): "
CONVERT = "failed to convert new object (n/t; /v1, Kind=Pod) to proper version: "
UNABLE = "unable to convert unstructured object to /v1, Kind=Pod: "
QUOTA = 'pods "a" is forbidden: exceeded quota: small, requested: cpu=2, used: cpu=1, limited: cpu=2'
CONFLICT = {
    "reason": "Conflict",
    "message": "Apply failed with 1 conflict",
    "details": {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "kubectl-edit" using apps/v1',
                "field": ".spec.replicas",
            }
        ]
    },
}


@pytest.mark.parametrize(
    ("status", "body", "reason", "words"),
    [
        (401, {"message": "Unauthorized"}, "Unauthorized", ["kubeconfig x", "expired", "Log in again"]),
        (
            403,
            {"message": FORBIDDEN},
            "Forbidden",
            [
                "system:serviceaccount:demo:ci may not list statefulsets.apps in namespace demo",
                "a Role in namespace demo with the rule",
                '{apiGroups: ["apps"], resources: ["statefulsets"], verbs: ["list"]}',
            ],
        ),
        (403, {"message": CLUSTER}, "Forbidden", ["ann may not list nodes at cluster scope", "a ClusterRole"]),
        (403, {"message": QUOTA}, "QuotaExceeded", ["exceeded quota: small", "ResourceQuota"]),
        (403, {"message": 'violates PodSecurity "restricted:latest": privileged'}, "PodSecurity", ["privileged"]),
        (
            403,
            {"message": "namespace x: it is being terminated"},
            "NamespaceTerminating",
            ["being deleted"],
        ),
        (403, {"message": 'admission webhook "w" denied the request: no'}, "AdmissionDenied", ["no"]),
        (403, {"message": "something else"}, "Forbidden", ["something else"]),
        (
            404,
            {"message": 'namespaces "n" not found', "details": {"kind": "namespaces", "name": "n"}},
            "NamespaceMissing",
            ["no namespace 'n'", "create namespace n"],
        ),
        (404, {"message": "not here"}, "NotFound", ["not here"]),
        (409, CONFLICT, "FieldConflict", [".spec.replicas is managed by kubectl-edit", "force_conflicts"]),
        (409, {"reason": "AlreadyExists"}, "AlreadyExists", ["exists already"]),
        (409, {"reason": "Conflict", "message": "modified"}, "Conflict", ["run again"]),
        (410, {"message": "too old resource version"}, "Expired", ["too old"]),
        (413, {"message": "limit is 3145728"}, "TooLarge", ["1 MiB"]),
        (415, {"message": "unsupported"}, "Unsupported", ["1.22"]),
        (
            422,
            {
                "details": {
                    "causes": [{"field": "spec.a", "message": "Required value"}, {"field": "spec.b", "message": "bad"}]
                }
            },
            "Invalid",
            ["spec.a: Required value; spec.b: bad"],
        ),
        (
            422,
            {"details": {"causes": [{"field": "spec.selector", "message": "field is immutable"}]}},
            "Immutable",
            ["spec.selector"],
        ),
        (400, {"message": "cannot unmarshal"}, "Invalid", ["cannot unmarshal"]),
        (
            500,
            {"message": f"{UNFIT}.spec.port: field not declared in schema"},
            "Invalid",
            ["refuses it: .spec.port: field not declared in schema. Correct"],
        ),
        (
            500,
            {"message": UNFIT + ".data.a: expected string, got &value.valueUnstructured{Value:1}"},
            "Invalid",
            [".data.a: expected string, got 1."],
        ),
        (
            500,
            {"message": f"{CONVERT}{UNABLE}quantities must match"},
            "Invalid",
            ["refuses it: quantities must match."],
        ),
        (429, {"message": "busy"}, "TooManyRequests", ["busy"]),
        (500, {"message": "etcdserver: request timed out"}, "ServerError", ["500", "timed out"]),
        (502, {"raw": "<html>bad gateway"}, "ServerError", ["bad gateway"]),
        (500, {}, "ServerError", ["no message"]),
    ],
)
def test_answers_are_explained(status: int, body: dict[str, Any], reason: str, words: list[str]) -> None:
    error = explain(status, body, "apply", "StatefulSet demo/a", "kubeconfig x")
    assert error.reason == reason
    assert error.status == status
    assert error.msg
    for word in words:
        assert word in str(error)
    if status != 401:
        assert "apply StatefulSet demo/a" in error.msg


def test_a_missing_namespace_is_told_from_a_missing_object() -> None:
    assert explain(404, {"details": {"kind": "namespaces", "name": "n"}}, "apply", "x", "y").missing_namespace() == "n"
    assert explain(404, {"details": {"kind": "pods", "name": "n"}}, "apply", "x", "y").missing_namespace() is None
