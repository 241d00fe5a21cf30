#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# slurmctld. Arguments are added to SLURMCTLD_OPTIONS, and a shell reads the result once more (the contract).
set -euo pipefail

SLURMCTLD_OPTIONS="${SLURMCTLD_OPTIONS:-} $*"
options=()
eval "options=( $SLURMCTLD_OPTIONS )"

# An emptyDir over /run hides the directory that the image has.
mkdir -p /run/slurmctld

exec python3 -I /usr/local/lib/slurm-ops/supervise.py -- /usr/sbin/slurmctld --systemd "${options[@]}"
