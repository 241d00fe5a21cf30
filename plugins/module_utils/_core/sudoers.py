# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Writes the sudoers drop-in that lets groups of the directory become root in the login Pod."""

from __future__ import annotations

import re
from typing import Any

from .fields import Fields

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)

KEYS = ("login_sudo_groups",)


def render(fields: Fields) -> str:
    """Text for /etc/sudoers.d from login_sudo_groups: names, or {name, nopasswd}; empty when there is none."""
    lines = []
    for index, entry in enumerate(fields.items("login_sudo_groups")):
        data: Any = {"name": entry} if isinstance(entry, str) else entry
        group = Fields(data, f"{fields.at('login_sudo_groups')}[{index}]", fields.problems, ("name", "nopasswd"))
        name = group.text("name", required=True)
        if '"' in name or "\\" in name or name.startswith(("%", "#")):
            fields.problems.add(group.at("name"), f'{name!r} must be the name of a group without % # " and \\')
            continue
        # A quoted name may hold what sudoers gives a meaning to, blanks as in "domain admins" first of all.
        who = f"%{name}" if _PLAIN.fullmatch(name) else f'"%{name}"'
        lines.append(f"{who} ALL=(ALL:ALL) {'NOPASSWD: ' if group.flag('nopasswd', False) else ''}ALL\n")
    return "".join(lines)
