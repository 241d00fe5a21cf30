# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""YAML in and out. PyYAML is imported only when there is some: most tasks bring data, and want no diff."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError


def documents(source: str, what: str) -> list[Any]:
    """Return the YAML documents of a text. The error tells the place but not the text, in which secrets may be."""
    import yaml

    try:
        return list(yaml.load_all(source, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "unreadable"
        raise OperationError(
            f"{what} is not YAML{place}: {problem}.", reason="Malformed", hint="Correct it; nothing was sent."
        ) from None


def text(value: Any) -> str:
    """Return YAML with long strings as blocks, so that a changed line of a configuration file is one changed line."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value if value.endswith("\n") else value + "\n"
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """A safe dumper with blocks for text of several lines."""

    def block(dumper: Any, data: str) -> Any:
        style = "|" if "\n" in data else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Dumper.add_representer(str, block)
    return str(yaml.dump(_plain(value), Dumper=Dumper, default_flow_style=False, sort_keys=True, width=1000))


def _plain(value: Any) -> Any:
    """Drop subclasses of str and dict (Ansible tags its data), which the safe dumper does not know."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        # A block cannot hold spaces at the end of a line: without them the dumper keeps it readable.
        return "\n".join(line.rstrip() for line in str(value).split("\n")) if "\n" in value else str(value)
    return value
