# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Interfaces and routes: what is given to ``ip -batch`` on the machine, in the hub and in each node. Pure."""

from __future__ import annotations

from .settings import Settings, node_number

UPLINK = "uplink"
BRIDGE = "nodes"
SERVICES = "services"
# Forwarding is what hub and nodes are for; answers may come back by another way than the question went.
SYSCTLS = {
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/all/send_redirects": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv4/conf/default/send_redirects": "0",
    "net/ipv4/ip_forward": "1",
}


def node_link(node: str) -> str:
    """The hub's end of the cable to a node."""
    return f"to-{node}"


def machine_batch(settings: Settings, init: int) -> list[str]:
    """On the machine: the cable to the hub, and one route for everything inside."""
    addresses, interface = settings.addresses, settings.interface
    return [
        f"link add {interface} type veth peer name {UPLINK} netns {init}",
        f"address add {addresses.host}/{addresses.link.prefixlen} dev {interface}",
        f"link set {interface} up",
        f"route replace {addresses.network} via {addresses.hub} dev {interface}",
    ]


def uplink_batch(settings: Settings) -> list[str]:
    """In the hub: its end of the cable to the machine."""
    addresses = settings.addresses
    return [
        f"address add {addresses.hub}/{addresses.link.prefixlen} dev {UPLINK}",
        f"link set {UPLINK} up",
    ]


def hub_batch(settings: Settings) -> list[str]:
    """In the hub. There is no default route: nothing can leave."""
    addresses = settings.addresses
    return [
        "link set lo up",
        f"link add {BRIDGE} type bridge",
        f"address add {addresses.hub_on_nodes}/{addresses.node_network.prefixlen} dev {BRIDGE}",
        f"link set {BRIDGE} up",
        # Otherwise packets to addresses that nobody has would go round between hub and machine.
        f"route replace unreachable {addresses.network}",
        # The first node's proxy answers for Services to those who are not on a node.
        f"route replace {addresses.services} via {addresses.node(1)}",
    ]


def join_batch(settings: Settings, node: str, holder: int) -> list[str]:
    """In the hub: plug a node in. ``holder`` is the process that holds its namespaces."""
    addresses, number = settings.addresses, node_number(node)
    return [
        f"link add {node_link(node)} type veth peer name eth0 netns {holder}",
        f"link set {node_link(node)} master {BRIDGE} up",
        f"route replace {addresses.node_pods(number)} via {addresses.node(number)}",
    ]


def node_batch(settings: Settings, node: str) -> list[str]:
    """In a node. The device for Services only makes their addresses routable; the proxy redirects before it is used."""
    addresses, address = settings.addresses, settings.addresses.node(node_number(node))
    return [
        "link set lo up",
        f"address add {address}/{addresses.node_network.prefixlen} dev eth0",
        "link set eth0 up",
        f"route replace {addresses.network} via {addresses.hub_on_nodes}",
        f"link add {SERVICES} type bridge",
        f"link set {SERVICES} up",
        f"route replace {addresses.services} dev {SERVICES} src {address}",
        # Pods of this node that are not there, or no longer: say so instead of sending it round.
        f"route replace unreachable {addresses.node_pods(node_number(node))}",
    ]
