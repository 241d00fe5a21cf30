# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Slurm library against real Slurms of every version: host lists, configuration, worker Pods, the REST client."""

from __future__ import annotations

import random
import textwrap
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.filter.configuration import slurm_files
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import hostlist, slurm_conf
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.states import parse
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.versions import data_parsers, parse_version
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.client import SlurmClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.errors import SlurmError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.token import SharedKey, SignedToken

from .support.kube import Json, Kube
from .support.minislurm import ANYWHERE, WORKER_GRACE, MiniSlurm, versions_there

SMALL = {"requests": {"cpu": "20m", "memory": "64Mi"}}
MAKE_GPUS = "#!/bin/sh\nfor gpu in 0 1 2 3; do [ -e /dev/fakegpu$gpu ] || mknod /dev/fakegpu$gpu c 1 3; done\n"
GPUS = [{"name": "gpu", "type": "h100", "files": "/dev/fakegpu[0-3]"}]
VERSIONS = ["26.05", "24.11"]


@pytest.fixture(scope="module", params=VERSIONS)
def mini(
    request: pytest.FixtureRequest, kube: Kube, kubeconfig: str, _namespaces: Callable[[str], str]
) -> Iterator[MiniSlurm]:
    """A small cluster with a NodeSet of each kind; the one of kind node is on the first Node."""
    version = request.param
    assert version in versions_there(kube), (
        f"The images of Slurm {version} are not on every Node: {versions_there(kube)}"
    )
    first = kube.items("/api/v1/nodes")[0]["metadata"]
    selector = {"kubernetes.io/hostname": first["labels"]["kubernetes.io/hostname"]}
    common: Json = {"resources": SMALL, "node_selector": selector, "kind": "node"}
    nodesets: list[Json] = [
        {"name": "cpu", "replicas": 2, "cpus": 3, "memory": "512Mi", "reserved_memory": "100Mi", "resources": SMALL,
         "features": ["fast"], "extra_conf": {"Weight": 7}, "gres": ["licence:5"], "shared_memory": "32Mi"},
        {**common, "name": "gpu", "node_name_prefix": "g-", "gres": GPUS, "oneshots": {"10-gpus": MAKE_GPUS},
         "partition": {"name": "gpus", "max_time": "1:00:00"}},
        {**common, "name": "named", "partition": False},
    ]  # fmt: skip
    made = MiniSlurm(kube, kubeconfig, _namespaces(f"slurm-{version.replace('.', '')}"), version, nodesets[:2])
    made.deploy()
    # The same Node once more; the annotation is given to the filter only, not written to the Node.
    made.apply_nodesets(
        nodesets[2:], [{"metadata": {**first, "annotations": {"slurm-ops.kubernetes/node-name": "special"}}}]
    )
    made.wait_for_nodes("cpu-0", "cpu-1", f"g-{first['name'].partition('.')[0]}", "special")
    yield made
    kube.delete(f"/api/v1/namespaces/{made.namespace}")


@pytest.fixture
def client(mini: MiniSlurm) -> SlurmClient:
    return mini.client()


def expanded(mini: MiniSlurm, expressions: list[str]) -> list[list[str]]:
    """What scontrol makes of host lists, all in one call; none of them holds a quote."""
    script = "".join(f"scontrol show hostnames '{expression}'; echo --; " for expression in expressions)
    answers = mini.run(script).stdout.split("--\n")[: len(expressions)]
    return [answer.split() for answer in answers]


def some_names(chance: random.Random) -> list[str]:
    """Names with and without numbers, padded and not, in several dimensions."""
    stems = ["n", "r1-n", "gpu-a.", "0x"]
    ends = ["", "", "", "x"]
    return [
        f"{chance.choice(stems)}{chance.randrange(120):0{chance.choice([1, 1, 2, 3])}d}{chance.choice(ends)}"
        for _count in range(chance.randrange(1, 30))
    ]


def test_host_lists_are_those_of_scontrol(mini: MiniSlurm) -> None:
    chance = random.Random(2026)
    expressions = [
        "a[1-3]", "a[01-03]", "a[1-03]", "a[9-010]", "a[08-11],b", "[1-3]", "a[1,1,2]", "r[1-2]n[3-4]x", "a[1-2][3-4]",
        "a[0-1]b[0-1]c[0-1]", "a[0-1]b[0-1]c[0-1]d[0-1]e", "a[1-2].b,c[0-65535]", "a[0-65535,65536-70000]",
    ]  # fmt: skip
    names = [some_names(chance) for _count in range(40)]
    expressions += [hostlist.compress(some) for some in names]
    expressions += [hostlist.compress(some, sort=True, unique=True) for some in names]
    for expression, answer in zip(expressions, expanded(mini, expressions), strict=True):
        assert hostlist.expand(expression) == answer, expression


