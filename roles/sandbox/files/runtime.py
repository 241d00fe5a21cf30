# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Unpacks containerd, runc and the network plugins from the distribution's packages, without installing them.

    runtime.py --cache DIRECTORY

A container runtime that this machine has, Docker for one, is neither replaced nor reconfigured nor even used: packages
are downloaded and unpacked below the cache. Small tools that are missing (ip, nft, iptables) are installed.
Prints one line of JSON: runtime (directory), changed, installed (packages).
"""

from __future__ import annotations

import argparse
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

PACKAGES = ("containerd", "runc", "containernetworking-plugins")
PROGRAMS = ("usr/bin/containerd", "usr/bin/containerd-shim-runc-v2", "usr/bin/ctr", "usr/sbin/runc", "usr/lib/cni/ptp")
# Commands that the sandbox calls, and the packages that bring them.
TOOLS = {
    "ip": "iproute2",
    "iptables": "iptables",
    "mount": "mount",
    "nft": "nftables",
    "nsenter": "util-linux",
    "setsid": "util-linux",
    "unshare": "util-linux",
}
# Shared libraries that the programs want and a small system may lack.
LIBRARIES = {"libseccomp.so.2": "libseccomp2"}
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class RuntimeSetupError(Exception):
    """Said to the user as it is."""


def say(text: str) -> None:
    """One line of progress, if anybody reads it."""
    path = os.environ.get("SLURM_OPS_PROGRESS")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"sandbox: {text}\n")


def distribution(text: str) -> str:
    """Name and version of the distribution, from the text of /etc/os-release."""
    fields = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
    return f"{fields.get('ID', 'linux')}-{fields.get('VERSION_ID', 'rolling')}-{platform.machine()}"


def run(command: Sequence[str | Path], directory: Path = Path("/")) -> str:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "PATH": SEARCH_PATH}
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeSetupError(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()[-1000:]}")
    return done.stdout


def apt(command: Sequence[str], directory: Path = Path("/")) -> None:
    """Run apt-get; package lists that are missing or too old are fetched once."""
    try:
        run(["apt-get", "--quiet=2", *command], directory)
    except RuntimeSetupError:
        run(["apt-get", "--quiet=2", "update"])
        run(["apt-get", "--quiet=2", *command], directory)


def download(packages: Sequence[str], directory: Path) -> list[Path]:
    apt(["download", *packages], directory)
    return [Path(path) for path in sorted(glob.glob(f"{directory}/*.deb"))]


def missing_libraries(root: Path) -> list[str]:
    """Shared libraries that an unpacked program does not find on this machine."""
    output = "".join(run(["ldd", root / name]) for name in ("usr/bin/containerd", "usr/sbin/runc"))
    return re.findall(r"(\S+) => not found", output)


def unpack(cache: Path) -> Path:
    """Download and unpack; the directory's name tells the versions."""
    say(f"downloading {', '.join(PACKAGES)}, to be unpacked and not installed")
    with tempfile.TemporaryDirectory(dir=cache, prefix=".download-") as name:
        work, root = Path(name), Path(name) / "root"
        packages = download(PACKAGES, work)
        root.mkdir(mode=0o755)
        for package in packages:
            run(["dpkg-deb", "--extract", package, root])
        missing = missing_libraries(root)
        if missing:
            unknown = [library for library in missing if library not in LIBRARIES]
            if unknown:
                raise RuntimeSetupError(f"containerd needs {', '.join(unknown)}; install the packages that have them.")
            more = work / "libraries"
            more.mkdir()
            for package in download([LIBRARIES[library] for library in missing], more):
                run(["dpkg-deb", "--extract", package, more / "root"])
            # Where the programs are told to look for them.
            (root / "libraries").mkdir()
            for library in missing:
                found = next(path for path in (more / "root").rglob(library))
                shutil.copy(found, root / "libraries" / library)
        versions = hashlib.sha256("\n".join(package.name for package in packages).encode()).hexdigest()[:10]
        containerd = next(p.name.split("_")[1] for p in packages if p.name.startswith("containerd_"))
        target = cache / f"containerd-{containerd.split('~')[0].split('-')[0]}-{versions}"
        if target.exists():
            shutil.rmtree(target)
        root.rename(target)
    absent = [program for program in PROGRAMS if not (target / program).exists()]
    if absent:
        raise RuntimeSetupError(f"The packages {', '.join(PACKAGES)} lack {', '.join(absent)}.")
    return target


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", type=Path, required=True)
    cache = parser.parse_args().cache / "runtime"
    cache.mkdir(mode=0o755, parents=True, exist_ok=True)
    packages = sorted({package for tool, package in TOOLS.items() if shutil.which(tool, path=SEARCH_PATH) is None})
    if packages:
        say(f"installing {', '.join(packages)}")
        apt(["install", "--yes", "--no-install-recommends", *packages])
    # Which directory belongs to this release of the distribution: packages are looked up once, not in every run.
    current = cache / distribution(Path("/etc/os-release").read_text())
    changed = not all((current / program).exists() for program in PROGRAMS)
    if changed:
        target = unpack(cache)
        link = current.with_name(f".{current.name}.{os.getpid()}")
        link.symlink_to(target.name)
        link.replace(current)
    result = {"runtime": str(current.resolve()), "changed": changed or bool(packages), "installed": packages}
    print(json.dumps(result))


if __name__ == "__main__":
    try:
        main()
    except (RuntimeSetupError, OSError) as error:
        sys.exit(f"The container runtime could not be set up: {error}")
