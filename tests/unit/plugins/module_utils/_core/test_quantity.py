# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes quantities, exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import quantity
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        (4, 4),
        (0.5, Fraction(1, 2)),
        ("500m", Fraction(1, 2)),
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1.5Gi", 1610612736),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("2Ei", 2 * 2**60),
        ("100u", Fraction(1, 10000)),
        ("5n", Fraction(1, 200000000)),
        ("-1", -1),
        ("+1", 1),
        ("1e-3", Fraction(1, 1000)),
    ],
)
def test_parse(text: Any, value: Any) -> None:
    assert quantity.parse(text) == value


@pytest.mark.parametrize("text", ["", "1.2.3", "1Kib", "Gi", "1 Gi", "1g", "0x1", "1e", True, "nan", "\u0661", "1e999"])
def test_parse_refuses(text: Any) -> None:
    with pytest.raises(OperationError) as caught:
        quantity.parse(text)
    assert caught.value.reason == "InvalidQuantity"


def test_conversions_round_as_their_user_wants() -> None:
    assert quantity.whole_bytes("1.0001") == 2
    assert quantity.mebibytes("16Gi") == 16384
    assert quantity.mebibytes("1G") == 953
    assert quantity.millicores("0.0005") == 1
    assert quantity.millicores("1500m") == 1500
    assert quantity.whole_cpus("3900m") == 3
    assert quantity.whole_cpus("100m") == 1


@given(st.integers(0, 10**15), st.sampled_from(["", "k", "M", "G", "Ki", "Mi", "Gi", "m", "u", "n"]))
def test_no_digit_is_lost(number: int, suffix: str) -> None:
    factor = quantity.parse(f"1{suffix}")
    assert quantity.parse(f"{number}{suffix}") == number * factor
