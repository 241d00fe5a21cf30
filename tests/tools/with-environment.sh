#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Runs a command with this checkout's tools and settings: tests/tools/with-environment.sh ansible-playbook ...
# SLURM_OPS_TOOLS=run takes the small environment, that of `make demo`.
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/environment.sh"

prepare "${SLURM_OPS_TOOLS:-dev}"
exec "$@"
