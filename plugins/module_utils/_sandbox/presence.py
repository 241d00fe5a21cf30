# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The state in which a sandbox runs: look, plan, do, and look again until there is nothing left to do."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

from . import archives, certificates, cluster, components
from .archives import pause_archive
from .components import Component
from .limits import raise_watchers
from .node_images import NodeImages, prune_stores
from .observe import Observed, observe
from .plan import Kind, Step, plan_processes
from .probes import silent
from .records import locked, refuse_stranger
from .render import portable_kubeconfig
from .report import Report, describe, describe_wanted
from .settings import Settings
from .start import Starter

Progress = Callable[[str], None]
# A living component gets so long to answer before it is taken for broken.
_PATIENCE = 5.0
# Looking again shows what could not be judged before, one stage each time.
_ROUNDS = 4


def present(settings: Settings, progress: Progress, check: bool) -> Report:
    """Make the sandbox run as wanted, whatever is there of it."""
    report = Report()
    wanted = components.components(settings)
    _refuse_missing_programs(wanted)
    images = NodeImages(settings, _archives(settings, check))
    with locked(settings.directory, check):
        seen = look(settings, wanted)
        refuse_stranger(settings.name, settings.directory, seen)
        steps = plan_processes(wanted, settings.node_names, seen)
        report.before = describe(seen, wanted)
        report.after = describe_wanted(settings, wanted)
        if check:
            _foretell(settings, steps, images, seen, report)
            return report
        _prepare(settings, report)
        _record_archives(settings)
        began = time.time()
        kubelets: dict[str, float] = {}
        for _round in range(_ROUNDS):
            if not steps:
                break
            started = [step.target for step in steps if step.target.startswith("kubelet-")]
            kubelets.update(dict.fromkeys((name.removeprefix("kubelet-") for name in started), began))
            _execute(settings, wanted, steps, seen, images, report, progress)
            seen = look(settings, wanted)
            steps = plan_processes(wanted, settings.node_names, seen)
        _deliver_images(settings, images, report, progress)
        _converge(settings, kubelets, report, progress)
        prune_stores(settings.cache)
    return report


def _refuse_missing_programs(wanted: Sequence[Component]) -> None:
    missing = sorted({component.argv[0] for component in wanted if not Path(component.argv[0]).exists()})
    if missing:
        raise OperationError(
            f"There is no {', '.join(missing)}.",
            reason="ProgramsMissing",
            remaining=missing,
            hint="The role slurm_ops.kubernetes.sandbox builds programs and unpacks containerd.",
        )


def look(settings: Settings, wanted: Sequence[Component]) -> Observed:
    """See what runs, and ask whether it works: in the order of the stages, as far as the stages before work."""
    seen = observe(settings.name)
    if seen.init is None:
        return seen
    quiet: dict[str, str] = {}
    for stage in sorted({component.stage for component in wanted}):
        members = [component for component in wanted if component.stage == stage]
        alive = [component for component in members if component.name in seen.running]
        quiet.update(silent(alive, str(settings.pki / "ca.crt"), _PATIENCE))
        # An API server without etcd is not broken, and neither is a kubelet without an API server.
        if quiet or len(alive) < len(members):
            break
    return replace(seen, silent=quiet)


def _archives(settings: Settings, check: bool) -> dict[str, Path]:
    """Identity and path of every archive, our own pause image first."""
    pause = settings.cache / "sandbox-images" / "pause.tar"
    content = pause_archive((settings.binaries / "pause").read_bytes())
    made = pause.exists() and pause.read_bytes() == content
    if not made and not check:
        certificates.write_secret(pause, content)
    own = {archives.identity(pause): pause} if made or not check else {}
    return own | _given_archives(settings)


def _given_archives(settings: Settings) -> dict[str, Path]:
    """Those that are asked for, or those that the sandbox had: they are imported, and their files may be gone."""
    if settings.image_archives is not None:
        return {archives.identity(path): path for path in settings.image_archives}
    if not settings.archives_record.exists():
        return {}
    return {key: Path(path) for key, path in json.loads(settings.archives_record.read_text()).items()}


def _record_archives(settings: Settings) -> None:
    """Remember what was asked for, for a later start that does not say."""
    if settings.image_archives is not None:
        given = {key: str(path) for key, path in _given_archives(settings).items()}
        settings.archives_record.write_text(json.dumps(given, indent=1))


