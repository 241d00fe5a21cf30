# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every module of the collection has in common."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
MODULES = sorted(path for path in (CHECKOUT / "plugins" / "modules").glob("*.py") if path.name != "__init__.py")

# These take no connection options, so module_defaults of the group would not fit them.
NOT_IN_GROUP = {"sandbox"}


def documentation_of(path: Path) -> dict[str, Any]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
            continue
        if [target.id for target in node.targets if isinstance(target, ast.Name)] == ["DOCUMENTATION"]:
            return yaml.safe_load(str(node.value.value))
    raise AssertionError(f"{path.name} has no DOCUMENTATION")


def fragments_of(path: Path) -> list[str]:
    fragments = documentation_of(path).get("extends_documentation_fragment", [])
    return [fragments] if isinstance(fragments, str) else fragments


def attributes_of(path: Path) -> dict[str, Any]:
    """The module's own and those of the collection's fragments, as ansible-doc merges them."""
    attributes: dict[str, Any] = {}
    for name in fragments_of(path):
        namespace, collection, fragment, *variant = name.split(".")
        if (namespace, collection) == ("slurm_ops", "kubernetes"):
            fragments = import_module(f"ansible_collections.slurm_ops.kubernetes.plugins.doc_fragments.{fragment}")
            text = getattr(fragments.ModuleDocFragment, "_".join(variant).upper() or "DOCUMENTATION")
            attributes |= yaml.safe_load(text).get("attributes", {})
    return attributes | documentation_of(path).get("attributes", {})


def action_group() -> list[str]:
    runtime = yaml.safe_load((CHECKOUT / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    return runtime["action_groups"]["slurm"]


def test_there_are_modules() -> None:
    assert MODULES


def test_the_action_group_lists_every_module() -> None:
    assert action_group() == sorted(path.stem for path in MODULES if path.stem not in NOT_IN_GROUP)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_what_a_module_can_do_is_documented(path: Path) -> None:
    assert {"check_mode", "diff_mode", "idempotent"} <= attributes_of(path).keys()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_members_of_the_group_say_so_and_take_the_connection_options(path: Path) -> None:
    is_member = path.stem not in NOT_IN_GROUP
    assert ("slurm_ops.kubernetes.kubernetes" in fragments_of(path)) == is_member
    assert ("action_group" in attributes_of(path)) == is_member
