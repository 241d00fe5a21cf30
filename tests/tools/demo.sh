#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# demo.sh up|down. With KUBECONFIG or K8S_AUTH_* the demo runs on that cluster, with published images, and builds nothing.
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/environment.sh"

prepare run

# alice's key pair: the private half stays on this machine, the public half goes to the directory (see the inventory).
make_key() {
    local key=$SLURM_OPS_CACHE/demo/id_ed25519
    command -v ssh >/dev/null || install_packages "because the tour logs in with ssh" openssh-client
    [ -e "$key" ] && return
    mkdir -p -- "$SLURM_OPS_CACHE/demo"
    chmod 700 -- "$SLURM_OPS_CACHE/demo"
    ssh-keygen -q -t ed25519 -N '' -C demo -f "$key"
}

case $1 in
    up)
        make_key
        inventory=inventories/sandbox
        if has_given_cluster; then
            inventory=inventories/demo
        else
            sandbox default present
        fi
        cd "$SLURM_OPS_CHECKOUT"
        exec ansible-playbook --inventory "$inventory" playbooks/site.yml playbooks/demo.yml
        ;;
    down)
        sandbox default absent
        say "The sandbox is stopped. What was built stays in $SLURM_OPS_CACHE for the next time; make distclean removes it."
        # A cluster of yours is not touched by so short a command.
        has_given_cluster && say "Slurm on your own cluster stays. To remove it:" \
            "ansible-playbook -i inventories/demo slurm_ops.kubernetes.destroy"
        exit 0
        ;;
    *) die "usage: demo.sh up|down" ;;
esac
