# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""A text that a module also writes to a file on the machine that it runs on."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action

SAVE = "save"


def plan(path: str | None, text: str | None) -> list[Action]:
    """The action that makes the file have this text, if it has not; none without a path or a text."""
    if not path or text is None:
        return []
    target = Path(path)
    try:
        before = target.read_text(encoding="utf-8") if target.exists() else None
    except (OSError, UnicodeDecodeError) as error:
        raise OperationError(f"{path} cannot be read: {error}.", reason="Unreadable", hint="Check the path.") from error
    if before == text:
        return []
    return [Action(SAVE, path, "another text" if before is not None else "not there", diff=(before or "", text))]


def save(path: str, text: str) -> None:
    """Write the file as a whole or not at all."""
    target = Path(path)
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask)
        os.replace(name, target)
    except OSError as error:
        raise OperationError(
            f"{path} cannot be written: {error}.", reason="Unwritable", hint="Check folder and rights."
        ) from error
