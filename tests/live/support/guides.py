# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guides: their examples as playbooks, so that what is written there is what was run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from .minislurm import NAME, MiniSlurm
from .playbook import CHECKOUT

_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text_of(guide: str) -> str:
    return (CHECKOUT / "docs" / "guides" / guide).read_text(encoding="utf-8")


def examples_of(guide: str) -> list[Any]:
    """What the YAML blocks of a guide say, in their order."""
    examples = [yaml.safe_load(block) for block in _BLOCK.findall(text_of(guide))]
    assert examples, f"{guide} has no examples"
    return examples


def playbook_of(guide: str, mini: MiniSlurm, folder: Path) -> Path:
    """All tasks of a guide's YAML blocks in their order, as one play against a cluster."""
    tasks = [task for example in examples_of(guide) for task in example]
    play = {
        "name": f"Examples of {guide}",
        "hosts": "localhost",
        "gather_facts": False,
        "module_defaults": {"group/slurm_ops.kubernetes.slurm": {"namespace": mini.namespace, "name": NAME}},
        "tasks": tasks,
    }
    path = folder / "examples.yml"
    path.write_text(yaml.safe_dump([play], sort_keys=False), encoding="utf-8")
    return path


def inventory_of(mini: MiniSlurm, folder: Path) -> str:
    """An inventory with that cluster, for the collection's playbooks."""
    host = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        "slurm_name": NAME,
        "slurm_namespace": mini.namespace,
    }
    path = folder / "inventory.yml"
    path.write_text(yaml.safe_dump({"slurm_clusters": {"hosts": {"mini": host}}}), encoding="utf-8")
    return str(path)
