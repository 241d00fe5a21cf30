#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The sandbox of the benchmarks: simulated.sh present|absent [NUMBER of simulated Nodes]
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/environment.sh"

prepare dev
sandbox bench "$1" --extra-vars "sandbox_kwok_nodes=${2:-0}"
