# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""States of nodes: the lists that REST really gave (facts of 24.11 and 26.05) and what they mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import BASE_STATES, BUSY, FLAGS, parse

STATES = [
    # REST's list                                      drained draining busy  responding usable word
    (["IDLE"], False, False, False, True, True, "idle"),
    (["IDLE", "DYNAMIC_NORM"], False, False, False, True, True, "idle"),
    (["IDLE", "DRAIN"], True, False, False, True, False, "drained"),
    (["IDLE", "DRAIN", "UNDRAIN"], False, False, False, True, True, "idle"),
    (["ALLOCATED", "EXTERNAL", "DRAIN"], False, True, True, True, False, "draining"),
    (["MIXED", "DRAIN"], False, True, True, True, False, "draining"),
    (["IDLE", "DRAIN", "COMPLETING"], False, True, True, True, False, "draining"),
    (["IDLE", "COMPLETING"], False, False, True, True, True, "completing"),
    (["MIXED"], False, False, True, True, True, "mixed"),
    (["DOWN", "NOT_RESPONDING"], False, False, False, False, False, "down"),
    (["DOWN", "DRAIN", "REBOOT_ISSUED"], True, False, False, True, False, "down"),
    (["IDLE", "NOT_RESPONDING"], False, False, False, False, False, "idle"),
    (["IDLE", "NOT_RESPONDING", "FAIL"], False, False, False, False, False, "fail"),
    (["IDLE", "CLOUD", "POWERED_DOWN", "DYNAMIC_NORM"], False, False, False, True, False, "idle"),
    (["UNKNOWN"], False, False, False, False, False, "unknown"),
    (["UNKNOWN", "DRAIN"], False, False, False, False, False, "drained"),
    (["UNKNOWN", "DRAIN", "INVALID_REG"], True, False, False, False, False, "drained"),
    (["FUTURE"], False, False, False, False, False, "future"),
    ([], False, False, False, False, False, "unknown"),
    (None, False, False, False, False, False, "unknown"),
    (["DRAIN"], False, False, False, False, False, "unknown"),
    (["NEWBASE", "DRAIN"], False, False, False, False, False, "unknown"),
    ("IDLE+DRAIN", True, False, False, True, False, "drained"),
    ("idle*", False, False, False, True, True, "idle"),
]


@pytest.mark.parametrize(("words", "drained", "draining", "busy", "responding", "usable", "word"), STATES)
def test_states(
    words: list[str] | str | None, drained: bool, draining: bool, busy: bool, responding: bool, usable: bool, word: str
) -> None:
    state = parse(words)
    assert (state.drained, state.draining, state.busy, state.responding, state.usable, state.word) == (
        drained, draining, busy, responding, usable, word,
    )  # fmt: skip


some_states = st.lists(st.sampled_from(sorted(BASE_STATES | FLAGS | {"SOMETHING_NEW"})), max_size=5)


@given(some_states)
def test_drained_fails_closed(words: list[str]) -> None:
    state = parse(words)
    if state.drained:
        assert "DRAIN" in words
        assert "UNDRAIN" not in words
        assert state.base
        assert BUSY.isdisjoint({state.base, *state.flags})
    assert not (state.drained and state.draining)
    assert not (state.drained and state.usable)


@given(some_states)
def test_the_order_of_flags_does_not_matter_and_nothing_is_lost(words: list[str]) -> None:
    base = [word for word in words if word in BASE_STATES][:1]
    flags = sorted({word for word in words if word not in base})
    assert parse(base + flags).words == parse(base + flags[::-1]).words == (*base, *flags)
