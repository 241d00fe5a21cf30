# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Watch workloads become ready: few calls while all goes well, a close look where something does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.names import DOMAIN
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.trouble import Seen, Trouble
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import pods, rollout, trouble
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import ApiError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import EVENT, POD, REPLICA_SET
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action

Object = Mapping[str, Any]


FIRST_INSPECTION = 1.0  # seconds: most of what becomes ready at all has no trouble to find before
INSPECTION = 2.0  # seconds between two close looks
LOG_LASTS = 10.0  # seconds for which a log that was read is good enough
# Seconds that Pods without any readiness probe must stay up to count as ready, as they are Ready whenever they run.
STEADY = 2.5
SETTLED = 10.0  # the same when a container without a probe has crashed before
PATIENCE = 90.0  # seconds for a controller that may be pausing after failures that are mended by now
OLD = 60.0  # seconds; a Pod that was younger when the wait began is not taken to be left over from an earlier run


class Rollout:
    """Looks at workloads until they are ready.

    ``read`` returns the workloads as they are now; what they are called is told by ``expected``, so that a missing one
    is seen. ``fresh`` names those ("Kind namespace/name") that this run has just created or changed.
    """

    def __init__(
        self,
        client: KubernetesClient,
        read: Callable[[], Iterable[Object]],
        expected: Collection[str],
        fresh: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._read = read
        self._expected = expected
        self._fresh = frozenset(fresh)
        self._clock = clock
        self._begun = clock()
        self._inspected = float("-inf")
        self._troubles: list[Trouble] = []
        self._logs: dict[tuple[str, str, int, int], str] = {}
        self._forbidden: set[str] = set()
        self._repaired: set[str] = set()
        self._crashed = False
        self._ready_since: float | None = None
        self._refusals: dict[str, Object | None] = {}
        self.repairs: list[Action] = []

    @property
    def blind_spots(self) -> Sequence[str]:
        """What we have no right to look at, so that some troubles are only seen when the time is over."""
        return sorted(self._forbidden)

    def look(self) -> Seen:
        """Look once: a list for each kind and, while something is not ready, now and then a close look at its Pods."""
        items = {trouble.name_of(item): item for item in self._read()}
        remaining: list[str] = []
        unready: list[Object] = []
        for name in self._expected:
            lacks = rollout.missing(items[name]) if name in items else "not there"
            if lacks:
                remaining.append(f"{name}: {lacks}")
                unready += [items[name]] if name in items else []
        now = self._clock()
        if not remaining:
            self._troubles = []
            self._ready_since = now if self._ready_since is None else self._ready_since
            if now - self._ready_since < self._must_stay(items):
                remaining.append("all is ready: watched whether it stays up, as no readiness probe tells")
            return Seen(remaining)
        self._ready_since = None
        if now - self._begun >= FIRST_INSPECTION and now - self._inspected >= INSPECTION:
            self._inspected = now
            self._troubles = [found for item in unready for found in self._inspect(item)]
        return Seen(remaining, self._troubles)

    def _must_stay(self, items: Mapping[str, Object]) -> float:
        """How long what is ready must stay so before it is believed."""
        if self._crashed:
            return SETTLED
        fresh = [items[name] for name in self._expected if name in self._fresh]
        return STEADY if any(pods.has_no_probe(item) for item in fresh) else 0.0

    # --- a close look ---------------------------------------------------------------------------------------------

    def _inspect(self, item: Object) -> list[Trouble]:
        namespace = str(item["metadata"].get("namespace"))
        if item["kind"] == "PersistentVolumeClaim":
            events = self._claim_events([item["metadata"]["name"]], namespace)
            return trouble.claim_troubles([item["metadata"]["name"]], namespace, events)
        events = self._events(item)
        found = self._workload_troubles(item, events)
        all_pods = [item] if item["kind"] == "Pod" else self._pods(item)
        looked_at = 0
        for pod in all_pods:
            if pods.is_ready(pod) or looked_at >= trouble.MOST_LOOKED_AT:
                continue
            looked_at += 1
            self._crashed = self._crashed or pods.crashed_without_probe(pod)
            pod_events = self._events(pod) + self._claim_events(_claims(pod), namespace)
            troubles = trouble.pod_troubles(pod, pod_events, self._log)
            if troubles and pod is not item and self._repair_pod(pod, item, troubles[0]):
                continue
            # Pods of an earlier template will go; what ails them is no reason to give up.
            found += [] if pod is not item and pods.revision_is_old(pod, item) else troubles
        return found

    def _workload_troubles(self, item: Object, events: Sequence[Object]) -> list[Trouble]:
        name = trouble.name_of(item)
        if item["kind"] not in ("StatefulSet", "DaemonSet"):
            return trouble.workload_troubles(item, events, 8 if name in self._fresh else PATIENCE)
        # Its controller pauses longer and longer after each refusal. If the refusal is from before this run, what was
        # in the way may be gone by now: touching the object makes the controller try at once, and its answer counts.
        refusal = trouble.refusal(item, events)
        if refusal is not None and name not in self._fresh and name not in self._refusals:
            self._refusals[name] = refusal
            self._nudge(item, str(refusal.get("message", "")))
        if refusal is not None and _same_event(refusal, self._refusals.get(name)):
            return []
        return trouble.workload_troubles(item, events)

    def _nudge(self, item: Object, message: str) -> None:
        resource = self._client.resource(item["apiVersion"], item["kind"])
        change = {"metadata": {"annotations": {f"{DOMAIN}/tried-again": self._client.server_date}}}
        if self._allowed(
            "patch " + resource.group_resource,
            lambda: self._client.patch(resource, item["metadata"]["namespace"], item["metadata"]["name"], change),
        ):
            why = f"its controller was pausing after: {message[:200]}"
            self.repairs.append(Action("retry", trouble.name_of(item), why, done=True))

    def _repair_pod(self, pod: Object, workload: Object, because: Trouble) -> bool:
        """Delete a Pod that holds the rollout up and cannot get on by itself; True if it was deleted just now."""
        uid = pod["metadata"]["uid"]
        if uid in self._repaired or not pods.is_stuck(pod, workload, self._age_at_start(pod) > OLD):
            return False
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        self._repaired.add(uid)
        if not self._allowed("delete pods", lambda: self._client.delete(POD, namespace, name, uid=uid)):
            return False
        why = f"holds the rollout up: {because.text}"
        self.repairs.append(Action("delete", trouble.name_of(pod), why, before="present", after="absent", done=True))
        return True

    def _age_at_start(self, pod: Object) -> float:
        """How many seconds old the Pod was when this wait began, by the API server's clock."""
        from email.utils import parsedate_to_datetime

        try:
            now = parsedate_to_datetime(self._client.server_date)
            made = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
        except (ValueError, TypeError, KeyError):
            return 0.0
        return (now - made).total_seconds() - (self._clock() - self._begun)

    # --- reading --------------------------------------------------------------------------------------------------

    def _allowed(self, right: str, call: Callable[[], Any]) -> Any:
        """Make a call that only helps to see or mend more; without the right to it, remember that and go on."""
        if right in self._forbidden:
            return None
        try:
            return call()
        except ApiError as error:
            if error.status == 404:
                return None  # gone in the meantime
            if error.status not in (400, 403):
                raise
            if error.status == 403:
                self._forbidden.add(right)
            return None

    def _pods(self, item: Object) -> list[Object]:
        """Return the workload's Pods; of a Deployment those of its newest template."""
        namespace, uid = item["metadata"]["namespace"], item["metadata"]["uid"]
        labels = _selector(item["spec"].get("selector") or {})
        found = self._allowed("list pods", lambda: self._client.list(POD, namespace, labels=labels)) or []
        if item["kind"] != "Deployment":
            return [pod for pod in found if uid in _owners(pod)]
        if len({owner for pod in found for owner in _owners(pod)}) <= 1:
            return list(found)
        revision = (item["metadata"].get("annotations") or {}).get("deployment.kubernetes.io/revision")
        sets = self._allowed("list replicasets.apps", lambda: self._client.list(REPLICA_SET, namespace, labels=labels))
        newest = {
            entry["metadata"]["uid"]
            for entry in sets or ()
            if uid in _owners(entry)
            and (entry["metadata"].get("annotations") or {}).get("deployment.kubernetes.io/revision") == revision
        }
        return [pod for pod in found if not newest or newest & _owners(pod)]

    def _events(self, item: Object) -> list[Object]:
        fields = f"involvedObject.uid={item['metadata']['uid']}"
        namespace = item["metadata"].get("namespace")
        found = self._allowed("list events", lambda: self._client.list(EVENT, namespace, fields=fields))
        return list(found or ())

    def _claim_events(self, claims: Iterable[str], namespace: str) -> list[Object]:
        return [event for name in claims for event in self._events_of_claim(name, namespace)]

    def _events_of_claim(self, name: str, namespace: str) -> list[Object]:
        fields = f"involvedObject.kind=PersistentVolumeClaim,involvedObject.name={name}"
        found = self._allowed("list events", lambda: self._client.list(EVENT, namespace, fields=fields))
        return list(found or ())

    def _log(self, pod: Object, container: str) -> str:
        """Return the last lines of a container's last run, read once for each crash and now and then while it runs."""
        restarts = next(
            (int(entry.get("restartCount") or 0) for entry in pods.containers(pod) if entry["name"] == container), 0
        )
        key = (pod["metadata"]["uid"], container, restarts, int((self._clock() - self._begun) / LOG_LASTS))
        if key not in self._logs:
            namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
            text = self._allowed("get pods/log", lambda: self._client.log_tail(namespace, name, container)) or ""
            # A log that is gone is an answer with status 200, too.
            gone = text.startswith(("unable to retrieve container logs", "failed to try resolving symlinks"))
            self._logs[key] = "" if gone else text
        return self._logs[key]


def _owners(item: Object) -> set[str]:
    return {owner["uid"] for owner in item["metadata"].get("ownerReferences") or ()}


def _claims(pod: Object) -> list[str]:
    """Return the volume claims of a Pod that has no Node yet."""
    spec = pod.get("spec") or {}
    if spec.get("nodeName"):
        return []
    claims = [volume.get("persistentVolumeClaim") for volume in spec.get("volumes") or ()]
    return [claim["claimName"] for claim in claims if claim]


def _same_event(one: Object, other: Object | None) -> bool:
    if other is None:
        return False
    return all(one.get(part) == other.get(part) for part in ("lastTimestamp", "count", "series")) and (
        one["metadata"].get("uid") == other["metadata"].get("uid")
    )


def _selector(selector: Mapping[str, Any]) -> str:
    """Return a label selector as the query parameter wants it."""
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for rule in selector.get("matchExpressions") or ():
        values = ",".join(rule.get("values") or ())
        operator = rule["operator"]
        if operator in ("In", "NotIn"):
            parts.append(f"{rule['key']} {operator.lower()} ({values})")
        else:
            parts.append(rule["key"] if operator == "Exists" else f"!{rule['key']}")
    return ",".join(parts)
