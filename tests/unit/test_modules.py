# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every module of the collection has in common."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
MODULES = sorted(path for path in (CHECKOUT / "plugins" / "modules").glob("*.py") if path.name != "__init__.py")
FRAGMENT = "slurm_ops.kubernetes."

# These take no connection options, so module_defaults of the group would not fit them.
NOT_IN_GROUP = {"sandbox"}


def documentation_of(path: Path) -> dict[str, Any]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
            continue
        if [target.id for target in node.targets if isinstance(target, ast.Name)] == ["DOCUMENTATION"]:
            return yaml.safe_load(str(node.value.value))
    raise AssertionError(f"{path.name} has no DOCUMENTATION")


def fragments_of(path: Path) -> set[str]:
    fragments = documentation_of(path).get("extends_documentation_fragment", [])
    return {fragments} if isinstance(fragments, str) else set(fragments)


def action_group() -> list[str]:
    runtime = yaml.safe_load((CHECKOUT / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    return runtime["action_groups"]["slurm"]


def test_there_are_modules() -> None:
    assert MODULES


def test_the_action_group_lists_every_module() -> None:
    assert action_group() == sorted(path.stem for path in MODULES if path.stem not in NOT_IN_GROUP)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_attributes_are_documented(path: Path) -> None:
    """An extra fragment (`attributes.info` and the like) says what is special, `attributes` what all have."""
    fragments = {fragment.split(".")[2] for fragment in fragments_of(path) if fragment.startswith(FRAGMENT)}
    assert "attributes" in fragments


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_members_of_the_group_say_so_and_take_the_connection_options(path: Path) -> None:
    fragments = fragments_of(path)
    documented = documentation_of(path).get("attributes") or {}
    is_member = path.stem not in NOT_IN_GROUP
    assert (f"{FRAGMENT}kubernetes" in fragments) == is_member
    says_so = "action_group" in documented or f"{FRAGMENT}attributes.action_group" in fragments
    assert says_so == is_member
