# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""An ApplySet (KEP-3659) as a plan: what to create, update and prune so that the cluster holds what the manifests say.

Pure: objects come in as the API server returned them, also the results of dry runs; actions come out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.applyset_parent import (
    Options,
    check_parent,
    group_kind,
    parent_is,
    parent_manifest,
    remembered,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.compare import changes, contains
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.manifests import (
    PART_OF,
    describe,
    masked,
    readable,
)

Object = Mapping[str, Any]

# Applied in this order, pruned in the reverse; kinds that are not named (custom resources) come last.
_ORDER = (
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "StorageClass",
    "ServiceAccount",
    "SecurityContextConstraints",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ResourceQuota",
    "LimitRange",
    "NetworkPolicy",
    "Secret",
    "ConfigMap",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Service",
    "PodDisruptionBudget",
    "DaemonSet",
    "StatefulSet",
    "Deployment",
    "Pod",
    "Job",
    "CronJob",
)
_RANK = {kind: rank for rank, kind in enumerate(_ORDER)}

# What holds data, or everything else: gone only when somebody asks for just that.
VOLUMES = frozenset({"PersistentVolumeClaim", "PersistentVolume"})
PROTECTED = VOLUMES | {"Namespace", "CustomResourceDefinition"}

# The only fields of a StatefulSet's spec that the API server lets be changed.
_STATEFULSET_MUTABLE = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
)


