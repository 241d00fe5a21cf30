# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watches that end, break, and fall behind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.connection import Connection
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError, Unreachable
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import POD
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.watch import Watch

from .fake_api import Answer, Asked, FakeApi, serving, status


class Steps:
    """A clock that a test moves on by itself, a second at each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


def event(kind: str, name: str, version: int) -> bytes:
    item = {"kind": "Pod", "metadata": {"name": name, "resourceVersion": str(version)}}
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def gone() -> bytes:
    return (
        json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}).encode() + b"\n"
    )


def listed(version: int, *names: str) -> Answer:
    items = [{"metadata": {"name": name}} for name in names]
    return Answer(200, {"metadata": {"resourceVersion": str(version)}, "items": items})


def follow(api: FakeApi, count: int, **options: Any) -> list[tuple[str, Any]]:
    """The first ``count`` things that a watch yields: names for lists, the name for one object."""
    steps = Steps()
    client = KubernetesClient(lambda: Connection(api.url, "a test"), clock=steps, pause=steps.pause)
    found = []
    for kind, what in Watch(client, POD, "demo", clock=steps, pause=steps.pause, **options):
        names = [item["metadata"]["name"] for item in what] if kind == "SYNC" else what["metadata"]["name"]
        found.append((kind, names))
        if len(found) == count:
            break
    return found


def test_list_then_events_then_on_from_the_last_version() -> None:
    streams = iter([(event("ADDED", "a", 6), event("BOOKMARK", "", 9)), (event("DELETED", "a", 10),)])

    def respond(asked: Asked) -> Answer:
        return Answer(chunks=next(streams)) if "watch" in asked.query else listed(5, "x", "y")

    with serving(respond=respond) as api:
        assert follow(api, 3, labels="a=b") == [("SYNC", ["x", "y"]), ("ADDED", "a"), ("DELETED", "a")]
    watches = [asked.query for asked in api.asked if "watch" in asked.query]
    assert [query["resourceVersion"] for query in watches] == ["5", "9"]
    assert watches[0]["allowWatchBookmarks"] == "true"
    assert watches[0]["labelSelector"] == "a=b"


def test_an_event_in_pieces_is_put_together_and_half_of_one_dropped() -> None:
    whole, half = event("ADDED", "a", 6), event("MODIFIED", "a", 7)
    streams = iter([(whole[:20], whole[20:], half[:30]), (half,)])

    def respond(asked: Asked) -> Answer:
        return Answer(chunks=next(streams)) if "watch" in asked.query else listed(5)

    with serving(respond=respond) as api:
        assert follow(api, 3) == [("SYNC", []), ("ADDED", "a"), ("MODIFIED", "a")]


@pytest.mark.parametrize("answer", [Answer(chunks=(gone(),)), status(410, "Expired", "too old resource version")])
def test_a_version_that_is_forgotten_leads_to_a_new_list(answer: Answer) -> None:
    answers = iter([listed(5, "x"), answer, listed(50, "y"), Answer(chunks=(event("ADDED", "z", 51),))])
    with serving(respond=lambda _asked: next(answers)) as api:
        assert follow(api, 3) == [("SYNC", ["x"]), ("SYNC", ["y"]), ("ADDED", "z")]


def test_a_broken_connection_is_taken_up_again() -> None:
    answers = iter([listed(5), Answer(breaks=True), status(503), Answer(chunks=(event("ADDED", "a", 6),))])
    with serving(respond=lambda _asked: next(answers)) as api:
        assert follow(api, 2) == [("SYNC", []), ("ADDED", "a")]
    assert api.asked[-1].query["resourceVersion"] == "5"


def test_a_server_that_stays_away_ends_it() -> None:
    def respond(asked: Asked) -> Answer:
        return Answer(breaks=True) if "watch" in asked.query else listed(5)

    with serving(respond=respond) as api, pytest.raises(Unreachable):
        follow(api, 2)


def test_no_right_to_watch_is_an_error() -> None:
    def respond(asked: Asked) -> Answer:
        return status(403, "Forbidden", "no") if "watch" in asked.query else listed(5)

    with serving(respond=respond) as api, pytest.raises(ApiError) as caught:
        follow(api, 2)
    assert caught.value.status == 403


def test_it_ends_when_its_time_is_over() -> None:
    def respond(asked: Asked) -> Answer:
        return Answer(chunks=(event("ADDED", "a", 6),)) if "watch" in asked.query else listed(5)

    with serving(respond=respond) as api:
        assert len(follow(api, 10_000, duration=3.0)) < 1000
