# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The third-party libraries that the client stands on: imported late, with a message that says what to install."""

from __future__ import annotations

import traceback
from types import ModuleType

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

try:
    import urllib3
except ImportError:
    URLLIB3_ERROR: str | None = traceback.format_exc()
else:
    URLLIB3_ERROR = None


def missing_library(name: str, reason: str | None = None) -> OperationError:
    """The error that says which library is to be installed, for which Python, and for what (``reason``)."""
    from ansible.module_utils.basic import missing_required_lib

    return OperationError(str(missing_required_lib(name, reason=reason)), reason="MissingLibrary")


def transport() -> ModuleType:
    """Return urllib3, which comes with the ``kubernetes`` library."""
    if URLLIB3_ERROR is not None:
        raise missing_library("kubernetes")
    return urllib3


def library() -> ModuleType:
    """Return the ``kubernetes`` library: exec plugins and auth-providers are its work."""
    try:
        import kubernetes.client
        import kubernetes.config
    except ImportError as error:
        raise missing_library("kubernetes") from error
    return kubernetes


def websocket_client() -> ModuleType:
    """Return websocket-client, which comes with the ``kubernetes`` library."""
    try:
        import websocket
    except ImportError as error:
        raise missing_library("kubernetes") from error
    return websocket
