# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sandbox itself: what it offers, that it heals, and that nothing of it is left when it has been stopped.

It is another one than that of the other tests and runs beside it. The tests follow one life of it, in the order in
which they are written: each finds it running, and leaves it so.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox import archives, processes
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._sandbox.settings import interface_name

from .support.kube import Kube
from .support.minislurm import is_ready
from .support.playbook import NO_INVENTORY, Ansible
from .support.sandbox import Sandbox, output

Json = dict[str, Any]
TOOLS = "localhost/live/tools:1"
LATER = "localhost/live/later:1"
_PROGRAMS = ("sh", "bash", "cat", "getent", "id", "ls", "sleep", "hostname", "stat")
_PODS = "/api/v1/namespaces/default/pods"


def _toolbox(coredns: Path) -> bytes:
    """An image with a few of this machine's programs and their libraries, and one that listens."""
    files: dict[str, tuple[bytes, int]] = {
        "etc/passwd": (b"root:x:0:0::/:/bin/sh\n", 0o644),
        "etc/nsswitch.conf": (b"hosts: files dns\n", 0o644),
        "etc/Corefile": (b".:5353 {\n  health :8080\n}\n", 0o644),
        "bin/coredns": (coredns.read_bytes(), 0o755),
    }
    for name in _PROGRAMS:
        program = Path(output("sh", "-c", f"command -v {name}").strip())
        files[f"bin/{name}"] = (program.read_bytes(), 0o755)
        for library in re.findall(r"(/\S+) \(0x", output("ldd", str(program))):
            files[library.lstrip("/")] = (Path(library).read_bytes(), 0o755)
    return archives.image_archive(TOOLS, files, {"Env": ["PATH=/bin"], "Cmd": ["sleep", "100000"]})


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Sandbox]:
    scratch = tmp_path_factory.mktemp("sandbox")
    own = Sandbox(Ansible("/nonexistent", scratch, NO_INVENTORY), cache)
    try:
        first = own.run()
        own.binaries = Path(json.loads(first.task("Build the programs").result["stdout"])["binaries"])
        own.runtime = Path(json.loads(first.task("Set up the container runtime").result["stdout"])["runtime"])
        image = scratch / "tools.tar"
        image.write_bytes(_toolbox(own.binaries / "coredns"))
        own.images = [str(image)]
        own.module()
        yield own
    finally:
        own.run("absent")


@pytest.fixture(scope="module")
def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "slurm_ops.kubernetes"


def _pod(name: str, node: str, **spec: Any) -> Json:
    container: Json = {"name": "main", "image": TOOLS, "imagePullPolicy": "Never"}
    container.update(spec.pop("container", {}))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container], **spec},
    }


@pytest.fixture
def make_pods(sandbox: Sandbox) -> Iterator[Callable[..., None]]:
    kube = sandbox.kube()
    made: list[str] = []

    def make(*pods: Json) -> None:
        for pod in pods:
            kube.create(_PODS, pod)
            made.append(pod["metadata"]["name"])
        for pod in pods:
            kube.wait(f"{_PODS}/{pod['metadata']['name']}", is_ready, timeout=60, what=pod["metadata"]["name"])

    yield make
    kube = sandbox.kube()
    for name in made:
        if kube.find(f"{_PODS}/{name}"):
            kube.delete(f"{_PODS}/{name}", gracePeriodSeconds=0)


def _in(kube: Kube, pod: str, command: str) -> str:
    return kube.exec("default", pod, ["sh", "-c", command]).check().stdout


