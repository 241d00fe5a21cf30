# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""A Pod for a moment, with a program that is needed beside a volume or a database.

It is made by a Job, which ends by itself, whatever becomes of the run that made it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.names import DOMAIN
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.pods import is_ready
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import EVENT, JOB, POD
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.trouble import pod_troubles
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.wait import Seen, wait_until

CONTAINER = "tool"
SLURM_USER = 401  # of the images of Slurm


@contextmanager
def tool_pod(
    run: Run,
    stem: str,
    image: str,
    user: int,
    volumes: Sequence[Mapping[str, Any]],
    mounts: Sequence[Mapping[str, Any]],
    timeout: float,
    *,
    beside: Mapping[str, str] | None = None,
    node: str = "",
) -> Iterator[str]:
    """Yield the name of a Pod that waits for commands; gone afterwards, or ``timeout`` seconds after a killed run.

    ``beside`` are further containers, {name: image}; ``node`` is the Node that it has to be on.
    """
    namespace = run.params["namespace"]
    job = _job(run, stem, {CONTAINER: image, **(beside or {})}, user, volumes, mounts, timeout)
    if node:
        job["spec"]["template"]["spec"]["nodeName"] = node
    made = run.kubernetes.create(job, namespace)
    name, uid = made["metadata"]["name"], made["metadata"]["uid"]
    try:
        yield _wait(run, namespace, name, timeout)
    finally:
        # What went wrong before is what is to be told; the Job ends by itself in any case.
        with suppress(OperationError):
            run.kubernetes.delete(JOB, namespace, name, uid=uid)


def end_left(run: Run, stem: str) -> None:
    """Take away what killed runs for this cluster left: a Pod holds its volume until its time is over."""
    namespace = run.params["namespace"]
    ours = re.compile(rf"{re.escape(run.params['name'])}-{stem}-[a-z0-9]+")
    for job in run.kubernetes.list(JOB, namespace, labels=f"{DOMAIN}/tool={stem}"):
        if ours.fullmatch(job["metadata"]["name"]):
            run.kubernetes.delete(JOB, namespace, job["metadata"]["name"], uid=job["metadata"]["uid"])


def _wait(run: Run, namespace: str, job: str, timeout: float) -> str:
    found: list[Mapping[str, Any]] = []

    def look() -> Seen:
        found[:] = run.kubernetes.list(POD, namespace, labels=f"job-name={job}")
        if found and is_ready(found[0]):
            return Seen()
        events = run.kubernetes.list(EVENT, namespace) if found else []
        return Seen([f"Pod of Job {namespace}/{job}"], [line for pod in found for line in pod_troubles(pod, events)])

    wait_until(look, f"Starting Job {namespace}/{job}", timeout=timeout, interval=2, progress=run.progress)
    return str(found[0]["metadata"]["name"])


def _job(
    run: Run,
    stem: str,
    images: Mapping[str, str],
    user: int,
    volumes: Sequence[Mapping[str, Any]],
    mounts: Sequence[Mapping[str, Any]],
    timeout: float,
) -> dict[str, Any]:
    labels = {"app.kubernetes.io/managed-by": "slurm_ops.kubernetes", f"{DOMAIN}/tool": stem}
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "imagePullSecrets": run.params["image_pull_secrets"],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": user,
            "runAsGroup": user,
            "fsGroup": user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": container,
                "image": image,
                "imagePullPolicy": run.params["image_pull_policy"],
                "command": ["sleep", "infinity"],
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": list(mounts),
            }
            for container, image in images.items()
        ],
        "volumes": list(volumes),
        **run.params["pod_spec"],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": f"{run.params['name']}-{stem}-", "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": int(timeout) + 60,
            "ttlSecondsAfterFinished": 60,
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
