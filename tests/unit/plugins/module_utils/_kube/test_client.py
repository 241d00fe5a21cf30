# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client against a server that is late, busy, gone, or wants other credentials."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import paths
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import PAGE, KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.connection import Connection
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError, Unreachable
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import CONFIG_MAP

from ..clock import Clock
from .fake_api import Answer, Asked, FakeApi, serving, status

ONE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}


def client_of(api: FakeApi, clock: Clock | None = None, tokens: list[str] | None = None) -> KubernetesClient:
    clock = clock or Clock()
    queue = list(tokens or [])

    def load() -> Connection:
        token = (queue.pop(0) if len(queue) > 1 else queue[0]) if queue else ""
        return Connection(host=api.url, source="a test", authorization=f"Bearer {token}" if token else None)

    return KubernetesClient(load, clock=clock, pause=clock.pause)


def test_one_connection_serves_all_calls() -> None:
    with serving(Answer(200, ONE)) as api:
        client = client_of(api)
        for _turn in range(20):
            assert client.get(CONFIG_MAP, "demo", "one") == ONE
        client.close()
    assert api.connections == 1
    assert client.calls == {"get": 20}
    assert client.writes == 0


def test_a_connection_that_the_server_closed_is_opened_again() -> None:
    with serving(Answer(200, ONE, closes=True)) as api:
        client = client_of(api)
        assert client.get(CONFIG_MAP, "demo", "one") == ONE
        assert client.get(CONFIG_MAP, "demo", "one") == ONE
    assert api.connections == 2


@pytest.mark.parametrize("failure", [Answer(breaks=True), status(503), status(500), status(502), status(504)])
def test_what_can_be_repeated_is_repeated(failure: Answer) -> None:
    with serving(failure, failure, Answer(200, ONE)) as api:
        clock = Clock()
        assert client_of(api, clock).get(CONFIG_MAP, "demo", "one") == ONE
    assert len(api.asked) == 3
    assert len(clock.pauses) == 2


def test_apply_is_repeated_too() -> None:
    with serving(Answer(breaks=True), Answer(200, ONE)) as api:
        assert client_of(api).apply(ONE, "demo") == ONE
    asked = api.asked[-1]
    assert asked.method == "PATCH"
    assert asked.headers["Content-Type"] == "application/apply-patch+yaml"
    assert asked.query == {"fieldManager": "slurm_ops.kubernetes", "fieldValidation": "Strict"}


def test_a_create_that_may_have_arrived_is_not_repeated() -> None:
    with serving(Answer(breaks=True), Answer(201, ONE)) as api, pytest.raises(Unreachable) as caught:
        client_of(api).create(ONE, "demo")
    assert len(api.asked) == 1
    assert "may have been done or not" in str(caught.value)


def test_retry_after_is_honoured_for_creates_too() -> None:
    busy = Answer(429, {"message": "slow down"}, {"Retry-After": "3"})
    with serving(busy, Answer(201, ONE)) as api:
        clock = Clock()
        client_of(api, clock).create(ONE, "demo")
    assert clock.pauses == [3.0]
    assert [asked.method for asked in api.asked] == ["POST", "POST"]