def _fetch(address: str, port: int, path: str = "/health") -> int:
    connection = http.client.HTTPConnection(address, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.alone
def test_the_second_start_does_nothing_and_does_it_fast(sandbox: Sandbox) -> None:
    again = sandbox.run()
    assert again.changed == []
    assert again.task("Run the sandbox").result["actions"] == []
    assert again.task("Run the sandbox").result["duration"] < 3  # 0.5 s on a machine that does nothing else
    assert sandbox.run(check=True).changed == []


def test_every_node_is_ready_labelled_and_has_its_own_addresses(sandbox: Sandbox) -> None:
    nodes = {node["metadata"]["name"]: node for node in sandbox.kube().items("/api/v1/nodes")}
    assert sorted(nodes) == ["node1", "node2"]
    assert len({node["spec"]["podCIDR"] for node in nodes.values()}) == 2
    labels = nodes["node2"]["metadata"]["labels"]
    assert (labels["example.com/kind"], labels["example.com/rack"]) == ("real", "b")
    assert "example.com/rack" not in nodes["node1"]["metadata"]["labels"]


def test_secrets_are_readable_by_root_only(sandbox: Sandbox) -> None:
    below = [path for path in sandbox.directory.iterdir() if path.is_dir()]
    for path in [*below, sandbox.kubeconfig, *(sandbox.directory / "pki").iterdir()]:
        assert path.stat().st_mode & 0o077 == 0, path
    assert sandbox.directory.stat().st_mode & 0o066 == 0


def test_exec_logs_names_and_the_api_work_from_a_pod(sandbox: Sandbox, make_pods: Callable[..., None]) -> None:
    kube = sandbox.kube()
    make_pods(_pod("talker", "node1", container={"command": ["sh", "-c", "echo said; exec sleep 10000"]}))
    assert kube.logs("default", "talker") == "said\n"
    assert "kubernetes.default.svc.cluster.local" in _in(kube, "talker", "getent hosts kubernetes.default")
    assert kube.exec("default", "talker", ["getent", "hosts", "www.example.com"]).rc == 2
    token = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    assert _in(kube, "talker", f"cat {token}").count(".") == 2
    # Through the Service's address, which only works if the node's proxy does.
    assert _in(kube, "talker", "bash -c 'exec 3<>/dev/tcp/kubernetes.default/443 && echo open'") == "open\n"


def test_nothing_can_leave(sandbox: Sandbox, make_pods: Callable[..., None]) -> None:
    make_pods(_pod("prisoner", "node1"))
    done = sandbox.kube().exec("default", "prisoner", ["bash", "-c", "exec 3<>/dev/tcp/192.0.2.1/80"])
    assert done.rc
    assert "unreachable" in done.stderr


def test_pods_services_and_ports_of_nodes_are_reached(sandbox: Sandbox, make_pods: Callable[..., None]) -> None:
    kube = sandbox.kube()
    server = {"command": ["coredns", "-conf", "/etc/Corefile"], "ports": [{"containerPort": 8080, "hostPort": 8888}]}
    make_pods(
        _pod("server", "node2", container=server),
        _pod("neighbour", "node2"),
        _pod("far", "node1"),
        _pod("flat", "node1", hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet"),
        _pod("flat2", "node2", hostNetwork=True),
    )
    ports = [{"port": 80, "targetPort": 8080, "nodePort": 30080}]
    service = {"type": "NodePort", "selector": {"app": "server"}, "ports": ports}
    kube.create(
        "/api/v1/namespaces/default/services",
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "server"}, "spec": service},
    )
    try:
        virtual = kube.get("/api/v1/namespaces/default/services/server")["spec"]["clusterIP"]
        address = kube.get(f"{_PODS}/server")["status"]["podIP"]
        nodes = {name: kube.get(f"{_PODS}/{name}")["status"]["hostIP"] for name in ("flat", "flat2")}
        kube.wait(lambda: _answers(virtual, 80), bool, timeout=15, what="the Service answers")
        assert _fetch(address, 8080) == 200
        assert _fetch(nodes["flat2"], 8888) == 200
        assert _fetch(nodes["flat"], 30080) == _fetch(nodes["flat2"], 30080) == 200
        with pytest.raises(OSError):
            _fetch(nodes["flat"], 8888)  # the port belongs to the other node
        for pod in ("server", "neighbour", "far", "flat"):
            command = "exec 3<>/dev/tcp/server.default.svc.cluster.local/80 && echo open"
            assert kube.exec("default", pod, ["bash", "-c", command]).check().stdout == "open\n"
        assert _in(kube, "flat", "hostname") == "node1\n"
        with _forwarded(sandbox, "server", 8080) as port:
            assert _fetch("127.0.0.1", port) == 200
    finally:
        kube.delete("/api/v1/namespaces/default/services/server")


@contextlib.contextmanager
def _forwarded(sandbox: Sandbox, pod: str, port: int) -> Iterator[int]:
    """A port of this machine that leads to one of a Pod."""
    command = [str(sandbox.binaries / "kubectl"), f"--kubeconfig={sandbox.kubeconfig}", "port-forward", pod, f":{port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
        try:
            line = forward.stdout.readline() if forward.stdout else ""
            yield int(line.split("->")[0].rpartition(":")[2])
        finally:
            forward.terminate()


def _answers(address: str, port: int) -> bool:
    try:
        return _fetch(address, port) == 200
    except OSError:
        return False


def _claim(name: str, mode: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}},
    }


