# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What makes Kubernetes show what Slurm says of its nodes: conditions, annotations, protected workers, cordons.

Conditions of Pods have the names that slurm-operator gives them, so that what reads those reads ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from .._core.kubernetes_objects import Condition
from .._core.names import DOMAIN
from .action import Action
from .members import Member, Picture
from .to_slurm import OUR_CORDON, RESTARTED, misfit

PROTECT = f"{DOMAIN}/protect"  # the label that the cluster's PodDisruptionBudget selects
SHOWN = f"{DOMAIN}/drain"  # annotation of Pods and Nodes: why, who, when
NODE_CONDITION = "SlurmDrain"
PREFIX = "SlurmNodeState"
# States that jobs do not come and go with. Faults count even when we drained the node.
OUT_OF_SERVICE = (("DRAIN", "Drain"), ("DOWN", "Down"))
FAULTS = (
    ("ERROR", "Error"),
    ("FAIL", "Fail"),
    ("INVALID", "Invalid"),
    ("INVALID_REG", "InvalidReg"),
    ("MAINTENANCE", "Maintenance"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """What to patch: metadata (None removes), conditions to set and to remove, and for a Node spec.unschedulable."""

    name: str
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    labels: Mapping[str, str | None] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)
    gone: Sequence[str] = ()
    unschedulable: bool | None = None
    since: int = 0


def protections(picture: Picture) -> Iterator[Action]:
    """Evictions of busy workers wait: the cluster's PodDisruptionBudget selects the label. Unknown is left as it is."""
    for member in picture.members:
        pod, state = member.pod, member.node.state
        if pod is None or pod.deleting:
            continue
        protected = pod.labels.get(PROTECT) == "true"
        if state.busy and not protected:
            yield _label(pod.name, "protect", "jobs run on it", None, "true")
        elif protected and not state.busy and state.base not in ("", "UNKNOWN"):
            yield _label(pod.name, "unprotect", "nothing runs on it", "true", None)


def pod_conditions(picture: Picture) -> Iterator[Action]:
    """Each worker Pod shows why its node is out of service, as far as that came from Slurm's side."""
    for member in picture.members:
        pod, node = member.pod, member.node
        if pod is None or pod.deleting:
            continue
        wanted = _states(member)
        shown = _told(member) if member.held_by_others else None
        there = {
            name: item.message
            for name, item in pod.conditions.items()
            if name.startswith(PREFIX) and item.status == "True"
        }
        annotations: dict[str, str | None] = {}
        if pod.annotations.get(SHOWN) != shown:
            annotations[SHOWN] = shown
        if RESTARTED in pod.annotations and node.state.registered and not misfit(member):
            annotations[RESTARTED] = None  # known again: the next time it may be restarted again
        if wanted == there and not annotations:
            continue
        change = Change(
            pod.name,
            annotations=annotations,
            conditions={name: text for name, text in wanted.items() if there.get(name) != text},
            gone=sorted(set(_names(pod.conditions)) - set(wanted)),
            since=node.reason_at,
        )
        before = _view(there, {key: pod.annotations.get(key) for key in annotations})
        after = _view(wanted, annotations)
        yield Action("show", f"Pod {pod.name}", f"its node is {node.state.word}", before, after, None, "pods", change)


def node_conditions(picture: Picture) -> Iterator[Action]:
    """Each Node shows the drains that somebody made in Slurm on it."""
    held = _held(picture)
    for name in sorted(picture.hosts):
        host = picture.hosts[name]
        text = _for_host(held.get(name, ()), picture.options.cluster)
        there = host.annotations.get(SHOWN, "")
        if there and not there.startswith(f"{picture.options.cluster}: "):
            continue  # another Slurm cluster on the same Node has something to say
        condition = host.conditions.get(NODE_CONDITION)
        if there == text and _message(condition) == text:
            continue
        if not text and not there:
            continue  # a condition of that name without our annotation is not ours
        change = Change(
            name,
            annotations={SHOWN: text or None},
            conditions={NODE_CONDITION: text} if text else {},
            gone=() if text or condition is None else (NODE_CONDITION,),
            since=max((member.node.reason_at for member in held.get(name, ())), default=0),
        )
        why = "drained in Slurm" if text else "no longer drained in Slurm"
        yield Action("show", f"Node {name}", why, there or None, text or None, None, "nodes", change)


def cordons(picture: Picture) -> Iterator[Action]:
    """If asked for, a Node on which somebody drained every node in Slurm is cordoned, until they are resumed."""
    held = _held(picture)
    on_host: dict[str, int] = {}
    for member in picture.members:
        if member.host is not None:
            on_host[member.host.name] = on_host.get(member.host.name, 0) + 1
    for name in sorted(picture.hosts):
        host = picture.hosts[name]
        ours = host.annotations.get(OUR_CORDON, "").startswith(f"{picture.options.cluster}: ")
        all_held = bool(held.get(name)) and len(held[name]) == on_host[name]
        if picture.options.cordon and all_held and not host.cordoned:
            text = _for_host(held[name], picture.options.cluster)
            change = Change(name, annotations={OUR_CORDON: text}, unschedulable=True)
            yield Action("cordon", f"Node {name}", text, "schedulable", "cordoned", None, "cordon", change)
        elif ours and not (all_held and picture.options.cordon):
            uncordon = None if not host.cordoned else False
            change = Change(name, annotations={OUR_CORDON: None}, unschedulable=uncordon)
            why = "its nodes are no longer drained in Slurm"
            yield Action("uncordon", f"Node {name}", why, "cordoned", "schedulable", None, "cordon", change)


def _held(picture: Picture) -> dict[str, list[Member]]:
    """{Node: members on it that somebody drained}; a node that is merely down is not drained."""
    found: dict[str, list[Member]] = {}
    for member in picture.members:
        state = member.node.state
        if member.host is not None and member.held_by_others and (state.drain or "FAIL" in state.flags):
            found.setdefault(member.host.name, []).append(member)
    return found


def _for_host(members: Sequence[Member], cluster: str) -> str:
    if not members:
        return ""
    return f"{cluster}: " + "; ".join(f"{member.node.name} {_told(member)}" for member in members)


def _states(member: Member) -> dict[str, str]:
    """{condition type: reason} that the Pod of a node should show."""
    state = member.node.state
    words = {state.base, *state.flags} - ({"DRAIN"} if not state.drain else set())
    held = member.held_by_others
    shown = (OUT_OF_SERVICE if held else ()) + FAULTS
    return {f"{PREFIX}{name}": member.node.reason if held else "" for word, name in shown if word in words}


def _told(member: Member) -> str:
    node = member.node
    when = datetime.fromtimestamp(node.reason_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if node.reason_at else ""
    who = ", ".join(part for part in (f"by {node.reason_user}" if node.reason_user else "", when) if part)
    # The same word as long as the drain lasts: jobs that end are not told here.
    word = "down" if node.state.down else "fail" if "FAIL" in node.state.flags else "drain"
    return f"{word}: {node.reason or 'no reason given'}{f' ({who})' if who else ''}"


def _names(conditions: Mapping[str, Condition]) -> list[str]:
    return [name for name in conditions if name.startswith(PREFIX)]


def _message(condition: Condition | None) -> str:
    return condition.message if condition is not None and condition.status == "True" else ""


def _view(conditions: Mapping[str, str], annotations: Mapping[str, str | None]) -> dict[str, Any]:
    return {"conditions": dict(conditions), "annotations": {key: text for key, text in annotations.items() if text}}


def _label(pod: str, kind: str, why: str, before: str | None, after: str | None) -> Action:
    return Action(kind, f"Pod {pod}", why, before, after, None, "labels", Change(pod, labels={PROTECT: after}))
