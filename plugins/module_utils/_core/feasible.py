# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Whether a NodeSet of kind node could use a Node now: the rules of the scheduler that say no for good, and ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .snapshot import NODESET, KubernetesNode

Raw = Mapping[str, Any]

# Taints that say no more than what a Node's conditions and cordon say; a DaemonSet tolerates them anyway.
_OWN_TAINTS = "node.kubernetes.io/"


def chosen_by_label(pod_spec: Raw, nodeset: str) -> bool:
    """Whether a NodeSet's Nodes are those that carry its label, so that labelling them is scaling it."""
    return (pod_spec.get("nodeSelector") or {}).get(NODESET) == nodeset


def why_infeasible(node: KubernetesNode, pod_spec: Raw, nodeset: str) -> str:
    """Why a NodeSet cannot use a Node, for people; empty if it can."""
    owner = node.labels.get(NODESET)
    if owner and owner != nodeset:
        return f"belongs to NodeSet {owner}"
    labels = {**node.labels, NODESET: nodeset}
    for key, value in sorted((pod_spec.get("nodeSelector") or {}).items()):
        if labels.get(key) != value:
            return f"lacks the label {key}={value}"
    if not _affine(pod_spec, labels, node.name):
        return "does not match the required node affinity"
    if not node.ready:
        return "is not Ready"
    if node.cordoned:
        return "is cordoned"
    tolerations = pod_spec.get("tolerations") or ()
    for taint in node.taints:
        if not _tolerated(taint, tolerations):
            return f"has the taint {taint}, which is not tolerated"
    return ""


def _tolerated(taint: str, tolerations: Sequence[Raw]) -> bool:
    subject, _colon, effect = taint.rpartition(":")
    key, _equals, value = subject.partition("=")
    if effect == "PreferNoSchedule" or key.startswith(_OWN_TAINTS):
        return True
    return any(
        item.get("effect") in (None, "", effect)
        and (
            (item.get("operator") == "Exists" and item.get("key") in (None, "", key))
            or (
                (item.get("operator") in (None, "", "Equal") and item.get("key") == key)
                and str(item.get("value") or "") == value
            )
        )
        for item in tolerations
    )


def _affine(pod_spec: Raw, labels: Mapping[str, str], name: str) -> bool:
    """One of the terms must match, each with all of its expressions; a term without any matches nothing."""
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(
        (term.get("matchExpressions") or term.get("matchFields"))
        and _all_match(term.get("matchExpressions") or (), labels)
        and _all_match(term.get("matchFields") or (), {"metadata.name": name})
        for term in required.get("nodeSelectorTerms") or ()
    )


def _all_match(expressions: Iterable[Raw], labels: Mapping[str, str]) -> bool:
    return all(_matches(item, labels.get(item["key"])) for item in expressions)


def _matches(expression: Raw, value: str | None) -> bool:
    operator = expression["operator"]
    values: Sequence[str] = expression.get("values") or []
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    try:  # Gt, Lt
        left, right = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right
