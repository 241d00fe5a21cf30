# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module restore's work: an archive's keys, database and state put in place before the daemons start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import archive, kept_objects, transfer
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.archive_place import parse_archive
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.names import controller_pods, state_claim
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import CLUSTER, COMPONENT, WORKER
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import (
    CLAIM,
    CONFIG_MAP,
    DAEMON_SET,
    NAMESPACE,
    POD,
    SECRET,
    STATEFUL_SET,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.applyset_parent import applyset_id
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.manifests import PART_OF
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.restore import (
    BROUGHT,
    DATABASE,
    FROM,
    Found,
    Wanted,
    plan_restore,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.archive_file import Archive
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.archive_store import store_of
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.data_places import Places, require
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.tool_pod import (
    CONTAINER,
    SLURM_USER,
    end_left,
    tool_pod,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.wait import Seen, wait_until

STOPPED = {resource.kind: resource for resource in (STATEFUL_SET, DAEMON_SET)}


class Restore:
    """An Operation: see _run/module.py."""

    def __init__(self, run: Run) -> None:
        self._run = run
        params = run.params
        self._namespace: str = params["namespace"]
        self._places = Places(run)
        self._claim_name = state_claim(params["name"])
        self._daemons = (f"{params['name']}-controller", f"{params['name']}-accounting")
        self._found = Found()
        place, archive_name = parse_archive(params["archive"])
        self._path = run.held.enter_context(store_of(run, place).local(archive_name))
        with self._open() as given:
            # Before anything is read of the cluster: no part of a damaged archive is used.
            archive.check_fits(given.path, given.manifest, params["name"], params["slurm_version"])
            given.check()
            self._manifest = given.manifest
            self._wanted = self._read(given)

    def _open(self) -> Archive:
        return Archive(self._path, self._run.params["passphrase"], self._run.params["archive"])

    def _read(self, given: Archive) -> Wanted:
        params = self._run.params
        topology = [
            item
            for item in kept_objects.kept(given.path, given.read(archive.CONFIGURATION), "ConfigMap")
            if item["metadata"]["name"] == f"{params['name']}-topology"
        ]
        return Wanted(
            namespace=self._namespace,
            archive=given.manifest.id,
            parts=params["parts"],
            claim=self._claim_name,
            database=self._places.database_target,
            database_secret=self._places.database_secret,
            secrets=kept_objects.kept(given.path, given.read(archive.SECRETS), "Secret"),
            topology=topology[0] if topology else None,
            replace=params["replace"],
        )

    def plan(self) -> Sequence[Action]:
        """Read what is in the namespace."""
        get = self._run.kubernetes.get
        names = [item["metadata"]["name"] for item in self._wanted.secrets]
        secrets = {name: get(SECRET, self._namespace, name) for name in names}
        daemons = {name: get(STATEFUL_SET, self._namespace, name) for name in self._daemons}
        self._found = Found(
            namespace_exists=self._namespace_exists(),
            secrets={name: item for name, item in secrets.items() if item is not None},
            topology=get(CONFIG_MAP, self._namespace, f"{self._run.params['name']}-topology"),
            daemons=[name for name, item in daemons.items() if item is not None],
            claim=get(CLAIM, self._namespace, self._claim_name),
            workers=self._workers() if self._wanted.loads else (),
        )
        return plan_restore(self._wanted, self._found)

    def _workers(self) -> list[tuple[str, str]]:
        labels = f"{CLUSTER}={self._run.params['name']},{COMPONENT}={WORKER}"
        return [
            (kind, item["metadata"]["name"])
            for kind, resource in STOPPED.items()
            for item in self._run.kubernetes.list(resource, self._namespace, labels=labels)
        ]

    def _namespace_exists(self) -> bool:
        try:
            return self._run.kubernetes.get(NAMESPACE, None, self._namespace) is not None
        except ApiError as error:
            # An account for one namespace cannot see the Namespace itself, and need not.
            if error.status != 403:
                raise
            return True

    def act(self, actions: Sequence[Action]) -> None:
        """Carry out one action, or all that stop something."""
        for action in actions:
            if action.kind == "stop":
                kind, name = action.subject
                self._run.kubernetes.delete(STOPPED[kind], self._namespace, name)
            elif action.kind == "load":
                self._load(action)
            elif action.subject == "namespace":
                self._run.kubernetes.create(
                    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}, None
                )
            elif action.subject == "claim":
                self._begin()
            else:
                self._put(action)
            action.done = True
        if actions[0].kind == "stop":
            self._await_stopped()

    def _put(self, action: Action) -> None:
        item, client = action.subject, self._run.kubernetes
        if action.kind == "create":
            client.create(item, self._namespace)
            return
        resource = SECRET if item["kind"] == "Secret" else CONFIG_MAP
        name = item["metadata"]["name"]
        live = self._found.secrets.get(name) if item["kind"] == "Secret" else self._found.topology
        gone = {key: None for key in ((live or {}).get("data") or {}) if key not in (item.get("data") or {})}
        client.patch(resource, self._namespace, name, {"data": {**gone, **(item.get("data") or {})}})

    def _await_stopped(self) -> None:
        name = self._run.params["name"]
        pods = [*controller_pods(name), f"{name}-accounting-0"]

        def look() -> Seen:
            left = [pod for pod in pods if self._run.kubernetes.get(POD, self._namespace, pod) is not None]
            return Seen([f"Pod {self._namespace}/{pod}" for pod in left])

        timeout = self._run.params["wait_timeout"]
        wait_until(look, "Stopping the daemons", timeout=timeout, interval=2, progress=self._run.progress)

    # --- the claim, with the note of what was brought ---------------------------------------------------------------

    def _begin(self) -> None:
        if self._found.claim is None:
            self._run.kubernetes.create(self._new_claim(), self._namespace)
        else:
            self._note(())

    def _new_claim(self) -> Mapping[str, Any]:
        """The claim that role slurmctld would make, and takes over when it is there."""
        params = self._run.params
        spec: dict[str, Any] = {
            "accessModes": [params["state_access_mode"]],
            "resources": {"requests": {"storage": params["state_size"]}},
        }
        if params["state_storage_class"]:
            spec["storageClassName"] = params["state_storage_class"]
        labels = {
            "app.kubernetes.io/name": "slurmctld",
            "app.kubernetes.io/instance": params["name"],
            PART_OF: applyset_id(f"{params['name']}-controller", self._namespace),
        }
        annotations = {FROM: self._manifest.id, BROUGHT: ""}
        metadata = {"name": self._claim_name, "labels": labels, "annotations": annotations}
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}

    def _note(self, brought: Sequence[str]) -> None:
        annotations = {FROM: self._manifest.id, BROUGHT: " ".join(brought)}
        self._run.kubernetes.patch(CLAIM, self._namespace, self._claim_name, {"metadata": {"annotations": annotations}})

    # --- the data ---------------------------------------------------------------------------------------------------

    def _load(self, action: Action) -> None:
        self._run.progress.say(f"loading {action.target}")
        if action.subject == DATABASE:
            self._load_database()
        else:
            self._load_state()
        # Read again: the other part may have been noted by this run or an earlier one.
        claim = self._run.kubernetes.get(CLAIM, self._namespace, self._claim_name)
        brought = Found(claim=claim).brought[1]
        self._note([*(part for part in brought if part != action.subject), action.subject])

    def _load_database(self) -> None:
        what = f"Loading {self._places.database_target}"
        part = self._manifest.part(archive.DATABASE)
        # What a restore from this archive began to load is ours to begin anew.
        replace = self._run.params["replace"] or self._found.brought[0] == self._manifest.id
        with self._open() as given, self._places.database_client() as client:
            command = self._places.database.load(part.size, replace=replace)
            ended = client.stream(what, command, source=given.chunks(part.name))
        if ended.rc == transfer.NOT_EMPTY:
            raise OperationError(
                f"{self._places.database_target} has {ended.stderr.split()[-1]} tables.",
                reason="Live",
                hint="They were left alone. Empty it, or say that the cluster is to be replaced.",
            )
        require(ended, what, client.pod)

    def _load_state(self) -> None:
        params = self._run.params
        part = self._manifest.part(archive.STATE)
        volumes = [{"name": "state", "persistentVolumeClaim": {"claimName": self._claim_name}}]
        mounts = [{"name": "state", "mountPath": transfer.STATE_FOLDER}]
        timeout = params["wait_timeout"]
        end_left(self._run, "state")
        with (
            self._open() as given,
            tool_pod(self._run, "state", params["state_image"], SLURM_USER, volumes, mounts, timeout) as pod,
        ):
            what = f"Loading the state of slurmctld into PersistentVolumeClaim {self._namespace}/{self._claim_name}"
            reach = self._places.reach(pod, CONTAINER)
            command = transfer.unpack_state(transfer.STATE_FOLDER, part.size)
            require(reach.stream(what, command, source=given.chunks(part.name)), what, pod)

    def wait(self) -> None:
        """There is nothing to wait for: the daemons are started by the roles."""

    def result(self) -> Mapping[str, Any]:
        """Return what the archive is."""
        return {"archive": self._run.params["archive"], "manifest": archive.short_manifest(self._manifest)}
