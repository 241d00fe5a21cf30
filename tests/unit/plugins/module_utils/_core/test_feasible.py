# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Nodes a NodeSet can use: selector, affinity, taints, state, and whose they are."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.feasible import (
    chosen_by_label,
    why_infeasible,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import NODESET, kubernetes_node

SELECTOR = {NODESET: "h100", "gpu": "h100"}


def why(
    labels: dict[str, str] | None = None, *, spec: dict[str, Any] | None = None, ready: bool = True, **of: Any
) -> str:
    raw = {
        "metadata": {"name": "gpu-1", "labels": {"gpu": "h100"} if labels is None else labels},
        "spec": of,
        "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
    }
    return why_infeasible(kubernetes_node(raw), {"nodeSelector": SELECTOR, **(spec or {})}, "h100")


def test_labels_choose_the_nodes() -> None:
    assert chosen_by_label({"nodeSelector": SELECTOR}, "h100")
    assert not chosen_by_label({"nodeSelector": SELECTOR}, "cpu")
    assert not chosen_by_label({}, "cpu")


def test_a_node_that_will_do() -> None:
    assert why() == ""
    assert why({"gpu": "h100", NODESET: "h100"}) == ""


def test_why_not() -> None:
    assert why({"gpu": "h100", NODESET: "cpu"}) == "belongs to NodeSet cpu"
    assert why({}) == "lacks the label gpu=h100"
    assert why(ready=False) == "is not Ready"
    assert why(unschedulable=True) == "is cordoned"


TAINT = {"key": "maintenance", "value": "true", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("taint", "tolerations", "fits"),
    [
        (TAINT, [], False),
        (TAINT, [{"operator": "Exists"}], True),
        (TAINT, [{"key": "maintenance", "operator": "Exists"}], True),
        (TAINT, [{"key": "maintenance", "operator": "Exists", "effect": "NoExecute"}], False),
        (TAINT, [{"key": "maintenance", "value": "true", "effect": "NoSchedule"}], True),
        (TAINT, [{"key": "maintenance", "operator": "Equal", "value": "no"}], False),
        (TAINT, [{"key": "other", "operator": "Exists"}], False),
        ({"key": "busy", "effect": "PreferNoSchedule"}, [], True),
        ({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, [], True),
        ({"key": "plain", "effect": "NoExecute"}, [{"key": "plain"}], True),
    ],
)
def test_taints(taint: dict[str, str], tolerations: list[dict[str, str]], fits: bool) -> None:
    assert (why(spec={"tolerations": tolerations}, taints=[taint]) == "") is fits


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ({"key": "gpu", "operator": "In", "values": ["h100", "h200"]}, True),
        ({"key": "gpu", "operator": "NotIn", "values": ["h100"]}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "zone", "operator": "Exists"}, False),
        ({"key": "zone", "operator": "DoesNotExist"}, True),
        ({"key": "disks", "operator": "Gt", "values": ["3"]}, True),
        ({"key": "disks", "operator": "Lt", "values": ["3"]}, False),
        ({"key": "gpu", "operator": "Gt", "values": ["3"]}, False),
        ({"key": NODESET, "operator": "In", "values": ["h100"]}, True),
    ],
)
def test_affinity(expression: dict[str, Any], fits: bool) -> None:
    terms = [{"matchExpressions": [expression]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    spec = {"affinity": {"nodeAffinity": required}}
    found = why({"gpu": "h100", "disks": "4"}, spec=spec)
    assert found == ("" if fits else "does not match the required node affinity")


def test_terms_of_affinity_are_alternatives() -> None:
    terms = [{}, {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    assert why(spec={"affinity": {"nodeAffinity": required}}) == ""
    required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = terms[:1]
    assert why(spec={"affinity": {"nodeAffinity": required}}) != ""
