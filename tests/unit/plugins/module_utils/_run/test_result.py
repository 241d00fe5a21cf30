# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules return."""

from __future__ import annotations

from collections import Counter

import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.result import api_calls, diffs, done_and_not
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.yaml_text import text


def action(number: int, done: bool = False) -> Action:
    return Action("create", f"Thing {number}", "because", done=done)


def test_calls_and_writes() -> None:
    calls = api_calls(Counter(get=2, list=3, apply=1, exec=1), Counter(get=4))
    assert calls == {
        "kubernetes": 7,
        "slurm": 4,
        "writes": 2,
        "verbs": {"apply": 1, "exec": 1, "get": 6, "list": 3},
    }
    assert api_calls(Counter({"dry-run": 3, "watch": 1, "discover": 1}), Counter())["writes"] == 0


def test_diffs_are_yaml_with_blocks() -> None:
    change = Action("update", "ConfigMap a/b", "differs", diff=({"data": {"f": "1\n2\n"}}, {"data": {"f": "1\n3\n"}}))
    (diff,) = diffs([change, action(1)])
    assert diff["before"] == "data:\n  f: |\n    1\n    2\n"
    assert diff["before_header"] == "ConfigMap a/b"
    assert diff["after_header"] == "ConfigMap a/b (update: differs)"


def test_nothing_is_empty_text() -> None:
    assert text(None) == ""
    assert text("one") == "one\n"


class Tagged(str):
    """As Ansible's data tagging makes them."""

    __slots__ = ()


def test_subclasses_of_str_are_text() -> None:
    assert text({Tagged("a"): Tagged("b")}) == "a: b\n"


@given(st.dictionaries(st.text("abc ", min_size=1), st.text("ab\n:#-|> ") | st.integers() | st.lists(st.text("a\n "))))
def test_the_text_says_the_same_but_for_spaces_at_ends_of_lines(value: dict[str, object]) -> None:
    def stripped(item: object) -> object:
        if isinstance(item, list):
            return [stripped(inner) for inner in item]
        return "\n".join(line.rstrip() for line in item.split("\n")) if isinstance(item, str) and "\n" in item else item

    assert yaml.safe_load(text(value)) == {key: stripped(item) for key, item in value.items()}


def test_what_was_done_and_what_not() -> None:
    assert done_and_not([]) == ""
    assert done_and_not([action(1)]) == " Nothing was changed."
    assert done_and_not([action(1, True), action(2)]) == " Done: create Thing 1. Not done: create Thing 2."
    assert done_and_not([action(1, True)]) == " Done: create Thing 1."
    assert done_and_not([action(number, True) for number in range(12)]).endswith("create Thing 9 and 2 more.")
