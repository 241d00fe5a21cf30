# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of how slurmrestd is reached."""

from __future__ import annotations


class ModuleDocFragment:
    """Options of modules that talk to Slurm."""

    DOCUMENTATION = r"""
options:
  auth_secret:
    description:
      - Secret with the key C(jwt.key), and C(jwt.jwk) once keys were rotated. By default the name of the cluster with
        C(-auth) appended.
    type: str
  slurm_url:
    description:
      - URL of slurmrestd, such as C(http://slurmrestd.example.org:6820), for where it is not to be reached through the
        API server.
    type: str
  slurm_token:
    description:
      - A token for slurmrestd, such as C(scontrol token) makes, instead of one signed with the key in O(auth_secret).
    type: str
"""
