# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of waiting."""

from __future__ import annotations


class ModuleDocFragment:
    """Options of modules that wait."""

    DOCUMENTATION = r"""
options:
  wait:
    description:
      - Whether to wait until what was asked for is true, and not only accepted.
      - The wait ends early, as a failure, when it can be seen that it would never end well.
    type: bool
    default: false
  wait_timeout:
    description:
      - Seconds to wait at most. When they are over, the module fails and says what is still to come. What was done is
        not undone.
    type: int
    default: 300
  wait_sleep:
    description:
      - Longest pause, in seconds, between two looks. The first looks follow each other faster.
    type: int
    default: 2
"""
