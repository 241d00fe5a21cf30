#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# slapd as an ordinary user (uid 1001). Mounted: /config/slapd.conf, /seed/*.ldif (loaded once, in the order of their
# names, into an empty database), /var/lib/ldap (a volume), /run/slapd (writable). LDAP_URLS replaces the addresses.
set -euo pipefail
shopt -s nullglob
umask 0077

data=/var/lib/ldap
config=/config/slapd.conf
urls=${LDAP_URLS:-ldap://:1389 ldapi://%2Frun%2Fslapd%2Fldapi}

[[ -r $config ]] || { echo "entrypoint: $config cannot be read; mount it" >&2; exit 1; }
if [[ -z ${LDAP_URLS:-} ]] && grep -qi '^TLSCertificateFile' "$config"; then
  urls+=" ldaps://:1636"
fi
mkdir -p /run/slapd
if [[ ! -e $data/.seeded ]]; then
  # What a cut-off start left behind is not a directory yet.
  rm -f "$data"/*.mdb
  seeds=(/seed/*.ldif)
  if ((${#seeds[@]})); then
    # An empty line between two files, whether or not the first one ends with one.
    for seed in "${seeds[@]}"; do cat "$seed"; printf '\n\n'; done | slapadd -q -f "$config"
  fi
  touch "$data/.seeded"
fi
exec slapd -d "${LDAP_DEBUG:-0}" -f "$config" -h "$urls"
