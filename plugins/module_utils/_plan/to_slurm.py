# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What makes Slurm agree with Kubernetes: drains and their end, records, slurmds that Slurm does not know.

Each rule is one row of the table in docs/guides/reconcile.md. A drain by anybody else is never undone or overwritten.
"""

from __future__ import annotations

from collections.abc import Iterator

from .._core.drains import OWNER
from .._core.kubernetes_objects import KubernetesNode, Pod
from .._core.names import DOMAIN
from .._core.snapshot import SlurmNode
from .action import Action
from .members import Finding, Member, Picture
from .verify import is_refused, misfits

# First words of the reasons that reconciliation writes, and the only drains that it takes back.
CORDONED, NOT_READY, CONDITION, POD, REGISTRATION = "cordoned", "not ready", "condition", "pod", "registration"
OURS = tuple(f"{OWNER} {word}:" for word in (CORDONED, NOT_READY, CONDITION, POD, REGISTRATION))
REASON_LENGTH = 200
# Where people and other operators write why they cordoned a Node, in this order.
CORDON_REASONS = (
    f"{DOMAIN}/cordon-reason",
    "nodeset.slinky.slurm.net/node-cordon-reason",
    "node.coreweave.cloud/cordonReason",
)
OUR_CORDON = f"{DOMAIN}/cordoned-for"  # "namespace/name: why" on Nodes that reconciliation cordoned
RESTARTED = f"{DOMAIN}/slurmd-restarted"  # on Pods whose slurmd was restarted because Slurm did not know it

Found = Iterator[Action | Finding]


def drains(picture: Picture) -> Found:
    """A cause on the Kubernetes side takes a node out of service, and does so again when somebody resumed it."""
    for member in picture.members:
        why = cause(member, picture)
        if why and not why.startswith(REGISTRATION):
            yield from _drain(member.node, why)


def undrains(picture: Picture) -> Found:
    """The end of every cause ends a drain whose reason is still ours."""
    for member in picture.members:
        node, pod = member.node, member.pod
        if not (node.state.drain and node.reason.startswith(OURS)):
            continue
        # Back in service only on proof: a Pod that is ready, on a Node that was seen.
        if pod is None or not pod.ready or member.host is None or cause(member, picture):
            continue
        why = f"no longer {node.reason.removeprefix(OWNER).strip()}"
        yield Action("undrain", node.name, why, _shown(node), {"state": "in service"}, stage="undrain", subject=node)


def registrations(picture: Picture) -> Found:
    """A record that does not match its Pod is made anew; a registration that Slurm refused is reported."""
    for member in picture.members:
        node, pod = member.node, member.pod
        if pod is None:
            continue
        if refused(node):
            why = cause(member, picture)
            if why.startswith(REGISTRATION):
                yield from _drain(node, why)
            yield Finding(node.name, f"its registration was refused: {node.reason}; declared: {pod.slurmd_conf}")
            continue
        difference = misfit(member)
        if not difference or not pod.ready:
            continue
        why = cause(member, picture)
        if not why.startswith(REGISTRATION):
            continue  # out of service for something graver, which comes first
        yield from _drain(node, why)
        if RESTARTED in pod.annotations:
            yield Finding(node.name, f"registered again and still not as declared: {difference}")
            continue
        free = not node.state.busy and not node.allocated_cpus and not node.state.down
        ours = not node.state.drain or node.reason.startswith(f"{OWNER} {REGISTRATION}:")
        if free and ours and node.dynamic:
            # slurmctld refuses to delete a node that a job got hold of meanwhile.
            yield Action("forget", node.name, difference, _shown(node), None, stage="forget", subject=node)
            yield _restart(pod, difference)
        else:
            yield Finding(node.name, f"not as declared: {difference}")


def strangers(picture: Picture) -> Found:
    """A slurmd that is ready and that Slurm does not know is restarted, once."""
    for pod in picture.strangers:
        since = pod.conditions["Ready"].since if pod.ready else 0
        if not pod.ready:
            if not picture.starting(pod):
                yield Finding(f"Pod {pod.name}", f"is not ready: {pod.problem}")
        elif RESTARTED in pod.annotations:
            if picture.options.now - since >= picture.options.grace:
                yield Finding(f"Pod {pod.name}", "its slurmd was restarted and Slurm still does not know it")
        elif picture.options.now - since >= picture.options.grace:
            yield _restart(pod, "it is ready and Slurm does not know it")


def records(picture: Picture) -> Found:
    """The record of a dynamic node that has neither Pod nor Node any more is deleted, never with a job on it."""
    for member in picture.members:
        node, state = member.node, member.node.state
        if member.pod is not None or member.wanted or not node.dynamic:
            continue
        dead = state.base == "DOWN" and "NOT_RESPONDING" in state.flags
        if dead and not state.busy and not node.allocated_cpus:
            why = f"NodeSet {member.nodeset} no longer has it, and it does not answer"
            yield Action("forget", node.name, why, _shown(node), None, stage="forget", subject=node)


def sizes(picture: Picture) -> Found:
    """A NodeSet that has not as many Pods as it wants is reported; sizes are set by nodeset_scale."""
    for nodeset, size in sorted(picture.sizes.items()):
        number = picture.pods_by_nodeset.get(nodeset, 0)
        if number != size:
            yield Finding(f"NodeSet {nodeset}", f"{size} nodes wanted, {number} Pods there")


def cause(member: Member, picture: Picture) -> str:
    """Why Kubernetes says that a node should take no new jobs, or empty text. The gravest first.

    No names in it: nodes with the same reason are drained in one call, five hundred Nodes of a lost rack too.
    """
    pod, host, cluster = member.pod, member.host, picture.options.cluster
    if pod is None:
        return f"{POD}: there is none"
    if host is None and pod.node:
        return f"{NOT_READY}: the Node is gone"
    if host is not None:
        if host.cordoned and not host.annotations.get(OUR_CORDON, "").startswith(f"{cluster}: "):
            return f"{CORDONED}: {cordon_reason(host) or 'no reason given'}"
        if not host.ready:
            return f"{NOT_READY}: {_message(host, 'Ready') or 'the Node says no more'}"
        for name in picture.options.conditions:
            if name in host.conditions and host.conditions[name].status == "True":
                return f"{CONDITION}: {name}: {_message(host, name) or 'true'}"
    if pod.deleting:
        return f"{POD}: being deleted"
    if not pod.ready and not picture.starting(pod):
        return f"{POD}: not ready: {pod.problem}"
    if refused(member.node):
        # Slurm's own words, also when they stand in a reason that we wrote.
        text = member.node.reason.removeprefix(f"{OWNER} {REGISTRATION}: ")
        return f"{REGISTRATION}: {'refused' if not text or text.startswith(OWNER) else text}"
    difference = misfit(member)
    return f"{REGISTRATION}: {difference}" if difference and pod.ready else ""


def reason_of(why: str) -> str:
    """A cause as a drain reason: one line, not too long."""
    text = " ".join(f"{OWNER} {why}".split())
    return text if len(text) <= REASON_LENGTH else text[: REASON_LENGTH - 3] + "..."


def refused(node: SlurmNode) -> bool:
    """Whether slurmctld did not accept what slurmd registered."""
    return is_refused(node.state)


def misfit(member: Member) -> str:
    """How a record differs from what its Pod's slurmd was told to register, or empty text."""
    node = member.node
    if member.pod is None or not member.pod.slurmd_conf:
        return ""
    return "; ".join(misfits(member.pod.slurmd_conf, node))


