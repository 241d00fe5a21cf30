# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of hypothesis: the same examples in every run of CI, new ones with HYPOTHESIS_PROFILE=search."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No deadline: a loaded machine is not a bug. No database: nothing is written into the checkout.
settings.register_profile(
    "ci", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", deadline=None, database=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
