# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""How each kind of action of a reconciliation is carried out: in bulk on Slurm's side, side by side on Kubernetes'."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import drains
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.kubernetes_objects import SLURMD
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import SlurmNode, pair, snapshot
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.exec import exec_in_pod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import KUBERNETES_NODE, POD
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.to_kubernetes import Change
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.to_slurm import RESTARTED
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import do_each
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient

STRATEGIC = "application/strategic-merge-patch+json"  # merges lists of conditions by their type


class Actor:
    """Carries out actions of one stage; each is marked as done as soon as it is."""

    def __init__(self, kubernetes: KubernetesClient, namespace: str, slurm: Callable[[], SlurmClient]) -> None:
        self._kubernetes = kubernetes
        self._namespace = namespace
        self._slurm = slurm

    def act(self, actions: Sequence[Action]) -> None:
        """Do them. Raises OperationError; what is not marked was not done."""
        stage = actions[0].stage
        if stage == "drain":
            self._drain(actions)
        elif stage == "undrain":
            self._undrain(actions)
        elif stage == "forget":
            self._forget(actions)
        elif stage == "restart":
            self._restart_strangers(actions)
        elif stage in ("labels", "pods"):
            self._spread(self._change_pod, actions)
        else:
            self._spread(self._change_node, actions)

    def _drain(self, actions: Sequence[Action]) -> None:
        """Only what nobody has drained meanwhile: our reason would take a person's place and be taken back one day."""
        now = self._nodes()
        free = [item for item in actions if item.target in now and not _is_taken(now[item.target])]
        for reason in dict.fromkeys(action.why for action in free):
            same = [action for action in free if action.why == reason]
            self._slurm().update_nodes((action.target for action in same), state="DRAIN", reason=reason)
            _done(same)

    def _undrain(self, actions: Sequence[Action]) -> None:
        """Only what nobody has touched meanwhile: Slurm cannot compare and set, so look at the last moment."""
        now = self._nodes()
        still = [item for item in actions if item.target in now and now[item.target].reason == item.subject.reason]
        self._slurm().update_nodes((action.target for action in still), state="UNDRAIN")
        _done(still)

    def _forget(self, actions: Sequence[Action]) -> None:
        """Only what has nothing running and was not drained by somebody else meanwhile."""
        now = self._nodes()
        known = [action for action in actions if action.target in now]
        still = [
            action
            for action in known
            if not now[action.target].state.busy
            and now[action.target].reason.startswith((drains.OWNER, action.subject.reason or drains.OWNER))
        ]
        self._slurm().delete_nodes(action.target for action in still)
        _done(still)

    def _nodes(self) -> Mapping[str, SlurmNode]:
        return snapshot(slurm_nodes=self._slurm().nodes().items).slurm_nodes

    def _restart_strangers(self, actions: Sequence[Action]) -> None:
        """Only slurmds that Slurm does not know now: no job can be on them."""
        now = self._nodes()
        addresses = {node.address for node in now.values()}
        known = {pod.name for pod in pair(now.values(), [action.subject for action in actions]).values()}
        self._spread(
            self._restart,
            [item for item in actions if item.subject.name not in known and item.subject.address not in addresses],
        )

    def _restart(self, action: Action) -> None:
        """End the container's first process. Kubernetes starts it again in the same Pod, which keeps the annotation."""
        pod = action.subject
        when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._patch_pod(pod.name, {"metadata": {"uid": pod.uid, "annotations": {RESTARTED: when}}})
        try:
            exec_in_pod(self._kubernetes, self._namespace, pod.name, ["sh", "-c", "kill 1"], container=SLURMD)
        except OperationError as error:
            # The connection may end with the container. Whether it helped is seen by whether Slurm knows the node.
            if error.reason != "Unreachable":
                raise

    def _change_pod(self, action: Action) -> None:
        change: Change = action.subject
        metadata: dict[str, Any] = {}
        if change.annotations:
            metadata["annotations"] = dict(change.annotations)
        if change.labels:
            metadata["labels"] = dict(change.labels)
        if metadata:
            self._patch_pod(change.name, {"metadata": metadata})
        if change.conditions or change.gone:
            self._patch_pod(change.name, _conditions(change), content_type=STRATEGIC, subresource="status")

    def _patch_pod(self, name: str, change: Mapping[str, Any], **more: Any) -> None:
        self._kubernetes.patch(POD, self._namespace, name, change, **more)

    def _change_node(self, action: Action) -> None:
        change: Change = action.subject
        body: dict[str, Any] = {"metadata": {"annotations": dict(change.annotations)}}
        if change.unschedulable is not None:
            body["spec"] = {"unschedulable": change.unschedulable or None}
        if change.conditions or change.gone:
            status = _conditions(change)
            self._kubernetes.patch(
                KUBERNETES_NODE, None, change.name, status, content_type=STRATEGIC, subresource="status"
            )
        self._kubernetes.patch(KUBERNETES_NODE, None, change.name, body)

    def _spread(self, work: Callable[[Action], None], actions: Sequence[Action]) -> None:
        do_each(self._kubernetes, _unless_gone(work), actions)


def _is_taken(node: SlurmNode) -> bool:
    return drains.is_foreign(node.state, node.reason)


def _unless_gone(work: Callable[[Action], None]) -> Callable[[Action], bool]:
    """False for what is not there any more, or is another object of the same name: the next pass sees what is."""

    def attempt(action: Action) -> bool:
        try:
            work(action)
        except ApiError as error:
            if error.status in (404, 409):
                return False
            raise
        return True

    return attempt


def _conditions(change: Change) -> dict[str, Any]:
    when = datetime.fromtimestamp(change.since, UTC) if change.since else datetime.now(UTC)
    time = when.strftime("%Y-%m-%dT%H:%M:%SZ")
    wanted: list[dict[str, str]] = [
        {"type": name, "status": "True", "reason": "Slurm", "message": text, "lastTransitionTime": time}
        for name, text in change.conditions.items()
    ]
    return {"status": {"conditions": wanted + [{"$patch": "delete", "type": name} for name in change.gone]}}


def _done(actions: Iterable[Action]) -> None:
    for action in actions:
        action.done = True
