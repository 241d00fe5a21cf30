# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What a sandbox's directory says about it, and who may work on it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

from .addresses import choose_network, parse_routes
from .certificates import write_secret
from .observe import Observed
from .settings import interface_name

RECORD = "sandbox.json"


def recorded_network(directory: Path) -> IPv4Network | None:
    """The network that a sandbox was made with; its certificates and objects are tied to it."""
    try:
        return IPv4Network(json.loads((directory / RECORD).read_text())["network"])
    except FileNotFoundError:
        return None


def pick_network(name: str, directory: Path, wanted: IPv4Network | None, check: bool) -> IPv4Network:
    """The network of the sandbox in ``directory``: recorded, wanted or the first free one. It is recorded, for good."""
    # One lock for all: two sandboxes that are made at the same time must not get the same network.
    with locked(directory.with_name("network"), check, patient=True):
        recorded = recorded_network(directory)
        if recorded is not None and wanted is not None and recorded != wanted:
            raise OperationError(
                f"Sandbox {name} was made with network {recorded} and cannot be moved to {wanted}.",
                reason="NetworkFixed",
                hint="Remove it with state=absent first, or give it another name.",
            )
        siblings = [path for path in directory.parent.glob("*") if path != directory and path.is_dir()]
        reserved = [network for network in map(recorded_network, siblings) if network is not None]
        routes = parse_routes(Path("/proc/net/route").read_text())
        network = choose_network(recorded or wanted, routes, interface_name(name), reserved)
        if recorded is None and not check:
            record = {"layout": 1, "name": name, "network": str(network)}
            write_secret(directory / RECORD, json.dumps(record).encode())
        return network


def refuse_stranger(name: str, directory: Path, seen: Observed) -> None:
    """Names are unique on a machine, whatever directory a sandbox has."""
    if seen.init is not None and Path(seen.directory) != directory:
        raise OperationError(
            f"A sandbox named {name} runs already, with its data in {seen.directory}.",
            reason="NameInUse",
            hint="Give this one another name.",
        )


@contextmanager
def locked(directory: Path, skip: bool, *, patient: bool = False) -> Iterator[None]:
    """One run at a time for each sandbox; a second one fails, or waits if it is ``patient``."""
    if skip:
        yield
        return
    directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(lock_file(directory), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise OperationError(f"Another run is busy with the sandbox in {directory}.", reason="Busy") from error
        yield
    finally:
        os.close(descriptor)


def lock_file(directory: Path) -> Path:
    return directory.with_name(directory.name + ".lock")
