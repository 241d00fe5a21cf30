# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The module topology's work: say where nodes are, try it on a second slurmctld, put it in place, or put it back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import slurm_conf, versions
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.snapshot import CLUSTER, Snapshot, snapshot
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.topology import (
    FLAT,
    Topology,
    compress,
    node_strings,
    render,
)
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import KUBERNETES_NODE, POD
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import topology as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.topology import Live
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import saved_file, topology_input, topology_live
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.lint import lint, node_lines
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.live_files import wait_while
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import client_of
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.topology_input import Wanted
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.topology_live import Controller, sha256
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient

LINT_HINT = "Nothing was changed. Correct the options, or what slurm.conf says of topologies (Topology of partitions)."


class TopologyChange:
    """An Operation: see _run/module.py."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._params = run.params
        self._slurm_client: SlurmClient | None = None
        self._seen: Snapshot = Snapshot()
        self._wanted = Wanted()
        self._text: str | None = None
        self._live = Live(None, (), {}, {})
        self._yaml = True
        self._controller = Controller(run.kubernetes, run.params["namespace"], run.params["name"])

    @property
    def _slurm(self) -> SlurmClient:
        if self._slurm_client is None:
            self._slurm_client = client_of(self._run.kubernetes, self._params, self._run.slurm_calls)
        return self._slurm_client

    # --- plan -----------------------------------------------------------------------------------------------------

    def plan(self) -> Sequence[Action]:
        """Read both sides, make the topology, and have a second slurmctld judge it if it is new."""
        if self._params["state"] == "absent" and self._params["apply"] and not self._controller.exists():
            # Of a cluster that was taken away only the file is left.
            left = self._controller.has_config_map()
            return [Action(planner.REMOVE, self._controller.target, "its cluster is not there")] if left else []
        self._slurm.require_controller()
        self._yaml = versions.parse_version(self._slurm.release).at_least(25, 5)
        self._controller.use(yaml=self._yaml)
        self._seen = self._read()
        old_text = self._controller.text()
        old = self._old(old_text)
        self._wanted = topology_input.wanted(self._params, self._seen, old, yaml=self._yaml)
        topologies = self._wanted.topologies
        self._text = render(topologies, yaml=self._yaml) if topologies else None
        for note in self._wanted.notes:
            self._run.warn(note)
        actions = saved_file.plan(self._params["dest"], self._text)
        if self._params["apply"]:
            actions += self._plan_apply(old_text, old)
        return actions

    def _old(self, text: str | None) -> Sequence[Topology]:
        """The topologies that are there; none of a file that cannot be read, which is then replaced."""
        described = self._params["topologies"] or ()
        # The topology of a topology.conf has no name of its own.
        name = str(described[0]["name"]) if described else "default"
        try:
            return topology_live.read(text, yaml=self._yaml, name=name)
        except OperationError as error:
            self._run.warn(f"{self._controller.target} is replaced: {error}")
            return ()

    def _read(self) -> Snapshot:
        namespace, label = self._params["namespace"], f"{CLUSTER}={self._params['name']}"
        by_label = any(item["labels"] for item in self._params["topologies"] or ())
        return snapshot(
            pods=self._run.kubernetes.list(POD, namespace, labels=label),
            nodes=self._run.kubernetes.list(KUBERNETES_NODE) if by_label else (),
            slurm_nodes=self._slurm.nodes().items,
        )

    def _plan_apply(self, old_text: str | None, old: Sequence[Topology]) -> list[Action]:
        self._controller.require_mounted()
        wanted = self._wanted.topologies
        look = self._controller.look([item.name for item in wanted if item.kind != FLAT])
        # Before 25.05 a node has no place of its own: the file alone says it.
        strings = {node.name: node.topology for node in self._seen.slurm_nodes.values() if node.dynamic and self._yaml}
        self._live = Live(old_text, old, strings, look.shown)
        actions = planner.plan_changes(self._live, wanted, self._text, self._controller.target)
        changes_file = any(action.kind == planner.WRITE for action in actions)
        if not changes_file and look.hash != sha256(self._text) and self._text is not None:
            # The ConfigMap is right, what the Pod has is not (yet): bring it there.
            actions = [action for action in actions if action.kind != planner.RECONFIGURE]
            write = Action(planner.WRITE, self._controller.target, "the controller's Pod has another file")
            at = sum(action.kind == planner.LEAVE for action in actions)
            actions[at:at] = [write, Action(planner.RECONFIGURE, "slurmctld", "to read the new file")]
        if changes_file and self._text is not None:
            self._lint(look.slurm_conf, self._text, wanted)
        return actions

    def _lint(self, conf: str, text: str, wanted: Sequence[Topology]) -> None:
        if not self._yaml:
            self._require_plugin(conf, wanted[0].kind)
        verdict = lint(
            self._run.kubernetes,
            self._params["namespace"],
            self._controller.pod,
            {"slurm.conf": conf, self._controller.file: text},
            nodes=node_lines(conf, self._seen.slurm_nodes, node_strings(wanted), yaml=self._yaml),
            max_nodes=len(self._seen.slurm_nodes),
        )
        verdict.require("this topology", hint=LINT_HINT)

    def _require_plugin(self, conf: str, kind: str) -> None:
        plugin = next((line.value for line in slurm_conf.parse(conf) if line.key.lower() == "topologyplugin"), "")
        if plugin != f"topology/{kind}":
            raise OperationError(
                f"Slurm {self._slurm.release} reads topology.conf only with TopologyPlugin=topology/{kind} in"
                f" slurm.conf, which has {plugin or 'none'}.",
                reason="PluginNotSet",
                hint=f"Set slurm_conf: {{TopologyPlugin: topology/{kind}}}, run the playbook site, then this again.",
            )

    # --- act ------------------------------------------------------------------------------------------------------

    def act(self, actions: Sequence[Action]) -> None:
        """Carry out one step. When slurmctld does not take it, everything is put back and the error says so."""
        kind = actions[0].kind
        if kind == saved_file.SAVE:
            saved_file.save(self._params["dest"], self._text or "")
            actions[0].done = True
            return
        try:
            if kind in (planner.LEAVE, planner.PLACE):
                known = self._known()
                for action in actions:
                    action.done = True  # begun is done, so that it is put back: Slurm may do a part of it
                    self._move(action, action.after, known)
            elif kind in (planner.WRITE, planner.REMOVE):
                actions[0].done = True
                self._write(self._text)
            else:
                actions[0].done = True
                self._reconfigure()
        except OperationError as error:
            raise self._put_back(error) from error

    def _known(self) -> frozenset[str]:
        return frozenset(str(item.get("name")) for item in self._slurm.nodes().items)

    def _move(self, action: Action, place: str, known: frozenset[str]) -> None:
        """Nodes that have gone meanwhile are left out: for one unknown name Slurm refuses the call."""
        self._slurm.update_nodes([name for name in action.subject if name in known], topology_str=place)

    def _write(self, text: str | None) -> None:
        if not self._controller.write(text):
            return  # nobody to bring it to
        wanted = sha256(text)
        # Where none is to be there may still be another: the fallback of role cluster, or one of slurm_extra_files.
        unwanted = sha256(self._live.text if text is None else None)

        def look() -> str:
            found = self._controller.look().hash
            there = found == wanted if text is not None else found != unwanted
            if not there:
                return f"{self._controller.file} in Pod {self._controller.pod} is not the new one"
            return self._controller.standby_lacks({self._controller.file: found})

        self._wait(look, "Bringing the file to the controller")

    def _reconfigure(self) -> None:
        self._slurm.reconfigure()
        aside = _nodes_of(self._run.actions, planner.PLACE)
        self._wait(lambda: self._differs(self._wanted.topologies, aside), "Reading the new topology")

    def _differs(self, topologies: Sequence[Topology], aside: Iterable[str]) -> str:
        """What keeps slurmctld from having every node where it should be, ``aside`` from some; empty if nothing."""
        if not any(item.get("responding") for item in self._slurm.ping()):
            return "slurmctld does not answer"
        shown = self._controller.look([item.name for item in topologies if item.kind != FLAT]).shown
        found = planner.difference(shown, topologies, aside)
        return f"slurmctld: {found}" if found else ""

    def _put_back(self, error: OperationError) -> OperationError:
        """Undo what was done; the error that tells both what went wrong and how the cluster is left.

        Nodes come back from places that only the new file has before that file goes. The file comes back whether
        slurmctld answers or not: a slurmctld that died of the new one starts again with the old.
        """
        done = [action for action in self._run.actions if action.done and action.kind != saved_file.SAVE]
        failed = f"{error.msg.rstrip('.')}."
        words = self._controller.words() if any(action.kind == planner.RECONFIGURE for action in done) else ()
        if words:
            failed += f" slurmctld says: {'; '.join(words)}."
        try:
            self._move_back(done, planner.PLACE)
            if any(action.kind in (planner.WRITE, planner.REMOVE) for action in done):
                self._write(self._live.text)
                self._wait(lambda: self._differs((), ()), "The start of slurmctld with the old file")
                self._slurm.reconfigure()
                aside = _nodes_of(done, planner.LEAVE) | _nodes_of(done, planner.PLACE)
                self._wait(lambda: self._differs(self._live.topologies, aside), "Reading the old topology again")
            self._move_back(done, planner.LEAVE)
        except OperationError as second:
            return OperationError(
                f"{failed} Putting the old topology back failed too: {second.msg}",
                reason="NotPutBack",
                hint=f"Look at the log of Pod {self._controller.pod}; the file is {self._controller.target}.",
            )
        for action in done:
            action.done = False
        return OperationError(
            f"{failed} The old topology is back.", reason=error.reason, remaining=error.remaining, hint=error.hint
        )

    def _move_back(self, done: Sequence[Action], kind: str) -> None:
        moves = [action for action in done if action.kind == kind]
        known = self._known() if moves else frozenset()
        for action in moves:
            self._move(action, action.before, known)

    # --- wait and tell --------------------------------------------------------------------------------------------

    def wait(self) -> None:
        """Check that every dynamic node is where it was asked to be, in what was changed."""
        moves = [action for action in self._run.actions if action.kind == planner.PLACE]
        if not moves:
            return
        asked = {name: action.after for action in moves for name in action.subject}
        nodes = snapshot(slurm_nodes=self._slurm.nodes().items).slurm_nodes
        wrong = sorted(name for name, place in asked.items() if name in nodes and nodes[name].topology != place)
        if wrong:
            raise OperationError(
                f"Slurm has {compress(wrong)} at another place than was asked for.",
                reason="NotAsAsked",
                remaining=wrong,
                hint="Something else moves nodes as well; run again, or find it.",
            )

    def _wait(self, lacks: Callable[[], str], what: str) -> None:
        wait_while(self._run, lacks, what)

    def result(self) -> Mapping[str, Any]:
        """Return the file's text and what it has."""
        wanted = self._wanted
        return {
            "content": self._text or "",
            "file": self._controller.file,
            "topologies": [_summary(item) for item in wanted.topologies],
            "unplaced": {name: compress(nodes) for name, nodes in wanted.unplaced.items()},
            "kept": compress(wanted.kept),
            "notes": wanted.notes,
        }


def _nodes_of(actions: Iterable[Action], kind: str) -> frozenset[str]:
    return frozenset(name for action in actions if action.kind == kind for name in action.subject)


def _summary(item: Topology) -> dict[str, Any]:
    leaves = [leaf for leaf in item.leaves() if leaf.nodes]
    return {
        "name": item.name,
        "type": item.kind,
        "default": item.default,
        "switches": len(item.switches),
        "leaves": {leaf.name: compress(leaf.nodes) for leaf in leaves},
        "nodes": sum(len(leaf.nodes) for leaf in leaves),
    }
