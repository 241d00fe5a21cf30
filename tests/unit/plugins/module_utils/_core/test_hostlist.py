# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Host lists, compared with what scontrol of Slurm 26.05 printed; tests/live/test_slurm_client.py asks it again."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.hostlist import MAX_RANGE, compress, expand

EXPANDED = [
    ("", []),
    (" , ", []),
    ("login", ["login"]),
    ("a,b c\nd", ["a", "b", "c", "d"]),
    ("a,,b", ["a", "b"]),
    ("a[1-3]", ["a1", "a2", "a3"]),
    ("a[1,1,2]", ["a1", "a1", "a2"]),
    ("a[01-03]", ["a01", "a02", "a03"]),
    ("a[1-03]", ["a1", "a2", "a3"]),  # the lower end's width counts
    ("a[9-010]", ["a9", "a10"]),
    ("a[08-11]", ["a08", "a09", "a10", "a11"]),
    ("a[99-101]", ["a99", "a100", "a101"]),
    ("a[099-101]", ["a099", "a100", "a101"]),
    ("[1-3]", ["1", "2", "3"]),
    ("5", ["5"]),
    ("a[1-2].b", ["a1.b", "a2.b"]),
    ("a[1-2],b[3]x", ["a1", "a2", "b3x"]),
    ("a[1-2][3-4]", ["a13", "a14", "a23", "a24"]),
    ("r[1-2]n[3-4]", ["r1n3", "r1n4", "r2n3", "r2n4"]),
    ("r[1-2]n[3-4]x", ["r1n3x", "r1n4x", "r2n3x", "r2n4x"]),
    # Slurm's own order of three dimensions: the last runs fastest, then the first.
    ("a[0-1]b[0-1]c[0-1]", ["a0b0c0", "a0b0c1", "a1b0c0", "a1b0c1", "a0b1c0", "a0b1c1", "a1b1c0", "a1b1c1"]),
    ("a[99999999998-99999999999]", ["a99999999998", "a99999999999"]),
    ("a1-3", ["a1-3"]),
]
REFUSED = [
    ("a[1", 'a "[" without its "]"'),
    ("a1]", 'a "]" without its "["'),
    ("a[[1-2]]", "a bracket inside a bracket"),
    ("a[3-1]", "runs backwards"),
    ("a[]", "is not a number"),
    ("a[1-]", "is not a number"),
    ("a[-1]", "is not a number"),
    ("a[1-2-3]", "is not a number"),
    ("a[x]", "is not a number"),
    ("a[1-2,]", "is not a number"),
    ("a[0x1-0x3]", "is not a number"),
    ("a[ 1-2]", "is not a number"),
    ("a[1-\u0662]", "is not a number"),
    ("a{1-2}", "no node name can have"),
    ("a=b", "no node name can have"),
    ("a;\x00", "no node name can have"),
    ("a[0-99999999]", "more than 1000000"),
    ("a[0-999]b[0-999]c[0-9]", "more than 1000000"),
]
COMPRESSED = [
    ([], ""),
    (["a"], "a"),
    (["a", "a"], "a,a"),
    (["a3", "a1", "a2"], "a[3,1-2]"),
    (["a1", "a2", "a2", "a3"], "a[1-2,2-3]"),
    (["a01", "a2", "a3"], "a[01,2-3]"),
    (["a9", "a10"], "a[9-10]"),
    (["a09", "a10"], "a[09-10]"),
    (["a08", "a9", "a10"], "a[08,9-10]"),
    (["a99", "a100"], "a[99-100]"),
    (["a1", "b1", "a2"], "a1,b1,a2"),
    (["a1b1", "a1b2", "a2b1", "a2b2"], "a1b[1-2],a2b[1-2]"),
    (["1", "2", "3"], "[1-3]"),
    (["0", "00", "000", "1"], "[0,00,000,1]"),
    (["a00", "a0", "a1", "a01"], "a[00,0-1,01]"),
    (["a7", "a6", "a5"], "a[7,6,5]"),
    (["x1y", "x2y"], "x1y,x2y"),
    (["a1", "a3", "a5", "a6", "a7"], "a[1,3,5-7]"),
    (["a4294967295", "a4294967296"], "a[4294967295-4294967296]"),
]


