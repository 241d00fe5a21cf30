# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which address is whose, and which networks are refused."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.addresses import (
    CANDIDATES,
    MAX_NODES,
    AddressPlan,
    Route,
    choose_network,
    conflicts,
    parse_network,
    parse_routes,
)

ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
sbx0\t0000F40A\t0200630A\t0003\t0\t0\t0\t0000FFFF\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""


@pytest.fixture
def plan() -> AddressPlan:
    return AddressPlan(IPv4Network("10.120.0.0/16"))


def test_parts_do_not_overlap(plan: AddressPlan) -> None:
    parts = [plan.link, plan.node_network, plan.simulated_pods, plan.services, plan.pods]
    for index, part in enumerate(parts):
        assert part.subnet_of(plan.network)
        assert not any(part.overlaps(other) for other in parts[index + 1 :])


def test_fixed_addresses_lie_where_they_belong(plan: AddressPlan) -> None:
    assert {plan.host, plan.hub} <= set(plan.link)
    assert plan.hub_on_nodes in plan.node_network
    assert {plan.api_service, plan.dns_service} <= set(plan.services)
    assert str(plan.api_service) == "10.120.64.1"


@given(st.integers(1, MAX_NODES), st.integers(1, MAX_NODES))
def test_nodes_have_addresses_of_their_own(one: int, other: int) -> None:
    plan = AddressPlan(IPv4Network("10.127.0.0/16"))
    assert plan.node(one) in plan.node_network
    assert plan.node(one) != plan.hub_on_nodes
    assert plan.node_pods(one).subnet_of(plan.pods)
    assert (plan.node(one) == plan.node(other)) == (one == other)
    assert plan.node_pods(one).overlaps(plan.node_pods(other)) == (one == other)


def test_routes_are_read_without_the_default_route() -> None:
    assert parse_routes(ROUTES) == [
        Route(IPv4Network("10.244.0.0/16"), "sbx0"),
        Route(IPv4Network("192.0.2.0/24"), "eth0"),
    ]


@pytest.mark.parametrize(
    ("network", "found"),
    [
        ("10.244.0.0/16", ["sbx0"]),
        ("10.120.0.0/16", []),
        ("192.0.0.0/16", ["eth0"]),  # a smaller network inside
    ],
)
def test_conflicts(network: str, found: list[str]) -> None:
    routes = parse_routes(ROUTES)
    assert [route.interface for route in conflicts(IPv4Network(network), routes, "so-demo")] == found


def test_our_own_route_is_no_conflict() -> None:
    own = Route(CANDIDATES[0], "so-demo")
    assert choose_network(CANDIDATES[0], [own], "so-demo", []) == CANDIDATES[0]


def test_the_first_network_that_is_neither_routed_nor_reserved_is_taken() -> None:
    routed = Route(IPv4Network("10.120.3.0/24"), "eth7")
    assert choose_network(None, [routed], "so-demo", [CANDIDATES[1]]) == CANDIDATES[2]


def test_a_routed_network_is_refused_by_name() -> None:
    with pytest.raises(OperationError) as caught:
        choose_network(IPv4Network("10.244.0.0/16"), parse_routes(ROUTES), "so-demo", [])
    assert caught.value.reason == "NetworkInUse"
    assert "sbx0" in caught.value.msg


def test_no_free_network_is_an_error() -> None:
    everywhere = Route(IPv4Network("10.0.0.0/8"), "tun0")
    with pytest.raises(OperationError) as caught:
        choose_network(None, [everywhere], "so-demo", [])
    assert caught.value.reason == "NetworkInUse"


@pytest.mark.parametrize("text", ["10.1.0.0/24", "8.8.0.0/16", "10.1.2.3/16", "fd00::/16", "pods", ""])
def test_networks_that_cannot_be_used(text: str) -> None:
    with pytest.raises(OperationError) as caught:
        parse_network(text)
    assert caught.value.reason == "InvalidNetwork"
