# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The three states of a sandbox: present, stopped, absent."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

from . import archives, certificates, cluster, components
from .addresses import choose_network, parse_routes
from .archives import pause_archive
from .components import Component
from .limits import raise_watchers
from .node_images import NodeImages, prune_stores
from .observe import Observed, observe
from .plan import Kind, Step, plan_processes
from .probes import silent
from .render import portable_kubeconfig
from .settings import Settings, interface_name
from .start import Starter
from .stop import stop_sandbox

Progress = Callable[[str], None]
_RECORD = "sandbox.json"
# A living component gets so long to answer before it is taken for broken.
_PATIENCE = 5.0


@dataclass
class Report:
    """What was done, or would be; ``before`` and ``after`` are short descriptions for a diff."""

    actions: list[dict[str, str]] = field(default_factory=list)
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)

    def add(self, kind: str, target: str, why: str = "") -> None:
        self.actions.append({"kind": kind, "target": target, "why": why})

    @property
    def changed(self) -> bool:
        return bool(self.actions)


def recorded_network(directory: Path) -> IPv4Network | None:
    """The network that a sandbox was made with; its certificates and objects are tied to it."""
    try:
        return IPv4Network(json.loads((directory / _RECORD).read_text())["network"])
    except FileNotFoundError:
        return None


def pick_network(name: str, directory: Path, wanted: IPv4Network | None) -> IPv4Network:
    """The network of the sandbox in ``directory``: recorded, wanted or the first free one."""
    recorded = recorded_network(directory)
    if recorded is not None and wanted is not None and recorded != wanted:
        raise OperationError(
            f"Sandbox {name} was made with network {recorded} and cannot be moved to {wanted}.",
            reason="NetworkFixed",
            hint="Remove it with state=absent first, or give it another name.",
        )
    siblings = [path for path in directory.parent.glob("*") if path != directory and path.is_dir()]
    reserved = [network for network in map(recorded_network, siblings) if network is not None]
    routes = parse_routes(Path("/proc/net/route").read_text())
    return choose_network(recorded or wanted, routes, interface_name(name), reserved)


def present(settings: Settings, progress: Progress, check: bool) -> Report:
    """Make the sandbox run as wanted, whatever is there of it."""
    report = Report()
    wanted = components.components(settings)
    images = NodeImages(settings, _archives(settings, check))
    with _lock(settings.directory, check):
        seen = observe(settings.name)
        _refuse_stranger(settings.name, settings.directory, seen)
        if seen.init is not None:
            probed = [c for c in wanted if c.name in seen.running]
            seen = replace(seen, silent=silent(probed, str(settings.pki / "ca.crt"), _PATIENCE))
        steps = plan_processes(wanted, settings.node_names, seen)
        report.before = describe(seen, wanted)
        report.after = _described_wish(settings, wanted)
        for step in steps:
            report.add(step.kind.value, step.target, step.why)
        if check:
            _predict(settings, steps, images, seen, report)
            return report
        started = time.time()
        _prepare(settings, report)
        if any(step.kind is Kind.CREATE for step in steps):
            raised = raise_watchers(settings.nodes)
            if raised:
                report.add("raise", "fs.inotify.max_user_instances", raised)
            images.store.create(progress)
        if steps:
            progress(f"starting sandbox {settings.name}: {settings.nodes} nodes, network {settings.addresses.network}")
        starter = Starter(settings, seen, images, progress)
        starter.execute(steps, wanted, lambda: _apply_objects(settings, report))
        _deliver_images(settings, images, report, progress)
        _converge(settings, steps, started, report, progress)
        prune_stores(settings.cache)
    return report


def _archives(settings: Settings, check: bool) -> dict[str, Path]:
    """Identity and path of every archive, our own pause image first."""
    paths = [settings.cache / "sandbox-images" / "pause.tar", *settings.image_archives]
    content = pause_archive((settings.binaries / "pause").read_bytes())
    if not paths[0].exists() or paths[0].read_bytes() != content:
        if check:
            paths = paths[1:]
        else:
            certificates.write_secret(paths[0], content)
    return {archives.identity(path): path for path in paths}


