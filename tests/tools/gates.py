# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each of the project's checks runs: `gates.py lint sanity unit live molecule`. Called by the Makefile.

Needs the environment that environment.sh prepares. Arguments for pytest or ansible-test come in ARGS.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from copy_checkout import copy_checkout
from runner import Runner, Step

CHECKOUT = Path(os.environ["SLURM_OPS_CHECKOUT"])
CACHE = Path(os.environ["SLURM_OPS_CACHE"])
MARK = os.environ["SLURM_OPS_MARK"]
COLLECTIONS = Path(os.environ["SLURM_OPS_COLLECTIONS"])
HERE = COLLECTIONS / "ansible_collections" / "slurm_ops" / "kubernetes"
LOGS = CACHE / f"logs-{MARK}"
TREE = CACHE / f"copy-{MARK}"
COPY = TREE / "ansible_collections" / "slurm_ops" / "kubernetes"
# Live tests wait more than they compute, so two sandboxes share them, file by file.
SANDBOXES = ("test", "test-2")
CLUSTER_SETTINGS = ("KUBECONFIG", "K8S_AUTH_KUBECONFIG", "K8S_AUTH_HOST")
TOOLS = CHECKOUT / "tests" / "tools"
PYTHON_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
ARGS = shlex.split(os.environ.get("ARGS", ""))

# ansible-test wants to download a pip for the environments of its tests. This stands in for it: the interpreter's own
# pip fetches the version that is asked for from the index, so that sanity needs nothing but a package index.
_GET_PIP = '''\
"""Stand-in for get-pip: start from the interpreter's own pip, then install the one that is asked for."""

import subprocess
import sys

wanted = [argument for argument in sys.argv[1:] if argument.startswith("pip==")]
subprocess.check_call([sys.executable, "-m", "ensurepip", "--default-pip"], stdout=subprocess.DEVNULL)
subprocess.check_call([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted])
'''
_GET_PIP_NAMES = ("get_pip_24_2.py", "get_pip_25_2.py")  # ansible-core 2.18 and 2.19; 2.20 and 2.21


def lint() -> list[Step]:
    copy_checkout(CHECKOUT, TREE)
    shell = shell_files(COPY)
    builds = LOGS / "build"
    shutil.rmtree(builds, ignore_errors=True)
    tree = {"ANSIBLE_COLLECTIONS_PATH": str(TREE)}
    commands: dict[str, list[str]] = {
        "ansible-lint": ["ansible-lint", "--offline", "--nocolor", *ARGS],
        "mypy": ["mypy", "--cache-dir", str(CACHE / "mypy"), *mypy_packages(COPY)],
        "antsibull-docs": ["antsibull-docs", "lint-collection-docs", "--plugin-docs", "."],
        "ruff check": ["ruff", "check", "--cache-dir", str(CACHE / "ruff"), "."],
        "ruff format": ["ruff", "format", "--check", "--diff", "--cache-dir", str(CACHE / "ruff"), "."],
        "yamllint": ["yamllint", "--strict", "."],
        "shellcheck": ["shellcheck", "--external-sources", "--source-path=SCRIPTDIR", *shell],
        "antsibull-changelog": ["antsibull-changelog", "lint"],
        "galaxy build": ["ansible-galaxy", "collection", "build", "--output-path", str(builds), "."],
    }
    return [
        Step(name, command, COPY, env=tree | {"MYPYPATH": str(TREE)}, together=True)
        for name, command in commands.items()
    ]


def sanity() -> list[Step]:
    copy_checkout(CHECKOUT, TREE)
    cached = Path.home() / ".ansible" / "test" / "cache"
    cached.mkdir(parents=True, exist_ok=True)
    for name in _GET_PIP_NAMES:
        if not (cached / name).exists():
            (cached / name).write_text(_GET_PIP, encoding="utf-8")
    # Without --python, ansible-test tries every interpreter that it finds on the machine.
    common = ["--local", "--python", PYTHON_VERSION, "--color", "no"]
    steps = [Step("ansible-test sanity", ["ansible-test", "sanity", *common, *ARGS], COPY, timeout=1800)]
    if not ARGS:
        units = ["ansible-test", "units", *common]
        steps.append(Step("ansible-test units", units, COPY, timeout=900, vacuous="All targets skipped"))
    return steps


def unit() -> list[Step]:
    junit = LOGS / "unit.xml"
    command = [sys.executable, "-m", "pytest", "--numprocesses=auto", f"--junitxml={junit}", *(ARGS or ["tests/unit"])]
    return [Step("unit", command, HERE, timeout=900, env={"PYTHONPATH": str(COLLECTIONS)}, junit=junit)]


def live() -> list[Step]:
    junit = LOGS / "live.xml"
    command = [sys.executable, "-m", "pytest", "--verbose", "--durations=15", f"--junitxml={junit}"]
    all_of_them = not any(argument.startswith("tests/") for argument in ARGS)
    command += ["tests/live"] if all_of_them else []
    sandboxes = SANDBOXES if all_of_them and not given_cluster() else SANDBOXES[:1]
    if len(sandboxes) > 1:
        # In the order of the files: the default begins with those of many tests, and the few long ones would be left.
        command += [f"--numprocesses={len(sandboxes)}", "--dist=loadfile", "--no-loadscope-reorder"]
    environment = {"PYTHONPATH": str(COLLECTIONS)}
    return on(sandboxes, Step("live", [*command, *ARGS], HERE, timeout=4500, env=environment, junit=junit))


