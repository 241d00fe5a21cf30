# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The parts of an archive that an API server has: Secrets and ConfigMaps, as they are kept and as they are put back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .archive import damaged

Object = Mapping[str, Any]


def keep(items: Iterable[Object]) -> bytes:
    """Objects as they are kept: what makes them, not what the server added."""
    return json.dumps([plain(item) for item in items], indent=1, sort_keys=True).encode()


def plain(item: Object) -> dict[str, Any]:
    """One object without what belongs to the cluster that it was in."""
    metadata = item["metadata"]
    kept = {key: item[key] for key in ("apiVersion", "kind", "type", "data", "binaryData", "immutable") if key in item}
    kept["metadata"] = {key: metadata[key] for key in ("name", "labels", "annotations") if metadata.get(key)}
    return kept


def kept(path: str, data: bytes, kind: str) -> Sequence[Object]:
    """What keep() made of objects of one kind; an archive is no way to make others (OperationError, Damaged)."""
    try:
        found = json.loads(data)
        if all(item["kind"] == kind and item["apiVersion"] == "v1" and item["metadata"]["name"] for item in found):
            return list(found)
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(path, f"its {kind}s cannot be read") from error
    raise damaged(path, f"it has something else among its {kind}s")


def secret_names(name: str, auth: str, database: str) -> Sequence[str]:
    """The Secrets of a cluster that were generated, or brought in their place."""
    return [auth, database, f"{name}-login-hostkeys", f"{name}-directory"]