def _refuse_stranger(name: str, directory: Path, seen: Observed) -> None:
    if seen.init is not None and Path(seen.directory) != directory:
        raise OperationError(
            f"A sandbox named {name} runs already, with its data in {seen.directory}.",
            reason="NameInUse",
            hint="Give this one another name.",
        )


def _prepare(settings: Settings, report: Report) -> None:
    """Directories, keys and certificates, and the kubeconfig."""
    for directory in (settings.directory, settings.pki, settings.logs, settings.directory / "etcd"):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Pods of any user go through here to their volumes.
    settings.volumes.mkdir(mode=0o711, exist_ok=True)
    record = {"layout": 1, "name": settings.name, "network": str(settings.addresses.network)}
    _write_if_changed(settings.directory / _RECORD, json.dumps(record))
    made = certificates.Authority(settings.pki).ensure(components.identities(settings))
    made += certificates.Authority(settings.pki, "front-proxy-ca").ensure([components.FRONT_PROXY])
    if certificates.ensure_service_account_key(settings.pki):
        made.append("service-accounts")
    for name in made:
        report.add("create", f"certificate:{name}", "not there or not fitting")
    pki = settings.pki
    text = portable_kubeconfig(settings, *((pki / name).read_bytes() for name in ("ca.crt", "admin.crt", "admin.key")))
    if _write_if_changed(settings.kubeconfig, text):
        report.add("write", str(settings.kubeconfig), "not there or different")


def _write_if_changed(path: Path, text: str) -> bool:
    if path.exists() and path.read_text() == text:
        return False
    certificates.write_secret(path, text.encode())
    return True


def _deliver_images(settings: Settings, images: NodeImages, report: Report, progress: Progress) -> None:
    lacking = {path.name for node in settings.node_names for path in images.lacking(node).values()}
    if lacking:
        progress(f"importing into running nodes: {', '.join(sorted(lacking))}")
        images.deliver(observe(settings.name).holders)
        for name in sorted(lacking):
            report.add("import", f"archive:{name}", "not imported yet")


def _apply_objects(settings: Settings, report: Report) -> None:
    with closing(cluster.open_api(settings)) as api:
        paths = cluster.differing_objects(api, settings)
        cluster.apply_objects(api, settings, paths)
    for path in paths:
        report.add("apply", path, "not there or different")


def _converge(settings: Settings, steps: Sequence[Step], started: float, report: Report, progress: Progress) -> None:
    """All that goes through the API server."""
    kubelets = [step.target for step in steps if step.target.startswith("kubelet-")]
    with closing(cluster.open_api(settings)) as api:
        surplus = cluster.surplus_nodes(api, settings)
        cluster.delete_nodes(api, surplus)
        for name in surplus:
            report.add("delete", f"Node {name}", "not wanted")
        if kubelets:
            cluster.await_nodes(api, settings, started, progress)
        create, delete = cluster.simulated_changes(api, settings)
        if create or delete:
            progress(f"simulated Nodes: {len(create)} to create, {len(delete)} to delete")
            cluster.change_simulated(settings, create, delete)
            report.add("scale", "simulated Nodes", f"{len(create)} created, {len(delete)} deleted")
        patches = cluster.node_patches(api, settings)
        cluster.patch_nodes(settings, patches)
        for name in patches:
            report.add("patch", f"Node {name}", "labels or Pod addresses differ")


