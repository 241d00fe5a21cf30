# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Many independent calls at once: Kubernetes has no bulk write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def spread(
    work: Callable[[Item], Outcome], items: Iterable[Item], workers: int
) -> Iterator[tuple[Item, Outcome | OperationError]]:
    """Yield (item, result or error) in the order of the items.

    After the first error no new item is begun; what is under way is finished and reported; the rest is not yielded,
    so that the caller knows exactly what was done, what failed and what was left.
    """
    from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

    pending = list(items)
    if len(pending) <= 1 or workers <= 1:
        for item in pending:
            try:
                result: Outcome | OperationError = work(item)
            except OperationError as error:
                yield item, error
                return
            yield item, result
        return
    failed = False

    def guarded(item: Item) -> Outcome:
        nonlocal failed
        if failed:
            raise CancelledError
        try:
            return work(item)
        except BaseException:
            failed = True
            raise

    with ThreadPoolExecutor(max_workers=min(workers, len(pending))) as pool:
        futures: list[Future[Outcome]] = [pool.submit(guarded, item) for item in pending]
        for item, future in zip(pending, futures, strict=True):
            try:
                yield item, future.result()
            except OperationError as error:
                yield item, error
            except CancelledError:
                continue
