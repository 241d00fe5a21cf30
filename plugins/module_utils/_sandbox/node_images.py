# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Which images each node has, and how it gets those that it lacks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

from . import images, namespaces
from .components import search_path
from .images import Store
from .processes import Process
from .settings import Settings


class NodeImages:
    """The images of the nodes of one sandbox. ``contents`` maps the identity of each archive to its path."""

    def __init__(self, settings: Settings, contents: Mapping[str, Path]) -> None:
        self._settings = settings
        self._contents = dict(contents)
        self.store = Store(settings.cache / "sandbox-images", contents, settings.runtime)

    def _record(self, node: str) -> Path:
        return self._settings.node_directory(node) / "images.json"

    def _write(self, node: str, store: str, identities: Sequence[str]) -> None:
        self._record(node).write_text(json.dumps({"store": store, "archives": sorted(identities)}))

    def provide(self, node: str) -> None:
        """Give a node whose containerd does not run all images of the store."""
        self.store.clone(self._settings.node_directory(node) / "containerd")
        self._write(node, self.store.name, list(self._contents))
        users = self.store.path / "users"
        users.mkdir(exist_ok=True)
        (users / self._settings.name).write_text(str(self._settings.directory))

    def lacking(self, node: str) -> dict[str, Path]:
        """Archives that a running node has not imported."""
        try:
            have = json.loads(self._record(node).read_text())["archives"]
        except FileNotFoundError:
            have = []
        return {key: path for key, path in self._contents.items() if key not in have}

    def deliver(self, holders: Mapping[str, Process]) -> None:
        """Import into running nodes what they lack: nodes side by side, a node's archives one after the other.

        Two imports into one containerd that share layers get in each other's way ("parent snapshot does not exist").
        """
        lacking = {node: list(self.lacking(node).values()) for node in holders}
        failed = []
        for turn in range(max(map(len, lacking.values()), default=0)):
            running = [
                (node, paths[turn], self._start_import(node, holders[node], paths[turn]))
                for node, paths in lacking.items()
                if turn < len(paths)
            ]
            for node, path, process in running:
                errors = process.communicate()[1]
                if process.returncode:
                    failed.append(f"{path} on {node}: {errors.strip()[-500:]}")
        if failed:
            raise OperationError("Images could not be imported.", reason="ImageImportFailed", remaining=failed)
        for node in holders:
            record = json.loads(self._record(node).read_text())
            self._write(node, record["store"], [*record["archives"], *self.lacking(node)])

    def _start_import(self, node: str, holder: Process, path: Path) -> subprocess.Popen[str]:
        settings = self._settings
        ctr = ["ctr", "--address", str(settings.containerd_socket(node)), "--namespace", "k8s.io"]
        path_of_tools = ["env", f"PATH={search_path(settings)}"]
        return subprocess.Popen(
            [*namespaces.enter(holder.pid, hub=False), *path_of_tools, *ctr, *images.import_arguments(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
        )


def prune_stores(cache: Path) -> list[str]:
    """Remove stores that no node of any sandbox refers to any more."""
    directory = cache / "sandbox-images"
    return images.prune(directory, {path.name for path, _record in images.stores(directory) if not _is_unused(path)})


def _is_unused(store: Path) -> bool:
    """Whether it had users and has none left. One that never had any was made a moment ago, for a node to come."""
    users = list((store / "users").iterdir()) if (store / "users").is_dir() else []
    records = [record for user in users for record in Path(user.read_text()).glob("nodes/*/images.json")]
    return bool(users) and all(json.loads(record.read_text())["store"] != store.name for record in records)