def test_a_budget_s_refusal_of_an_eviction_is_told_at_once() -> None:
    refused = status(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
    with serving(refused) as api, pytest.raises(ApiError) as caught:
        client_of(api).request("POST", "/api/v1/namespaces/demo/pods/p/eviction", verb="evict", target="Pod demo/p")
    assert len(api.asked) == 1
    assert caught.value.reason == "TooManyRequests"


def test_a_500_that_does_not_heal_ends_soon() -> None:
    with serving(status(500, "InternalError", "failed calling webhook")) as api, pytest.raises(ApiError) as caught:
        client_of(api).apply(ONE, "demo")
    assert len(api.asked) == 3
    assert "failed calling webhook" in caught.value.msg


def test_a_500_that_means_a_wrong_manifest_is_not_repeated() -> None:
    unfit = status(
        500, "", "failed to create typed patch object (n/t; /v1, Kind=Service): .spec.port: field not declared"
    )
    with serving(unfit) as api, pytest.raises(ApiError) as caught:
        client_of(api).apply(ONE, "demo")
    assert len(api.asked) == 1
    assert caught.value.reason == "Invalid"


def test_a_server_that_stays_away_is_given_up_at_the_deadline() -> None:
    with serving(Answer(200, ONE), status(503)) as api:
        clock = Clock()
        client = client_of(api, clock)
        client.get(CONFIG_MAP, "demo", "one")
        with pytest.raises(ApiError):
            client.get(CONFIG_MAP, "demo", "one")
    assert 40 < clock.now <= 60


def test_an_address_where_nothing_ever_answered_is_told_sooner() -> None:
    with serving(Answer()) as api:
        pass  # stopped: the port refuses connections
    clock = Clock()
    with pytest.raises(Unreachable) as caught:
        client_of(api, clock).get(CONFIG_MAP, "demo", "one")
    assert clock.now <= 12
    assert api.url in caught.value.msg
    assert "refused" in caught.value.msg
    assert "a test" in caught.value.msg


def test_expired_credentials_are_read_again_once() -> None:
    def respond(asked: Asked) -> Answer:
        return Answer(200, ONE) if asked.headers["Authorization"] == "Bearer new" else status(401, "Unauthorized")

    with serving(respond=respond) as api:
        client = client_of(api, tokens=["old", "new"])
        assert client.get(CONFIG_MAP, "demo", "one") == ONE
    assert [asked.headers["Authorization"] for asked in api.asked] == ["Bearer old", "Bearer new"]


def test_credentials_that_stay_wrong_are_an_error_that_names_their_source() -> None:
    with serving(status(401, "Unauthorized")) as api, pytest.raises(ApiError) as caught:
        client_of(api, tokens=["old"]).get(CONFIG_MAP, "demo", "one")
    assert len(api.asked) == 1
    assert caught.value.reason == "Unauthorized"
    assert "a test" in caught.value.msg
    assert "old" not in str(caught.value)


def pages(count: int) -> Any:
    def respond(asked: Asked) -> Answer:
        start = int(asked.query.get("continue", 0))
        items = [{"metadata": {"name": f"o-{number}"}} for number in range(start, min(start + PAGE, count))]
        metadata = {"resourceVersion": "7", **({"continue": str(start + PAGE)} if start + PAGE < count else {})}
        return Answer(200, {"metadata": metadata, "items": items})

    return respond


def test_long_lists_come_in_pages() -> None:
    with serving(respond=pages(1201)) as api:
        client = client_of(api)
        items, version = client.list_with_version(CONFIG_MAP, "demo", labels="a=b")
    assert [item["metadata"]["name"] for item in items] == [f"o-{number}" for number in range(1201)]
    assert items[0]["kind"] == "ConfigMap"
    assert version == "7"
    assert client.calls == {"list": 3}
    assert all(asked.query["labelSelector"] == "a=b" for asked in api.asked)


def test_a_list_whose_pages_went_stale_begins_again() -> None:
    stale = iter([False, True, False])

    def respond(asked: Asked) -> Answer:
        if next(stale):
            return status(410, "Expired", "The provided continue parameter is too old")
        return pages(501)(asked) if asked.query.get("limit") else Answer(200, {"metadata": {}, "items": [ONE]})

    with serving(respond=respond) as api:
        assert len(client_of(api).list(CONFIG_MAP, "demo")) == 1


def test_unknown_kinds_are_discovered_with_one_call_for_each_group_version() -> None:
    answer = {
        "resources": [
            {"name": "things", "kind": "Thing", "namespaced": True},
            {"name": "things/status", "kind": "Thing", "namespaced": True},
            {"name": "wholes", "kind": "Whole", "namespaced": False},
        ]
    }
    with serving(Answer(200, answer)) as api:
        client = client_of(api)
        assert (
            client.resource("example.com/v1", "Thing").path("demo", "t")
            == "/apis/example.com/v1/namespaces/demo/things/t"
        )
        assert client.resource("example.com/v1", "Whole").path("demo", "t") == "/apis/example.com/v1/wholes/t"
        with pytest.raises(OperationError) as caught:
            client.resource("example.com/v1", "Nothing")
    assert len(api.asked) == 1
    assert caught.value.reason == "UnknownKind"


def test_known_kinds_need_no_discovery() -> None:
    with serving(Answer(200, {})) as api:
        client_of(api).resource("apps/v1", "StatefulSet")
    assert api.asked == []


def test_warnings_of_the_server_are_kept_once() -> None:
    warning = {"Warning": '299 - "would violate PodSecurity \\"restricted\\"", 299 - "policy/v1beta1 is deprecated"'}
    with serving(Answer(200, ONE, warning)) as api:
        client = client_of(api)
        client.get(CONFIG_MAP, "demo", "one")
        client.get(CONFIG_MAP, "demo", "one")
    assert list(client.warnings) == ['would violate PodSecurity "restricted"', "policy/v1beta1 is deprecated"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(200, {"status": "Success"}), True),
        (status(404, "NotFound"), False),
        (status(409, "Conflict", "the UID in the precondition does not match"), False),
    ],
)
def test_delete_tells_whether_it_was_there(answer: Answer, expected: bool) -> None:
    with serving(answer) as api:
        assert client_of(api).delete(CONFIG_MAP, "demo", "one", uid="u") is expected
    assert api.asked[0].body["preconditions"] == {"uid": "u"}


