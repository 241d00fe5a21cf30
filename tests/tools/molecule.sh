#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The Molecule scenario, and a check that it verified something: molecule.sh MARKER_FILE [ARGUMENT...]. Called by gates.py.
set -euo pipefail

marker=$1
shift
rm -f -- "$marker"
export MOLECULE_VERIFIED=$marker KUBECONFIG=${KUBECONFIG:-${K8S_AUTH_KUBECONFIG:-}}

molecule test --scenario-name default "$@"

# verify.yml writes it on every host; nobody to write it means that nothing was verified.
[ -s "$marker" ] || {
    echo "Molecule ended well but verified no cluster."
    exit 1
}
echo "Verified: $(tr '\n' ' ' <"$marker")"
