# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module upgrade_check's work: see which releases run, have the new images say what they hold, and plan."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import versions
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.config_change import SLURM_CONF
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import NOTHING_CHANGED, OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.names import auth_secret
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import (
    CLUSTER,
    COMPONENT,
    Pod,
    Workload,
    snapshot,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.exec import exec_in_pod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import POD
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import upgrade as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.upgrade import Part, Picture, Room, Upgrade
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.lint import lint, node_lines
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.observe import WORKLOADS
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.pod_look import sections
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm_config_live import RELEASE, ConfigPod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.tool_pod import CONTAINER, SLURM_USER, tool_pod

_VERSION = re.compile(r"\d\d\.\d\d(?:\.\d+)?", re.ASCII)
# By the component of the Pods: the kind of part, the container, and the program that is asked there.
_ASKED = {
    "accounting": (planner.SLURMDBD, "slurmdbd", "slurmdbd"),
    "controller": (planner.SLURMCTLD, "slurmctld", "slurmctld"),
    "restapi": (planner.SLURMREST, "slurmrestd", "slurmrestd"),
    # sackd itself has no option for it.
    "login": (planner.LOGIN, "login", "sinfo"),
}
_PROGRAM = {"slurmd": "slurmd", **{image: program for _kind, image, program in _ASKED.values()}}
# Some programs read a configuration before they look at their options: any that can be read will do.
_TELL = r"""
umask 077
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
printf 'ClusterName=x\nSlurmctldHost=localhost\n' >"$dir/slurm.conf"
printf 'DbdHost=localhost\nStorageType=accounting_storage/mysql\nSlurmUser=%s\n' "$(id -un)" >"$dir/slurmdbd.conf"
SLURM_CONF=$dir/slurm.conf timeout 10 "$1" -V
"""
_CONTROLLER = r"""
printf '=== nodes\n'; timeout 30 sinfo -h -N -a -o '%N|%v|%f'
printf '=== jobs\n'; timeout 30 squeue -h -a -t R,CG,S -o %i
printf '=== room\n'; du -sb "$1" 2>/dev/null | cut -f1; df -P -B1 "$1" | tail -n 1
exit 0
"""
# The largest table: a conversion copies one after the other.
_DATABASE = r"""
printf '=== room\n'
find "$1" -name '*.ibd' -printf '%s\n' 2>/dev/null | sort -n | tail -n 1; df -P -B1 "$1" | tail -n 1
exit 0
"""
_PLACES = {"controller": "/var/spool/slurmctld", "database": "/var/lib/mysql"}


class UpgradeCheck:
    """One look at a cluster with another release of Slurm in mind."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._params = run.params
        self._namespace, self._name = run.params["namespace"], run.params["name"]
        self._config = ConfigPod(run.kubernetes, self._namespace, self._name)
        self._nodes: frozenset[str] = frozenset()
        self._controllers_node = ""

    def read(self) -> Mapping[str, Any]:
        """What is to be done. Raises OperationError (NotReady) with all that stands in the way."""
        wanted = versions.parse_version(self._params["slurm_version"])
        picture = self._picture(wanted)
        plan = planner.plan_upgrade(picture)
        to_judge = any(step.kind != planner.CONFIGURATION for step in plan.steps)
        if to_judge and self._params["images"] and not plan.problems:
            picture = self._with_images(picture)
            plan = planner.plan_upgrade(picture)
        if plan.problems:
            lines = "; ".join(plan.problems)
            raise OperationError(
                f"Slurm {wanted} is not possible yet: {lines}.",
                reason="NotReady",
                remaining=list(plan.problems),
                hint=NOTHING_CHANGED,
            )
        return _result(wanted, picture, plan)

    # --- what is there --------------------------------------------------------------------------------------------

    def _picture(self, wanted: versions.Version) -> Picture:
        labels = f"{CLUSTER}={self._name}"
        kubernetes = self._run.kubernetes
        workloads = [item for kind in WORKLOADS for item in kubernetes.list(kind, self._namespace, labels=labels)]
        both = snapshot(workloads=workloads, pods=kubernetes.list(POD, self._namespace, labels=labels))
        if not any(item.component == "controller" for item in both.workloads):
            raise OperationError(
                f"Namespace {self._namespace} has no slurmctld of a cluster {self._name}.",
                reason="NotFound",
                hint="A new cluster is for the playbook site.",
            )
        parts = [self._daemon(item, both.pods) for item in both.workloads if item.component in _ASKED]
        controller = self._look(both.pods, "controller", "slurmctld", _CONTROLLER)
        nodesets = sorted({item.nodeset for item in both.workloads if item.nodeset})
        parts += [self._nodeset(name, both.pods) for name in nodesets]
        parts += _outside(controller.get("nodes", ""), nodesets)
        self._nodes = frozenset(line.split("|")[0] for line in controller.get("nodes", "").splitlines())
        self._controllers_node = next((pod.node for pod in both.pods if pod.name == self._config.pod), "")
        database = self._look(both.pods, "database", "mariadb", _DATABASE)
        live = self._config.read_config_map() or {"metadata": {}}
        return Picture(
            wanted=wanted,
            parts=parts,
            rooms=[
                *_rooms("the volume of StateSaveLocation", controller.get("room", "")),
                *_rooms("the volume of the database", database.get("room", "")),
            ],
            database_away=not database and any(item.component == "database" for item in both.workloads),
            jobs=len(controller.get("jobs", "").split()),
            files_release=str((live["metadata"].get("annotations") or {}).get(RELEASE, "")),
            login_by_hand=any(_is_login_by_hand(item) for item in workloads),
        )

    def _daemon(self, workload: Workload, pods: Sequence[Pod]) -> Part:
        """A daemon with the versions that its Pods tell; a Pod that runs nothing tells none."""
        kind, container, program = _ASKED[workload.component]
        told = [
            self._ask(pod.name, container, program)
            for pod in pods
            if pod.component == workload.component and pod.phase == "Running" and not pod.deleting
        ]
        return Part(kind, program if kind != planner.LOGIN else "login", _counted(told))

    def _nodeset(self, name: str, pods: Sequence[Pod]) -> Part:
        """The slurmds of a NodeSet. One Pod of each image is asked: slurmctld only knows nodes that have registered."""
        workers = [pod for pod in pods if pod.nodeset == name and pod.phase == "Running" and not pod.deleting]
        told: list[str] = []
        for image in sorted({pod.image for pod in workers}):
            alike = [pod for pod in workers if pod.image == image]
            version = next(filter(None, (self._ask(pod.name, "slurmd", "slurmd") for pod in alike[:3])), "")
            if not version:
                raise OperationError(
                    f"Pod {alike[0].name} of NodeSet {name} does not tell the version of its slurmd ({image}).",
                    reason="NotReady",
                    hint=f"{NOTHING_CHANGED} Look at that Pod.",
                )
            told += [version] * len(alike)
        return Part(
            planner.NODESET, f"NodeSet {name}", _counted(told), own_image=name in self._params["nodeset_images"]
        )

    def _ask(self, pod: str, container: str, program: str) -> str:
        """The version of a program; empty if it cannot be run there."""
        try:
            command = ["sh", "-c", _TELL, "tell", program]
            ended = exec_in_pod(
                self._run.kubernetes, self._namespace, pod, command, container=container, timeout=20, reads=True
            )
        except OperationError:
            return ""
        found = _VERSION.search(ended.stdout)
        return found[0] if found else ""

    def _look(self, pods: Sequence[Pod], component: str, container: str, script: str) -> Mapping[str, str]:
        """What a script prints in the Pod of a component; nothing if it does not run, or is not ours."""
        running = [pod.name for pod in pods if pod.component == component and pod.phase == "Running"]
        if not running:
            return {}
        running.sort(key=lambda name: name != self._config.pod)
        command = ["sh", "-c", script, "look", _PLACES[component]]
        try:
            ended = exec_in_pod(
                self._run.kubernetes, self._namespace, running[0], command, container=container, reads=True
            )
        except OperationError:
            return {}
        return sections(ended.stdout)

    # --- what is to come ------------------------------------------------------------------------------------------

    def _with_images(self, picture: Picture) -> Picture:
        """The picture with what the new images hold, once the new slurmctld has accepted the files."""
        images, own = self._params["images"], self._params["nodeset_images"]
        asked = dict.fromkeys(own.values(), "slurmd") | {image: _PROGRAM[key] for key, image in images.items()}
        first = images["slurmctld"]
        beside = {f"image-{number}": image for number, image in enumerate(sorted(asked.keys() - {first}))}
        node, timeout = self._controllers_node, self._params["wait_timeout"]
        self._run.progress.say("looking into the new images")
        with tool_pod(
            self._run, "upgrade", first, SLURM_USER, *self._mounts(), timeout, beside=beside, node=node
        ) as pod:
            held = {image: self._ask(pod, name, asked[image]) for name, image in {CONTAINER: first, **beside}.items()}
            self._judge(pod, picture.wanted)
        unknown = [image for image, version in held.items() if not version]
        if unknown:
            raise OperationError(
                f"These images do not say which Slurm they hold: {', '.join(unknown)}.",
                reason="NotReady",
                hint=f"{NOTHING_CHANGED} Check their names and tags.",
            )
        coming = [held.get(_image_of(part, images, own), "") for part in picture.parts]
        parts = [replace(part, coming=version) for part, version in zip(picture.parts, coming, strict=True)]
        return replace(picture, parts=parts)

    def _mounts(self) -> tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]:
        secret = auth_secret(self._name, self._params["auth_secret"])
        sources = [
            {"configMap": {"name": f"{self._name}-topology", "optional": True}},
            {"secret": {"name": secret}},
        ]
        volumes = [
            {"name": "slurm", "projected": {"defaultMode": 0o600, "sources": sources}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "run", "emptyDir": {}},
        ]
        paths = {"slurm": "/etc/slurm", "tmp": "/tmp", "run": "/run/slurmctld"}
        return volumes, [{"name": name, "mountPath": path} for name, path in paths.items()]

    def _judge(self, pod: str, wanted: versions.Version) -> None:
        files: Mapping[str, str] = self._params["files"]
        verdict = lint(
            self._run.kubernetes,
            self._namespace,
            pod,
            self._config.shown(files),
            nodes=node_lines(files[SLURM_CONF], self._nodes, {}, yaml=wanted.at_least(25, 5)),
            container=CONTAINER,
        )
        verdict.require(f"these files in Slurm {wanted}", hint=f"{NOTHING_CHANGED} Correct the variables.")


def _counted(told: Sequence[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(version for version in told if version).items()))


def _outside(text: str, nodesets: Sequence[str]) -> list[Part]:
    """The nodes of no NodeSet; those of one have its name as a feature."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        node, version, features = [*line.split("|"), "", ""][:3]
        if _VERSION.fullmatch(version) and not set(nodesets) & set(features.split(",")):
            found[node] = version
    return [Part(planner.OUTSIDE, "nodes outside", _counted(list(found.values())))] if found else []


def _image_of(part: Part, images: Mapping[str, str], own: Mapping[str, str]) -> str:
    """The image that a part is to have; nodes outside have none of ours."""
    if part.kind == planner.NODESET:
        return own.get(part.name.removeprefix("NodeSet "), images["slurmd"])
    return images.get(part.kind, "")


def _is_login_by_hand(workload: Mapping[str, Any]) -> bool:
    """Whether login Pods stay what they are until somebody deletes them."""
    labels, spec = workload["metadata"].get("labels") or {}, workload["spec"]
    return labels.get(COMPONENT) == "login" and (spec.get("updateStrategy") or {}).get("type") == "OnDelete"


def _rooms(where: str, text: str) -> list[Room]:
    """What a script says of a volume: how much is needed, then a line of df; nothing if it says nothing."""
    lines = text.splitlines()
    if len(lines) != 2 or not lines[0].isdigit() or len(lines[1].split()) < 6:
        return []
    return [Room(where, int(lines[0]), int(lines[1].split()[3]))]


def _result(wanted: versions.Version, picture: Picture, plan: Upgrade) -> Mapping[str, Any]:
    return {
        "release": str(wanted),
        "oldest": str(plan.oldest),
        "untouched": plan.untouched,
        "steps": [asdict(step) for step in plan.steps],
        "notes": list(plan.notes),
        "parts": [
            {"name": part.name, "kind": part.kind, "running": dict(part.running), "image_holds": part.coming or None}
            for part in picture.parts
        ],
        "rooms": [asdict(room) for room in picture.rooms],
    }
