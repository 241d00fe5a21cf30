# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts that are read from the kernel or given to it: processes, cgroups, networks, namespaces."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox import namespaces, network, processes
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.cgroups import Cgroups, parse_mounts
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.limits import watchers_needed
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.observe import Observed

from .samples import process, settings

HYBRID = """\
cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
proc /proc proc rw 0 0
"""


def test_hierarchies_of_both_versions_are_found() -> None:
    first, second = parse_mounts(HYBRID)
    assert first == [Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup/systemd")]
    assert second == Path("/sys/fs/cgroup/unified")
    assert parse_mounts("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n") == ([], Path("/sys/fs/cgroup"))


def version2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cgroups:
    """A picture of a version 2 hierarchy: the kernel's files are there, but nobody acts on them."""
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids rdma\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu\n")
    monkeypatch.setattr(Path, "read_text", _faked(Path.read_text, f"cgroup2 {tmp_path} cgroup2 rw 0 0\n"))
    return Cgroups("slurm-ops-demo")


def _faked(real, mounts):  # type: ignore[no-untyped-def]
    def read_text(self: Path, *arguments: str, **more: str) -> str:
        return mounts if str(self) == "/proc/self/mounts" else real(self, *arguments, **more)

    return read_text


def test_version_2_delegates_what_the_kernel_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    cgroups = version2(tmp_path, monkeypatch)
    for name in ("slurm-ops-demo", "slurm-ops-demo/node1"):
        (tmp_path / name).mkdir()
        for file in ("cgroup.controllers", "cgroup.subtree_control"):
            (tmp_path / name / file).write_text((tmp_path / file).read_text())
    monkeypatch.setattr(Path, "write_text", lambda self, text: written.append(f"{self.parent.name}:{text}"))
    cgroups.create(["node1"])
    assert written == [
        f"{parent}:+{controller}"
        for parent in (tmp_path.name, "slurm-ops-demo")
        for controller in ("cpuset", "io", "memory", "pids")
    ]


def test_version_2_has_one_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cgroups = version2(tmp_path, monkeypatch)
    assert cgroups.trees == [tmp_path / "slurm-ops-demo"]
    assert not cgroups.exist()
    (tmp_path / "slurm-ops-demo" / "node1" / "kubepods").mkdir(parents=True)
    assert cgroups.exist()
    cgroups.remove(1, "node1")
    assert not (tmp_path / "slurm-ops-demo" / "node1").exists()
    cgroups.remove(1)
    assert not cgroups.exist()


def test_a_process_may_have_any_name() -> None:
    fields = " ".join(str(number) for number in range(4, 53))
    assert processes.parse_stat(f"12 (a) b (c)) S 7 {fields}".encode()) == ("S", 7, 21)
    assert processes.parse_stat(b"") is None


def test_only_a_process_1_that_carries_the_name_is_the_sandbox() -> None:
    # None of these is process 1 of another process namespace, so none may be taken for it.
    candidates = [
        process(1, "/bin/pause", processes.INIT_MARK, "demo", "/state"),
        process(2, "/bin/pause", processes.INIT_MARK, "demo2", "/state"),
        process(3, "/bin/other", processes.INIT_MARK, "demo", "/state"),
    ]
    assert processes.find_init(candidates, "demo") is None


def test_a_process_is_stopped_kindly_if_it_lets_itself_be() -> None:
    child = subprocess.Popen(["sleep", "100"])
    seen = processes.inspect(child.pid)
    assert seen is not None
    assert processes.stop([seen], 10)
    assert child.wait() == -signal.SIGTERM


def test_a_process_that_refuses_is_killed() -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(100)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    seen = processes.inspect(child.pid)
    assert seen is not None
    assert not processes.stop([seen], 0.2)
    assert child.wait() == -signal.SIGKILL


def test_a_number_that_belongs_to_another_process_by_now_is_not_signalled() -> None:
    child = subprocess.Popen(["sleep", "100"])
    try:
        seen = processes.inspect(child.pid)
        assert seen is not None
        earlier = processes.Process(seen.pid, seen.parent, seen.started - 1, seen.argv)
        assert processes.stop([earlier], 0)
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_nothing_in_the_sandbox_has_a_default_route() -> None:
    lines = [
        *network.hub_batch(settings()),
        *network.uplink_batch(settings()),
        *network.join_batch(settings(), "node1", 7),
        *network.node_batch(settings(), "node1"),
    ]
    assert not [line for line in lines if "default" in line or "0.0.0.0/0" in line]


def test_the_machine_gets_one_interface_and_one_route() -> None:
    lines = network.machine_batch(settings(), 7)
    assert [line for line in lines if line.startswith("route")] == [
        "route replace 10.120.0.0/16 via 10.120.0.2 dev so-demo"
    ]
    assert all("so-demo" in line for line in lines)


def test_interfaces_have_names_that_linux_takes() -> None:
    assert all(len(name) <= 15 for name in (network.node_link("node127"), network.UPLINK, network.BRIDGE))


def test_a_node_hides_what_it_must_not_change() -> None:
    script = namespaces.node_script(settings(), "node1")
    assert "/proc/sys/vm/overcommit_memory" in script
    for place in namespaces.PRIVATE_DIRECTORIES:
        assert f"sandbox {place}" in script
    assert script.rstrip().endswith("slurm-ops-node demo node1")


def test_paths_with_spaces_reach_the_shell_whole() -> None:
    script = namespaces.init_script(settings(directory=Path("/my state"), binaries=Path("/my bin")))
    assert script.splitlines()[-1] == "exec '/my bin/pause' slurm-ops-sandbox demo '/my state'"
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0


def test_more_nodes_need_more_watchers() -> None:
    assert watchers_needed(2, 20) < 128 < watchers_needed(10, 20)


def test_leftovers_are_only_those_of_a_sandbox_that_does_not_run() -> None:
    assert Observed(interface=True, run_directory=True).leftovers == ["interface", "run directory"]
    assert Observed(init=process(5), interface=True).leftovers == []
