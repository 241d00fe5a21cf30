# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters that read and write Slurm's configuration, and that check a user's description of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ansible.errors import AnsibleFilterError

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import (
    files,
    slurm_conf,
    versions,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import (
    slurmdbd_conf as dbd,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.cluster import parse_cluster
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.problems import Problems
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.worker import worker

_Made = TypeVar("_Made")


def to_slurm_conf(settings: Any) -> str:
    """The text of a Slurm configuration file from a dictionary."""
    if not isinstance(settings, Mapping):
        raise AnsibleFilterError("to_slurm_conf takes a dictionary.")
    return _said(lambda: slurm_conf.render(slurm_conf.to_lines(settings)))


def from_slurm_conf(text: Any) -> dict[str, Any]:
    """A dictionary from the text of a Slurm configuration file."""
    if not isinstance(text, str):
        raise AnsibleFilterError("from_slurm_conf takes text.")
    return _said(lambda: slurm_conf.from_lines(slurm_conf.parse(text)))


def slurm_files(cluster: Any, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """The files in /etc/slurm of a cluster."""

    def make() -> dict[str, str]:
        problems = Problems()
        described = parse_cluster(cluster, problems, variables=variables)
        made = files.files(described, problems)
        # The NodeSets' own mistakes are told here too: this filter may be the first to look at them.
        taken: dict[str, str] = {}
        for nodeset in described.nodesets:
            worker(nodeset, described, problems, taken)
        problems.raise_if_any("The configuration of the Slurm cluster cannot be made")
        return made

    return _said(make)


def slurm_nodesets(nodesets: Any, cluster: Any, variables: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """NodeSets as a user writes them, checked and complete."""
    if isinstance(nodesets, (str, Mapping)) or not isinstance(nodesets, Iterable):
        raise AnsibleFilterError("slurm_nodesets takes a list of NodeSets.")
    # What map() and select() give can be read once only.
    written = list(nodesets)

    def make() -> list[dict[str, Any]]:
        problems = Problems()
        described = parse_cluster(cluster, problems, nodesets=written, variables=variables)
        taken: dict[str, str] = {}
        made = [worker(nodeset, described, problems, taken) for nodeset in described.nodesets]
        problems.raise_if_any("The NodeSets cannot be made")
        return made

    return _said(make)


def slurmdbd_conf(settings: Any) -> str:
    """The text of slurmdbd.conf, without its password."""

    def make() -> str:
        problems = Problems()
        text = dbd.render(settings, problems)
        problems.raise_if_any("slurmdbd.conf cannot be made")
        return text

    return _said(make)


def slurm_features(version: Any) -> dict[str, Any]:
    """What a Slurm version can do and needs."""
    return _said(lambda: versions.features(str(version)))


def _said(make: Callable[[], _Made]) -> _Made:
    try:
        return make()
    except OperationError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Filter names and functions."""
        return {
            "to_slurm_conf": to_slurm_conf,
            "from_slurm_conf": from_slurm_conf,
            "slurm_files": slurm_files,
            "slurm_nodesets": slurm_nodesets,
            "slurmdbd_conf": slurmdbd_conf,
            "slurm_features": slurm_features,
        }