class Key(NamedTuple):
    """Which object, whatever its API version; sorts in the order of applying."""

    rank: int
    group_kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The API server's answer to a dry run that did not pass: the message, and whether a fixed field is the cause.

    ``instead`` is the object as it would be if it were made anew, where that is a way out.
    """

    message: str
    hint: str = ""
    reason: str = "Invalid"
    instead: Object | None = None

    @property
    def immutable(self) -> bool:
        """Whether a field was to be changed that cannot be."""
        return self.reason == "Immutable"


@dataclass(frozen=True, slots=True)
class Observed:
    """What the cluster holds: the parent, the set's members, and what stands under the wanted names.

    ``predicted`` has for each wanted object that is missing or seems to differ the result of a dry run: the object, a
    Refused, or None if it could not be asked (its namespace is still to be made).
    """

    parent: Object | None = None
    live: Mapping[Key, Object] = field(default_factory=dict)
    predicted: Mapping[Key, Object | Refused | None] = field(default_factory=dict)


def key_of(manifest: Object) -> Key:
    """Return the identity of an object."""
    metadata = manifest["metadata"]
    rank = _RANK.get(manifest["kind"], len(_ORDER))
    return Key(rank, group_kind(manifest), metadata.get("namespace") or "", metadata["name"])


def terminating(item: Object | None) -> bool:
    """Return whether an object is on its way out: to apply to it would be lost."""
    return item is not None and bool(item["metadata"].get("deletionTimestamp"))


def in_order(wanted: Iterable[Object]) -> dict[Key, Object]:
    """Return the wanted objects by key, in the order of applying. Raises OperationError if one is given twice."""
    found: dict[Key, Object] = {}
    for manifest in wanted:
        key = key_of(manifest)
        if key in found:
            raise OperationError(
                f"{describe(manifest)} is given twice.", reason="Malformed", hint="Remove one; nothing was sent."
            )
        found[key] = manifest
    return dict(sorted(found.items()))


def undecided(wanted: Mapping[Key, Object], live: Mapping[Key, Object]) -> list[Key]:
    """Return what only the API server can tell (by a dry run): objects that are missing or seem to differ."""
    return [key for key, manifest in wanted.items() if not _is_as_wanted(live.get(key), manifest)]


def _is_as_wanted(live: Object | None, manifest: Object) -> bool:
    # The annotation holds the hash of what was applied last: without it a key that left the manifest would go unseen.
    return live is not None and not terminating(live) and contains(live, manifest)


# --- the plan -----------------------------------------------------------------------------------------------------


def plan(wanted: Mapping[Key, Object], observed: Observed, options: Options) -> list[Action]:
    """Return what to do, in order. Raises OperationError where objects belong to others or cannot be changed."""
    check_parent(observed.parent, options)
    _check_owners(wanted, observed, options)
    members: list[Action] = []
    refused: list[OperationError] = []
    for key, manifest in wanted.items():
        try:
            action = _plan_object(key, manifest, observed, options)
        except OperationError as error:
            refused.append(error)
            continue
        if action:
            members.append(action)
    if refused:
        raise _all_refused(refused)
    pruned, kept = plan_prune(wanted, observed, options) if options.prune else ([], _members(observed, options))
    before, after = _plan_parent(wanted, observed, options, pruned, kept)
    namespaces = [action for action in members if action.target.startswith("Namespace ")]
    rest = [action for action in members if not action.target.startswith("Namespace ")]
    return [*namespaces, *before, *rest, *pruned, *after]


def plan_absent(observed: Observed, options: Options) -> list[Action]:
    """Return what removes the whole set; volumes only if asked for, Namespaces never."""
    check_parent(observed.parent, options)
    pruned, kept = plan_prune((), observed, options, kind="delete", why="the set is to be absent")
    if observed.parent is not None:
        pruned.append(
            Action(
                kind="delete",
                target=describe(observed.parent),
                why="parent of the set" + (f"; kept: {', '.join(describe(item) for item in kept)}" if kept else ""),
                before="present",
                after="absent",
                diff=(readable(observed.parent), None),
                subject=observed.parent,
            )
        )
    return pruned


def _all_refused(errors: Sequence[OperationError]) -> OperationError:
    """Say everything that is wrong at once: one run, one round of corrections."""
    if len(errors) == 1:
        return errors[0]
    return OperationError(
        "\n".join(
            [f"{len(errors)} manifests cannot be applied; nothing was sent.", *(f"  {error}" for error in errors)]
        ),
        reason=errors[0].reason if len({error.reason for error in errors}) == 1 else "Refused",
    )


def _members(observed: Observed, options: Options) -> list[Object]:
    return [
        item
        for _key, item in sorted(observed.live.items(), reverse=True)
        if (item["metadata"].get("labels") or {}).get(PART_OF) == options.set_id
    ]


def plan_prune(
    wanted: Collection[Key],
    observed: Observed,
    options: Options,
    kind: str = "prune",
    why: str = "no longer in the manifests",
) -> tuple[list[Action], list[Object]]:
    """Return deletions of members that are not wanted any more, and the members that are kept nevertheless."""
    actions: list[Action] = []
    kept: list[Object] = []
    for item in _members(observed, options):
        if key_of(item) in wanted or terminating(item):
            continue
        if item["metadata"].get("ownerReferences"):
            continue  # made by a controller that copied our labels; it goes when its owner goes
        if item["kind"] in PROTECTED and not (options.delete_volumes and item["kind"] in VOLUMES):
            kept.append(item)
            continue
        before, _after = masked(readable(item), None)
        actions.append(
            Action(
                kind=kind,
                target=describe(item),
                why=why,
                before="present",
                after="absent",
                diff=(before, None),
                stage=f"{kind} {group_kind(item)}",
                subject=item,
            )
        )
    return actions, kept


def _check_owners(wanted: Mapping[Key, Object], observed: Observed, options: Options) -> None:
    """Refuse to touch objects of the same name that are not the set's."""
    if options.adopt:
        return
    clashes: list[str] = []
    for key, manifest in wanted.items():
        live = observed.live.get(key)
        if live is None or terminating(live) or manifest["kind"] == "Namespace":
            continue
        labels = live["metadata"].get("labels") or {}
        if labels.get(PART_OF) == options.set_id:
            continue
        owner = f"belongs to the ApplySet {labels[PART_OF]}" if labels.get(PART_OF) else f"was made by {_maker(live)}"
        clashes.append(f"{describe(live)} exists and {owner}")
    if clashes:
        raise OperationError(
            f"{'; '.join(clashes)}: not of the set {options.namespace}/{options.name}, so it is not touched.",
            reason="NameClash",
            hint="Use other names, remove it, or set adopt to take it over.",
        )


def _maker(live: Object) -> str:
    managers = [
        str(entry.get("manager")) for entry in live["metadata"].get("managedFields") or () if entry.get("manager")
    ]
    return ", ".join(dict.fromkeys(managers)) or "somebody else"


def _plan_object(key: Key, manifest: Object, observed: Observed, options: Options) -> Action | None:
    live = observed.live.get(key)
    prediction = observed.predicted.get(key)
    if live is not None and not terminating(live):
        if _is_as_wanted(live, manifest):
            return None
        if isinstance(prediction, Refused):
            return _plan_refused(manifest, live, prediction, options)
        after = readable(prediction if prediction is not None else manifest)
        before = readable(live)
        if before == after:
            return None  # Written in another way, but the same: no write, and so no change to report.
        return _action("update", manifest, before, after, "differs from the manifest")
    if isinstance(prediction, Refused):
        raise OperationError(prediction.message, reason=prediction.reason, hint=prediction.hint)
    after = readable(prediction if prediction is not None else manifest)
    why = "being deleted just now, so made again when it is gone" if live is not None else "not there yet"
    return _action("create", manifest, None, after, why)


