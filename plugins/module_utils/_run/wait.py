# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The one loop that waits: until it is done, can never be, or takes too long."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.trouble import Seen, Trouble
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.progress import Progress

__all__ = ["Seen", "Trouble", "wait_until"]

FIRST_PAUSE = 0.2  # seconds; pauses grow from here to what the user set, so that what is quick is seen at once
LULL = 5.0  # seconds that a trouble may be out of sight and still be the same one: a container tried again, say


def wait_until(
    look: Callable[[], Seen],
    what: str,
    *,
    timeout: float,
    interval: float,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Look until nothing remains. Raises OperationError (Timeout, or the trouble's reason) with what remains."""
    begun = clock()
    spans: dict[str, tuple[float, float]] = {}  # trouble: first and last time it was seen
    delay = min(FIRST_PAUSE, interval)
    while True:
        seen = look()
        now = clock()
        if not seen.remaining:
            return
        spans = {key: span for key, span in spans.items() if now - span[1] <= LULL}
        spans |= {trouble.key: (spans.get(trouble.key, (now, now))[0], now) for trouble in seen.troubles}
        lasting = [trouble for trouble in seen.troubles if now - spans[trouble.key][0] >= trouble.grace]
        if lasting:
            raise _failed(what, now - begun, lasting, seen)
        left = begun + timeout - now
        if left <= 0:
            raise _timed_out(what, timeout, seen)
        if progress:
            progress.tell(f"{what}, {now - begun:.0f} s: {_first(seen.remaining)}")
        pause(min(delay, max(left, 0.05)))
        delay = min(delay * 1.5, interval)


def _first(lines: Sequence[str], limit: int = 3) -> str:
    more = f"; and {len(lines) - limit} more" if len(lines) > limit else ""
    return "; ".join(lines[:limit]) + more


def _failed(what: str, seconds: float, troubles: Sequence[Trouble], seen: Seen) -> OperationError:
    unique = {trouble.text: trouble for trouble in troubles}
    if len(unique) == 1:
        only = troubles[0]
        return OperationError(
            f"{what} failed after {seconds:.0f} s: {only.text}.",
            reason=only.reason,
            remaining=seen.remaining,
            hint=only.hint,
        )
    lines = [f"{what} failed after {seconds:.0f} s:"]
    lines += [
        f"  {trouble.text}; {trouble.hint}" if trouble.hint else f"  {trouble.text}" for trouble in unique.values()
    ]
    return OperationError("\n".join(lines), reason=troubles[0].reason, remaining=seen.remaining)


def _timed_out(what: str, timeout: float, seen: Seen) -> OperationError:
    text = f"{what} did not end in {timeout:.0f} s. Still to come: {_first(seen.remaining, 10)}."
    if seen.troubles:
        text += f" Seen: {_first([trouble.text for trouble in seen.troubles], 10)}."
    return OperationError(
        text, reason="Timeout", remaining=seen.remaining, hint="Nothing was undone; run again, or raise wait_timeout."
    )
