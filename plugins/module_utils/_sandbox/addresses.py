# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Which address is whose: everything a sandbox uses is cut from one /16 network.

``.0.0/30`` links the machine to the hub (control plane), ``.1.0/24`` joins hub and nodes, ``.32.0/19`` is for the Pods
of simulated Nodes (nobody answers there), ``.64.0/18`` for Services, ``.128.0/17`` for Pods: a /24 for each node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

MAX_NODES = 127
# Tried in this order when no network is given: a corner of 10/8 that neither kubeadm nor Docker nor kind uses.
CANDIDATES = tuple(IPv4Network(f"10.{second}.0.0/16") for second in range(120, 128))
_FIRST_NODE = 10


@dataclass(frozen=True, slots=True)
class AddressPlan:
    """All addresses of one sandbox. Nodes are counted from 1."""

    network: IPv4Network

    def _at(self, third: int, fourth: int) -> IPv4Address:
        return self.network.network_address + (third << 8) + fourth

    def _part(self, third: int, prefix: int) -> IPv4Network:
        return IPv4Network((self._at(third, 0), prefix))

    @property
    def host(self) -> IPv4Address:
        """The machine's end of the link."""
        return self._at(0, 1)

    @property
    def hub(self) -> IPv4Address:
        """Where the API server listens."""
        return self._at(0, 2)

    @property
    def link(self) -> IPv4Network:
        return self._part(0, 30)

    @property
    def node_network(self) -> IPv4Network:
        return self._part(1, 24)

    @property
    def hub_on_nodes(self) -> IPv4Address:
        """The hub's address on the network of the nodes: their way to everything else."""
        return self._at(1, 1)

    @property
    def simulated_pods(self) -> IPv4Network:
        return self._part(32, 19)

    @property
    def services(self) -> IPv4Network:
        return self._part(64, 18)

    @property
    def api_service(self) -> IPv4Address:
        return self._at(64, 1)

    @property
    def dns_service(self) -> IPv4Address:
        return self._at(64, 10)

    @property
    def pods(self) -> IPv4Network:
        return self._part(128, 17)

    def node(self, number: int) -> IPv4Address:
        return self._at(1, _FIRST_NODE + number)

    def node_pods(self, number: int) -> IPv4Network:
        return self._part(128 + number, 24)


@dataclass(frozen=True, slots=True)
class Route:
    """One route of the machine."""

    destination: IPv4Network
    interface: str


def parse_network(text: str) -> IPv4Network:
    """The network that a user gave. Raises OperationError (reason InvalidNetwork)."""
    try:
        network = IPv4Network(text)
    except (AddressValueError, NetmaskValueError, ValueError) as error:
        raise OperationError(f"network {text!r} is not an IPv4 network: {error}.", reason="InvalidNetwork") from error
    if network.prefixlen != 16 or not network.is_private:
        raise OperationError(
            f"network {text!r} cannot be used: a sandbox needs a private IPv4 network of size /16.",
            reason="InvalidNetwork",
            hint="For example 10.120.0.0/16.",
        )
    return network


def parse_routes(table: str) -> list[Route]:
    """Routes from the text of /proc/net/route; the default route is left out, as it covers everything."""
    routes = []
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 8:
            continue
        address = IPv4Address(int.from_bytes(bytes.fromhex(fields[1]), "little"))
        mask = IPv4Address(int.from_bytes(bytes.fromhex(fields[7]), "little"))
        destination = IPv4Network(f"{address}/{mask}", strict=False)
        if destination.prefixlen:
            routes.append(Route(destination, fields[0]))
    return routes


def conflicts(network: IPv4Network, routes: Iterable[Route], own_interface: str) -> list[Route]:
    """Routes of others that lead into the network."""
    return [r for r in routes if r.interface != own_interface and r.destination.overlaps(network)]


def choose_network(
    wanted: IPv4Network | None,
    routes: Sequence[Route],
    own_interface: str,
    reserved: Sequence[IPv4Network],
) -> IPv4Network:
    """The wanted network, or the first free candidate. ``reserved`` are those that other sandboxes have recorded."""
    if wanted is not None:
        in_the_way = conflicts(wanted, routes, own_interface)
        if in_the_way:
            raise OperationError(
                f"network {wanted} is already routed on this machine: "
                + ", ".join(f"{r.destination} by {r.interface}" for r in in_the_way)
                + ".",
                reason="NetworkInUse",
                hint="Give another one with the option network.",
            )
        return wanted
    for candidate in CANDIDATES:
        if not conflicts(candidate, routes, own_interface) and not any(candidate.overlaps(r) for r in reserved):
            return candidate
    raise OperationError(
        f"none of {CANDIDATES[0]} to {CANDIDATES[-1]} is free on this machine.",
        reason="NetworkInUse",
        hint="Give a free /16 network with the option network.",
    )
