# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module secret's work on the cluster: read the Secret, ask by a dry run, generate what is missing, send it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import SECRET
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import secret as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run


class SecretOnce:
    """An Operation: see _run/module.py."""

    def __init__(self, run: Run) -> None:
        self._client = run.kubernetes
        self._present = run.params["state"] == "present"
        self._wanted = planner.Wanted(
            name=run.params["name"],
            namespace=run.params["namespace"],
            entries=planner.entries(run.params["data"] or {}),
            type=run.params["type"],
            labels={str(key): str(value) for key, value in (run.params["labels"] or {}).items()},
            annotations={str(key): str(value) for key, value in (run.params["annotations"] or {}).items()},
            immutable=run.params["immutable"],
        )
        self._change = planner.Change()
        self._live: Mapping[str, Any] | None = None

    def plan(self) -> Sequence[Action]:
        """Read the Secret and find what it lacks; rights, quota and type are checked by a dry run with empty values."""
        self._read()
        if not self._present:
            return planner.plan_absent(self._wanted, self._live)
        self._change, actions = planner.plan(self._wanted, self._live)
        if actions:
            try:
                self._send(self._change.placeholders, dry_run=True)
            except ApiError as error:
                # In check mode the namespace may be one that an earlier task only predicted; else sending will fail.
                if not error.missing_namespace():
                    raise
        return actions

    def _read(self) -> None:
        self._live = self._client.get(SECRET, self._wanted.namespace, self._wanted.name)

    def _send(self, generated: Mapping[str, str], dry_run: bool = False) -> None:
        manifest = self._change.manifest(self._wanted, generated)
        if self._live is None:
            self._client.create(manifest, self._wanted.namespace, dry_run=dry_run)
            return
        # With the version that was looked at: a key that somebody else adds meanwhile is not written over.
        manifest["metadata"] = {
            **{key: value for key, value in manifest["metadata"].items() if key in ("labels", "annotations")},
            "resourceVersion": self._live["metadata"]["resourceVersion"],
        }
        self._client.patch(SECRET, self._wanted.namespace, self._wanted.name, manifest, dry_run=dry_run)

    def act(self, actions: Sequence[Action]) -> None:
        """Create, complete or delete the Secret."""
        for action in actions:
            if action.kind == "delete":
                self._client.delete(
                    SECRET, self._wanted.namespace, self._wanted.name, uid=action.subject["metadata"]["uid"]
                )
            else:
                self._send_generated()
            action.done = True

    def _send_generated(self) -> None:
        from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import keys

        generated: dict[str, str] = {}
        have: Mapping[str, str] = (self._live or {}).get("data") or {}
        for entry, missing in self._change.generate:
            existing = base64.b64decode(have[entry.name]) if have.get(entry.name) else None
            made = keys.make(entry.how, entry.name, entry.arguments, existing)
            generated |= {key: base64.b64encode(made[key]).decode() for key in missing}
        try:
            self._send(generated)
        except ApiError as error:
            if error.reason not in ("AlreadyExists", "Conflict"):
                raise
            raise OperationError(
                f"{self._wanted.target} was changed by somebody else at the same moment.",
                reason="Conflict",
                hint="Nothing was written over; run again.",
            ) from error

    def wait(self) -> None:
        """There is nothing to wait for: a Secret is there at once."""

    def result(self) -> Mapping[str, Any]:
        """Return which keys the Secret has, never what is in them."""
        have = set((self._live or {}).get("data") or {})
        made = {*self._change.placeholders, *self._change.values}
        return {
            "keys": sorted(have | made) if self._present else [],
            "auth_source": self._client.connection.source,
        }
