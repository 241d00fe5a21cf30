# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What differs between Slurm releases."""

from __future__ import annotations

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import versions
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError


@pytest.mark.parametrize(
    ("text", "parser", "http", "yaml"),
    [
        ("24.11", "v0.0.42", False, False),
        ("25.05.8", "v0.0.43", False, True),
        ("25.11", "v0.0.44", True, True),
        ("slurm 26.05.5", "v0.0.45", True, True),
        ("26.11", "v0.0.45", True, True),
    ],
)
def test_features(text: str, parser: str, http: bool, yaml: bool) -> None:
    found = versions.features(text)
    assert (found["data_parser"], found["http_probes"], found["topology_yaml"]) == (parser, http, yaml)
    probe = found["probes"]["slurmctld"]["readiness"]
    assert ("httpGet" in probe) == http
    assert ("tcpSocket" in probe) != http
    assert "tcpSocket" in found["probes"]["slurmdbd"]["liveness"]
    assert found["metrics"] == http
    assert found["slurmdbd_needs_copy"] != http


@pytest.mark.parametrize("text", ["", "latest", "23.02", "v1", "126.05"])
def test_unknown_versions(text: str) -> None:
    with pytest.raises(OperationError) as caught:
        versions.features(text)
    assert caught.value.reason == "UnknownVersion"


def test_every_release_has_a_parser_that_we_speak() -> None:
    for parsers in versions.DATA_PARSERS.values():
        assert set(parsers) & set(versions.SPOKEN_PARSERS)
