# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Numbers and lists as the REST API writes them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.values import given, infinite, number, words


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5), ("5", 5), (0, 0), (None, None), (True, None), ("x", None), (2.0, 2), ("-1", -1),
        ({"set": True, "infinite": False, "number": 7}, 7),
        ({"set": False, "infinite": False, "number": 7}, None),
        ({"set": True, "infinite": True, "number": 0}, None),
        ({"number": 3}, 3),
        (given(9), 9),
    ],
)  # fmt: skip
def test_number(value: Any, expected: int | None) -> None:
    assert number(value) == expected


def test_infinite() -> None:
    assert infinite({"set": True, "infinite": True})
    assert not infinite(given(1))
    assert not infinite(5)


@pytest.mark.parametrize(
    ("value", "expected"), [(None, []), ("", []), ("a,b", ["a", "b"]), (["a"], ["a"]), ("a,,b", ["a", "b"])]
)
def test_words(value: Any, expected: list[str]) -> None:
    assert words(value) == expected