def test_a_volume_follows_fsgroup_and_is_shared_by_nodes(sandbox: Sandbox, make_pods: Callable[..., None]) -> None:
    kube = sandbox.kube()
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    kube.create(claims, _claim("shared", "ReadWriteMany"))
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "shared"}}]
    try:
        for user, node in ((1000, "node1"), (1001, "node2")):
            security = {"runAsUser": user, "runAsGroup": user, "fsGroup": 2000, "runAsNonRoot": True}
            make_pods(_pod(f"user{user}", node, container=mount, volumes=volumes, securityContext=security))
        assert _in(kube, "user1000", "echo from node1 > /data/file; stat -c %g /data/file") == "2000\n"
        assert _in(kube, "user1001", "cat /data/file") == "from node1\n"
        volume = kube.get(f"{claims}/shared")["spec"]["volumeName"]
        path = Path(kube.get(f"/api/v1/persistentvolumes/{volume}")["spec"]["local"]["path"])
        assert (path / "file").read_text() == "from node1\n"
    finally:
        for user in (1000, 1001):
            kube.delete(f"{_PODS}/user{user}", gracePeriodSeconds=0)
        kube.delete(f"{claims}/shared")
    kube.wait(path.exists, lambda there: not there, timeout=60, what="the volume's directory is gone")
    kube.wait(lambda: kube.find(f"/api/v1/persistentvolumes/{volume}"), lambda v: v is None, timeout=30)


def test_a_claim_that_came_and_one_that_went_while_nobody_provided(sandbox: Sandbox) -> None:
    kube = sandbox.kube()
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"

    def phase(name: str) -> str:
        return str(kube.get(f"{claims}/{name}")["status"].get("phase"))

    kube.create(claims, _claim("goes", "ReadWriteOnce"))
    kube.wait(lambda: phase("goes"), lambda seen: seen == "Bound", timeout=30)
    volume = kube.get(f"{claims}/goes")["spec"]["volumeName"]
    os.kill(sandbox.module()["processes"]["provisioner"], signal.SIGKILL)
    kube.delete(f"{claims}/goes")
    kube.create(claims, _claim("comes", "ReadWriteOnce"))
    sandbox.module()
    kube.wait(lambda: phase("comes"), lambda seen: seen == "Bound", timeout=30)
    kube.wait(lambda: kube.find(f"/api/v1/persistentvolumes/{volume}"), lambda seen: seen is None, timeout=30)
    kube.delete(f"{claims}/comes")
    volumes = sandbox.directory / "volumes"
    kube.wait(lambda: list(volumes.iterdir()), lambda seen: not seen, timeout=30, what="no directory is left")


def test_network_policies_are_accepted(sandbox: Sandbox) -> None:
    path = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "closed"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    }
    sandbox.kube().create(path, policy)
    sandbox.kube().delete(f"{path}/closed")


@pytest.mark.parametrize(
    "killed",
    [
        ["etcd"],
        ["kube-apiserver"],
        ["containerd-node1", "kubelet-node2"],
        ["coredns", "kube-controller-manager", "kube-proxy-node1", "provisioner"],
    ],
    ids=" ".join,
)
def test_killed_components_are_repaired(sandbox: Sandbox, make_pods: Callable[..., None], killed: list[str]) -> None:
    make_pods(_pod("bystander", "node1"))
    before = sandbox.module()["processes"]
    for name in killed:
        os.kill(before[name], signal.SIGKILL)
    foretold = sandbox.module(check=True)
    assert {(a["kind"], a["target"]) for a in foretold["actions"]} == {("start", name) for name in killed}
    after = sandbox.module()["processes"]
    assert sorted(name for name in before if before[name] != after.get(name)) == sorted(killed)
    assert not sandbox.module()["changed"]
    assert sandbox.kube().get(f"{_PODS}/bystander")["status"]["containerStatuses"][0]["restartCount"] == 0
    assert _in(sandbox.kube(), "bystander", "echo alive") == "alive\n"


def test_a_component_that_hangs_is_restarted(sandbox: Sandbox) -> None:
    pid = sandbox.module()["processes"]["kube-scheduler"]
    os.kill(pid, signal.SIGSTOP)
    repaired = sandbox.module()
    assert [(a["kind"], a["target"]) for a in repaired["actions"]] == [("restart", "kube-scheduler")]
    assert not sandbox.module()["changed"]


def test_a_lost_interface_is_put_back(sandbox: Sandbox) -> None:
    subprocess.run(["ip", "link", "delete", interface_name(sandbox.name)], check=True)
    sandbox.module()
    assert is_ready(sandbox.kube().get("/api/v1/nodes/node1"))
    assert not sandbox.module()["changed"]


