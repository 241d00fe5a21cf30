# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers and shares of nodes."""

from __future__ import annotations

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.share import share


@pytest.mark.parametrize(
    ("text", "total", "number"), [("5", 10, 5), ("25%", 10, 2), ("1%", 10, 1), ("0", 9, 0), ("100%", 7, 7)]
)
def test_shares(text: str, total: int, number: int) -> None:
    assert share(text, total, "max_actions") == number


@pytest.mark.parametrize("text", ["", "many", "-1", "101%", "1.5"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(OperationError) as caught:
        share(text, 10, "max_actions")
    assert caught.value.reason == "Invalid"
    assert "max_actions" in caught.value.msg
