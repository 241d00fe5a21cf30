# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of what modules can do: check mode, diff, idempotence, action group."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragments: for modules that change something, and INFO_MODULE for those that only read."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
    details:
      - Nothing is written. What the API server would do is asked for by its own dry run.
  diff_mode:
    description: Returns details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
    support: full
    details:
      - Values of Secrets are never shown.
  idempotent:
    description:
      - When run twice in a row outside C(check_mode), with the same arguments, the second invocation indicates no
        change.
      - This assumes that the system controlled by the module has not changed in a relevant way.
    support: full
    details:
      - The second invocation makes no call that could write.
  action_group:
    description: Use C(group/slurm_ops.kubernetes.slurm) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - slurm_ops.kubernetes.slurm
"""

    INFO_MODULE = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
    details:
      - This module only reads.
  diff_mode:
    description: Returns details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
    support: N/A
    details:
      - This module only reads.
  idempotent:
    description:
      - When run twice in a row outside C(check_mode), with the same arguments, the second invocation indicates no
        change.
      - This assumes that the system controlled by the module has not changed in a relevant way.
    support: full
    details:
      - This module only reads.
  action_group:
    description: Use C(group/slurm_ops.kubernetes.slurm) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - slurm_ops.kubernetes.slurm
"""