def cordon_reason(host: KubernetesNode) -> str:
    """What is written on a Node about why it is cordoned."""
    return next((host.annotations[key] for key in (*CORDON_REASONS, OUR_CORDON) if host.annotations.get(key)), "")


def _message(host: KubernetesNode, name: str) -> str:
    condition = host.conditions.get(name)
    return (condition.message or condition.reason) if condition else ""


def _shown(node: SlurmNode) -> dict[str, str]:
    return {"state": node.state.word, "reason": node.reason} if node.reason else {"state": node.state.word}


def _drain(node: SlurmNode, why: str) -> Iterator[Action]:
    """A drain, unless it is there already, or is somebody else's; a reason of ours follows the cause.

    What is down or failing takes no new jobs; draining it would hide why it is so.
    """
    reason = reason_of(why)
    if node.state.down or node.state.base == "FUTURE" or "FAIL" in node.state.flags:
        return
    if not node.state.drain or (node.reason.startswith(OURS) and node.reason != reason):
        after = {"state": "drained", "reason": reason}
        yield Action("drain", node.name, reason, _shown(node), after, stage="drain", subject=node)


def _restart(pod: Pod, why: str) -> Action:
    return Action("restart", f"slurmd in Pod {pod.name}", why, "running", "restarted", stage="restart", subject=pod)