def molecule() -> list[Step]:
    marker = LOGS / "molecule-verified"
    command = [str(TOOLS / "molecule.sh"), str(marker), *ARGS]
    return on(SANDBOXES[:1], Step("molecule", command, HERE, timeout=900))


def on(sandboxes: Sequence[str], step: Step) -> list[Step]:
    """A step and what it runs on: these sandboxes, of several one for each of pytest's workers, or a given cluster."""
    if given_cluster():
        return [step]
    made = steps_for(sandboxes, "present")
    paths = os.pathsep.join(str(CACHE / "sandbox" / name / "kubeconfig") for name in sandboxes)
    settings = {"KUBECONFIG": paths, "K8S_AUTH_KUBECONFIG": paths}
    return [*made, replace(step, env=step.env | settings, needs=tuple(step.name for step in made))]


def steps_for(sandboxes: Sequence[str], state: str) -> list[Step]:
    """Bring sandboxes into a state: present, fresh or absent."""
    return [Step(f"sandbox {name}", [str(TOOLS / "sandbox.sh"), state, name], HERE, timeout=1800) for name in sandboxes]


def steps_of(gates: Sequence[str], *, fresh: bool) -> list[Step]:
    """All steps of these gates in order, each sandbox once."""
    steps = list({step.name: step for gate in gates for step in GATES[gate]()}.values())
    return with_fresh_sandboxes(steps) if fresh else steps


def with_fresh_sandboxes(steps: list[Step]) -> list[Step]:
    """From nothing, and nothing left: the sandboxes are made anew, and removed at the end unless KEEP is set."""
    fresh = {step.name: step for step in steps_for(SANDBOXES, "fresh")}
    steps = [fresh.get(step.name, step) for step in steps]
    if os.environ.get("KEEP"):
        return steps
    ends = [replace(step, name=f"{step.name} end", cleans_up=True) for step in steps_for(SANDBOXES, "absent")]
    return [*steps, *ends]


def given_cluster() -> bool:
    return any(os.environ.get(name) for name in CLUSTER_SETTINGS)


def shell_files(copy: Path) -> list[str]:
    """Everything that a shell runs, by name or by its first line."""
    first_line = re.compile(rb"#!.*\b(ba|da)?sh\b|# shellcheck shell=")
    found = []
    for path in sorted(copy.rglob("*")):
        if path.is_file() and not path.is_symlink() and ".git" not in path.relative_to(copy).parts:
            with path.open("rb") as file:
                if path.suffix in (".sh", ".bash") or first_line.match(file.readline(200)):
                    found.append(str(path.relative_to(copy)))
    return found


def mypy_packages(copy: Path) -> list[str]:
    kinds = ("module_utils", "modules", "filter", "lookup", "inventory", "callback")
    packages = [
        f"ansible_collections.slurm_ops.kubernetes.plugins.{kind}"
        for kind in kinds
        if (copy / "plugins" / kind).is_dir()
    ]
    return [argument for package in packages for argument in ("--package", package)]


GATES: dict[str, Callable[[], list[Step]]] = {
    "lint": lint,
    "sanity": sanity,
    "unit": unit,
    "live": live,
    "molecule": molecule,
}


# Gates that share something, be it only the names of their logs, wait for each other.
SHARED = {"lint": "copy", "sanity": "copy", "unit": "unit", "live": "sandbox", "molecule": "sandbox"}


@contextmanager
def alone(gates: list[str]) -> Iterator[None]:
    """Hold the locks of these gates, waiting for other runs on this checkout if there are any."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with ExitStack() as locks:
        # Always in the same order, else two runs could wait for each other.
        for name in sorted({SHARED[gate] for gate in gates}):
            lock = locks.enter_context((LOGS / f"{name}.lock").open("w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(f"Waiting for another run on this checkout to end ({lock.name}) ...", flush=True)
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the project's checks.")
    parser.add_argument("gates", nargs="+", choices=GATES)
    parser.add_argument("--fresh", action="store_true", help="with a new sandbox, which is removed at the end")
    parser.add_argument("--show", action="store_true", help="pass the output of the steps through")
    options = parser.parse_args()
    if ARGS and len(options.gates) > 1:
        parser.error("ARGS are for one of: " + ", ".join(GATES))
    if options.fresh:
        # These tests kill what they find in the cluster: never in one that a shell's settings happen to name.
        for name in CLUSTER_SETTINGS:
            os.environ.pop(name, None)
    if given_cluster() and {"live", "molecule"} & {*options.gates}:
        print("Running on the cluster that KUBECONFIG or K8S_AUTH_* names, not on a sandbox.", flush=True)
    # The steps have sessions of their own, so being told to end has to be passed on: see Runner.run.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with alone(options.gates):
        return Runner(LOGS, options.show).run(steps_of(options.gates, fresh=options.fresh))


if __name__ == "__main__":
    sys.exit(main())
