# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What an archive of a Slurm cluster holds, how it is named, which ones are too many, and where it fits.

An archive is a zip file. Its last member, the manifest, says what the others are; so a file that was cut off has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from .errors import OperationError
from .versions import parse_version

FORMAT = 1
MANIFEST = "manifest.json"
# The parts, in the order in which they are made. The state comes before the database: a job that begins in between is
# then in the database only, where Slurm calls it a runaway and can mend it. The other way round slurmctld would go on
# with numbers of database rows that a restored database gives to other jobs.
STATE, DATABASE, SECRETS, CONFIGURATION = "state.tar.gz", "database.sql.gz", "secrets.json", "configuration.json"
PARTS = (STATE, DATABASE, SECRETS, CONFIGURATION)

_STAMP = "%Y%m%dT%H%M%SZ"
_DATED = r"-(\d{8}T\d{6}Z)\.zip"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.zip", re.ASCII)


@dataclass(frozen=True, slots=True)
class Part:
    """One member: its bytes before encryption, its bytes in the file, and the SHA-256 of the latter."""

    name: str
    size: int
    stored: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Seal:
    """How the parts are encrypted: AES-256-GCM with a key that scrypt makes of passphrase and salt (hex)."""

    salt: str
    n: int = 2**15
    r: int = 8
    p: int = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is in an archive and where it is from; ``slurm`` is the release of slurmctld, ``made`` the time in UTC."""

    id: str
    cluster: str
    namespace: str
    slurm: str
    database: str
    made: str
    parts: tuple[Part, ...] = ()
    seal: Seal | None = None

    def part(self, name: str) -> Part:
        """Return the part of that name."""
        return next(part for part in self.parts if part.name == name)

    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n"


def damaged(path: str, what: str) -> OperationError:
    """The error for an archive that is not whole."""
    return OperationError(
        f"Archive {path} is damaged: {what}.", reason="Damaged", hint="Nothing was changed; take another archive."
    )


def parse_manifest(path: str, text: str | bytes) -> Manifest:
    """Read a manifest; raises OperationError (Damaged, UnknownFormat)."""
    try:
        given = json.loads(text)
        form = given.pop("format")
        if form != FORMAT:
            raise OperationError(
                f"Archive {path} has the format {form}; this collection reads {FORMAT}.",
                reason="UnknownFormat",
                hint="Use the release of the collection that made it, or a newer one.",
            )
        parts = tuple(Part(**part) for part in given.pop("parts"))
        seal = given.pop("seal")
        manifest = Manifest(**given, parts=parts, seal=Seal(**seal) if seal else None)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(path, "its manifest cannot be read") from error
    names = [part.name for part in parts]
    if sorted(names) != sorted(PARTS):
        raise damaged(path, f"its manifest lists {', '.join(names) or 'nothing'}, not {', '.join(PARTS)}")
    return manifest


def check_fits(path: str, manifest: Manifest, cluster: str, release: str) -> None:
    """Refuse an archive of another cluster, or of a release of Slurm that is newer than the one it is to run with."""
    if manifest.cluster != cluster:
        raise OperationError(
            f"Archive {path} is of the cluster {manifest.cluster}, not {cluster}.",
            reason="OtherCluster",
            hint="The cluster's name is in its state and its database; restore it under that name, in any namespace.",
        )
    if parse_version(manifest.slurm).pair > parse_version(release).pair:
        raise OperationError(
            f"Archive {path} is of Slurm {manifest.slurm}; Slurm {release} cannot read what a newer one wrote.",
            reason="NewerRelease",
            hint=f"Restore with slurm_version {parse_version(manifest.slurm)} or newer.",
        )


def moment(stamp: float) -> datetime:
    """The time in UTC of seconds since 1970."""
    return datetime.fromtimestamp(stamp, UTC)


def dated_name(cluster: str, made: datetime) -> str:
    """The name of an archive that was given none; names sort by age."""
    return f"{cluster}-{made.strftime(_STAMP)}.zip"


def check_name(name: str) -> str:
    """Return a given name of an archive, with its ending; raises OperationError (Malformed)."""
    full = name if name.endswith(".zip") else f"{name}.zip"
    if not _NAME.fullmatch(full):
        raise OperationError(
            f"{name!r} is no name for an archive.",
            reason="Malformed",
            hint="Use letters, digits, dots, '_' and '-', and no folder.",
        )
    return full


def draft_name(name: str) -> str:
    """What an archive is called until it is complete."""
    return f".{name}.part"


def outdated(names: Iterable[str], cluster: str, keep: int, coming: str) -> Sequence[str]:
    """Names of archives to remove so that ``keep`` are left, with the coming one; 0 keeps all.

    Only names that dated_name makes count: what a person named is never removed.
    """
    dated = re.compile(re.escape(cluster) + _DATED, re.ASCII)
    if keep < 1 or not dated.fullmatch(coming):
        return []
    found = sorted({name for name in names if dated.fullmatch(name)} - {coming})
    return found[: max(len(found) - (keep - 1), 0)]


def abandoned(names: Iterable[str], cluster: str, now: datetime) -> Sequence[str]:
    """Names of what runs that were killed left behind: begun a day ago, and still not complete."""
    dated = re.compile(rf"\.{re.escape(cluster)}{_DATED}\.part", re.ASCII)
    begun = (now - timedelta(days=1)).strftime(_STAMP)
    return sorted(name for name in names if (found := dated.fullmatch(name)) and found[1] < begun)


def short_manifest(manifest: Manifest) -> Mapping[str, Any]:
    """What modules return of a manifest."""
    return {
        "cluster": manifest.cluster,
        "namespace": manifest.namespace,
        "slurm": manifest.slurm,
        "made": manifest.made,
        "encrypted": manifest.seal is not None,
        "parts": [{"name": part.name, "bytes": part.stored, "sha256": part.sha256} for part in manifest.parts],
    }
