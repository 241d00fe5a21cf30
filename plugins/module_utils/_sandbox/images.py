# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Images are unpacked once for all nodes of all sandboxes.

A *store* is the data directory of a containerd that has imported a given set of archives. It is named after their
content and never changes once it is complete. A node's own data directory starts as a copy of it in which unpacked
layers are links into the store: they are only ever the lower, read-only part of a container's file system, so nodes can
share them, and the copy costs next to nothing. Nothing but archives brings images, so a node's copy can be made anew
whenever its containerd starts after a stop.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

from . import archives

Progress = Callable[[str], None]
_CONTENT = "io.containerd.content.v1.content"
_METADATA = "io.containerd.metadata.v1.bolt"
_SNAPSHOTS = "io.containerd.snapshotter.v1.overlayfs"
_COMPLETE = "complete.json"
_STORE_NAME = re.compile(r"[0-9a-f]{16}")
# Newer containerds hand this on to the kubelet, which then never deletes the image.
PINNED = "io.cri-containerd.pinned=pinned"


class Store:
    """An imported set of archives. ``archives`` maps the identity of each to its path."""

    def __init__(self, directory: Path, contents: Mapping[str, Path], runtime: Path) -> None:
        self._archives = dict(contents)
        self._runtime = runtime
        self._all = directory
        self.name = archives.collection_identity(contents, runtime.name)
        self.path = directory / self.name

    @property
    def complete(self) -> bool:
        return (self.path / _COMPLETE).exists()

    def missing(self) -> dict[str, Path]:
        """Archives that no store to start from has."""
        if self.complete:
            return {}
        _base, have = self._best_base()
        return {key: path for key, path in self._archives.items() if key not in have}

    def create(self, progress: Progress) -> None:
        """Import what is missing, starting from the store that has most of it already."""
        with _locked(self._all):
            if self.complete:
                return
            shutil.rmtree(self.path, ignore_errors=True)  # left behind by an import that was interrupted
            base, have = self._best_base()
            if base is not None:
                _link_tree(base, self.path)
                (self.path / _COMPLETE).unlink()
            missing = {key: path for key, path in self._archives.items() if key not in have}
            if missing:
                progress(f"importing {len(missing)} image archive(s): {', '.join(p.name for p in missing.values())}")
                self._import(list(missing.values()))
            record = json.dumps({"archives": sorted(self._archives), "runtime": self._runtime.name})
            (self.path / _COMPLETE).write_text(record)

    def _best_base(self) -> tuple[Path | None, set[str]]:
        best: tuple[Path | None, set[str]] = (None, set())
        for path, record in stores(self._all):
            have = set(record["archives"])
            # One with other archives besides would carry their images along.
            if record["runtime"] == self._runtime.name and have <= set(self._archives) and len(have) > len(best[1]):
                best = (path, have)
        return best

    def _import(self, paths: Sequence[Path]) -> None:
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
        done = subprocess.run(
            [*command, "sh", "-c", import_script(self.path, self._runtime, paths)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
        )
        if done.returncode:
            raise OperationError(
                f"Images could not be imported: {done.stderr.strip()[-2000:]}", reason="ImageImportFailed"
            )

    def clone(self, directory: Path) -> None:
        """Make ``directory`` the data directory of a containerd that has these images and nothing else."""
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(mode=0o700, parents=True)
        shutil.copytree(self.path / _METADATA, directory / _METADATA)
        _link_tree(self.path / _CONTENT, directory / _CONTENT)
        snapshots = directory / _SNAPSHOTS
        (snapshots / "snapshots").mkdir(parents=True)
        shutil.copy2(self.path / _SNAPSHOTS / "metadata.db", snapshots / "metadata.db")
        for layer in (self.path / _SNAPSHOTS / "snapshots").iterdir():
            (snapshots / "snapshots" / layer.name).symlink_to(layer)


def stores(directory: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Complete stores, and what they hold."""
    if directory.is_dir():
        for path in sorted(directory.iterdir()):
            if (path / _COMPLETE).exists():
                yield path, json.loads((path / _COMPLETE).read_text())


def prune(directory: Path, used: set[str]) -> list[str]:
    """Remove stores that no sandbox uses. Returns their names."""
    removed = []
    if directory.is_dir():
        with _locked(directory):
            for path in sorted(directory.iterdir()):
                if _STORE_NAME.fullmatch(path.name) and path.name not in used:
                    shutil.rmtree(path)
                    removed.append(path.name)
    return removed


def import_script(store: Path, runtime: Path, paths: Sequence[Path]) -> str:
    """Runs a containerd of its own for as long as it takes to import the archives into the store."""
    config = f"""\
version = 2
root = "{store}"
state = "/run/slurm-ops-import"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
[grpc]
  address = "/run/slurm-ops-import/containerd.sock"
[ttrpc]
  address = "/run/slurm-ops-import/containerd.sock.ttrpc"
"""
    ctr = ["ctr", "--address", "/run/slurm-ops-import/containerd.sock", "--namespace", "k8s.io"]
    imports = "\n".join(shlex.join([*ctr, *import_arguments(path)]) + " >/dev/null" for path in paths)
    path = f"{runtime / 'usr/bin'}:{runtime / 'usr/sbin'}:/usr/sbin:/usr/bin:/sbin:/bin"
    return f"""\
set -eu
export PATH={shlex.quote(path)}
mount -t proc proc /proc
mount -t tmpfs -o mode=0755 sandbox /run
mkdir /run/slurm-ops-import
mkdir -p {shlex.quote(str(store))}
cat > /run/slurm-ops-import/config.toml <<'END'
{config}END
containerd --config /run/slurm-ops-import/config.toml 2>/run/slurm-ops-import/log >&2 &
containerd=$!
for attempt in $(seq 200); do
  [ ! -S /run/slurm-ops-import/containerd.sock ] || break
  if ! kill -0 $containerd; then tail -5 /run/slurm-ops-import/log >&2; exit 1; fi
  sleep 0.05
done
{imports}
for image in $({shlex.join([*ctr, "images", "list", "--quiet"])}); do
  {shlex.join([*ctr, "images", "label"])} "$image" {PINNED} >/dev/null
done
kill $containerd
wait $containerd || true # killed by us; what counts is that it has closed its databases
"""


def import_arguments(path: Path) -> list[str]:
    return ["images", "import", "--snapshotter", "overlayfs", str(path)]


def _link_tree(source: Path, target: Path) -> None:
    """Copy a tree so that files share their content, but the databases, which change in place.

    ``cp`` and not Python: owners and extended attributes of directories (overlayfs keeps deletions there) must
    come along.
    """
    link = ["--link"] if source.stat().st_dev == target.parent.stat().st_dev else []
    subprocess.run(["cp", "--archive", *link, "--no-target-directory", source, target], check=True)
    for database in target.rglob("*.db"):
        if database.is_file() and "snapshots/" not in str(database.relative_to(target)):
            copy = database.with_suffix(".copy")
            shutil.copy2(database, copy)
            os.replace(copy, database)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """One at a time: several sandboxes may be started at once."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(directory.with_name(directory.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
