#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The sandbox Kubernetes of the tests, which is not that of the demo: sandbox.sh present|fresh|absent [NAME]
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/environment.sh"

prepare run
name=${2:-test}
case $1 in
    fresh)
        sandbox "$name" absent
        "$0" present "$name"
        ;;
    present)
        # The tests deploy both releases.
        sandbox "$name" present --extra-vars '{"images_versions": ["26.05", "24.11"]}'
        ;;
    *) sandbox "$name" "$1" ;;
esac