def test_compressing_is_that_of_scontrol(mini: MiniSlurm) -> None:
    chance = random.Random(2027)
    names = [some_names(chance) for _count in range(60)]
    script = "".join(f"scontrol show hostlist '{','.join(some)}'; " for some in names)
    assert [hostlist.compress(some) for some in names] == mini.run(script).stdout.split()


def test_nodes_register_as_they_were_described(mini: MiniSlurm, client: SlurmClient) -> None:
    nodes = {item["name"]: item for item in client.nodes().items}
    gpu = next(item for name, item in nodes.items() if name.startswith("g-"))
    cpu = nodes["cpu-0"]
    assert (cpu["cpus"], cpu["real_memory"], cpu["specialized_memory"], cpu["weight"]) == (3, 512, 100, 7)
    assert (cpu["features"], cpu["gres"]) == (["cpu", "fast"], "licence:5")
    assert (gpu["features"], gpu["gres"], gpu["partitions"]) == (["gpu"], "gpu:h100:4", ["gpus"])
    assert nodes["special"]["features"] == ["named"]
    assert nodes["special"]["partitions"] == []
    assert all("INVALID_REG" not in item["state"] for item in nodes.values())
    # The GRES are there for jobs, on a node whose name no DNS knows.
    shown = mini.run(f"srun -w {gpu['name']} -p gpus --gres=gpu:h100:3 sh -c 'echo $CUDA_VISIBLE_DEVICES'", on="cpu-0")
    assert shown.stdout.strip() == "0,1,2"
    assert mini.run("df --output=size -m /dev/shm | tail -1", on="cpu-0").stdout.strip() == "32"


def test_jobs_run_over_all_nodes(mini: MiniSlurm) -> None:
    shown = mini.run("srun -p cpu -N2 -n2 --mem=10 hostname", on="cpu-0")
    assert sorted(shown.stdout.split()) == ["cpu-0", "cpu-1"]


# --- configuration, with a throw-away slurmctld as the judge ---------------------------------------------------------

LINT = """
    set -e
    here=$(mktemp -d); cd "$here"; mkdir state; cp /etc/slurm/slurm.key .; chmod 600 slurm.key
    {files}
    SLURM_CONF=$here/slurm.conf timeout 20 slurmctld -D -c -i >out 2>&1 & pid=$!
    for wait in $(seq 150); do grep -qE 'Running as primary|fatal:' out && break; sleep 0.1; done
    cat out
    kill $pid 2>/dev/null || true; wait $pid || true
"""


def lint(mini: MiniSlurm, **facts: Any) -> str:
    """What a slurmctld says that starts with the files of a cluster, beside the one that runs."""
    files = slurm_files({**mini.facts, **facts})
    host = mini.run("hostname").stdout.strip()
    changed = {
        "SlurmctldHost": host, "SlurmctldPort": "7817", "StateSaveLocation": "state", "SlurmctldPidFile": "pid",
        "SlurmctldLogFile": "out", "AccountingStorageType": "accounting_storage/none",
    }  # fmt: skip
    lines = []
    for line in slurm_conf.parse(files["slurm.conf"]):
        if line.key in changed:
            value = changed[line.key]
            value = f"$here/{value}" if value in ("state", "pid", "out") else value
            lines.append(f"{line.key}={value}")
        elif line.key == "AuthInfo":
            lines.append(f"AuthInfo={line.value},disable_sack")
        elif line.key == "AuthAltTypes" or line.key.startswith(("AuthAlt", "AccountingStorage")):
            continue
        else:
            lines.append(line.render().replace("/etc/slurm/", "$here/").replace("\\", "\\\\"))
    files["slurm.conf"] = "\n".join(lines) + "\n"
    files["gres.conf"] = files["gres.conf"].replace("/etc/slurm/", "$here/")
    written = "".join(f"cat >'{name}' <<EOF_OF_FILE\n{text}EOF_OF_FILE\n" for name, text in files.items())
    written += "".join(f"chmod +x '{name}'\n" for name, text in files.items() if text.startswith("#!"))
    shown = mini.run(textwrap.dedent(LINT).replace("{files}", written), timeout=60, check=False)
    return shown.stdout + shown.stderr


