# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the second slurmctld is given, and how its words are read. That it leaves nothing behind is a live test."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.exec import Finished
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import lint

CONF = """\
ClusterName=slurm
SlurmctldHost=slurm-controller-0(slurm-controller.slurm.svc)
SlurmctldPort=6817
StateSaveLocation=/var/spool/slurmctld
slurmctldlogfile=/var/log/slurm/slurmctld.log
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=slurm-accounting
AuthType=auth/slurm
AuthInfo=use_client_ids
MaxNodeCount=100
PartitionName=cpu Nodes=ALL Topology=net
"""
FATAL = """\
[2026-11-21T13:57:38.238] No memory enforcing mechanism configured.
[2026-11-21T13:57:38.240] warning: switches lack access to 1900 nodes: d1
slurmctld: error: Could not open job state file /tmp/x/state/job_state: No such file or directory
[2026-11-21T13:57:38.240] error: Don't know where to add switch l2
[2026-11-21T13:57:38.241] fatal: read_slurm_conf reading /tmp/x/slurm.conf: Requested topology configuration
"""


def test_nothing_of_the_running_one_is_left() -> None:
    assert lint.private_conf(CONF, ["NodeName=n[1-2] State=EXTERNAL"], 500).splitlines() == [
        "MaxNodeCount=500",
        "ClusterName=slurm",
        "AuthType=auth/slurm",
        "PartitionName=cpu Nodes=ALL Topology=net",
        "NodeName=n[1-2] State=EXTERNAL",
    ]


def test_words_fatal_first() -> None:
    found = lint.verdict(FATAL)
    assert not found.accepted
    assert found.words == (
        "fatal: read_slurm_conf reading /tmp/x/slurm.conf: Requested topology configuration",
        "warning: switches lack access to 1900 nodes: d1",
        "error: Don't know where to add switch l2",
    )
    with pytest.raises(OperationError, match="Requested topology configuration") as raised:
        found.require("this file", hint="Mend it.")
    assert raised.value.reason == "Refused"


def test_accepted() -> None:
    lint.verdict("[2026-11-21T13:57:37.938] Running as primary controller\n").require("this file", hint="")


@pytest.mark.parametrize(("output", "errors"), [("", "sh: slurmctld: not found"), ("Segmentation fault\n", "")])
def test_silence_is_no_acceptance(output: str, errors: str) -> None:
    found = lint.verdict(output, errors)
    assert not found.accepted
    assert found.words


def test_texts_reach_the_files_as_they_are(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script, run by a real shell with a slurmctld that prints its files."""
    etc, bin_folder = tmp_path / "etc", tmp_path / "bin"
    etc.mkdir()
    bin_folder.mkdir()
    for name in ("slurm.conf", "topology.yaml", "slurm.key", "cgroup.conf"):
        (etc / name).write_text(f"old {name}\n")
    fake = bin_folder / "slurmctld"
    fake.write_text(
        '#!/bin/sh\ncd "${SLURM_CONF%/*}"; ls; cat topology.conf slurm.conf\necho "Running as primary controller"\n'
    )
    fake.chmod(0o755)

    def run(*_args: Any, stdin: str, **_more: Any) -> Finished:
        environment = {"PATH": f"{bin_folder}:/usr/bin:/bin", "TMPDIR": str(tmp_path)}
        script = stdin.replace("/etc/slurm", str(etc))
        ended = subprocess.run(["sh", "-s"], input=script, env=environment, capture_output=True, text=True, check=False)
        return Finished(ended.returncode, ended.stdout, ended.stderr)

    seen: list[str] = []
    read = lint.verdict
    monkeypatch.setattr(lint, "exec_in_pod", run)
    monkeypatch.setattr(lint, "verdict", lambda output, errors: seen.append(output) or read(output, errors))
    text = "END_OF_FILE\n$HOME `id` \\n 'x' \"y\"\n"
    found = lint.lint(None, "ns", "pod", {"slurm.conf": CONF, "topology.conf": text})  # type: ignore[arg-type]
    assert found.accepted
    assert text in seen[0]
    assert "\ntopology.yaml\n" not in seen[0]
    assert "SlurmctldHost=localhost(127.0.0.1)\n" in seen[0]
    assert f"StateSaveLocation={tmp_path}/tmp." in seen[0]
    included = {"slurm.conf": f"{CONF}Include {etc}/more.conf\n", "more.conf": ""}
    lint.lint(None, "ns", "pod", included, removed=["cgroup.conf"])  # type: ignore[arg-type]
    assert "\ntopology.yaml\n" in seen[1]
    assert "cgroup.conf" not in seen[1]
    assert f"\nInclude {tmp_path}/tmp." in seen[1]
    assert sorted(item.name for item in tmp_path.iterdir()) == ["bin", "etc"]


def test_lines_for_nodes_that_are_in_no_file() -> None:
    conf = "NodeName=n[1-2] CPUs=1\n"
    places = {"n3": "net:l1", "n4": "net:l1"}
    found = list(lint.node_lines(conf, ["n1", "n4", "n3", "n5"], places, yaml=True))
    assert found == ["NodeName=n5 State=EXTERNAL", "NodeName=n[3-4] State=EXTERNAL Topology=net:l1"]
    assert list(lint.node_lines(conf, ["n3", "n5"], places, yaml=False)) == ["NodeName=n[3,5] State=CLOUD"]
