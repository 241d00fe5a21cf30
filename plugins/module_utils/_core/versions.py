# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What differs between the Slurm releases that this collection runs (docs/guides/images.md shows it)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .errors import OperationError

Probe = dict[str, Any]

# data_parser plugins that slurmrestd of each release serves, oldest first (facts: src/plugins/data_parser of each tag).
DATA_PARSERS: dict[tuple[int, int], tuple[str, ...]] = {
    (24, 11): ("v0.0.40", "v0.0.41", "v0.0.42"),
    (25, 5): ("v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43"),
    (25, 11): ("v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44"),
    (26, 5): ("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"),
}
# What our client speaks, newest first.
SPOKEN_PARSERS = ("v0.0.45", "v0.0.44", "v0.0.43", "v0.0.42")

OLDEST = (24, 11)
NEWEST = max(DATA_PARSERS)

# Keys of slurm.conf that an older slurmctld does not know, which it answers with "fatal".
KEYS_SINCE: dict[str, tuple[int, int]] = {
    "metricsauthusers": (25, 11),
    "metricsparameters": (25, 11),
    "metricstype": (25, 11),
}

# Daemons read the state, the database and the requests of so many releases before their own (24.11's release notes).
REACH = 3

PORTS = {"slurmctld": 6817, "slurmd": 6818, "slurmdbd": 6819, "slurmrestd": 6820}


@dataclass(frozen=True, slots=True)
class Version:
    """A Slurm release, as (year, month)."""

    year: int
    month: int

    def __str__(self) -> str:
        return f"{self.year}.{self.month:02d}"

    @property
    def pair(self) -> tuple[int, int]:
        """For comparing."""
        return self.year, self.month

    def at_least(self, year: int, month: int) -> bool:
        """True for this release and later ones."""
        return self.pair >= (year, month)


def parse_version(text: str) -> Version:
    """``26.05``, ``26.05.3`` or ``slurm 26.05.5``; raises OperationError (UnknownVersion)."""
    match = re.search(r"(?<!\d)(\d\d)\.(\d{1,2})(?:\.\d+)?(?!\d)", text, re.ASCII)
    if match is None:
        raise OperationError(
            f"{text!r} is not a Slurm version.", reason="UnknownVersion", hint='Write it as text, such as "26.05".'
        )
    version = Version(int(match[1]), int(match[2]))
    if version.pair < OLDEST:
        raise OperationError(
            f"Slurm {version} is older than the oldest supported {OLDEST[0]}.{OLDEST[1]:02d}.", reason="UnknownVersion"
        )
    return version


def releases_between(old: Version, new: Version) -> int:
    """How many releases ``new`` is after ``old``; there are two a year, in May and November."""
    return _count(new) - _count(old)


def furthest(old: Version) -> Version:
    """The newest release that reads what ``old`` wrote."""
    year, half = divmod(_count(old) + REACH, 2)
    return Version(year, 11 if half else 5)


def _count(version: Version) -> int:
    return 2 * version.year + (version.month > 5)


def data_parsers(version: Version) -> tuple[str, ...]:
    """data_parser plugins of a release, oldest first; those of the newest known one for releases after it."""
    known = [pair for pair in DATA_PARSERS if pair <= version.pair]
    return DATA_PARSERS[max(known)]


def probes(version: Version) -> dict[str, dict[str, Probe]]:
    """startup, liveness and readiness probes of each daemon.

    slurmctld and slurmd answer HTTP from 25.11; /readyz of slurmctld fails while it reconfigures, so it is only for
    readiness. A start may wait for the database or for DNS: five minutes are allowed before the container is killed.
    """
    http = version.at_least(25, 11)
    result = {}
    for daemon, port in PORTS.items():
        live: Probe = {"tcpSocket": {"port": port}}
        ready: Probe = {"tcpSocket": {"port": port}}
        if http and daemon in ("slurmctld", "slurmd"):
            live = {"httpGet": {"path": "/livez", "port": port}}
            ready = {"httpGet": {"path": "/readyz", "port": port}}
        result[daemon] = {
            "startup": {**live, "periodSeconds": 2, "failureThreshold": 150, "timeoutSeconds": 5},
            "liveness": {**live, "periodSeconds": 10, "failureThreshold": 6, "timeoutSeconds": 5},
            "readiness": {**ready, "periodSeconds": 2, "failureThreshold": 3, "timeoutSeconds": 5},
        }
    return result


def features(text: str) -> dict[str, Any]:
    """Everything that templates need to know about a version, as plain values."""
    version = parse_version(text)
    parsers = data_parsers(version)
    modern = version.at_least(25, 11)
    return {
        "version": str(version),
        "http_probes": modern,
        "metrics": modern,
        # Before 25.11 slurmdbd wants its file 0600 and owned by SlurmUser, which a projected volume cannot give.
        "slurmdbd_needs_copy": not modern,
        "slurmdbd_conf_mode": 0o600,
        "topology_yaml": version.at_least(25, 5),
        "external_nodes": version.at_least(25, 5),
        "create_nodes": modern,
        "reconfig_on_restart": modern,
        "restd_openapi_plugins": "slurmctld,slurmdbd,util" if modern else "slurmctld,slurmdbd",
        "data_parser": parsers[-1],
        "data_parsers": list(parsers),
        "probes": probes(version),
    }