def _predict(settings: Settings, steps: Sequence[Step], images: NodeImages, seen: Observed, report: Report) -> None:
    """Check mode: what the API server would be asked for, if there is one to compare with."""
    if seen.init is None or any(step.target in ("etcd", "kube-apiserver") for step in steps):
        return
    for node in settings.node_names:
        if node in seen.holders:
            for path in images.lacking(node).values():
                report.add("import", f"archive:{path.name}", f"not imported on {node}")
    with closing(cluster.open_api(settings)) as api:
        for target in cluster.differing_objects(api, settings):
            report.add("apply", target, "not there or different")
        for name in cluster.surplus_nodes(api, settings):
            report.add("delete", f"Node {name}", "not wanted")
        create, delete = cluster.simulated_changes(api, settings)
        if create or delete:
            report.add("scale", "simulated Nodes", f"{len(create)} to create, {len(delete)} to delete")
        for name in cluster.node_patches(api, settings):
            report.add("patch", f"Node {name}", "labels or Pod addresses differ")


def stopped(name: str, directory: Path, grace: float, check: bool) -> Report:
    """End the sandbox and keep its data."""
    report = Report()
    with _lock(directory, check or not directory.parent.exists()):
        seen = observe(name)
        _refuse_stranger(name, directory, seen)
        report.before = {"state": "running" if seen.init else "stopped"}
        report.after = {"state": "stopped"}
        if seen.init is not None:
            report.add("stop", "sandbox", "running")
        for what in seen.leftovers:
            report.add("clean", what, "left behind")
        if report.changed and not check:
            stop_sandbox(name, seen, grace)
    return report


def absent(name: str, directory: Path, kubeconfig: Path, cache: Path, check: bool) -> Report:
    """End the sandbox and remove its data."""
    report = stopped(name, directory, 0, check)
    exists = directory.exists()
    report.before = {"state": "absent"} if not (exists or report.changed) else report.before
    report.after = {"state": "absent"}
    if exists:
        # Nothing is removed that is not known to be a sandbox's.
        if not (directory / _RECORD).exists():
            raise OperationError(
                f"{directory} does not look like a sandbox: it has no {_RECORD}.", reason="NotASandbox"
            )
        _refuse_mounts(directory)
        report.add("remove", str(directory), "data of the sandbox")
        if not check:
            with _lock(directory, check):
                shutil.rmtree(directory)
    if kubeconfig.exists() and not kubeconfig.is_relative_to(directory):
        report.add("remove", str(kubeconfig), "kubeconfig of the sandbox")
        if not check:
            kubeconfig.unlink()
    if not check:
        prune_stores(cache)
        directory.with_name(directory.name + ".lock").unlink(missing_ok=True)
    return report


def _refuse_mounts(directory: Path) -> None:
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    inside = [mount for mount in mounts if Path(mount).is_relative_to(directory)]
    if inside:
        raise OperationError(f"Something is mounted in {directory}.", reason="Mounted", remaining=inside)


def describe(seen: Observed, wanted: Sequence[Component]) -> dict[str, Any]:
    """The sandbox as it is, for a diff."""
    if seen.init is None:
        return {"state": "not running"}

    def state(component: Component) -> str:
        process = seen.running.get(component.name)
        if process is None:
            return "not running"
        if component.name in seen.silent:
            return "does not answer"
        return "running" if process.argv == component.argv else "running, with another version or configuration"

    names = {component.name for component in wanted}
    extra: Mapping[str, str] = {name: "running, not wanted" for name in seen.running if name not in names}
    return {
        "state": "running",
        "nodes": len(seen.holders),
        "components": {**{component.name: state(component) for component in wanted}, **extra},
    }


def _described_wish(settings: Settings, wanted: Sequence[Component]) -> dict[str, Any]:
    return {
        "state": "running",
        "nodes": settings.nodes,
        "components": {component.name: "running" for component in wanted},
    }


def running_processes(name: str) -> dict[str, int]:
    """Component and process number of all that runs, for the module's result."""
    return {component: process.pid for component, process in sorted(observe(name).running.items())}


@contextmanager
def _lock(directory: Path, skip: bool) -> Iterator[None]:
    """One run at a time for each sandbox."""
    if skip:
        yield
        return
    directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(directory.with_name(directory.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OperationError(f"Another run is busy with the sandbox in {directory}.", reason="Busy") from error
        yield
    finally:
        os.close(descriptor)
