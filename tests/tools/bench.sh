#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Measures on a sandbox of its own with thousands of simulated Nodes; writes docs/benchmarks.md. bench.sh [SIZE...]
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/environment.sh"

PEER=ansible==12.3.0 # the package that brings kubernetes.core
peers=$SLURM_OPS_CACHE/bench-${PEER/==/-}

prepare dev

# Recovery on a sandbox without simulated Nodes, which loses a Node in the end.
trap 'sandbox bench absent' EXIT
sandbox bench present
KUBECONFIG=$SLURM_OPS_CACHE/sandbox/bench/kubeconfig PYTHONPATH="$SLURM_OPS_COLLECTIONS:$SLURM_OPS_CHECKOUT" \
    python -m tests.bench.recovery
sandbox bench absent

if [ ! -e "$peers/.complete" ]; then
    say "Fetching $PEER for kubernetes.core (once) ..."
    rm -rf -- "$peers"
    python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --target "$peers" "$PEER"
    touch "$peers/.complete"
fi

[ $# -gt 0 ] || set -- 1000 5000
export KUBECONFIG=$SLURM_OPS_CACHE/sandbox/bench/kubeconfig
cd -- "$SLURM_OPS_CHECKOUT"
PYTHONPATH="$SLURM_OPS_COLLECTIONS:$SLURM_OPS_CHECKOUT" python -m tests.bench.run "$peers" "$@"
