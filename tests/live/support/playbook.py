# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real ansible-playbook runs whose task results a test can look at."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]

CHECKOUT = Path(__file__).resolve().parents[3]
_CALLBACKS = Path(__file__).resolve().parent / "callback_plugins"
_COLLECTION = "slurm_ops.kubernetes"
_MODULES = f"ansible_collections.{_COLLECTION}.plugins.modules"

NO_INVENTORY = "/dev/null"  # leaves Ansible's implicit localhost, which runs with this Python


@dataclass(frozen=True)
class Task:
    """One result of one task on one host; of a loop, each item and then the whole."""

    play: str
    role: str | None
    name: str
    action: str
    host: str
    is_item: bool
    item: Any
    status: str  # ok, changed, skipped, failed, ignored, unreachable
    result: Json
    seconds: float
    path: str | None

    @property
    def changed(self) -> bool:
        return self.status == "changed"

    @property
    def failed(self) -> bool:
        return self.status in ("failed", "unreachable")

    def __str__(self) -> str:
        item = f" (item={self.item})" if self.is_item else ""
        return f"{self.name}{item}: {self.status} in {self.seconds:.1f} s: {self.result.get('msg', '')}".rstrip(": ")


@dataclass(frozen=True)
class PlaybookResult:
    """A whole run."""

    command: str
    rc: int
    output: str = field(repr=False)
    seconds: float
    stats: dict[str, dict[str, int]]
    tasks: list[Task] = field(repr=False)

    @property
    def changed(self) -> list[Task]:
        return [task for task in self.tasks if task.changed and not task.is_item]

    @property
    def failed(self) -> list[Task]:
        return [task for task in self.tasks if task.failed and not task.is_item]

    def task(self, name: str) -> Task:
        """The last task of that name."""
        found = [task for task in self.tasks if task.name == name and not task.is_item]
        if not found:
            names = "\n".join(dict.fromkeys(task.name for task in self.tasks))
            raise AssertionError(f"{self.command}: no task is named {name!r}; there are:\n{names}")
        return found[-1]

    def named(self, pattern: str) -> list[Task]:
        return [task for task in self.tasks if re.search(pattern, task.name)]

    def action(self, action: str) -> list[Task]:
        return [task for task in self.tasks if task.action == action]


