# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of which Slurm cluster is meant."""

from __future__ import annotations


class ModuleDocFragment:
    """Options that name one Slurm cluster on a Kubernetes cluster."""

    DOCUMENTATION = r"""
options:
  namespace:
    description:
      - Namespace that the Slurm cluster lives in.
    type: str
    default: slurm
  name:
    description:
      - Name of the Slurm cluster, with which the names of its objects begin (the variable C(slurm_name) of the roles).
    type: str
    default: slurm
"""