@pytest.mark.parametrize(("expression", "names"), EXPANDED)
def test_expand(expression: str, names: list[str]) -> None:
    assert expand(expression) == names


@pytest.mark.parametrize(("expression", "why"), REFUSED)
def test_expand_refuses(expression: str, why: str) -> None:
    with pytest.raises(OperationError) as caught:
        expand(expression)
    assert caught.value.reason == "InvalidHostlist"
    assert why in caught.value.msg


@pytest.mark.parametrize(("names", "expression"), COMPRESSED)
def test_compress(names: list[str], expression: str) -> None:
    assert compress(names) == expression
    assert expand(expression) == names


def test_compress_sorts_and_drops_repetitions() -> None:
    assert compress(["b1", "a10", "a9", "a2", "a01", "a9"], sort=True, unique=True) == "a[2,9,01,10],b1"
    assert compress(["a2", "a1", "a02", "a01"], sort=True) == "a[1-2,01-02]"


@pytest.mark.parametrize("name", ["a[1]", "a,b", "a b", "", "a\n"])
def test_compress_refuses_what_is_no_name(name: str) -> None:
    with pytest.raises(OperationError) as caught:
        compress(["ok", name])
    assert caught.value.reason == "InvalidHostlist"


names = st.from_regex(r"[a-z0-9.-]{0,4}[0-9]{1,4}", fullmatch=True) | st.from_regex(
    r"[a-z][a-z0-9.-]{0,6}", fullmatch=True
)


@given(st.lists(names))
def test_what_is_compressed_expands_to_the_same_in_order(some: list[str]) -> None:
    assert expand(compress(some)) == some


@given(st.lists(names), st.randoms())
def test_sorted_result_does_not_depend_on_the_order_given(some: list[str], chance: random.Random) -> None:
    other = list(some)
    chance.shuffle(other)
    assert compress(some, sort=True, unique=True) == compress(other, sort=True, unique=True)
    assert sorted(expand(compress(some, sort=True, unique=True))) == sorted(set(some))


ranges = st.tuples(st.integers(0, 999), st.integers(0, 9), st.integers(1, 4)).map(
    lambda bounds: f"{bounds[0]:0{bounds[2]}d}-{bounds[0] + bounds[1]}"
)
brackets = st.lists(ranges | st.integers(0, 99).map(str), min_size=1, max_size=3).map(
    lambda parts: f"[{','.join(parts)}]"
)


@given(st.lists(st.tuples(st.sampled_from(["n", "r-", "x."]), brackets), min_size=1, max_size=3))
def test_every_dimension_multiplies(dimensions: list[tuple[str, str]]) -> None:
    whole = expand("".join(text + bracket for text, bracket in dimensions))
    number = 1
    for _text, bracket in dimensions:
        number *= len(expand(bracket))
    assert len(whole) == number


@given(st.text(max_size=30))
def test_any_text_is_expanded_or_refused(text: str) -> None:
    try:
        found = expand(text)
    except OperationError:
        return
    assert expand(compress(found)) == found


def test_ranges_stay_within_what_slurm_takes() -> None:
    assert compress([f"w{number}" for number in range(100_000)]) == f"w[0-{MAX_RANGE - 1},{MAX_RANGE}-99999]"
    odd = compress([f"w{number}" for number in range(0, 2 * MAX_RANGE + 2, 2)])
    assert odd.endswith(f",{2 * MAX_RANGE - 2}],w{2 * MAX_RANGE}")


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_hundred_thousand_names_are_quick(shuffled: bool) -> None:
    some = [f"rack{rack}-node{node:03d}" for rack in range(250) for node in range(400)]
    if shuffled:
        random.Random(1).shuffle(some)
    begun = time.process_time()
    expression = compress(some, sort=shuffled)
    between = time.process_time()
    found = expand(expression)
    ended = time.process_time()
    assert sorted(found) == sorted(some)
    # 0.3 s is the aim on a quiet machine; process time, and a margin for slow ones.
    assert between - begun < 1.0
    assert ended - between < 1.0
