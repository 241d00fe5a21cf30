# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Makes namespaces, nodes and processes: the steps of a plan, carried out."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

from . import machine, namespaces, network, processes
from .cgroups import COMPONENTS, Cgroups
from .components import API_STAGE, HUB, Component, search_path
from .node_images import NodeImages
from .observe import Observed, observe
from .plan import INTERFACE, NAMESPACES, NODE, Kind, Step
from .probes import answers
from .processes import Process
from .render import KERNEL_TUNABLES
from .settings import Settings
from .stop import clean_leftovers, kill_node

Progress = Callable[[str], None]
_HOLDER_TIMEOUT = 10.0
# A process that is not there so long after it was started has ended.
_BIRTH = 3.0


def _holder(name: str, node: str) -> Process | None:
    return observe(name).holders.get(node)


class Starter:
    """Carries out the steps of one plan, and keeps track of what exists."""

    def __init__(self, settings: Settings, seen: Observed, images: NodeImages, progress: Progress) -> None:
        self._settings = settings
        self._init = seen.init
        self._holders = dict(seen.holders)
        self._running = dict(seen.running)
        self._images = images
        self._progress = progress
        self._cgroups = Cgroups(settings.cgroup)
        self._deadline = time.monotonic() + settings.wait_timeout

    def execute(self, steps: Sequence[Step], components: Sequence[Component], api_ready: Callable[[], None]) -> None:
        """All steps; components of one stage start together, and those of the next once they answer.

        ``api_ready`` is called when the API server answers and before those start that need their rights from it.
        """
        for step in steps:
            if step.kind is Kind.CLEAN:
                clean_leftovers(self._settings.name)
            elif step.target == NAMESPACES:
                self._create_namespaces()
            elif step.target == INTERFACE:
                self._connect()
            elif step.kind is Kind.REMOVE:
                self._remove_node(step.target.removeprefix(NODE))
            elif step.kind is Kind.STOP:
                processes.stop([self._running[step.target]], 5)
        self._create_nodes([s.target.removeprefix(NODE) for s in steps if s.kind is Kind.CREATE and NODE in s.target])
        due = {step.target: step for step in steps if step.kind in (Kind.START, Kind.RESTART)}
        for stage in sorted({component.stage for component in components}):
            started = [c for c in components if c.stage == stage and c.name in due]
            for component in started:
                self._start(component, due[component.name])
            self._await(started)
            if stage == API_STAGE:
                api_ready()

    def _create_namespaces(self) -> None:
        settings = self._settings
        run = settings.run
        run.mkdir(mode=0o700)
        tunables = run / "tunables"
        tunables.mkdir()
        for name, value in KERNEL_TUNABLES.items():
            (tunables / name.replace("/", ".")).write_text(f"{value}\n")
        created = [place for place in namespaces.PRIVATE_DIRECTORIES if not place.exists()]
        (run / "created").write_text("".join(f"{place}\n" for place in created))
        for place in created:
            place.mkdir(parents=True)
        self._cgroups.create([COMPONENTS])
        machine.launch(
            namespaces.init_command(settings),
            self._cgroups.membership_files(COMPONENTS),
            settings.logs / "namespaces.log",
        )
        self._init = self._appears(lambda: observe(settings.name).init, "namespaces")
        machine.ip_batch([], network.machine_batch(settings, self._init.pid))
        inside = namespaces.enter_network(self._init.pid)
        machine.ip_batch(inside, [*network.hub_batch(settings), *network.uplink_batch(settings)])
        machine.set_sysctls(inside, network.SYSCTLS)

    def _connect(self) -> None:
        init = self._require_init()
        machine.ip_batch([], network.machine_batch(self._settings, init.pid))
        machine.ip_batch(namespaces.enter_network(init.pid), network.uplink_batch(self._settings))

    def _require_init(self) -> Process:
        if self._init is None:
            raise OperationError("The sandbox's first process is gone.", reason="SandboxGone")
        return self._init

    def _appears(self, look: Callable[[], Process | None], log: str) -> Process:
        deadline = time.monotonic() + _HOLDER_TIMEOUT
        while time.monotonic() < deadline:
            found = look()
            if found is not None:
                return found
            time.sleep(0.02)
        path = self._settings.logs / f"{log}.log"
        raise OperationError(
            f"The sandbox's {log} could not be made.", reason="NamespacesFailed", remaining=machine.tail(path)
        )

    def _create_nodes(self, nodes: Sequence[str]) -> None:
        settings, init = self._settings, self._require_init()
        for node in nodes:
            kill_node(settings, init, node)
            run, state = settings.node_run(node), settings.node_directory(node)
            shutil.rmtree(run, ignore_errors=True)  # addresses given to Pods that are gone, for one
            for directory in (run / "kubelet", run / "cni", state / "kubelet", state / "var-log"):
                directory.mkdir(mode=0o755 if directory.name == "var-log" else 0o700, parents=True, exist_ok=True)
            self._images.provide(node)
            machine.launch(
                namespaces.node_command(settings, init.pid, node),
                self._cgroups.membership_files(COMPONENTS),
                settings.logs / f"{node}.log",
            )
        self._cgroups.create(nodes)
        for node in nodes:
            holder = self._appears(partial(_holder, settings.name, node), node)
            self._holders[node] = holder
            machine.ip_batch(namespaces.enter_network(init.pid), network.join_batch(settings, node, holder.pid))
            inside = namespaces.enter_network(holder.pid)
            machine.ip_batch(inside, network.node_batch(settings, node))
            machine.set_sysctls(inside, network.SYSCTLS)

    def _remove_node(self, node: str) -> None:
        init = self._require_init()
        kill_node(self._settings, init, node, self._settings.grace_period)
        processes.stop([self._holders.pop(node)], 1)
        self._cgroups.remove(10, node)
        shutil.rmtree(self._settings.node_directory(node))
        shutil.rmtree(self._settings.node_run(node))

    def _start(self, component: Component, step: Step) -> None:
        settings, init = self._settings, self._require_init()
        old = self._running.get(component.name)
        if old is not None:
            processes.stop([old], 5)
        for path, content in component.files.items():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_text(content)
        place = init if component.place == HUB else self._holders[component.place]
        variables = {
            "PATH": search_path(settings),
            "HOME": "/root",
            processes.COMPONENT_VARIABLE: component.name,
            processes.PLACE_VARIABLE: component.place,
            **component.environment,
        }
        command = [
            *namespaces.enter(place.pid, hub=component.place == HUB),
            *("env", "-i", *(f"{name}={value}" for name, value in variables.items())),
            *("setsid", "--fork", *component.argv),
        ]
        if old is not None:
            self._progress(f"{component.name} is restarted: {step.why}")
        machine.launch(command, self._cgroups.membership_files(COMPONENTS), settings.logs / f"{component.name}.log")

    def _await(self, started: Iterable[Component]) -> None:
        """Wait until components answer; a component that has ended is an error at once."""
        waiting = {component.name: component for component in started}
        born = time.monotonic() + _BIRTH
        authority = str(self._settings.pki / "ca.crt")
        while waiting:
            problems = {name: answers(component.probe, authority) for name, component in waiting.items()}
            waiting = {name: waiting[name] for name, problem in problems.items() if problem}
            if not waiting:
                return
            now = time.monotonic()
            if now > born:
                alive = observe(self._settings.name).running
                dead = [name for name in waiting if name not in alive]
                if dead:
                    self._give_up(dead, "ended as soon as it was started", problems)
                born = now + _BIRTH
            if now > self._deadline:
                self._give_up(list(waiting), "does not answer", problems)
            time.sleep(0.05)

    def _give_up(self, names: Sequence[str], what: str, problems: dict[str, str]) -> None:
        remaining = []
        for name in names:
            log = self._settings.logs / f"{name}.log"
            remaining += [f"{name} {what} ({problems[name]}); end of {log}:", *machine.tail(log)]
        raise OperationError(
            f"Sandbox {self._settings.name}: {', '.join(names)} {what}.",
            reason="ComponentFailed",
            remaining=remaining,
            hint="What runs was left running; state=present goes on from here.",
        )
