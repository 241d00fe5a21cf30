#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Resolves requirements-dev.txt afresh and writes down what came with it. ansible-core is left out: its version depends
# on the Python, and requirements-run.txt names both.
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/environment.sh"

find_python
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
for file in requirements-run.txt requirements-dev.txt; do
    grep -v '^-c ' "$SLURM_OPS_CHECKOUT/$file" >"$work/$file"
done
"$PYTHON" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$work/requirements-dev.txt"
{
    sed '/^[^#]/,$d' "$SLURM_OPS_CHECKOUT/requirements-constraints.txt"
    "$work/venv/bin/python" -m pip freeze | grep -v '^ansible-core=='
} >"$work/constraints"
cat "$work/constraints" >"$SLURM_OPS_CHECKOUT/requirements-constraints.txt"