GOOD: list[Json] = [
    {},
    {"nodesets": []},
    {"nodesets": [{"name": "a", "gres": ["gpu:8", "licence:2"]}, {"name": "b", "kind": "node", "partition": False}],
     "partitions": [{"name": "all", "nodes": "ALL", "default": True, "max_time": "1-00:00:00",
                     "AllowGroups": ["root", "bin"]}]},
    {"slurm_conf": {**ANYWHERE, "MailDomain": "with blanks # and \\", "DebugFlags": ["NO_CONF_HASH", "Agent"],
                    "SlurmctldParameters": ["idle_on_node_suspend"], "PriorityType": "priority/multifactor",
                    "NodeName": [{"NodeName": "metal[1-2]", "CPUs": 4, "State": "FUTURE"}]},
     "partitions": [{"name": "metal", "nodes": "metal[1-2]", "State": "DRAIN"}]},
    {"prolog": {"10-a": "#!/bin/sh\n", "20-b": "#!/bin/sh\n"}, "epilog": {"c": "#!/bin/sh\n"},
     "prolog_slurmctld": {"d": "#!/bin/sh\n"}, "cgroup_conf": {"CgroupPlugin": "disabled", "ConstrainCores": True}},
]  # fmt: skip


@pytest.mark.parametrize("facts", GOOD, ids=range(len(GOOD)))
def test_slurmctld_starts_with_what_the_filters_make(mini: MiniSlurm, facts: Json) -> None:
    said = lint(mini, **facts)
    assert "Running as primary" in said
    assert "fatal" not in said
    complaints = [line for line in said.splitlines() if "error:" in line]
    expected = (
        "default partition not set",
        "specified more than once",
        "Could not open",
        "High latency",
        "cgroup",
        "state save file",
        "may be lost",
    )
    assert [line for line in complaints if not any(text in line for text in expected)] == []


def test_what_the_filters_refuse_is_refused_by_slurmctld_too(mini: MiniSlurm) -> None:
    # The judge of our checks: each of these is what a filter does not let through.
    for bad in ("PartitionName=x Nodes=nosuch", "NoSuchKey=1", "MailDomain="):
        said = mini.run(
            "here=$(mktemp -d); cp /etc/slurm/*.key $here; chmod 600 $here/*.key; "
            "sed -e 's/^SlurmctldPort=.*/SlurmctldPort=7818/' -e \"s|^StateSave.*|StateSaveLocation=$here|\" "
            "-e 's/^SlurmctldLog.*//' /etc/slurm/slurm.conf >$here/slurm.conf; "
            f"echo '{bad}' >>$here/slurm.conf; SLURM_CONF=$here/slurm.conf timeout 5 slurmctld -D -c 2>&1",
            check=False,
        )
        assert "fatal" in said.stdout, bad


# --- REST -------------------------------------------------------------------------------------------------------------


def test_the_newest_common_parser_is_used(mini: MiniSlurm, client: SlurmClient) -> None:
    assert client.parser == data_parsers(parse_version(mini.version))[-1]
    assert client.release.startswith(mini.version)
    assert client.require_controller()[0]["hostname"] == "slurm-controller-0"


def state(client: SlurmClient, name: str) -> Json:
    return next(dict(item) for item in client.nodes().items if item["name"] == name)


def settled(client: SlurmClient, name: str) -> set[str]:
    """The state but for what comes and goes by itself after an undrain."""
    return set(state(client, name)["state"]) - {"NOT_RESPONDING"}


def test_drain_and_undrain_in_bulk(client: SlurmClient) -> None:
    names = ["cpu-1", "cpu-0"]
    client.update_nodes(names, state="drain", reason="k8s: test")
    before = {name: state(client, name) for name in names}
    assert all(parse(item["state"]).drained and item["reason"] == "k8s: test" for item in before.values())
    client.update_nodes(names, state="drain", reason="k8s: test")
    assert state(client, "cpu-0")["reason_changed_at"] == before["cpu-0"]["reason_changed_at"]
    for _twice in range(2):
        client.update_nodes(names, state="undrain")
        # NOT_RESPONDING stays until slurmctld has asked slurmd again, up to half a minute later.
        assert not any(parse(state(client, name)["state"]).drain for name in names)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"names": ["nosuch"], "state": "drain", "reason": "x"}, "UnknownNode"),
        ({"names": ["cpu-0"], "state": "resume"}, "InvalidTransition"),
        ({"names": ["cpu-0"], "state": "nonsense"}, "SlurmRefused"),
        ({"names": ["cpu-0"], "no_such_field": 1}, "SlurmWarned"),
        ({"names": ["cpu-0"], "state": "drain"}, "ReasonMissing"),
    ],
)
def test_refusals(client: SlurmClient, change: Json, reason: str) -> None:
    before = settled(client, "cpu-0")
    with pytest.raises(OperationError) as caught:
        client.update_nodes(**change)
    # 24.11 says 2028 (invalid state) where later ones say 2180 (invalid transition).
    assert caught.value.reason in (reason, "InvalidState")
    assert str(caught.value)
    assert settled(client, "cpu-0") == before


