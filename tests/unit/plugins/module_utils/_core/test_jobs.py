# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs of both REST shapes, and who holds what."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import jobs
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.jobs import Filter, Job, parse

NEW: dict[str, Any] = {  # v0.0.45
    "job_id": 7,
    "user_name": "ann",
    "user_id": 1001,
    "account": "physics",
    "name": "train",
    "partition": "cpu",
    "job_state": ["RUNNING"],
    "nodes": "cpu-[0-2],gpu-7",
    "submit_time": {"set": True, "infinite": False, "number": 900},
    "start_time": {"set": True, "infinite": False, "number": 1000},
    "end_time": {"set": True, "infinite": False, "number": 4600},
    "time_limit": {"set": True, "infinite": False, "number": 60},
    "requeue": True,
    "batch_flag": True,
    "state_reason": "None",
}
OLD = {**NEW, "job_state": "RUNNING,COMPLETING", "start_time": 1000, "end_time": 4600, "time_limit": {"infinite": True}}


def test_the_newest_shape() -> None:
    job = parse(NEW)
    assert (job.job_id, job.user, job.partition, job.state) == (7, "ann", "cpu", "RUNNING")
    assert job.nodes == {"cpu-0", "cpu-1", "cpu-2", "gpu-7"}
    assert (job.submitted, job.started, job.ends, job.time_limit) == (900, 1000, 4600, 60)
    assert job.seconds_left(1600) == 3000
    assert job.seconds_left(9999) == 0
    assert job.holding
    assert job.requeueable


def test_older_shapes() -> None:
    job = parse(OLD)
    assert (job.states, job.started, job.ends) == (("RUNNING", "COMPLETING"), 1000, 4600)
    assert job.time_limit is None
    assert job.seconds_left(1600) is None  # endless: Slurm gives an end a year away
    assert parse({"job_id": 1, "user_name": "", "user_id": 42}).user == "42"


def test_what_has_not_come_has_no_time() -> None:
    unset = {"set": True, "infinite": False, "number": 0}
    job = parse({**NEW, "job_state": ["PENDING"], "nodes": "", "start_time": unset, "end_time": unset})
    assert (job.started, job.ends, job.holding, job.seconds_left(0)) == (None, None, False, None)


@pytest.mark.parametrize(
    ("states", "nodes", "holds"),
    [
        (["RUNNING"], "a", True),
        (["SUSPENDED"], "a", True),
        (["CANCELLED", "COMPLETING"], "a", True),
        (["PENDING", "CONFIGURING"], "a", True),
        (["COMPLETED"], "a", False),
        (["PENDING"], "", False),
        (["RUNNING"], "", False),
    ],
)
def test_which_jobs_hold_nodes(states: list[str], nodes: str, holds: bool) -> None:
    assert parse({"job_id": 1, "job_state": states, "nodes": nodes}).holding is holds


def test_what_cannot_be_requeued() -> None:
    assert not parse({**NEW, "requeue": False}).requeueable
    assert not parse({**NEW, "batch_flag": False}).requeueable


def test_holders_are_told_with_the_time_they_take() -> None:
    running = parse(NEW)
    ended = parse({**NEW, "job_id": 8, "job_state": ["COMPLETED"]})
    endless = parse({**NEW, "job_id": 3, "time_limit": {"infinite": True}})
    completing = parse({**NEW, "job_id": 4, "job_state": ["CANCELLED", "COMPLETING"]})
    found = jobs.holders([running, ended, endless, completing], {"cpu-0", "cpu-1", "other"})
    assert [job.job_id for job in found] == [3, 4, 7]
    assert jobs.lines(found, {"cpu-0", "cpu-1"}, 1000) == [
        "job 3 of ann on cpu-[0-1] (no time limit)",
        "job 4 of ann on cpu-[0-1] (completing)",
        "job 7 of ann on cpu-[0-1] (1 h left)",
    ]
    assert {node: [job.job_id for job in on] for node, on in jobs.by_node([running, ended, endless]).items()} == {
        node: [3, 7] for node in ("cpu-0", "cpu-1", "cpu-2", "gpu-7")
    }


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (3600, "1 h"), (12000, "3 h 20 min"), (187200, "2 d 4 h"),
     (None, "no limit")],
)  # fmt: skip
def test_durations(seconds: int | None, text: str) -> None:
    assert jobs.duration(seconds) == text


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        (Filter(), True),
        (Filter(job_ids=frozenset({7})), True),
        (Filter(job_ids=frozenset()), False),
        (Filter(users=frozenset({"bob"})), False),
        (Filter(partitions=frozenset({"gpu"})), True),
        (Filter(states=frozenset({"RUNNING"}), nodes=frozenset({"cpu-1"})), True),
        (Filter(nodes=frozenset({"cpu-9"})), False),
    ],
)
def test_filters(wanted: Filter, matches: bool) -> None:
    job = Job(7, "ann", frozenset({"cpu-1"}), ("RUNNING",), partition="cpu,gpu")
    assert wanted.matches(job) is matches


def test_a_job_that_is_over_is_on_no_node() -> None:
    over = Job(7, "ann", frozenset({"cpu-1"}), ("COMPLETED",))
    assert not Filter(nodes=frozenset({"cpu-1"})).matches(over)


def test_the_summary() -> None:
    found = [Job(1, "ann", states=("RUNNING",), partition="cpu"), Job(2, "bob", states=("PENDING",), partition="cpu")]
    assert jobs.summary(found) == {
        "total": 2,
        "by_state": {"PENDING": 1, "RUNNING": 1},
        "by_user": {"ann": 1, "bob": 1},
        "by_partition": {"cpu": 2},
    }


def test_ten_thousand_jobs_are_quick() -> None:
    raw = [{**NEW, "job_id": number, "nodes": f"cpu-[{number}-{number + 3}]"} for number in range(10_000)]
    begun = time.perf_counter()
    found = jobs.parse_all(raw)
    assert len(jobs.holders(found, {"cpu-5000"})) == 4
    assert len(jobs.by_node(found)["cpu-5000"]) == 4
    assert time.perf_counter() - begun < 2  # 0.2 s on an idle machine
