# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dependencies point downwards only: modules, then _run, then _slurm, _kube and _plan, then _core."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
COLLECTION = "ansible_collections.slurm_ops.kubernetes.plugins"

# Each may import from itself and from what stands here.
BELOW: dict[str, set[str]] = {
    "_core": set(),
    "_plan": {"_core"},
    "_slurm": {"_core"},
    "_kube": {"_core"},
    "_sandbox": {"_core"},
    "_run": {"_core", "_plan", "_slurm", "_kube"},
}
ONLY_STANDARD_LIBRARY = ("_core", "_plan")
KNOWS_ANSIBLE_MODULE = ("_run",)


def python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if path.name != "__init__.py" or path.stat().st_size)


@cache
def imported_modules(path: Path) -> set[str]:
    """Full names of what a file imports, wherever in the file."""
    package = [COLLECTION, *path.relative_to(PLUGINS).parent.parts]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            base = ".".join(part for part in (origin, node.module) if part)
            # `from package import module` counts as package.module.
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return found


def packages_of_ours(modules: set[str]) -> set[str]:
    prefix = f"{COLLECTION}.module_utils."
    return {name.removeprefix(prefix).split(".")[0] for name in modules if name.startswith(prefix)}


def others(modules: set[str]) -> set[str]:
    return {name.split(".")[0] for name in modules if not name.startswith("ansible_collections.slurm_ops.kubernetes.")}


def module_utils() -> list[Path]:
    return python_files(PLUGINS / "module_utils")


def package_of(path: Path) -> str:
    return path.relative_to(PLUGINS / "module_utils").parts[0]


def name_of(path: Path) -> str:
    return str(path.relative_to(PLUGINS))


def test_there_is_something_to_check() -> None:
    assert module_utils()


@pytest.mark.parametrize("path", module_utils(), ids=name_of)
def test_imports_point_downwards(path: Path) -> None:
    package = package_of(path)
    assert package in BELOW, f"say in BELOW what {package} may import"
    above = packages_of_ours(imported_modules(path)) - BELOW[package] - {package}
    assert not above, f"{name_of(path)} imports from {', '.join(sorted(above))}"


@pytest.mark.parametrize(
    "path", [path for path in module_utils() if package_of(path) in ONLY_STANDARD_LIBRARY], ids=name_of
)
def test_pure_packages_import_the_standard_library_only(path: Path) -> None:
    foreign = others(imported_modules(path)) - set(sys.stdlib_module_names)
    assert not foreign, f"{name_of(path)} imports {', '.join(sorted(foreign))}"


@pytest.mark.parametrize("path", module_utils(), ids=name_of)
def test_only_run_knows_the_ansible_module(path: Path) -> None:
    if package_of(path) not in KNOWS_ANSIBLE_MODULE:
        known = {"ansible.module_utils.basic", "ansible.module_utils.basic.AnsibleModule"}
        assert not known & imported_modules(path)


@pytest.mark.parametrize("path", module_utils(), ids=name_of)
def test_nothing_imports_a_plugin_from_module_utils(path: Path) -> None:
    ours = {name for name in imported_modules(path) if name.startswith(f"{COLLECTION}.")}
    assert all(name.startswith(f"{COLLECTION}.module_utils.") for name in ours)
