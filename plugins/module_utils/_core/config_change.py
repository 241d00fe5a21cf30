# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Two sets of Slurm's configuration files: what differs, what each difference needs, and which jobs it would end.

Since 23.11 a reconfigure starts new daemons with the new files, so that almost everything takes effect by it. What does
not is in the tables here, from slurm.conf(5) and scontrol(1): ports and the rest of listening, authentication, and what
the state of the running slurmctld hangs on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from . import hostlist, slurm_conf
from .errors import OperationError
from .slurm_conf import Line

SLURMCTLD, SLURMD, SLURMRESTD, SACKD = "slurmctld", "slurmd", "slurmrestd", "sackd"
HIDDEN = "(hidden)"
SLURM_CONF = "slurm.conf"

# Changed under a running slurmctld these lose what it knows, or end it.
_NEVER = {
    "authtype": "every daemon must have ended before it changes",
    "clustername": "slurmctld does not start with the state of a cluster of another name",
    "credtype": "every daemon must have ended before it changes",
    "selecttype": "slurmctld would lose all jobs",
    "statesavelocation": "slurmctld would forget all jobs and nodes",
}
# Whom a reconfigure does not reach, by the key that has changed. slurmrestd takes no part in one.
_RESTART: dict[str, tuple[str, ...]] = {
    "authinfo": (SLURMCTLD, SLURMRESTD, SLURMD, SACKD),
    "authaltparameters": (SLURMCTLD, SLURMRESTD),
    "authalttypes": (SLURMCTLD, SLURMRESTD),
    "slurmctldport": (SLURMCTLD, SLURMRESTD, SLURMD, SACKD),
    "slurmdport": (SLURMCTLD, SLURMD),
    **dict.fromkeys(
        (
            "accountingstoragehost", "accountingstorageport", "accountingstoragetype", "communicationparameters",
            "dataparserparameters", "debugflags", "hashplugin", "httpparsertype", "messagetimeout", "plugindir",
            "slurmctldhost", "slurmuser", "tcptimeout", "tlsparameters", "tlstype", "urlparsertype",
        ),
        (SLURMRESTD,),
    ),
}  # fmt: skip
# Words of CommunicationParameters that say where daemons listen.
_LISTENING = frozenset({"disableipv4", "enableipv6", "noctldinaddrany", "noinaddrany"})
_SETTINGS = (SLURM_CONF, "cgroup.conf", "gres.conf")  # files of keys and values
_SECRET = re.compile(r"(?i)\b(\w*pass(?:word)?)(\s*=\s*)(\"[^\"]*\"|\S+)")

_KEY_FILE = re.compile(r"(?im)^\s*AuthAltParameters\s*=.*\bjwks=/etc/slurm/([^,\s]+)")

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """One setting, record or whole file that differs; None where it is not."""

    file: str
    what: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        """For people."""
        if self.before is None:
            return f"{self.what} is new"
        if self.after is None:
            return f"{self.what} goes"
        return f"{self.what} changes"


def changes(old: Files, new: Files) -> list[Change]:
    """What differs, file by file; of files of settings key by key, records (NodeName, PartitionName) by their name.

    Files of other kinds, and those that only look different (comments, order), are one change each, without the text.
    """
    found: list[Change] = []
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        inside: list[Change] = []
        if name in _SETTINGS and before is not None and after is not None:
            try:
                inside = [_change(name, *entry) for entry in slurm_conf.differences(before, after)]
            except OperationError:
                inside = []  # the second slurmctld says what it thinks of such a file
        whole = Change(name, name, None if before is None else "present", None if after is None else "present")
        found += inside or [whole]
    return found


def _change(name: str, what: str, before: str | None, after: str | None) -> Change:
    if _SECRET.fullmatch(f"{what}=x"):
        before, after = (None if value is None else HIDDEN for value in (before, after))
    return Change(name, what, before, after)


def without_secrets(text: str) -> str:
    """A file's text as a diff may show it."""
    return _SECRET.sub(rf"\1\2{HIDDEN}", text)


def sha256(text: str) -> str:
    """The hash by which a file is recognised in a Pod."""
    return hashlib.sha256(text.encode()).hexdigest()


def without(files: Files, others: Files) -> dict[str, str]:
    """The files whose names are not among the others."""
    return {name: text for name, text in files.items() if name not in others}


def absent_keys(files: Files, there: Iterable[str]) -> list[str]:
    """Files of keys that slurm.conf names and the Pod does not have: slurmctld would not start without them."""
    return sorted(set(_KEY_FILE.findall(files.get(SLURM_CONF, ""))) - set(there))


# --- what a change needs --------------------------------------------------------------------------------------------


def impossible(found: Iterable[Change]) -> list[str]:
    """What cannot be changed while there is a slurmctld, with the reason."""
    return [
        f"{item.what} (from {item.before or 'nothing'} to {item.after or 'nothing'}): {_NEVER[item.what.lower()]}"
        for item in found
        if item.file == SLURM_CONF and item.what.lower() in _NEVER
    ]


