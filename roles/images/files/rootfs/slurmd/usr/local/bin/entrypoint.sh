#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# slurmd, and sshd and sssd where they are configured, under s6.
# Arguments are added to SLURMD_OPTIONS, and a shell reads the result once more (the contract), so that
#   args: ["-Z", "--conf", "'Features=cpu Weight=2'"]
# reaches slurmd as two words after --conf's name and value.
set -euo pipefail

SLURMD_OPTIONS="${SLURMD_OPTIONS:-} $*"
options=()
eval "options=( $SLURMD_OPTIONS )"

# add_to_conf KEY VALUE: add KEY=VALUE to the text of --conf, unless that sets KEY itself.
add_to_conf() {
  local key=$1 value=$2 i text
  for i in "${!options[@]}"; do
    case ${options[i]} in
      --conf) ((++i)) && text=${options[i]} ;;
      --conf=*) text=${options[i]#--conf=} ;;
      *) continue ;;
    esac
    if [[ " ${text,,}" != *[[:space:]]"${key,,}="* ]]; then
      options[i]+=" $key=$value"
    fi
    return
  done
  options+=(--conf "$key=$value")
}

# What Slurm sees is the whole Node; what the Pod may not use of it is kept from jobs.
# https://slurm.schedmd.com/slurm.conf.html: CoreSpecCount (cores), MemSpecLimit (MiB)
reserve_beyond_pod() {
  local -A hardware=()
  local field cores reserved
  for field in $(/usr/sbin/slurmd -C | head -n 1); do
    hardware[${field%%=*}]=${field#*=}
  done
  if ((${POD_CPUS:-0} > 0)); then
    cores=$((hardware[Boards] * hardware[SocketsPerBoard] * hardware[CoresPerSocket]))
    reserved=$((cores - POD_CPUS / hardware[ThreadsPerCore]))
    # One core at least has to be left: a Pod may have less CPU than a core has threads.
    ((reserved < cores)) || reserved=$((cores - 1))
    ((reserved <= 0)) || add_to_conf CoreSpecCount "$reserved"
  fi
  if ((${POD_MEMORY:-0} > 0)); then
    reserved=$((hardware[RealMemory] - POD_MEMORY))
    ((reserved <= 0)) || add_to_conf MemSpecLimit "$reserved"
  fi
}

mkdir -p /run/slurm /var/spool/slurmd
if ((${POD_CPUS:-0} > 0 || ${POD_MEMORY:-0} > 0)); then
  reserve_beyond_pod
fi
if [[ -n ${POD_TOPOLOGY:-} ]]; then
  add_to_conf Topology "$POD_TOPOLOGY"
fi

# The service script reads this.
export SLURMD_OPTIONS="${options[*]@Q}"

# SSH into workers is for those who configured it: a mounted sshd_config or a file in sshd_config.d. Whoever logs in is
# put into a job of theirs on this node, or refused.
services=(slurmd sssd)
if compgen -G '/etc/ssh/sshd_config.d/*.conf' >/dev/null || grep -q ' /etc/ssh/sshd_config ' /proc/self/mountinfo; then
  services+=(sshd)
  adopt="account required pam_slurm_adopt.so ${PAM_SLURM_ADOPT_OPTIONS:-action_adopt_failure=deny action_generic_failure=deny}"
  grep -q pam_slurm_adopt /etc/pam.d/sshd || sed -i "s/^@include common-account.*/&\n$adopt/" /etc/pam.d/sshd
fi

exec slurm-services "${services[@]}"
