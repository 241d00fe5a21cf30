# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Lines for people while a long step runs, for the callback plugin slurm_ops.kubernetes.progress to show."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

VARIABLE = "SLURM_OPS_PROGRESS"
INTERVAL = 10.0  # seconds between two lines that say much the same


class Progress:
    """Append whole lines to the file that $SLURM_OPS_PROGRESS names; without that variable, stay silent."""

    def __init__(
        self,
        title: str = "",
        *,
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        interval: float = INTERVAL,
    ) -> None:
        self._path = (os.environ if environ is None else environ).get(VARIABLE)
        self._title = title
        self._clock = clock
        self._interval = interval
        self._last: float | None = None
        self._last_text = ""

    def say(self, text: str) -> None:
        """Write one line now."""
        self._last = self._clock()
        self._last_text = text
        if not self._path:
            return
        line = f"{self._title}: {text}" if self._title else text
        try:
            # One write of a whole line to a file opened for appending: lines of several processes do not mix.
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        except OSError:
            self._path = None  # the callback has gone; a missing progress line must not fail the work
            return
        try:
            os.write(descriptor, (" ".join(line.split()) + "\n").encode())
        finally:
            os.close(descriptor)

    def tell(self, text: str) -> None:
        """Write a line unless the last one is younger than the interval; the first waits for an interval too."""
        now = self._clock()
        if self._last is None:
            self._last = now
        elif now - self._last >= self._interval:
            self.say(text)
