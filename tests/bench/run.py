# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All measurements, on the cluster of $KUBECONFIG: python -m tests.bench.run PEERS SIZE..."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.live.support.kube import Kube

from . import cases, peers, report
from .measure import Row
from .scene import Scene

SIMULATED = Path(__file__).resolve().parents[1] / "tools" / "simulated.sh"


def measured(kubeconfig: str, peer_collections: Path, sizes: list[int]) -> Iterator[Row]:
    yield from cases.planning()
    for size in sorted(sizes):
        subprocess.run([SIMULATED, "present", str(size)], check=True)
        kube = Kube(kubeconfig)
        scene = Scene(kube, kubeconfig, size)
        print(f"building a cluster of {size} nodes ...", flush=True)
        scene.build()
        try:
            yield from cases.reconciling(scene)
            yield from cases.draining(scene)
            if size == min(sizes):
                with tempfile.TemporaryDirectory() as scratch:
                    yield from peers.tasks(scene, kubeconfig, Path(scratch), peer_collections)
        finally:
            scene.remove()


def main() -> None:
    sizes = [int(word) for word in sys.argv[2:]]
    rows = []
    for row in measured(os.environ["KUBECONFIG"], Path(sys.argv[1]), sizes):
        rows.append(row)
        print(report.table([row]).splitlines()[-1], flush=True)
    report.write(report.BENCH, report.table(rows))
    print(f"Written to {report.PAGE}")
    if not all(row.met for row in rows):
        raise SystemExit("Not every target was met.")


if __name__ == "__main__":
    main()
