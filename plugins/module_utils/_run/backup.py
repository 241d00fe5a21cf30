# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module backup's work: state, database, keys and configuration of a running cluster into one archive."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import archive, kept_objects, transfer
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.archive import Manifest
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.archive_place import parse_place
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.names import state_claim
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import CLUSTER
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.versions import parse_version
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import (
    CLAIM,
    CONFIG_MAP,
    SECRET,
    STATEFUL_SET,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.archive_file import Archive, ArchiveWriter
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.archive_store import store_of
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.data_places import Places
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.sealed import new_seal

Take = Callable[[bytes], None]
WRITING = "archive"  # the copies and the writing are done together or not at all


class Backup:
    """An Operation: see _run/module.py."""

    def __init__(self, run: Run) -> None:
        self._run = run
        params = run.params
        self._places = Places(run)
        self._made = archive.moment(time.time())
        self._place = parse_place(params["folder"])
        self._store = store_of(run, self._place)
        name = params["archive_name"]
        self._name = archive.check_name(name) if name else archive.dated_name(params["name"], self._made)
        self._manifest = Manifest(
            id=secrets.token_hex(16),
            cluster=params["name"],
            namespace=params["namespace"],
            slurm="",
            database=params["database_name"],
            made=self._made.isoformat(timespec="seconds"),
            seal=new_seal() if params["passphrase"] else None,
        )
        self._size: int | None = None
        self._absent = False

    def plan(self) -> Sequence[Action]:
        """Read how much there is of what. An archive of that name that is there is left alone."""
        if self._run.params["skip_absent"] and self._is_absent():
            self._absent = True
            return []
        with self._store.opened() as shelf:
            there = shelf.names()
        if self._name in there:
            self._look_at_old()
            return []
        said = self._places.controller.read("Reading Slurm's version", ["slurmctld", "-V"])
        release = said.split()[-1] if said.split() else ""
        parse_version(release)
        self._manifest = replace(self._manifest, slurm=release)
        return [*self._copies(), *self._removals(there)]

    def _is_absent(self) -> bool:
        get, namespace, name = self._run.kubernetes.get, self._run.params["namespace"], self._run.params["name"]
        return (
            get(STATEFUL_SET, namespace, f"{name}-controller") is None
            and get(CLAIM, namespace, state_claim(name)) is None
        )

    def _look_at_old(self) -> None:
        target = self._place.of(self._name)
        with self._store.local(self._name) as path, Archive(path, self._run.params["passphrase"], target) as old:
            self._manifest = old.manifest
            self._size = path.stat().st_size
        if self._manifest.cluster != self._run.params["name"]:
            raise OperationError(
                f"{target} is of the cluster {self._manifest.cluster}.",
                reason="OtherCluster",
                hint="Nothing was changed; choose another archive_name.",
            )

    def _copies(self) -> Sequence[Action]:
        namespace = self._run.params["namespace"]
        state = f"StateSaveLocation of Pod {namespace}/{self._places.controller.pod}"
        secret_names = [item["metadata"]["name"] for item in self._secrets()]
        map_names = [item["metadata"]["name"] for item in self._config_maps()]
        # A database elsewhere is reached by a Pod that only the real run makes.
        database = None if self._places.external else self._database_size()
        return [
            Action("copy", state, archive.STATE, after={"bytes": self._state_size()}, stage=WRITING),
            Action("copy", self._places.database_target, archive.DATABASE, after={"bytes": database}, stage=WRITING),
            Action("copy", f"Secrets of {namespace}", archive.SECRETS, after=secret_names, stage=WRITING),
            Action("copy", f"ConfigMaps of {namespace}", archive.CONFIGURATION, after=map_names, stage=WRITING),
            Action("write", self._place.of(self._name), "not there yet", stage=WRITING),
        ]

    def _removals(self, there: Sequence[str]) -> Sequence[Action]:
        cluster, keep = self._run.params["name"], self._run.params["keep"]
        old = [(name, f"only {keep} are kept") for name in archive.outdated(there, cluster, keep, self._name)]
        old += [(name, "of a run that was killed") for name in archive.abandoned(there, cluster, self._made)]
        return [Action("remove", self._place.of(name), why, stage=WRITING, subject=name) for name, why in old]

    def _state_size(self) -> int:
        return int(self._places.controller.read("Measuring the state of slurmctld", transfer.state_size()))

    def _database_size(self) -> int:
        with self._places.database_client() as client:
            return int(float(client.read("Measuring the database", self._places.database.size())))

    def _secrets(self) -> Sequence[Mapping[str, Any]]:
        params = self._run.params
        names = kept_objects.secret_names(params["name"], self._places.auth_secret, self._places.database_secret)
        found = [self._run.kubernetes.get(SECRET, params["namespace"], name) for name in names]
        if found[0] is None:
            raise OperationError(
                f"Secret {params['namespace']}/{names[0]} does not exist, so the keys of the cluster cannot be kept.",
                reason="NoKey",
                hint="Check name, namespace and auth_secret.",
            )
        return [item for item in found if item is not None]

    def _config_maps(self) -> Sequence[Mapping[str, Any]]:
        params = self._run.params
        return self._run.kubernetes.list(CONFIG_MAP, params["namespace"], labels=f"{CLUSTER}={params['name']}")

    def act(self, actions: Sequence[Action]) -> None:
        """Make the archive as a whole or not at all; then remove old ones."""
        passphrase = self._run.params["passphrase"]
        with self._store.draft(self._name) as draft:
            with ArchiveWriter(draft, self._manifest, passphrase) as writer:
                writer.part(archive.STATE, self._copy_state)
                writer.part(archive.DATABASE, self._dump)
                writer.part(archive.SECRETS, lambda take: take(kept_objects.keep(self._secrets())))
                writer.part(archive.CONFIGURATION, lambda take: take(kept_objects.keep(self._config_maps())))
                self._run.progress.say("reading the archive back")
                self._size = writer.finish()
                self._manifest = writer.manifest
            self._run.progress.say(f"putting it into {self._place.of('')}")
            with self._store.opened() as shelf:
                shelf.put(draft, self._name)
                for action in actions:
                    if action.kind == "remove":
                        shelf.remove(action.subject)
                    action.done = True

    def _copy_state(self, take: Take) -> None:
        self._run.progress.say("copying the state of slurmctld")
        self._places.controller.read("Copying the state of slurmctld", transfer.copy_state(), self._told(take))

    def _dump(self, take: Take) -> None:
        self._run.progress.say(f"copying {self._places.database_target}")
        with self._places.database_client() as client:
            client.read(f"Copying {self._places.database_target}", self._places.database.dump(), self._told(take))

    def _told(self, take: Take) -> Take:
        """``take``, with a line for people now and then."""
        count = 0

        def tell(data: bytes) -> None:
            nonlocal count
            count += len(data)
            self._run.progress.tell(f"{count / 2**20:.0f} MiB so far")
            take(data)

        return tell

    def wait(self) -> None:
        """There is nothing to wait for: the archive was read back before it got its name."""

    def result(self) -> Mapping[str, Any]:
        """Return what is in the archive, or would be."""
        target = None if self._absent else self._place.of(self._name)
        return {"archive": target, "bytes": self._size, "manifest": archive.short_manifest(self._manifest)}
