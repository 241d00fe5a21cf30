# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is the same although the API server writes it differently, and what is not."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.compare import changes, contains, quantity

CONTAINERS = {"containers": [{"name": "a", "image": "i", "terminationMessagePath": "/x"}, {"name": "b", "image": "j"}]}


@pytest.mark.parametrize(
    ("live", "wanted"),
    [
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}),
        ({}, {"a": None}),
        ({}, {"labels": {}}),
        ({}, {"volumes": []}),
        ({"emptyDir": {}}, {"emptyDir": {}}),
        ({"x": [1, 2]}, {"x": [1, 2]}),
        ({"x": [{"name": "a", "default": 1}]}, {"x": [{"name": "a"}]}),
        # Merged lists may have items of others, and in another order.
        (CONTAINERS, {"containers": [{"name": "a", "image": "i"}]}),
        (CONTAINERS, {"containers": [{"name": "b", "image": "j"}, {"name": "a"}]}),
        (
            {"ports": [{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}]},
            {"ports": [{"port": 80, "protocol": "UDP"}]},
        ),
        # Quantities, where there are quantities.
        (
            {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
            {"resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}},
        ),
        ({"resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": 1}}}),
        ({"emptyDir": {"sizeLimit": "1Gi"}}, {"emptyDir": {"sizeLimit": "1024Mi"}}),
        ({"hard": {"requests.cpu": "2"}}, {"hard": {"requests.cpu": "2000m"}}),
        # What the server drops when it is empty.
        ({"env": [{"name": "A"}]}, {"env": [{"name": "A", "value": ""}]}),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/x"}]},
            {"volumeMounts": [{"name": "v", "mountPath": "/x", "readOnly": False}]},
        ),
    ],
)
def test_the_same(live: Any, wanted: Any) -> None:
    assert contains(live, wanted)


@pytest.mark.parametrize(
    ("live", "wanted"),
    [
        ({}, {"a": 1}),
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": True}),
        ({"a": 0}, {"a": False}),
        ({"a": {}}, {"a": {"b": 1}}),
        ({"a": "x"}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": "x"}),
        ({"x": [1, 2]}, {"x": [1]}),
        ({"x": [1, 2]}, {"x": [2, 1]}),
        ({"command": ["a", "b"]}, {"command": ["a"]}),
        ({"x": [1]}, {"x": []}),
        # An atomic list belongs to whoever applied it: a further item is a difference.
        ({"tolerations": [{"key": "a"}, {"key": "b"}]}, {"tolerations": [{"key": "a"}]}),
        (CONTAINERS, {"containers": [{"name": "a", "image": "other"}]}),
        (CONTAINERS, {"containers": [{"name": "c"}]}),
        # Order matters where containers start, or variables expand, in order.
        ({"env": [{"name": "A"}, {"name": "B"}, {"name": "C"}]}, {"env": [{"name": "B"}, {"name": "A"}]}),
        (
            {"initContainers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
            {"initContainers": [{"name": "b"}, {"name": "a"}]},
        ),
        # Text that looks like a quantity is text.
        ({"data": {"a": "1"}}, {"data": {"a": "1000m"}}),
        ({"data": {"limits": "1"}}, {"data": {"limits": "1000m"}}),
        ({"annotations": {"x": "1Gi"}}, {"annotations": {"x": "1024Mi"}}),
        ({"resources": {"limits": {"cpu": "1"}}}, {"resources": {"limits": {"cpu": "1001m"}}}),
        # A pointer field that is false is not the same as one that is not set.
        ({}, {"automountServiceAccountToken": False}),
        ({}, {"optional": False}),
    ],
)
def test_not_the_same(live: Any, wanted: Any) -> None:
    assert not contains(live, wanted)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab1", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "env", "name", "containers", "limits", "value"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_values)
def test_everything_contains_itself(value: Any) -> None:
    assert contains(value, value)


@given(
    st.dictionaries(st.text("ab", max_size=2), json_values),
    st.dictionaries(st.text("cd", min_size=1, max_size=2), json_values),
)
def test_more_than_is_wanted_is_no_difference(wanted: dict[str, Any], more: dict[str, Any]) -> None:
    assert contains({**wanted, **more}, wanted)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", Decimal(1)),
        (2, Decimal(2)),
        (0.5, Decimal("0.5")),
        ("500m", Decimal("0.5")),
        ("1Ki", Decimal(1024)),
        ("1k", Decimal(1000)),
        ("1.5Gi", Decimal(3 * 2**29)),
        ("1E", Decimal(10) ** 18),
        ("1e3", Decimal(1000)),
        ("", None),
        ("abc", None),
        ("1Kb", None),
        (True, None),
        (None, None),
        ([], None),
    ],
)
def test_quantities(text: Any, number: Decimal | None) -> None:
    assert quantity(text) == number


def test_changes_names_the_leaves() -> None:
    before = {
        "spec": {"containers": [{"name": "a", "image": "i:1", "args": ["x"]}]},
        "data": {"a.conf": "1", "gone": "x"},
    }
    after = {"spec": {"containers": [{"name": "a", "image": "i:2", "args": ["x", "y"]}]}, "data": {"a.conf": "2"}}
    assert changes(before, after) == {
        "data[a.conf]": ("1", "2"),
        "data.gone": ("x", None),
        "spec.containers[a].args": (["x"], ["x", "y"]),
        "spec.containers[a].image": ("i:1", "i:2"),
    }


@given(json_values, json_values)
def test_there_are_changes_only_where_something_differs(one: Any, other: Any) -> None:
    assert changes(one, one) == {}
    if not changes(one, other):
        assert one == other
