# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module applyset's work on the cluster: read what is there, ask by dry runs, carry out the plan, wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.trouble import Seen
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import paths, rollout
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import CLAIM, CONFIG_MAP, SECRET
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import applyset as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import applyset_parent as parent_of_set
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import manifests
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.applyset import Key, Object
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.stamp import stamp
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run, do_each
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.rollout import Rollout
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.wait import wait_until
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.yaml_text import documents

SIDE_BY_SIDE = 8  # from so many neighbours on, several connections are worth their handshakes
TERMINATION = 120.0  # seconds to wait for an object of the same name to be gone


class ApplySet:
    """An Operation: see _run/module.py."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._client = run.kubernetes
        self._params = run.params
        self._options = parent_of_set.Options(
            name=run.params["name"],
            namespace=run.params["namespace"],
            prune=run.params["prune"],
            adopt=run.params["adopt"],
            recreate=run.params["recreate"],
            delete_volumes=run.params["delete_volumes"],
        )
        self._present = run.params["state"] == "present"
        self._resources: dict[str, paths.Resource] = {}
        self._wanted: dict[Key, Object] = {}
        self._observed = planner.Observed()
        self._deleted: dict[Key, Object] = {}
        self._looked = False
        self._workloads: dict[Key, Object] = {}  # as they were last seen while we waited

    # --- plan -----------------------------------------------------------------------------------------------------

    def plan(self) -> Sequence[Action]:
        """Read the set and what stands under the wanted names, and ask by dry runs what only the server can tell."""
        given = manifests.flatten(self._params["manifests"] or (), documents)
        unstamped = planner.in_order([self._located(manifests.checked(manifest)) for manifest in given])
        parent = self._client.get(CONFIG_MAP, self._options.namespace, self._options.name)
        parent_of_set.check_parent(parent, self._options)
        live = self._read_members(parent, unstamped)
        if not self._present:
            self._observed = planner.Observed(parent=parent, live=live)
            return planner.plan_absent(self._observed, self._options)
        for key, manifest in unstamped.items():
            if key not in live:
                found = self._client.get(self._resource(manifest), key.namespace or None, key.name)
                if found is not None:
                    live[key] = found
        self._wanted = self._stamped(unstamped, live)
        predicted = self._ask(self._wanted, live)
        self._observed = planner.Observed(parent=parent, live=live, predicted=predicted)
        return planner.plan(self._wanted, self._observed, self._options)

    def _located(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Put the set's namespace into a manifest that names none."""
        resource = self._client.resource(manifest["apiVersion"], manifest["kind"])
        self._resources[resource.group_kind] = resource
        metadata = dict(manifest["metadata"])
        if resource.namespaced:
            metadata.setdefault("namespace", self._options.namespace)
        else:
            metadata.pop("namespace", None)
        own_parent = resource.group_kind == "ConfigMap" and metadata["name"] == self._options.name
        if own_parent and metadata["namespace"] == self._options.namespace:
            raise OperationError(
                f"{manifests.describe({**manifest, 'metadata': metadata})} has the name of the set's own ConfigMap.",
                reason="NameClash",
                hint="Give the set another name.",
            )
        return {**manifest, "metadata": metadata}

    def _resource(self, item: Object) -> paths.Resource:
        return self._client.resource(item["apiVersion"], item["kind"])

    def _read_members(self, parent: Object | None, wanted: Mapping[Key, Object]) -> dict[Key, Object]:
        """List what carries our label: one call for each kind (and namespace) that may have members."""
        kinds, namespaces = parent_of_set.remembered(parent)
        namespaces |= {key.namespace for key in wanted if key.namespace} | {self._options.namespace}
        resources = {kind: self._remembered_resource(kind) for kind in kinds}
        resources |= {kind: resource for kind, resource in self._resources.items() if kind != "Namespace"}
        if not self._present and self._options.delete_volumes:
            resources.setdefault(CLAIM.group_kind, CLAIM)
        label = f"{manifests.PART_OF}={self._options.set_id}"
        live: dict[Key, Object] = {}
        for _kind, resource in sorted(resources.items()):
            for namespace in sorted(namespaces) if resource.namespaced else [None]:
                for item in self._client.list(resource, namespace, labels=label):
                    live[planner.key_of(item)] = item
        return live

    def _remembered_resource(self, group_kind: str) -> paths.Resource:
        found = self._resources.get(group_kind) or paths.known_group_kind(group_kind)
        if found is None:
            kind, _dot, group = group_kind.partition(".")
            answer = self._client.request("GET", f"/apis/{group}", verb="discover", target=group)
            found = self._client.resource(answer["preferredVersion"]["groupVersion"], kind)
        return found

    def _stamped(self, wanted: Mapping[Key, Object], live: Mapping[Key, Object]) -> dict[Key, Object]:
        contents: dict[tuple[str, str, str], Object | None] = {
            (manifest["kind"], key.namespace, key.name): manifest for key, manifest in wanted.items()
        }

        def content(kind: str, namespace: str, name: str, key: str) -> Any:
            place = (kind, namespace, name)
            if place not in contents:
                contents[place] = self._client.get(CONFIG_MAP if kind == "ConfigMap" else SECRET, namespace, name)
            return manifests.content(contents[place], key)

        stamped: dict[Key, Object] = {}
        for key, manifest in wanted.items():
            references = manifests.restart_references(manifest)
            values = [[*reference, content(reference[0], key.namespace, *reference[1:])] for reference in references]
            content_hash = manifests.digest(values) if values else None
            stamped[key] = stamp(manifest, self._options.set_id, content_hash, live.get(key))
        return stamped

    def _ask(
        self, wanted: Mapping[Key, Object], live: Mapping[Key, Object]
    ) -> dict[Key, Object | planner.Refused | None]:
        """Dry-run what is missing or seems to differ. In a namespace that is still to come there is nobody to ask."""
        predicted: dict[Key, Object | planner.Refused | None] = {}
        absent: set[str] = set()
        for key in planner.undecided(wanted, live):
            if key.namespace in absent:
                predicted[key] = None
                continue
            try:
                predicted[key] = self._apply(wanted[key], dry_run=True)
            except ApiError as error:
                namespace = error.missing_namespace()
                if namespace:
                    absent.add(namespace)
                    predicted[key] = None
                elif error.status in (400, 403, 404, 409, 413, 422) or error.reason == "Invalid":
                    predicted[key] = self._refused(wanted[key], error)
                else:
                    raise
        return predicted

    def _refused(self, manifest: Object, error: ApiError) -> planner.Refused:
        """Note the refusal; for a StatefulSet that may be made again, ask what the API server says to that."""
        if error.reason != "Immutable" or not self._options.recreate or manifest["kind"] != "StatefulSet":
            return planner.Refused(error.msg, error.hint, error.reason)
        # Under another name, as if new: what would be refused then must not be found out after the deletion.
        metadata = manifest["metadata"]
        try:
            new = self._apply(
                {**manifest, "metadata": {**metadata, "name": f"{metadata['name'][:50]}-anew"}}, dry_run=True
            )
        except ApiError as anew:
            return planner.Refused(anew.msg, anew.hint, anew.reason)
        instead = {**new, "metadata": {**new["metadata"], "name": metadata["name"]}}
        return planner.Refused(error.msg, error.hint, error.reason, instead)

    def _apply(self, manifest: Object, dry_run: bool = False) -> Object:
        return self._client.apply(
            manifest,
            manifest["metadata"].get("namespace"),
            force=self._params["force_conflicts"],
            dry_run=dry_run,
            resource=self._resource(manifest),
        )

    # --- act ------------------------------------------------------------------------------------------------------

    def act(self, actions: Sequence[Action]) -> None:
        """Carry out neighbours of one kind of action and one kind of object, side by side if they are many."""
        workers = 16 if len(actions) >= SIDE_BY_SIDE else 1
        do_each(self._client, self._carry_out, actions, workers)

    def _carry_out(self, action: Action) -> None:
        item: Object = action.subject
        metadata = item["metadata"]
        if action.kind in ("prune", "delete"):
            # If somebody waits for it, an object that others hang on is there until they are gone, too.
            foreground = self._params["wait"] and rollout.waits_for(item["apiVersion"], item["kind"])
            self._client.delete(
                self._resource(item),
                metadata.get("namespace"),
                metadata["name"],
                uid=metadata.get("uid"),
                propagation="Foreground" if foreground else "Background",
            )
            self._deleted[planner.key_of(item)] = item
            return
        key = planner.key_of(item)
        old = self._observed.live.get(key)
        if action.kind == "recreate" and old is not None:
            self._client.delete(
                self._resource(item), key.namespace, key.name, uid=old["metadata"]["uid"], propagation="Orphan"
            )
        if old is not None and (action.kind == "recreate" or planner.terminating(old)):
            self._wait_gone(item, old["metadata"]["uid"])
        self._apply(item)

    def _wait_gone(self, item: Object, uid: str) -> None:
        resource, metadata = self._resource(item), item["metadata"]

        def look() -> Seen:
            live = self._client.get(resource, metadata.get("namespace"), metadata["name"])
            return Seen([manifests.describe(item)] if live is not None and live["metadata"]["uid"] == uid else [])

        wait_until(
            look,
            f"The deletion of {manifests.describe(item)}",
            timeout=TERMINATION,
            interval=self._params["wait_sleep"],
            progress=self._run.progress,
        )

    # --- wait -----------------------------------------------------------------------------------------------------

    def wait(self) -> None:
        """Wait until every object of the set is ready, and what was pruned, or all of an absent set, is gone."""
        if not self._params["wait"]:
            return
        what = f"{self._options.namespace}/{self._options.name}"
        if not self._present:
            self._wait_for(self._look_gone, f"The removal of {what}")
            return
        watched = {
            manifests.describe(manifest): self._resource(manifest)
            for manifest in self._wanted.values()
            if rollout.waits_for(manifest["apiVersion"], manifest["kind"])
        }
        fresh = [action.target for action in self._run.actions if action.done]
        watch = Rollout(self._client, lambda: self._read_workloads(watched.values()), list(watched), fresh)
        try:
            self._wait_for(lambda: self._both(watch.look(), self._look_gone()), f"The rollout of {what}")
        finally:
            self._run.actions += watch.repairs
            for right in watch.blind_spots:
                self._run.warn(f"Without the right to {right}, some failures are only seen when wait_timeout is over.")

    @staticmethod
    def _both(ready: Seen, gone: Seen) -> Seen:
        return Seen([*ready.remaining, *gone.remaining], ready.troubles)

    def _wait_for(self, look: Callable[[], Seen], what: str) -> None:
        wait_until(
            look,
            what,
            timeout=self._params["wait_timeout"],
            interval=self._params["wait_sleep"],
            progress=self._run.progress,
        )

    def _read_workloads(self, resources: Iterable[paths.Resource]) -> Iterable[Object]:
        """List the members that become ready some time: one call for each kind and namespace."""
        if not self._looked:
            self._looked = True
            if not self._run.actions:
                yield from self._observed.live.values()  # read a moment ago, and nothing was written since
                return
        label = f"{manifests.PART_OF}={self._options.set_id}"
        kinds = {resource.group_kind: resource for resource in resources}
        places = sorted({(key.group_kind, key.namespace) for key in self._wanted if key.group_kind in kinds})
        for kind, namespace in places:
            for item in self._client.list(kinds[kind], namespace or None, labels=label):
                self._workloads[planner.key_of(item)] = item
                yield item

    def _look_gone(self) -> Seen:
        remaining: list[str] = []
        for key, item in self._deleted.items():
            live = self._client.get(self._resource(item), key.namespace or None, key.name)
            if live is not None and live["metadata"]["uid"] == item["metadata"]["uid"]:
                remaining.append(f"{manifests.describe(item)}: being deleted")
        return Seen(remaining)

    # --- tell -----------------------------------------------------------------------------------------------------

    def result(self) -> Mapping[str, Any]:
        """Return the objects of the set and how we came to the API server."""
        return {
            "resources": [self._described(key, manifest) for key, manifest in self._wanted.items()],
            "auth_source": self._client.connection.source,
        }

    def _described(self, key: Key, manifest: Object) -> dict[str, Any]:
        live = self._workloads.get(key) or self._observed.live.get(key)
        outdated = rollout.outdated(live) if live else None
        return {
            "api_version": manifest["apiVersion"],
            "kind": manifest["kind"],
            "namespace": key.namespace,
            "name": key.name,
            **({} if outdated is None else {"outdated": outdated}),
        }
