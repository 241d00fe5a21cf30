# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Jobs as slurmctld knows them: which hold nodes, whose they are, and when they end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from . import hostlist
from .values import number, words

Raw = Mapping[str, Any]

# States in which a job holds its nodes; COMPLETING is a flag beside a state that is over.
HOLDING = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", "SIGNALING", "STAGE_OUT"})


@dataclass(frozen=True, slots=True)
class Job:
    """One job. Times are seconds since 1970, ``time_limit`` is in minutes; None: not known, or no end."""

    job_id: int
    user: str
    nodes: frozenset[str] = frozenset()
    states: tuple[str, ...] = ()
    partition: str = ""
    name: str = ""
    account: str = ""
    submitted: int | None = None
    started: int | None = None
    ends: int | None = None
    time_limit: int | None = None
    requeue: bool = True
    batch: bool = True
    reason: str = ""

    @property
    def state(self) -> str:
        """The base state."""
        return self.states[0] if self.states else "UNKNOWN"

    @property
    def holding(self) -> bool:
        """Whether it is on its nodes now."""
        return bool(self.nodes) and not HOLDING.isdisjoint(self.states)

    @property
    def requeueable(self) -> bool:
        """Whether it can go back into the queue: batch jobs that were not submitted with --no-requeue."""
        return self.requeue and self.batch

    def seconds_left(self, now: float) -> int | None:
        """Seconds until its time is over; None without a limit or before it has begun."""
        if self.ends is None or self.started is None or self.time_limit is None:
            return None
        return max(0, int(self.ends - now))


def parse(raw: Raw) -> Job:
    """One entry of GET jobs/ of Slurm 24.11 to 26.05."""
    limit = number(raw.get("time_limit"))
    return Job(
        job_id=number(raw.get("job_id")) or 0,
        user=str(raw.get("user_name") or raw.get("user_id") or ""),
        nodes=_nodes(str(raw.get("nodes") or "")),
        states=tuple(word.upper() for word in words(raw.get("job_state"))),
        partition=str(raw.get("partition") or ""),
        name=str(raw.get("name") or ""),
        account=str(raw.get("account") or ""),
        # 0 is how Slurm writes a time that has not come.
        submitted=number(raw.get("submit_time")) or None,
        started=number(raw.get("start_time")) or None,
        ends=number(raw.get("end_time")) or None,
        time_limit=limit,
        requeue=bool(raw.get("requeue", True)),
        batch=bool(raw.get("batch_flag", True)),
        reason=str(raw.get("state_reason") or ""),
    )


def parse_all(raw: Iterable[Raw]) -> list[Job]:
    """All jobs of a list."""
    return [parse(item) for item in raw]


# Thousands of jobs share few host lists.
@lru_cache(maxsize=4096)
def _nodes(expression: str) -> frozenset[str]:
    return frozenset(hostlist.expand(expression))


def holders(jobs: Iterable[Job], nodes: Collection[str]) -> list[Job]:
    """The jobs that are on any of these nodes now, by number."""
    wanted = frozenset(nodes)
    return sorted((job for job in jobs if job.holding and not job.nodes.isdisjoint(wanted)), key=lambda job: job.job_id)


def by_node(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    """{node: the jobs that are on it now, by number}."""
    found: dict[str, list[Job]] = {}
    for job in sorted((job for job in jobs if job.holding), key=lambda job: job.job_id):
        for node in job.nodes:
            found.setdefault(node, []).append(job)
    return found


def duration(seconds: int | None) -> str:
    """Seconds for people: 40 s, 12 min, 3 h 20 min, 2 d 4 h; without an end: no limit."""
    if seconds is None:
        return "no limit"
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def lines(jobs: Sequence[Job], nodes: Collection[str], now: float) -> list[str]:
    """What people read of the jobs that hold nodes: number, user, where, how long still."""
    return [
        f"job {job.job_id} of {job.user} on {hostlist.compress(job.nodes & frozenset(nodes), sort=True)}"
        f" ({_left(job, now)})"
        for job in jobs
    ]


def _left(job: Job, now: float) -> str:
    if "COMPLETING" in job.states:
        return "completing"
    left = job.seconds_left(now)
    return "no time limit" if left is None else f"{duration(left)} left"


def plain(job: Job, now: float) -> dict[str, Any]:
    """What modules return of a job that holds nodes."""
    return {
        "job_id": job.job_id,
        "user": job.user,
        "partition": job.partition,
        "state": job.state,
        "time_left": job.seconds_left(now),
    }


def full(job: Job, now: float) -> dict[str, Any]:
    """What job_info returns of a job."""
    return {
        "job_id": job.job_id,
        "name": job.name,
        "user": job.user,
        "account": job.account,
        "partition": job.partition,
        "state": job.state,
        "states": list(job.states),
        "reason": job.reason,
        "nodes": hostlist.compress(job.nodes, sort=True),
        "submitted": job.submitted,
        "started": job.started,
        "ends": job.ends,
        "time_limit": job.time_limit,
        "time_left": job.seconds_left(now) if job.holding else None,
        "requeueable": job.requeueable,
    }


@dataclass(frozen=True, slots=True)
class Filter:
    """Which jobs are meant: all that match everything that is given; None matches every job."""

    job_ids: frozenset[int] | None = None
    users: frozenset[str] | None = None
    partitions: frozenset[str] | None = None
    states: frozenset[str] | None = None
    nodes: frozenset[str] | None = None

    def matches(self, job: Job) -> bool:
        """Whether a job is meant."""
        return (
            (self.job_ids is None or job.job_id in self.job_ids)
            and (self.users is None or job.user in self.users)
            and (self.partitions is None or not self.partitions.isdisjoint(job.partition.split(",")))
            and (self.states is None or not self.states.isdisjoint(job.states))
            and (self.nodes is None or (job.holding and not self.nodes.isdisjoint(job.nodes)))
        )


def summary(found: Sequence[Job]) -> dict[str, Any]:
    """How many jobs there are, by state, user and partition."""
    return {
        "total": len(found),
        "by_state": dict(sorted(Counter(job.state for job in found).items())),
        "by_user": dict(sorted(Counter(job.user for job in found).items())),
        "by_partition": dict(sorted(Counter(job.partition for job in found).items())),
    }
