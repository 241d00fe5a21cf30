# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a look into a Pod says."""

from __future__ import annotations

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import pod_look


@pytest.mark.parametrize(
    ("started", "times", "younger"),
    [
        (5000, ["1000.000", "1100.5", "200.0"], False),  # began at 950.5
        (20000, ["1000.000", "1100.5", "200.0"], True),  # at 1100.5
        (0, ["1000.000", "1100.5", "200.0"], False),
        (20000, [], False),
    ],
)
def test_whether_slurmctld_is_younger_than_its_files(started: int, times: list[str], younger: bool) -> None:
    assert pod_look.is_younger(started, times) is younger
