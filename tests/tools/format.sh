#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Formats the checkout in place. Called through with-environment.sh.
set -euo pipefail

cd "$SLURM_OPS_CHECKOUT"
ruff check --quiet --no-cache --select I --fix .
exec ruff format --no-cache .