def restarts(found: Iterable[Change]) -> dict[str, list[str]]:
    """{daemon: keys that a reconfigure does not bring to it}, in the order in which daemons are to be restarted."""
    needed: dict[str, list[str]] = {}
    for item in found:
        if item.file != SLURM_CONF:
            continue
        daemons = _RESTART.get(item.what.lower(), ())
        if item.what.lower() == "communicationparameters":
            changed = _words(item.before) ^ _words(item.after)
            daemons = (SLURMCTLD, SLURMRESTD, SLURMD) if changed & _LISTENING else (SLURMRESTD,)
        for daemon in daemons:
            needed.setdefault(daemon, []).append(item.what)
    return {daemon: needed[daemon] for daemon in (SLURMCTLD, SLURMRESTD, SLURMD, SACKD) if daemon in needed}


def _words(value: str | None) -> frozenset[str]:
    return frozenset(word.strip().lower() for word in (value or "").split(",")) - {""}


# --- what goes, and who is on it ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gone:
    """What slurm.conf has no longer. slurmctld ends the jobs that need it."""

    partitions: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    gres: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.partitions or self.nodes or self.gres)


def gone(old: Files, new: Files) -> Gone:
    """What the new slurm.conf lacks; nothing if one of the two cannot be read."""
    try:
        before, after = (slurm_conf.parse(files.get(SLURM_CONF, "")) for files in (old, new))
    except OperationError:
        return Gone()
    return Gone(
        frozenset(_named(before, "partitionname")) - frozenset(_named(after, "partitionname")),
        configured_nodes(before) - configured_nodes(after),
        _gres(before) - _gres(after),
    )


def summary(inside: Sequence[Change], limit: int = 3) -> str:
    """What changes in one file, for people."""
    if inside[0].what == inside[0].file:
        return "not there yet" if inside[0].before is None else "as asked"
    more = [f"{len(inside) - limit} more"] if len(inside) > limit else []
    return "; ".join([*map(str, inside[:limit]), *more])


def partitions(text: str) -> frozenset[str]:
    """The partitions of a slurm.conf."""
    return frozenset(_named(slurm_conf.parse(text), "partitionname"))


def configured_nodes(lines: Iterable[Line]) -> frozenset[str]:
    """The nodes of a slurm.conf."""
    return frozenset(node for names in _named(lines, "nodename") for node in hostlist.expand(names))


def nodes(text: str) -> frozenset[str]:
    """The nodes of a slurm.conf; none of one that cannot be read."""
    try:
        return configured_nodes(slurm_conf.parse(text))
    except OperationError:
        return frozenset()


def node_limit(text: str) -> int | None:
    """MaxNodeCount of a slurm.conf."""
    values = [line.value for line in slurm_conf.parse(text) if line.key.lower() == "maxnodecount"]
    return int(values[-1]) if values and values[-1].isdigit() else None


def _named(lines: Iterable[Line], key: str) -> list[str]:
    return [line.value for line in lines if line.key.lower() == key and line.value.upper() != "DEFAULT"]


def _gres(lines: Iterable[Line]) -> frozenset[str]:
    return frozenset(word for line in lines if line.key.lower() == "grestypes" for word in _words(line.value))


# What squeue is asked for: number, partitions, state, user, nodes, nodes that it insists on, GRES.
QUEUE_FORMAT = "%A|%P|%T|%u|%N|%n|%b"


@dataclass(frozen=True, slots=True)
class Queued:
    """A job that waits or runs."""

    job_id: int
    partitions: frozenset[str]
    state: str
    user: str
    nodes: frozenset[str]
    gres: frozenset[str]


def parse_queue(text: str) -> list[Queued]:
    """Jobs, as squeue writes them in QUEUE_FORMAT; those of an array that wait are one."""
    found = {}
    for line in text.splitlines():
        parts = line.split("|")
        if len(parts) != 7 or not parts[0].isdigit():
            continue
        job, names, state, user, *nodes, gres = parts
        found[job] = Queued(
            int(job),
            frozenset(names.split(",")),
            state,
            user,
            frozenset(node for expression in nodes if _is_given(expression) for node in hostlist.expand(expression)),
            frozenset(word.lower() for word in re.findall(r"gres[/:](\w+)", gres)),
        )
    return sorted(found.values(), key=lambda item: item.job_id)


def _is_given(expression: str) -> bool:
    return bool(expression) and not expression.startswith("(")


def victims(going: Gone, jobs: Iterable[Queued]) -> dict[int, str]:
    """{job: what it would lose, for people} of jobs that slurmctld would end."""
    found = {}
    for job in jobs:
        lost = []
        if job.partitions <= going.partitions:
            lost.append(f"partition {','.join(sorted(job.partitions))}")
        if nodes := job.nodes & going.nodes:
            lost.append(f"node {hostlist.compress(nodes, sort=True)}")
        if gres := job.gres & going.gres:
            lost.append(f"GRES {','.join(sorted(gres))}")
        if lost:
            found[job.job_id] = f"job {job.job_id} of {job.user} ({job.state}) in {' and '.join(lost)}"
    return found
