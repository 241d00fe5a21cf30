# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tests of several workers may run at the same time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOM = Path(__file__).parents[1]
_DOOR = Path(__file__).parent


@contextmanager
def turn(*, alone: bool) -> Iterator[None]:
    """Wait until a test may run, beside those of other workers or alone, and hold the others to it until it has."""
    with _opened(_ROOM) as room, _opened(_DOOR) as door:
        # Who waits stands in the door: else tests that may run together would let nobody in who must be alone.
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
