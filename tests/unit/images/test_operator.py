# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image with this collection: what its archive is named after."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).parents[3]
SETTINGS = {"IMAGES_VERSIONS": "26.05", "IMAGES_REGISTRY": "localhost/x"}
EMPTY = dict.fromkeys(("IMAGES_BASE", "IMAGES_MIRROR", "IMAGES_APT_OPTIONS", "IMAGES_SERIAL", "IMAGES_PUSH"), "")


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """What of it counts, in small."""
    path = tmp_path / "collection"
    shutil.copytree(CHECKOUT / "roles/images/files", path / "roles/images/files")
    for name in ("COPYING", "README.md", "galaxy.yml", "meta/a.yml", "playbooks/a.yml", "plugins/a.py", "tests/a.py"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("version: 1.2.3\n")
    return path


def archives(collection: Path) -> dict[str, str]:
    """Names of the archives, by the first word."""
    environment = {"PATH": "/usr/bin:/bin", "IMAGES_DIRECTORY": "/x", **SETTINGS, **EMPTY}
    script = collection / "roles/images/files/build.sh"
    listed = subprocess.run(["bash", script, "list"], check=True, capture_output=True, text=True, env=environment)
    return {Path(line).name.partition("-")[0]: line for line in listed.stdout.splitlines()}


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("plugins/a.py", True),
        ("playbooks/new.yml", True),
        ("roles/new.yml", True),
        ("tests/a.py", False),
        ("docs.md", False),
        ("plugins/__pycache__/a.pyc", False),
        ("roles/images/files/collections/ansible_collections/a", False),
    ],
)
def test_only_what_it_is_made_of_makes_it_another(collection: Path, file: str, changes: bool) -> None:
    before = archives(collection)
    (collection / file).parent.mkdir(parents=True, exist_ok=True)
    (collection / file).write_text("changed")
    after = archives(collection)
    assert before.keys() == {"services", "operator", "slurm"}
    assert (before.pop("operator") != after.pop("operator")) is changes
    assert before == after


def test_an_installed_collection_has_another_manifest(collection: Path) -> None:
    (collection / "galaxy.yml").unlink()
    (collection / "MANIFEST.json").write_text(json.dumps({"collection_info": {"version": "1.2.3"}}, indent=1))
    assert "operator" in archives(collection)


def test_the_sandbox_takes_the_one_of_this_version() -> None:
    version = yaml.safe_load((CHECKOUT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    variables = CHECKOUT / "inventories/sandbox/group_vars/slurm_clusters/sandbox.yml"
    images = yaml.safe_load(variables.read_text(encoding="utf-8"))["slurm_images"]
    assert images["operator"] == f"localhost/slurm-ops/operator:{version}"