class Ansible:
    """Runs playbooks and modules of this checkout against one cluster."""

    def __init__(self, kubeconfig: str, scratch: Path, inventory: str) -> None:
        self._kubeconfig = kubeconfig
        self._scratch = scratch
        self._inventory = inventory
        self._runs = 0

    def run_playbook(
        self,
        name: str | Path | Sequence[Json],
        *,
        extra_vars: Mapping[str, Any] | None = None,
        inventory: str | None = None,
        tags: str | Sequence[str] | None = None,
        skip_tags: str | Sequence[str] | None = None,
        check: bool = False,
        diff: bool = False,
        limit: str | None = None,
        fails: bool | None = False,
        env: Mapping[str, str] | None = None,
        timeout: float = 900,
    ) -> PlaybookResult:
        """Run it to its end. It must succeed, or with ``fails`` it must fail; ``fails=None`` takes either."""
        __tracebackhide__ = True
        self._runs += 1
        scratch = self._scratch / f"run-{self._runs:03}"
        scratch.mkdir(parents=True)
        # The kubeconfig of the session, also where the sandbox's inventory names another one.
        variables = {"slurm_kubeconfig": self._kubeconfig, **(extra_vars or {})}
        (scratch / "variables.json").write_text(json.dumps(variables), encoding="utf-8")
        command = ["ansible-playbook", str(self._playbook(name, scratch)), "--extra-vars", f"@{scratch}/variables.json"]
        command += ["--inventory", str(_below_checkout(inventory or self._inventory))]
        command += [f"--tags={_joined(tags)}"] if tags else []
        command += [f"--skip-tags={_joined(skip_tags)}"] if skip_tags else []
        command += [f"--limit={limit}"] if limit else []
        command += ["--check"] if check else []
        command += ["--diff"] if diff else []
        result = self._run(command, scratch, env or {}, timeout)
        if fails is not None and (result.rc != 0) != fails:
            expected = "fail" if fails else "succeed"
            failed = "\n".join(f"  {task}" for task in result.failed)
            raise AssertionError(
                f"{result.command} did not {expected}: exit status {result.rc}\n{failed}\n{_end_of(result.output)}"
            )
        return result

    def run_module(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        check: bool = False,
        diff: bool = False,
        fails: bool | None = False,
        env: Mapping[str, str] | None = None,
        timeout: float = 300,
    ) -> Json:
        """Run one of our modules as Ansible would, and return what it answered. ``fails`` as for run_playbook.

        Without ansible-playbook around it, whose start takes longer than most modules; playbooks are for run_playbook.
        """
        __tracebackhide__ = True
        self._runs += 1
        internal = {"_ansible_check_mode": check, "_ansible_diff": diff, "_ansible_remote_tmp": str(self._scratch)}
        path = self._scratch / f"run-{self._runs:03}.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": {**(args or {}), **internal}}), encoding="utf-8")
        command = [sys.executable, "-m", f"{_MODULES}.{name.removeprefix(f'{_COLLECTION}.')}", str(path)]
        environment = {**os.environ, "K8S_AUTH_KUBECONFIG": self._kubeconfig, **(env or {})}
        output = _finish(command, self._scratch, environment, timeout)[1]
        try:
            result: Json = json.loads(output.splitlines()[-1])
        except (ValueError, IndexError):
            raise AssertionError(f"{name} did not answer in JSON:\n{_end_of(output)}") from None
        # ansible-core 2.19 and newer wrap them, for the controller to unwrap.
        warnings = result.get("warnings") or ()
        result["warnings"] = [item["event"]["msg"] if isinstance(item, dict) else item for item in warnings]
        if fails is not None and bool(result.get("failed")) != fails:
            expected = "fail" if fails else "succeed"
            raise AssertionError(f"{name} did not {expected}: {result.get('msg') or json.dumps(result, indent=1)}")
        return result

    def _playbook(self, name: str | Path | Sequence[Json], scratch: Path) -> Path:
        if isinstance(name, str | Path):
            path = CHECKOUT / "playbooks" / f"{name}.yml"
            return path if path.exists() else _below_checkout(name)
        path = scratch / "playbook.yml"
        path.write_text(yaml.dump(list(name), Dumper=_PlaybookDumper, sort_keys=False), encoding="utf-8")
        return path

    def _run(self, command: list[str], scratch: Path, env: Mapping[str, str], timeout: float) -> PlaybookResult:
        record = scratch / "record.jsonl"
        environment = {
            **os.environ,
            "ANSIBLE_CALLBACK_PLUGINS": str(_CALLBACKS),
            "ANSIBLE_CALLBACKS_ENABLED": "record",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_RETRY_FILES_ENABLED": "0",
            "K8S_AUTH_KUBECONFIG": self._kubeconfig,
            "SLURM_OPS_RECORD": str(record),
            **env,
        }
        start = time.monotonic()
        rc, output = _finish(command, scratch, environment, timeout)
        seconds = time.monotonic() - start
        (scratch / "output.txt").write_text(output, encoding="utf-8")
        tasks, stats = _read_record(record)
        return PlaybookResult(_shown(command), rc, output, seconds, stats, tasks)


def _finish(command: list[str], folder: Path, environment: Mapping[str, str], timeout: float) -> tuple[int, str]:
    """Exit status and output of a command that is run to its end."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _nothing = process.communicate(timeout=timeout)
    except BaseException as error:
        # Also when the test run is interrupted: nothing may go on writing to the cluster.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        output, _nothing = process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise AssertionError(f"{_shown(command)}: not done in {timeout} s\n{_end_of(output)}") from None
        raise
    return process.returncode, output


class _PlaybookDumper(yaml.SafeDumper):
    """Strings with braces are written as !unsafe, so that Ansible passes them on as they are."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_str(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    tag = "!unsafe" if re.search(r"\{[{%#]", value) else "tag:yaml.org,2002:str"
    return dumper.represent_scalar(tag, value)


_PlaybookDumper.add_representer(str, _represent_str)


def _read_record(path: Path) -> tuple[list[Task], dict[str, dict[str, int]]]:
    tasks: list[Task] = []
    stats: dict[str, dict[str, int]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        record = json.loads(line)
        if "stats" in record:
            stats = record["stats"]
        else:
            tasks.append(Task(**record))
    return tasks, stats


def _below_checkout(path: str | Path) -> Path:
    """Absolute paths stay what they are."""
    return CHECKOUT / path


def _joined(tags: str | Sequence[str]) -> str:
    return tags if isinstance(tags, str) else ",".join(tags)


def _shown(command: Sequence[str]) -> str:
    return " ".join([command[0], Path(command[1]).name, *command[4:]])


def _end_of(output: str, lines: int = 80) -> str:
    return "\n".join(output.rstrip().split("\n")[-lines:])