def test_writes_are_counted_and_dry_runs_are_not() -> None:
    with serving(Answer(200, ONE)) as api:
        client = client_of(api)
        client.apply(ONE, "demo", dry_run=True)
        client.patch(CONFIG_MAP, "demo", "one", {}, dry_run=True)
        assert client.writes == 0
        client.apply(ONE, "demo", force=True)
        client.patch(CONFIG_MAP, "demo", "one", {})
        client.delete(CONFIG_MAP, "demo", "one")
        client.create(ONE, "demo")
        assert client.writes == 4
    assert [asked.query.get("dryRun") for asked in api.asked] == ["All", "All", None, None, None, None]
    assert api.asked[2].query["force"] == "true"


def test_many_writes_go_over_several_connections_and_come_back_in_order() -> None:
    with serving(Answer(200, ONE)) as api:
        client = client_of(api)
        names = [f"n-{number}" for number in range(64)]
        done = list(client.map_concurrent(lambda name: client.delete(CONFIG_MAP, "demo", name), names))
    assert done == [(name, True) for name in names]
    assert 1 < api.connections <= 16


def test_after_an_error_no_new_write_is_begun() -> None:
    def respond(asked: Asked) -> Answer:
        return status(403, "Forbidden", "no") if asked.path.endswith("/n-3") else Answer(200, {})

    with serving(respond=respond) as api:
        client = client_of(api)
        names = [f"n-{number}" for number in range(100)]
        done = list(client.map_concurrent(lambda name: client.delete(CONFIG_MAP, "demo", name), names, workers=2))
    errors = [name for name, outcome in done if isinstance(outcome, OperationError)]
    assert errors == ["n-3"]
    assert len(api.asked) < 20
    assert {f"/api/v1/namespaces/demo/configmaps/{name}" for name, _outcome in done} == {
        asked.path for asked in api.asked
    }


def test_impersonation_is_sent_with_each_group_in_a_header_of_its_own() -> None:
    with serving(Answer(200, ONE)) as api:
        connection = Connection(api.url, "a test", impersonate_user="ann", impersonate_groups=("dev", "ops"))
        KubernetesClient(lambda: connection).get(CONFIG_MAP, "demo", "one")
    headers = api.asked[0].headers
    assert headers["Impersonate-User"] == "ann"
    assert "Impersonate-Group" in headers


def test_what_a_proxied_service_answers_comes_back_as_it_is() -> None:
    with serving(Answer(418, b"I am a teapot", {"Content-Type": "text/plain"})) as api:
        path = paths.service_proxy("demo", "rest", 6820, "slurm/v0.0.45/ping")
        reply = client_of(api).exchange("GET", path, headers={"X-SLURM-USER-TOKEN": "t"})
    assert (reply.status, reply.body) == (418, b"I am a teapot")
    assert api.asked[0].path == "/api/v1/namespaces/demo/services/rest:6820/proxy/slurm/v0.0.45/ping"
    assert api.asked[0].headers["X-SLURM-USER-TOKEN"] == "t"
