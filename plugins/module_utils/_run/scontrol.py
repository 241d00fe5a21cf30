# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""scontrol beside slurmctld, for what the REST API of the oldest supported Slurm cannot do."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.exec import exec_in_pod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.controllers import command_pod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run


def scontrol(run: Run, arguments: Sequence[str], what: str, *, reason: str, hint: str) -> None:
    """Run scontrol in the controller's Pod. Raises OperationError with ``reason`` and what scontrol said."""
    namespace = run.params["namespace"]
    pod = command_pod(run.kubernetes, namespace, run.params["name"])
    ended = exec_in_pod(run.kubernetes, namespace, pod, ["scontrol", *arguments], container="slurmctld")
    if ended.rc:
        said = (ended.stderr or ended.stdout).strip()
        raise OperationError(f"scontrol in Pod {namespace}/{pod} could not {what}: {said}.", reason=reason, hint=hint)