def test_a_node_can_be_added_and_removed(sandbox: Sandbox) -> None:
    sandbox.nodes = 3
    sandbox.module()
    assert is_ready(sandbox.kube().get("/api/v1/nodes/node3"))
    assert not sandbox.module()["changed"]
    sandbox.nodes = 2
    sandbox.module()
    assert sandbox.kube().find("/api/v1/nodes/node3") is None
    assert not (sandbox.directory / "nodes" / "node3").exists()
    assert not sandbox.module()["changed"]


def test_a_node_whose_namespaces_are_lost_is_made_again(sandbox: Sandbox) -> None:
    pid = next(p.pid for p in processes.everything() if p.argv[1:4] == (processes.NODE_MARK, sandbox.name, "node2"))
    os.kill(pid, signal.SIGKILL)
    sandbox.module()
    assert is_ready(sandbox.kube().get("/api/v1/nodes/node2"))
    assert not sandbox.module()["changed"]


def test_an_image_that_comes_later_is_imported_alone(
    sandbox: Sandbox, make_pods: Callable[..., None], tmp_path: Path
) -> None:
    image = tmp_path / "later.tar"
    pause = (sandbox.binaries / "pause").read_bytes()
    image.write_bytes(archives.image_archive(LATER, {"pause": (pause, 0o755)}, {"Cmd": ["/pause"]}))
    sandbox.images = [*sandbox.images, str(image)]
    changed = sandbox.module()
    assert [(a["kind"], a["target"]) for a in changed["actions"]] == [("import", "archive:later.tar")]
    make_pods(_pod("late", "node2", container={"image": LATER}))
    assert not sandbox.module()["changed"]


def test_simulated_nodes_come_and_go(sandbox: Sandbox) -> None:
    def simulated() -> list[Json]:
        return sandbox.kube().items("/api/v1/nodes", labelSelector="type=kwok")

    sandbox.kwok = 1
    sandbox.run()  # builds kwok
    for wanted in (50, 20, 0):
        sandbox.kwok = wanted
        sandbox.module()
        assert len(simulated()) == wanted
        sandbox.kube().wait(simulated, lambda nodes: all(map(is_ready, nodes)), timeout=60, what="they are ready")
        assert not sandbox.module()["changed"]


def test_a_range_that_is_routed_already_is_refused(sandbox: Sandbox) -> None:
    taken = sandbox.module()["network"]
    refused = sandbox.ansible.run_playbook(
        "sandbox",
        inventory=NO_INVENTORY,
        fails=True,
        extra_vars={"sandbox_name": f"{sandbox.name}-x", "sandbox_images_build": False, "sandbox_network": taken},
    )
    result = refused.task("Run the sandbox").result
    assert result["reason"] == "NetworkInUse"
    assert interface_name(sandbox.name) in result["msg"]
    assert not (sandbox.cache / "sandbox" / f"{sandbox.name}-x").exists()


def _remembers(kube: Kube) -> bool:
    if not is_ready(kube.get(f"{_PODS}/kept")):
        return False
    return kube.exec("default", "kept", ["cat", "/data/file"]).stdout == "remembered\n"


@pytest.mark.alone
def test_stopped_leaves_nothing_and_a_start_finds_the_same_state(sandbox: Sandbox) -> None:
    kube = sandbox.kube()
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    kube.create(claims, _claim("kept", "ReadWriteOnce"))
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "kept"}}]
    kube.create(_PODS, _pod("kept", "node1", container=mount, volumes=volumes))
    kube.wait(f"{_PODS}/kept", is_ready, timeout=60)
    _in(kube, "kept", "echo remembered > /data/file")
    namespaces = sandbox.namespaces()
    assert len(namespaces) > 10
    assert sandbox.traces()

    assert sandbox.module("stopped", check=True)["changed"]
    assert sandbox.traces()
    sandbox.run("stopped")
    time.sleep(0.5)  # the kernel takes network namespaces down in the background
    assert sandbox.traces() == []
    assert namespaces.isdisjoint(output("lsns", "--noheadings", "--output", "NS").split())
    assert sandbox.run("stopped").changed == []

    started = sandbox.module()
    assert started["duration"] < 30
    kube = sandbox.kube()
    kube.wait(lambda: _remembers(kube), bool, timeout=90, what="the Pod runs again and has its data")
    assert not sandbox.module()["changed"]
    kube.delete(f"{_PODS}/kept", gracePeriodSeconds=0)
    kube.delete(f"{claims}/kept")


def test_absent_removes_everything(sandbox: Sandbox) -> None:
    sandbox.run("absent")
    assert sandbox.traces() == []
    assert not sandbox.directory.exists()
    assert sandbox.run("absent").changed == []