def _prepare(settings: Settings, report: Report) -> None:
    """Directories, keys and certificates, and the kubeconfig."""
    own = settings.directory
    for directory in (settings.pki, settings.logs, settings.volumes, own / "etcd", own / "nodes"):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
    # A user who may read the kubeconfig must get to it.
    own.chmod(0o711)
    if own.parent.parent == settings.cache:
        own.parent.chmod(0o711)
    made = certificates.Authority(settings.pki).ensure(components.identities(settings))
    made += certificates.Authority(settings.pki, "front-proxy-ca").ensure([components.FRONT_PROXY])
    if certificates.ensure_service_account_key(settings.pki):
        made.append("service-accounts")
    for name in made:
        report.add("create", f"certificate:{name}", "not there or not fitting")
    pki = settings.pki
    text = portable_kubeconfig(settings, *((pki / name).read_bytes() for name in ("ca.crt", "admin.crt", "admin.key")))
    if not settings.kubeconfig.exists() or settings.kubeconfig.read_text() != text:
        certificates.write_secret(settings.kubeconfig, text.encode())
        report.add("write", str(settings.kubeconfig), "not there or different")
    caller = (int(os.environ.get("SUDO_UID", "0")), int(os.environ.get("SUDO_GID", "0")))
    status = settings.kubeconfig.stat()
    if status.st_uid == 0 and caller != (status.st_uid, status.st_gid):
        # Whoever has started it by sudo shall be able to use it without.
        os.chown(settings.kubeconfig, *caller)
        report.add("chown", str(settings.kubeconfig), "started by sudo")


def _execute(
    settings: Settings,
    wanted: Sequence[Component],
    steps: Sequence[Step],
    seen: Observed,
    images: NodeImages,
    report: Report,
    progress: Progress,
) -> None:
    """Carry out one plan."""
    if any(step.kind is Kind.CREATE for step in steps):
        raised = raise_watchers(settings.nodes)
        if raised:
            report.add("raise", "fs.inotify.max_user_instances", raised)
        images.store.create(progress)
        progress(f"starting sandbox {settings.name}: {settings.nodes} nodes, network {settings.addresses.network}")
    Starter(settings, seen, images, progress).execute(steps, wanted, lambda: _apply_objects(settings, report))
    for step in steps:
        report.add(step.kind.value, step.target, step.why)


def _apply_objects(settings: Settings, report: Report) -> None:
    with closing(cluster.open_api(settings)) as api:
        paths = cluster.differing_objects(api, settings)
        cluster.apply_objects(api, settings, paths)
    for path in paths:
        report.add("apply", path, "not there or different")


def _deliver_images(settings: Settings, images: NodeImages, report: Report, progress: Progress) -> None:
    lacking = {path.name for node in settings.node_names for path in images.lacking(node).values()}
    if lacking:
        progress(f"importing into running nodes: {', '.join(sorted(lacking))}")
        images.deliver(observe(settings.name).holders)
        for name in sorted(lacking):
            report.add("import", f"archive:{name}", "not imported yet")


def _converge(settings: Settings, kubelets: Mapping[str, float], report: Report, progress: Progress) -> None:
    """All that goes through the API server. Nodes whose kubelets began in this run are waited for."""
    _apply_objects(settings, report)
    with closing(cluster.open_api(settings)) as api:
        surplus = cluster.surplus_nodes(api, settings)
        cluster.delete_nodes(api, surplus)
        for name in surplus:
            report.add("delete", f"Node {name}", "not wanted")
        if kubelets:
            cluster.await_nodes(api, settings, kubelets, progress)
        create, delete = cluster.simulated_changes(api, settings)
        if create or delete:
            progress(f"simulated Nodes: {len(create)} to create, {len(delete)} to delete")
            cluster.change_simulated(settings, create, delete)
            report.add("scale", "simulated Nodes", f"{len(create)} created, {len(delete)} deleted")
        patches = cluster.node_patches(api, settings)
        cluster.patch_nodes(settings, patches)
        for name in patches:
            report.add("patch", f"Node {name}", "labels or Pod addresses differ")


def _foretell(settings: Settings, steps: Sequence[Step], images: NodeImages, seen: Observed, report: Report) -> None:
    """Check mode: the steps, and what the API server would be asked for if there is one to compare with."""
    for step in steps:
        report.add(step.kind.value, step.target, step.why)
    if seen.init is None or any(step.target in ("etcd", "kube-apiserver") for step in steps):
        return
    lacking = {p.name for node in seen.holders if node in settings.node_names for p in images.lacking(node).values()}
    for name in sorted(lacking):
        report.add("import", f"archive:{name}", "not imported yet")
    with closing(cluster.open_api(settings)) as api:
        for path in cluster.differing_objects(api, settings):
            report.add("apply", path, "not there or different")
        for name in cluster.surplus_nodes(api, settings):
            report.add("delete", f"Node {name}", "not wanted")
        create, delete = cluster.simulated_changes(api, settings)
        if create or delete:
            report.add("scale", "simulated Nodes", f"{len(create)} to create, {len(delete)} to delete")
        for name in cluster.node_patches(api, settings):
            report.add("patch", f"Node {name}", "labels or Pod addresses differ")
