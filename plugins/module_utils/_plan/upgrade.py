# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What another release of Slurm means for a cluster: the steps in their order, and what stands in the way. Pure.

The order is Slurm's: slurmdbd, slurmctld, slurmrestd, slurmd, login. Each daemon serves older ones, never newer ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .._core import versions
from .._core.versions import Version

SLURMDBD, SLURMCTLD, SLURMREST, NODESET, LOGIN, OUTSIDE = (
    "slurmdbd", "slurmctld", "slurmrestd", "nodeset", "login", "outside",
)  # fmt: skip
ORDER = (SLURMDBD, SLURMCTLD, SLURMREST, NODESET, LOGIN, OUTSIDE)
CONFIGURATION = "configuration"
# These write what an older release cannot read.
KEEPERS = (SLURMDBD, SLURMCTLD)
_EFFECT = {
    SLURMDBD: "converts the database; jobs go on, and accounting of them waits",
    SLURMCTLD: "its Pod is replaced; running jobs go on, nothing new starts for some seconds",
    SLURMREST: "its Pods are replaced one by one",
    NODESET: "each node when its jobs have ended",
    LOGIN: "its Pods are replaced one by one; sessions on them end",
}


@dataclass(frozen=True, slots=True)
class Part:
    """One daemon, or the slurmds of one NodeSet: what runs ({version as it tells it: Pods}), and what its image holds.

    ``coming`` is empty if no image was looked into; ``own_image`` says that it does not follow the cluster's.
    """

    kind: str
    name: str
    running: tuple[tuple[str, int], ...] = ()
    coming: str = ""
    own_image: bool = False

    @property
    def releases(self) -> list[Version]:
        """What runs, oldest first."""
        return sorted({versions.parse_version(text) for text, _count in self.running}, key=lambda item: item.pair)

    @property
    def told(self) -> str:
        """What runs, for people."""
        if len(self.running) == 1:
            return self.running[0][0]
        return ", ".join(f"{text} ({count})" for text, count in self.running) or "not known"


@dataclass(frozen=True, slots=True)
class Room:
    """A volume: what a conversion writes beside what is there, and what is free, in bytes."""

    where: str
    needs: int
    free: int


@dataclass(frozen=True, slots=True)
class Picture:
    """The cluster as seen: its parts in any order, its volumes, how many jobs run, and for which release its files are
    (empty if that is not noted)."""

    wanted: Version
    parts: Sequence[Part]
    rooms: Sequence[Room] = ()
    database_away: bool = False  # the cluster has one of its own, and it does not run
    jobs: int = 0
    files_release: str = ""
    login_by_hand: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One part that changes its release."""

    kind: str
    name: str
    before: str
    after: str
    why: str


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What is to be done in order, what stands in the way, what else is to be known.

    ``oldest`` is the release that everything that runs now can read: that of the files until the end. ``untouched``
    says that nothing has been written yet that the old release cannot read.
    """

    steps: Sequence[Step] = ()
    problems: Sequence[str] = ()
    notes: Sequence[str] = ()
    oldest: Version = field(default_factory=lambda: Version(*versions.OLDEST))
    untouched: bool = True


def plan_upgrade(picture: Picture) -> Upgrade:
    """The upgrade of a cluster to a release, whatever part of it has been done already."""
    parts = sorted(picture.parts, key=lambda part: (ORDER.index(part.kind), part.name))
    steps = [step for part in parts if (step := _step(part, picture.wanted))]
    running = [release for part in parts for release in part.releases]
    oldest = min([*running, picture.wanted], key=lambda item: item.pair)
    going = bool(steps)
    last = min([picture.wanted, *(_after(part, picture.wanted) for part in parts)], key=lambda item: item.pair)
    if picture.files_release and versions.parse_version(picture.files_release).pair < last.pair:
        why = f"may use what Slurm {last} knows; read without a restart"
        steps.append(Step(CONFIGURATION, CONFIGURATION, picture.files_release, str(last), why))
    touched = [release for part in parts if part.kind in KEEPERS for release in part.releases]
    untouched = all(release.pair < picture.wanted.pair for release in touched)
    problems = [line for part in parts for line in _problems(part, picture.wanted)]
    problems += _absent(parts, untouched) if going else []
    if picture.database_away and any(step.kind == SLURMDBD for step in steps):
        problems.append("the database does not run, so slurmdbd could not convert it; mend it first")
    problems += _cramped(picture.rooms) if any(step.kind in KEEPERS for step in steps) else []
    notes = _notes(parts, picture, steps, oldest) if going else []
    return Upgrade(steps, problems, notes, oldest, untouched)


