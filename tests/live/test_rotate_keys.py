# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys are replaced under a running cluster: jobs, sessions, old tokens and requests go on, and nothing is shown."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.config import ENVIRONMENT, resolve
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.slurm import ServiceProxy, client_of, signer

from .support.guides import examples_of
from .support.jobs import job_state
from .support.kube import Json, Kube
from .support.playbook import PlaybookResult
from .support.process import Completed

Run = Callable[..., Json]
Slurm = Callable[..., Completed]

NAMESPACE, SECRET = "slurm", "slurm-auth"
AUTH = f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
WORKER = "cpu-0"
TO_THE_SWITCH = [
    f"add Secret {NAMESPACE}/{SECRET}",
    "restart slurmdbd",
    "reload slurmctld, slurmd, sackd",
    f"switch Secret {NAMESPACE}/{SECRET}",
    "reload slurmctld, slurmd, sackd",
]
TO_THE_END = [
    f"retire Secret {NAMESPACE}/{SECRET}",
    "restart slurmdbd",
    "reload slurmctld, slurmd, sackd",
    f"finish Secret {NAMESPACE}/{SECRET}",
]
# Not the key, but another of the same kind.
STRANGER = """
mkdir -p /tmp/own && cd /tmp/own && cp "/keys/$1" slurm.key && chmod 600 slurm.key
SLURM_CONF=/tmp/own/slurm.conf timeout 6 slurmd --conf-server slurm-controller-0:6817 -N nobody -G 2>&1
"""


def steps(result: Json) -> list[str]:
    return [f"{action['kind']} {action['target']}" for action in result["actions"]]


def data_of(secret: Json) -> dict[str, bytes]:
    return {name: base64.b64decode(value) for name, value in secret["data"].items()}


