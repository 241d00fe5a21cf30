#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A login node: sshd, sssd and sackd under s6. Arguments are ignored (the contract); SACKD_OPTIONS, SSHD_OPTIONS and
# SSSD_OPTIONS reach the daemons.
set -euo pipefail

exec slurm-services sackd sshd sssd
