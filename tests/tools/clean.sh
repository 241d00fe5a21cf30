#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# clean.sh tests|everything
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/environment.sh"

case $1 in
    tests)
        # Environments are shared between checkouts of the same pins; they come back by themselves.
        rm -rf -- "$SLURM_OPS_CACHE"/{venv-,logs-,copy-,collections-}* "$SLURM_OPS_CACHE"/{ansible,mypy,ruff}
        ;;
    everything)
        [ -d "$SLURM_OPS_CACHE" ] || exit 0
        prepare run
        for folder in "$SLURM_OPS_CACHE"/sandbox/*/; do
            [ ! -d "$folder" ] || sandbox "$(basename -- "$folder")" absent
        done
        as_root "to remove what the sandbox wrote as root" rm -rf -- "$SLURM_OPS_CACHE"
        ;;
    *) die "usage: clean.sh tests|everything" ;;
esac
