# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A made-up API server, for modules that are run whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..module_utils._kube.fake_api import FakeApi, serving
from ..module_utils._kube.fake_cluster import FakeCluster


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def api(cluster: FakeCluster) -> Iterator[FakeApi]:
    with serving(respond=cluster) as server:
        yield server