class Watch:
    """Somebody who asks slurmctld again and again, and what went wrong."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self._ask = ask
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self.asked = 0
        self.failures: list[str] = []

    def _go_on(self) -> None:
        while not self._stop.wait(0.05):
            self.asked += 1
            try:
                assert self._ask()
            except (OperationError, AssertionError) as error:
                self.failures.append(f"{time.strftime('%X')} {error}")

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture(scope="module")
def kubernetes(kubeconfig: str) -> Iterator[KubernetesClient]:
    client = KubernetesClient(lambda: resolve(dict.fromkeys(ENVIRONMENT) | {"kubeconfig": kubeconfig}))
    yield client
    client.close()


def raw_request(kubernetes: KubernetesClient, token: str) -> Callable[[], bool]:
    """One request with a token and no second try."""
    proxy = ServiceProxy(kubernetes, NAMESPACE, "slurm-restapi")

    def ask() -> bool:
        answer = proxy.request("GET", "/slurm/v0.0.42/nodes/", {"X-SLURM-USER-TOKEN": token}, None, 20.0)
        return answer.status == 200 and len(json.loads(answer.body)["nodes"]) >= 2

    return ask


def old_token(kubernetes: KubernetesClient) -> str:
    now = int(time.time())
    return signer(kubernetes, NAMESPACE, SECRET).sign({"iat": now - 30, "exp": now + 3600, "sun": "slurm"})


@pytest.fixture
def job(slurm: Slurm) -> Iterator[str]:
    """A job of alice that runs until it is told to end, and then asks Slurm something itself."""
    script = "until [ -e /tmp/end-$SLURM_JOB_ID ]; do sleep 0.2; done; srun --mem=20 hostname"
    command = [
        "sbatch",
        "--parsable",
        "-D",
        "/tmp",
        "-o",
        "/dev/null",
        "-w",
        WORKER,
        "--mem=50",
        "-t10",
        "--wrap",
        script,
    ]
    number = slurm(command, user="alice").stdout.strip()
    yield number
    slurm(["scancel", number], on="controller", check=False)
    slurm(f"rm -f /tmp/end-{number}", on=WORKER, check=False)


def processes(slurm: Slurm, pods: Sequence[str]) -> dict[str, str]:
    return {pod: slurm("cat /proc/1/stat | cut -d' ' -f22", on=pod).stdout for pod in pods}


def test_both_keys_are_replaced_and_nobody_notices(
    kube: Kube,
    slurm: Slurm,
    run_playbook: Callable[..., PlaybookResult],
    run_module: Run,
    kubernetes: KubernetesClient,
    job: str,
) -> None:
    kube.wait(lambda: job_state(slurm, job), lambda state: state == "RUNNING", what="the job runs")
    pods = ["slurm-controller-0", "slurm-login-0", WORKER, "cpu-1"]
    before, ran_since = kube.get(AUTH), processes(slurm, pods)
    token = old_token(kubernetes)
    variables = {"rotate_keys_older_than": "0", "rotate_keys_overlap": "1d", "rotate_keys_wait": "false"}
    predicted = run_playbook("rotate_keys", extra_vars=variables, check=True, diff=True).tasks[-2].result
    assert steps(predicted) == TO_THE_SWITCH
    assert kube.get(AUTH)["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]

    client = client_of(kubernetes, {"namespace": NAMESPACE, "name": "slurm"}, Counter())
    with (
        Watch(raw_request(kubernetes, token)) as with_the_old_token,
        Watch(lambda: client.nodes().items) as with_new_ones,
    ):
        result = run_playbook("rotate_keys", extra_vars=variables)
        assert steps(result.tasks[-2].result) == TO_THE_SWITCH
        assert result.tasks[-1].result["msg"][0].startswith("jwt: switched, its key signs since ")
        # The old token and the old key are good. Both daemons believe the new one.
        assert "RS256" in str(base64.urlsafe_b64decode(old_token(kubernetes).partition(".")[0] + "=="))
        assert run_module("accounting_info")["qos"]
        # Not its time yet, and asked for nothing: nothing is written.
        again = run_module("key_rotation", {"older_than": "90d", "overlap": "1d", "wait": False})
        assert (again["changed"], again["actions"], again["api_calls"]["writes"]) == (False, [], 0)
        assert again["rotations"][0]["retires_after"]
        assert set(data_of(kube.get(AUTH))) == {"jwks.json", "jwt.jwk", "jwt.key", "slurm.jwks", "slurm.key"}
        slurm("srun -D /tmp --mem=20 -t1 hostname", user="alice")
        old_failures, old_asked = list(with_the_old_token.failures), with_the_old_token.asked
        ended = run_module("key_rotation", {"older_than": "90d", "overlap": "0", "wait": False})
        assert steps(ended) == TO_THE_END
        assert {item["phase"] for item in ended["rotations"]} == {"settled"}
    assert old_failures == [], old_failures
    assert with_new_ones.failures == [], with_new_ones.failures
    assert min(old_asked, with_new_ones.asked) > 30
    assert not raw_request(kubernetes, token)(), "the old token is good no more"

    after = data_of(kube.get(AUTH))
    assert set(after) == {"jwks.json", "jwt.jwk", "jwt.key", "slurm.key"}
    old = data_of(before)
    assert all(after[name] != old[name] for name in ("slurm.key", "jwt.key"))
    for text in (json.dumps(predicted), json.dumps(ended), str([task.result for task in result.tasks])):
        assert not any(base64.b64encode(value).decode() in text for value in (*old.values(), *after.values()))
    # No container was started anew: the job runs, and can still ask Slurm.
    assert processes(slurm, pods) == ran_since
    assert job_state(slurm, job) == "RUNNING"
    slurm(f"touch /tmp/end-{job}", on=WORKER)
    kube.wait(
        lambda: slurm(f"sacct -nXPj {job} -o State,ExitCode", user="alice").stdout,
        lambda found: found.strip() == "COMPLETED|0:0",
        what="the job has ended well, and accounting knows it",
    )
    settled = run_module("key_rotation")
    assert (settled["actions"], settled["api_calls"]) == (
        [],
        {"kubernetes": 1, "slurm": 0, "writes": 0, "verbs": {"get": 1}},
    )


def test_the_old_key_of_the_daemons_is_refused(kube: Kube, slurm: Slurm, namespace: str, site: PlaybookResult) -> None:
    """A slurmd with another key does not get the configuration, one with the key does."""
    now = kube.get(AUTH)["data"]["slurm.key"]
    other = base64.b64encode(bytes(range(256)) * 4).decode()
    keys = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "data": {"right": now, "wrong": other}}
    core = f"/api/v1/namespaces/{namespace}"
    kube.create(f"{core}/secrets", keys)
    image = kube.get(f"{PODS}/{WORKER}")["spec"]["containers"][0]["image"]
    container = {
        "name": "stranger",
        "image": image,
        "command": ["sleep", "600"],
        "volumeMounts": [{"name": "keys", "mountPath": "/keys"}],
    }
    spec = {
        "containers": [container],
        "volumes": [{"name": "keys", "secret": {"secretName": "keys"}}],
        "dnsConfig": {"searches": [f"{NAMESPACE}.svc.cluster.local"]},
        "terminationGracePeriodSeconds": 0,
    }
    kube.create(f"{core}/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger"}, "spec": spec})
    kube.wait(f"{core}/pods/stranger", lambda pod: pod["status"]["phase"] == "Running", what="the stranger runs")

    def said(key: str) -> str:
        return str(kube.exec(namespace, "stranger", ["bash", "-c", STRANGER, "stranger", key], timeout=30).stdout)

    assert "authentication" not in said("right").lower()
    assert "authentication" in said("wrong").lower()


def test_a_daemon_that_does_not_read_holds_the_rotation_and_the_next_run_finishes_it(
    slurm: Slurm, run_module: Run, site: PlaybookResult, tmp_path: Path
) -> None:
    """A run that is killed in the middle, one that gives up, and one that ends it."""
    args = {"which": ["slurm"], "older_than": "0", "overlap": "2s", "wait_timeout": 6}
    progress = tmp_path / "progress"
    progress.touch()
    told = {"SLURM_OPS_PROGRESS": str(progress)}
    slurm("pkill -STOP -x 'slurmd.*'", on=WORKER)
    try:
        with pytest.raises(AssertionError, match="not done in"):
            run_module("key_rotation", {**args, "wait_timeout": 60}, timeout=25, env=told)
        assert f"slurmd in Pod {WORKER} has not read its keys" in progress.read_text()
        failed = run_module("key_rotation", {**args, "older_than": "90d"}, fails=True)
    finally:
        slurm("pkill -CONT -x 'slurmd.*'", on=WORKER)
    assert failed["reason"] == "Timeout"
    assert f"slurmd in Pod {WORKER} has not read its keys" in failed["msg"]
    assert not any(action["done"] for action in failed["actions"] if action["kind"] in ("switch", "retire"))
    # Young keys: what was begun is finished all the same.
    done = run_module("key_rotation", {**args, "older_than": "90d", "wait_timeout": 120})
    kinds = [action["kind"] for action in done["actions"]]
    assert kinds[-6:] == ["switch", "reload", "retire", "restart", "reload", "finish"]
    assert "add" not in kinds
    hosts = slurm("srun -D /tmp -N2 --mem=20 -t1 hostname", user="alice").stdout.split()
    assert sorted(hosts) == ["cpu-0", "cpu-1"]


def test_the_guide(run_playbook: Callable[..., PlaybookResult], site: PlaybookResult) -> None:
    """Its examples, in check mode: keys are days old at most, so that those of the guide are young."""
    tasks = [task for example in examples_of("keys.md") for task in example]
    assert len(tasks) == 2
    defaults = {"group/slurm_ops.kubernetes.slurm": {"namespace": NAMESPACE, "name": "slurm"}}
    play = {"name": "Guide", "hosts": "localhost", "gather_facts": False, "module_defaults": defaults, "tasks": tasks}
    result = run_playbook([play], check=True)
    assert not result.failed


def test_pods_that_cannot_show_new_keys_are_named(kube: Kube, run_module: Run, site: PlaybookResult) -> None:
    refused = run_module("key_rotation", {"auth_secret": "slurm-database", "older_than": "0"}, fails=True)
    assert refused["reason"] == "NoKey"
    assert refused["api_calls"]["writes"] == 0
