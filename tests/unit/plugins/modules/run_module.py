# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module's main() as Ansible does, and return what it printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args


def run_module(
    main: Callable[[], None],
    capsys: pytest.CaptureFixture[str],
    args: Mapping[str, Any],
    *,
    check: bool = False,
    diff: bool = False,
) -> dict[str, Any]:
    """Return the result, which has ``failed`` when the module failed."""
    internal = {"_ansible_check_mode": check, "_ansible_diff": diff, "_ansible_remote_tmp": "/tmp"}
    capsys.readouterr()
    with patch_module_args({**args, **internal}), pytest.raises(SystemExit):
        main()
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result