def test_a_half_done_batch_is_told_as_a_failure(client: SlurmClient) -> None:
    with pytest.raises(SlurmError) as caught:
        client.update_nodes(["cpu-0", "nosuch"], state="drain", reason="k8s: half")
    assert "may have been done" in caught.value.hint
    client.update_nodes(["cpu-0"], state="undrain")


def test_update_time_gives_nothing_or_everything(client: SlurmClient) -> None:
    first = client.nodes()
    # Slurm counts seconds: what changed within the second of the first read would be given again.
    time.sleep(1.1)
    first = client.nodes()
    second = client.nodes(first.last_update)
    assert second.changed in (True, False)
    client.update_nodes(["cpu-0"], comment="changed")
    third = client.nodes(second.last_update)
    assert third.changed
    assert len(third.items) == len(first.items)
    client.update_nodes(["cpu-0"], comment="")


def test_an_expired_token_is_renewed_and_a_wrong_key_is_told(client: SlurmClient) -> None:
    class Expired:
        """The first token is from long ago."""

        def __init__(self, right: Any) -> None:
            self.right = right
            self.old = True

        def token(self) -> str:
            if self.old:
                return SignedToken(self.right._signer, now=lambda: 1_000_000.0).token()
            return str(self.right.token())

        def renew(self) -> bool:
            self.old = False
            return True

    right = client._tokens
    client._tokens = Expired(right)
    assert client.nodes().items
    assert not client._tokens.old
    client._tokens = SignedToken(lambda: SharedKey(bytes(32)))
    with pytest.raises(SlurmError) as caught:
        client.nodes()
    assert caught.value.reason == "TokenRefused"


def test_jobs_partitions_and_statistics(mini: MiniSlurm, client: SlurmClient) -> None:
    job = mini.run("cd /tmp && sbatch --parsable -p cpu -N1 --mem=10 --wrap 'sleep 60'", on="cpu-0").stdout.strip()
    listed = {str(item["job_id"]): item["state"] for item in client.job_states()}
    assert listed[job][0] in ("PENDING", "RUNNING")
    assert any(str(item["job_id"]) == job for item in client.jobs().items)
    assert {item["name"] for item in client.partitions().items} == {"cpu", "gpus"}
    assert "jobs_submitted" in client.diag()
    client.cancel_jobs([int(job)])

    def ended() -> str:
        return next(item["state"][0] for item in client.job_states() if str(item["job_id"]) == job)

    mini.kube.wait(ended, lambda word: word == "CANCELLED", timeout=40, what="the job is cancelled")


def test_what_is_down_is_told_in_bounded_time(mini: MiniSlurm) -> None:
    mini.scale("restapi", 0)
    begun = time.monotonic()
    with pytest.raises(OperationError) as caught:
        mini.client().nodes()
    assert caught.value.reason == "SlurmUnreachable"
    assert time.monotonic() - begun < 30
    mini.scale("restapi", 1)
    assert mini.client().nodes().items


def test_a_record_can_be_deleted_and_comes_back_with_its_slurmd(mini: MiniSlurm, client: SlurmClient) -> None:
    client.delete_nodes(["cpu-1"])
    assert "cpu-1" not in {item["name"] for item in client.nodes().items}
    path = f"/api/v1/namespaces/{mini.namespace}/pods/cpu-1"
    old = mini.kube.get(path)["metadata"]["uid"]
    mini.kube.delete(path)
    # Everything in the Pod ends when it is told to, long before it would be killed.
    mini.kube.wait(
        path, lambda pod: pod and pod["metadata"]["uid"] != old, timeout=WORKER_GRACE - 10, what="cpu-1 is new"
    )
    assert mini.wait_for_nodes("cpu-1")["cpu-1"]["cpus"] == 3


def test_the_log_of_slurmd_is_that_of_a_container_also_after_a_reconfigure(
    mini: MiniSlurm, client: SlurmClient
) -> None:
    def lines() -> int:
        return mini.kube.logs(mini.namespace, "cpu-0", "log").count("\n")

    before = lines()
    assert before
    client.reconfigure()
    mini.kube.wait(lines, lambda number: number > before, timeout=20, what="slurmd logs after a reconfigure")
    between = lines()
    client.reconfigure()
    mini.kube.wait(lines, lambda number: number > between, timeout=20, what="slurmd logs after another one")
    mini.wait_for_nodes("cpu-0", "cpu-1")