def _step(part: Part, wanted: Version) -> Step | None:
    coming = _after(part, wanted)
    is_new = all(release == coming for release in part.releases)
    # A daemon that does not run is not known to be of the release that is wanted; a NodeSet may have no nodes.
    if part.kind == OUTSIDE or (is_new and (part.running or part.kind == NODESET)):
        return None
    return Step(part.kind, part.name, part.told, part.coming or str(wanted), _EFFECT[part.kind])


def _after(part: Part, wanted: Version) -> Version:
    """The release of a part when the upgrade is done."""
    if part.coming:
        return versions.parse_version(part.coming)
    stays = part.kind == OUTSIDE or part.own_image
    return part.releases[0] if stays and part.releases else wanted


def _problems(part: Part, wanted: Version) -> list[str]:
    found = []
    coming = versions.parse_version(part.coming) if part.coming else None
    if coming and coming != wanted and not part.own_image:
        found.append(f"{part.name}: its image holds Slurm {part.coming}, not {wanted}; correct its tag")
    if coming and part.own_image and not 0 <= versions.releases_between(coming, wanted) <= versions.REACH:
        found.append(f"{part.name}: its own image holds Slurm {part.coming}, which {wanted} does not serve")
    for release in part.releases:
        distance = versions.releases_between(release, wanted)
        if distance < 0 and part.kind in KEEPERS:
            found.append(
                f"{part.name} is {release}: {wanted} cannot read what it has written. The way back is the playbook "
                "restore, with an archive that was made before"
            )
        elif distance < 0 and part.kind == OUTSIDE:
            found.append(f"{part.name} are {release}: no daemon serves newer ones than itself")
        elif distance > versions.REACH:
            found.append(
                f"{part.name} is {release}: {wanted} reads at most {versions.REACH} releases back. Go to "
                f"{versions.furthest(release)} first"
            )
    return found


def _absent(parts: Sequence[Part], untouched: bool) -> list[str]:
    """Keepers of data that do not run; in the middle of an upgrade that is what it may be about to mend."""
    return [
        f"{part.name} does not run, so its version is not known; mend it first"
        for part in parts
        if part.kind in KEEPERS and not part.running and untouched
    ]


def _cramped(rooms: Sequence[Room]) -> list[str]:
    return [
        f"{room.where} has {_size(room.free)} free; a conversion writes up to {_size(room.needs)} beside what is there"
        for room in rooms
        if room.free < room.needs
    ]


def _notes(parts: Sequence[Part], picture: Picture, steps: Sequence[Step], oldest: Version) -> list[str]:
    wanted = picture.wanted
    found = [f"jobs that run: {picture.jobs}; they go on"] if picture.jobs else []
    kept = [name for name in versions.data_parsers(oldest) if name in versions.data_parsers(wanted)]
    gone = [name for name in versions.data_parsers(oldest) if name not in kept]
    if gone and any(step.kind == SLURMREST for step in steps):
        found.append(
            f"slurmrestd no longer answers under {', '.join(gone)}; clients of those go to "
            f"{', '.join(kept) or versions.data_parsers(wanted)[0]} first"
        )
    if oldest.pair < wanted.pair:
        found.append(f"slurm.conf keeps to what {oldest} knows until every daemon is {wanted}")
    for part in parts:
        if part.own_image and _after(part, wanted) != wanted:
            found.append(f"{part.name} stays at {_after(part, wanted)}, as its own image says")
        if part.kind == OUTSIDE and any(release != wanted for release in part.releases):
            found.append(f"{part.name} ({part.told}) are for you to upgrade, after slurmctld")
    if picture.login_by_hand and any(step.kind == LOGIN for step in steps):
        found.append("login Pods are replaced when somebody deletes them (login_update_strategy is OnDelete)")
    return found


def _size(number: int) -> str:
    return f"{number / 2**30:.1f} GiB" if number >= 2**30 else f"{number / 2**20:.0f} MiB"