def _plan_refused(manifest: Object, live: Object, refused: Refused, options: Options) -> Action:
    """A change that the API server does not allow: recreate a StatefulSet if asked to, else say which field."""
    if not refused.immutable:
        raise OperationError(refused.message, reason=refused.reason, hint=refused.hint)
    if group_kind(manifest) != "StatefulSet.apps":
        raise OperationError(
            refused.message,
            reason="Immutable",
            hint="This cannot be changed in place. "
            + (
                "Its data would go with it: leave it as it is, or bring the data to a new one."
                if manifest["kind"] in VOLUMES
                else f"Delete {describe(manifest)} first, or give it another name."
            ),
        )
    if refused.instead is None:
        fields = _fixed_fields(manifest["spec"], live["spec"])
        raise OperationError(
            f"{describe(manifest)}: {fields} cannot be changed in a StatefulSet.",
            reason="Immutable",
            hint="Set recreate to delete and make the StatefulSet again while its Pods and volumes stay.",
        )
    before, after = readable(live), readable(refused.instead)
    fields = _fixed_fields(refused.instead["spec"], live["spec"])
    return _action("recreate", manifest, before, after, f"{fields} cannot be changed; Pods and volumes are kept")


def _fixed_fields(wanted: Object, live: Object) -> str:
    names = sorted({*wanted, *live} - _STATEFULSET_MUTABLE)
    # Without a dry run (recreate is off) what the manifest leaves out may be a default, so only volumes are told.
    differ = [name for name in names if name in wanted and not contains(live.get(name), wanted[name], (name,))]
    differ += (
        ["volumeClaimTemplates"] if live.get("volumeClaimTemplates") and not wanted.get("volumeClaimTemplates") else []
    )
    return ", ".join(f"spec.{name}" for name in differ) or "a field of spec"


def _action(kind: str, manifest: Object, before: Any, after: Any, why: str) -> Action:
    hidden_before, hidden_after = masked(before, after)
    short = changes(hidden_before, hidden_after) if hidden_before is not None and hidden_after is not None else {}
    return Action(
        kind=kind,
        target=describe(manifest),
        why=why,
        before={path: _short(old) for path, (old, _new) in short.items()}
        if short
        else None
        if before is None
        else "present",
        after={path: _short(new) for path, (_old, new) in short.items()} if short else "present",
        diff=(hidden_before, hidden_after),
        stage=f"{kind} {group_kind(manifest)}",
        subject=manifest,
    )


def _short(value: Any, limit: int = 200) -> Any:
    """Keep a result readable: long texts are in the diff."""
    if isinstance(value, str) and len(value) > limit:
        return f"{value[:limit]}... ({len(value)} characters)"
    if isinstance(value, (Mapping, list)) and len(str(value)) > limit:
        return f"{str(value)[:limit]}..."
    return value


def _plan_parent(
    wanted: Mapping[Key, Object],
    observed: Observed,
    options: Options,
    pruned: Sequence[Action],
    kept: Sequence[Object],
) -> tuple[list[Action], list[Action]]:
    """Return what to do to the parent before and after the members.

    It must name every kind of which there may be members, at any moment (a run can be killed): so it grows before
    anything is applied and shrinks after everything is pruned.
    """
    stay = [manifest for manifest in wanted.values() if manifest["kind"] != "Namespace"] + list(kept)
    kinds = {group_kind(manifest) for manifest in stay}
    namespaces = {manifest["metadata"].get("namespace") or "" for manifest in stay}
    old_kinds, old_namespaces = remembered(observed.parent)
    final = parent_manifest(options, kinds, namespaces)
    wide = parent_manifest(options, kinds | old_kinds, namespaces | old_namespaces) if pruned else final
    before = [] if parent_is(observed.parent, wide) else [_parent_action(observed.parent, wide)]
    current = wide if before else observed.parent
    after = [] if parent_is(current, final) else [_parent_action(current, final)]
    return before, after


def _parent_action(live: Object | None, manifest: dict[str, Any]) -> Action:
    why = "remembers what the set has members of"
    if live is None:
        return _action("create", manifest, None, manifest, why)
    return _action(
        "update", manifest, readable(live), {**manifest, "data": live["data"]} if "data" in live else manifest, why
    )
