#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Runs gates.py in the environment that it needs: gates.sh lint unit ... [--show]
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/environment.sh"

command -v git >/dev/null || install_packages "because the checks ask git which files there are" git
prepare dev
exec python "$SLURM_OPS_CHECKOUT/tests/tools/gates.py" "$@"
