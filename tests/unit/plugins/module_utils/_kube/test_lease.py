# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock: held, waited for, taken over, given up; whatever the clocks of the others say."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError, Unreachable
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.lease import Lease

from ..clock import Clock


class Server:
    """As much of a KubernetesClient as a Lease uses; counts writes."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.away = False

    def get(self, _resource: Any, _namespace: str, _name: str) -> Any:
        if self.away:
            raise Unreachable("away", reason="Unreachable")
        return copy.deepcopy(self.lease)

    def create(self, manifest: dict[str, Any], _namespace: str) -> Any:
        if self.lease is not None:
            raise ApiError("exists", reason="AlreadyExists", status=409)
        self.version += 1
        self.lease = {"metadata": {"resourceVersion": str(self.version)}, "spec": dict(manifest["spec"])}

    def patch(self, _resource: Any, _namespace: str, _name: str, change: dict[str, Any]) -> Any:
        assert self.lease is not None
        if change["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise ApiError("conflict", reason="Conflict", status=409)
        self.version += 1
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        self.lease["spec"] |= change["spec"]


def lease(server: Server, clock: Clock, holder: str, **more: Any) -> Lease:
    return Lease(server, "hpc", "slurm-reconcile", holder=holder, clock=clock, pause=clock.pause, **more)  # type: ignore[arg-type]


def holder(server: Server) -> str:
    assert server.lease is not None
    return str(server.lease["spec"]["holderIdentity"])


def test_a_new_lock_is_taken_at_once_and_given_up() -> None:
    server, clock = Server(), Clock()
    one = lease(server, clock, "one")
    assert not one.held
    one.acquire(10)
    assert one.held
    assert (holder(server), clock.now) == ("one", 0)
    one.release()
    assert not one.held
    assert holder(server) == ""
    # The next one need not wait.
    lease(server, clock, "two").acquire(0)
    assert (holder(server), clock.now) == ("two", 0)
    assert server.lease is not None
    assert server.lease["spec"]["leaseTransitions"] == 1


def test_a_held_lock_is_waited_for_and_its_holder_named() -> None:
    server, clock = Server(), Clock()
    lease(server, clock, "one").acquire(0)
    with pytest.raises(OperationError) as caught:
        lease(server, clock, "two").acquire(10)
    assert caught.value.reason == "Locked"
    assert "one" in str(caught.value)
    assert 10 <= clock.now < 12
    assert holder(server) == "one"


@pytest.mark.parametrize("renewed", ["1970-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"])
def test_a_silent_holder_gives_way_after_its_time_whatever_its_clock_says(renewed: str) -> None:
    server, clock = Server(), Clock()
    lease(server, clock, "dead").acquire(0)
    assert server.lease is not None
    server.lease["spec"]["renewTime"] = renewed
    with pytest.raises(OperationError):
        lease(server, clock, "two").acquire(20)
    two = lease(server, clock, "two")
    begun = clock.now
    two.acquire(60)
    assert 30 <= clock.now - begun < 32
    assert holder(server) == "two"


def test_a_holder_that_renews_is_not_taken_over() -> None:
    server, clock = Server(), Clock()
    one = lease(server, clock, "one")
    one.acquire(0)

    def pause(seconds: float) -> None:
        clock.pause(seconds)
        if clock.now % 10 < 1:
            assert one.renew()
            assert server.lease is not None
            server.lease["spec"]["renewTime"] = f"tick {clock.now}"

    two = Lease(server, "hpc", "slurm-reconcile", holder="two", clock=clock, pause=pause)  # type: ignore[arg-type]
    with pytest.raises(OperationError):
        two.acquire(100)
    assert one.held


def test_a_lock_that_could_not_be_renewed_is_not_held() -> None:
    server, clock = Server(), Clock()
    one = lease(server, clock, "one")
    one.acquire(0)
    server.away = True
    clock.now = 29
    assert one.held
    clock.now = 30
    assert not one.held
    server.away = False
    lease(server, clock, "two").acquire(60)
    assert not one.renew()
    one.release()
    assert holder(server) == "two"


def test_of_two_at_the_same_moment_one_wins() -> None:
    server, clock = Server(), Clock()
    two = lease(server, clock, "two")
    before = server.get

    def late(*arguments: Any) -> Any:
        found = before(*arguments)
        server.get = before  # type: ignore[method-assign]
        lease(server, clock, "one").acquire(0)
        return found

    server.get = late  # type: ignore[method-assign]
    with pytest.raises(OperationError) as caught:
        two.acquire(5)
    assert caught.value.remaining == ("one",)
    assert not two.held
