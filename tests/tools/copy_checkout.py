# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A copy of the checkout at <tree>/ansible_collections/slurm_ops/kubernetes, as ansible-test and ansible-lint want it.

They need that path, follow no symbolic link, and write beside what they check; the checkout stays clean this way.
Only what git would know is copied (tracked, or untracked and not ignored), so what some tool left is never checked.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
from pathlib import Path

_TOOLS_OWN = {(".git",), (".ansible",)}


def list_files(checkout: Path, tree: Path) -> list[str]:
    """Paths of the project's files, relative to the checkout; works for an unpacked archive without .git too."""
    # sudo make: git mistrusts a checkout of another user, though it is only asked for names.
    trust = ["-c", "safe.directory=*"]
    command = ["git", *trust, "-C", str(checkout), "ls-files", "-z", "--others", "--exclude-standard"]
    environment = dict(os.environ)
    if (checkout / ".git").exists():
        command.append("--cached")
    else:
        empty = tree / "empty.git"
        if not empty.exists():
            subprocess.run(["git", "init", "--quiet", "--bare", str(empty)], check=True)
        environment |= {"GIT_DIR": str(empty), "GIT_WORK_TREE": str(checkout)}
    listed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    # A tracked file that was just deleted is still listed.
    return sorted({path for path in listed.split("\0") if path and os.path.lexists(checkout / path)})


def copy_checkout(checkout: Path, tree: Path) -> Path:
    """Bring the copy up to date, touching only what differs, and return its path."""
    copy = tree / "ansible_collections" / "slurm_ops" / "kubernetes"
    copy.mkdir(parents=True, exist_ok=True)
    wanted = list_files(checkout, tree)
    _remove_others(copy, set(wanted))
    for path in wanted:
        _copy(checkout / path, copy / path)
    if not (copy / ".git").exists():
        # ansible-test asks git which files there are, and would walk up to somebody else's repository otherwise.
        subprocess.run(["git", "init", "--quiet", str(copy)], check=True)
    return copy


def _copy(source: Path, target: Path) -> None:
    if source.is_symlink():
        if not target.is_symlink() or os.readlink(target) != os.readlink(source):
            target.unlink(missing_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(os.readlink(source))
    elif target.is_file() and not target.is_symlink() and filecmp.cmp(source, target):
        shutil.copymode(source, target)
    else:
        target.unlink(missing_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def _remove_others(copy: Path, wanted: set[str]) -> None:
    """Also makes room where a file became a directory or the other way round."""
    for folder, folders, files in os.walk(copy, topdown=False):
        here = Path(folder)
        if here.relative_to(copy).parts[:1] in _TOOLS_OWN:
            continue
        for name in [*files, *(name for name in folders if (here / name).is_symlink())]:
            if str((here / name).relative_to(copy)) not in wanted:
                (here / name).unlink()
        if here != copy and not any(here.iterdir()):
            here.rmdir()
