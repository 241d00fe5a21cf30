# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""A lock that ends with its holder: a Lease of coordination.k8s.io, taken and renewed as client-go does.

Clocks are never compared. Whoever waits looks whether the Lease changes, by its own clock; one that has not changed for
as long as its holder promised to renew it is taken over.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import LEASE

DURATION = 30  # seconds that a holder may be silent


def identity() -> str:
    """A name for this run that people understand and that no other run has."""
    return f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(3)}"


class Lease:
    """One named lock. ``clock`` and ``pause`` are there for tests."""

    def __init__(
        self,
        client: KubernetesClient,
        namespace: str,
        name: str,
        *,
        holder: str = "",
        duration: int = DURATION,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self.holder = holder or identity()
        self._duration = duration
        self._clock = clock
        self._pause = pause
        self._renewed: float | None = None  # when we last knew that it is ours; None when it is not
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def held(self) -> bool:
        """Whether it is ours: nobody else can have taken it over before our own time is over."""
        return self._renewed is not None and self._clock() - self._renewed < self._duration

    def acquire(self, timeout: float) -> None:
        """Take it, or wait for it. Raises OperationError (Locked) that names the holder when ``timeout`` is over."""
        begun = self._clock()
        seen: Any = None
        since = begun
        while True:
            found = self._client.get(LEASE, self._namespace, self._name)
            spec: Mapping[str, Any] = (found or {}).get("spec") or {}
            holder = str(spec.get("holderIdentity") or "")
            mark = (holder, spec.get("renewTime"), spec.get("leaseTransitions"))
            if mark != seen:
                seen, since = mark, self._clock()
            silent = self._clock() - since
            if (not holder or holder == self.holder or silent >= float(spec.get("leaseDurationSeconds") or 0)) and (
                self._take(found, spec)
            ):
                return
            waited = self._clock() - begun
            if waited >= timeout:
                raise OperationError(
                    f"Another run ({holder or 'unknown'}) holds Lease {self._namespace}/{self._name}"
                    f" (renewed {spec.get('renewTime')}; waited {waited:.0f} s). Nothing was changed.",
                    reason="Locked",
                    remaining=[holder],
                    hint="Wait for its end. One that was killed gives way after "
                    f"{spec.get('leaseDurationSeconds') or self._duration} s.",
                )
            self._pause(min(1.0, max(0.05, timeout - waited)))

    def renew(self) -> bool:
        """Say that we are still here; False when somebody else has it."""
        found = self._client.get(LEASE, self._namespace, self._name)
        spec: Mapping[str, Any] = (found or {}).get("spec") or {}
        if found is None or spec.get("holderIdentity") != self.holder or not self._take(found, spec):
            self._renewed = None
            return False
        return True

    def keep(self) -> None:
        """Renew in the background until it is released."""
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._renew_often, daemon=True)
            self._thread.start()

    def release(self) -> None:
        """Give it up, so that nobody has to wait; what cannot be reached gives way by itself."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
            self._thread = None
        if not self.held:
            return
        self._renewed = None
        try:
            found = self._client.get(LEASE, self._namespace, self._name)
            if found and (found.get("spec") or {}).get("holderIdentity") == self.holder:
                self._write(found, {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()})
        except OperationError:
            return

    def _renew_often(self) -> None:
        while not self._stop.wait(self._duration / 3):
            try:
                if not self.renew():
                    return
            except OperationError:
                continue  # held() turns False by itself when this goes on

    def _take(self, found: Mapping[str, Any] | None, spec: Mapping[str, Any]) -> bool:
        begun = self._clock()
        ours = spec.get("holderIdentity") == self.holder
        wanted: dict[str, Any] = {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self._duration,
            "renewTime": _now(),
        }
        if not ours:
            wanted |= {"acquireTime": _now(), "leaseTransitions": int(spec.get("leaseTransitions") or 0) + bool(spec)}
        try:
            if found is None:
                metadata = {"name": self._name}
                manifest = {"apiVersion": LEASE.api_version, "kind": "Lease", "metadata": metadata, "spec": wanted}
                self._client.create(manifest, self._namespace)
            else:
                self._write(found, wanted)
        except ApiError as error:
            if error.status in (404, 409):
                return False  # somebody was quicker
            raise
        self._renewed = begun  # the earliest time that the others can have seen
        return True

    def _write(self, found: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
        """Change it if it is still what we saw."""
        version = found["metadata"]["resourceVersion"]
        change = {"metadata": {"resourceVersion": version}, "spec": spec}
        self._client.patch(LEASE, self._namespace, self._name, change)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
