#!/bin/sh
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Init container of a login Pod, run as root in the login image: puts configuration and secrets together, with the owners and
# modes that the daemons insist on, and has the daemons check it. Everything is kept in memory.
#   in:   /input (projected: configuration, keys, passwords)
#   out:  /etc/sssd /etc/slurm /etc/slurm-login /etc/ssh/sshd_config.d /etc/ssh/hostkeys /etc/ssh/root
#         /etc/sudoers.d (all of one volume), /run/slurm, and the owner of /var/lib/sss/db
set -eu
umask 077

say() { echo "compose: $*" >&2; }
# A projected file is a link to a file that changes at any time; these are plain files of root.
put() { install -o 0 -g 0 -m "$1" "$2" "$3"; }
# Mounts make directories that anybody may write to.
chmod 0755 /etc/slurm /etc/slurm-login /etc/ssh/sshd_config.d /etc/sudoers.d
chmod 0700 /etc/ssh/hostkeys /etc/ssh/root

# --- Slurm: keys belong to SlurmUser, which sackd runs as
for key in slurm.key slurm.jwks; do
  [ ! -e "/input/slurm/$key" ] || install -o 401 -g 401 -m 0600 "/input/slurm/$key" "/etc/slurm/$key"
done
# The socket's directory must not be everybody's: another process could put its own socket there.
chown 401:401 /run/slurm
chmod 0755 /run/slurm

# --- SSSD
# Newer releases run SSSD as a user of its own; that user then owns the configuration and the cache.
owner=$(stat -c %u:%g /var/lib/sss/pipes)
chmod 0711 /etc/sssd
install -d -m 0711 /etc/sssd/conf.d
if [ -e /input/sssd/own.conf ]; then
  put 0600 /input/sssd/own.conf /etc/sssd/sssd.conf
else
  put 0600 /input/sssd/sssd.conf /etc/sssd/sssd.conf
fi
if [ -e /input/ldap/password ]; then
  password=$(cat /input/ldap/password)
  case $password in
    '') say "the bind password is empty"; exit 1 ;;
    *"
"*) say "the bind password has more than one line"; exit 1 ;;
  esac
  domain=$(sed -n 's|^\[\(domain/.*\)\]$|\1|p' /etc/sssd/sssd.conf | head -n 1)
  printf '[%s]\nldap_default_authtok = %s\n' "$domain" "$password" > /etc/sssd/conf.d/10-password.conf
fi
# What was cached from another directory, or under another mapping of names and numbers, is wrong now.
identity=$(grep -E '^(\[domain/|id_provider|ldap_(schema|id_mapping|idmap|search_base|user_|group_))' /etc/sssd/sssd.conf | sha256sum)
if [ "$(cat /var/lib/sss/db/identity 2> /dev/null)" != "$identity" ]; then
  rm -f /var/lib/sss/db/*.ldb
  echo "$identity" > /var/lib/sss/db/identity
fi
chown -R "$owner" /etc/sssd /var/lib/sss/db
chmod 0700 /var/lib/sss/db
for file in ca.crt tls.crt tls.key; do
  [ ! -e "/input/ldap/$file" ] || put 0600 "/input/ldap/$file" "/etc/slurm-login/$file"
done
# Whoever asks the directory reads the CA; the key is SSSD's.
[ ! -e /etc/slurm-login/ca.crt ] || chmod 0644 /etc/slurm-login/ca.crt
[ ! -e /etc/slurm-login/tls.key ] || chown "$owner" /etc/slurm-login/tls.*
if command -v sssctl > /dev/null; then
  report=$(sssctl config-check 2>&1) || {
    say "SSSD does not accept its configuration:"
    # What is wrong comes last, where it is seen.
    { echo "$report" | grep -v '^\[rule'; echo "$report" | grep '^\[rule'; } >&2
    exit 1
  }
fi

# --- sshd
for key in /input/hostkeys/*_key; do
  put 0600 "$key" "/etc/ssh/hostkeys/${key##*/}"
  put 0644 "$key.pub" "/etc/ssh/hostkeys/${key##*/}.pub"
done
for file in /input/sshd/*.conf; do
  put 0644 "$file" "/etc/ssh/sshd_config.d/${file##*/}"
done
if [ -e /input/root/authorized_keys ]; then
  put 0600 /input/root/authorized_keys /etc/ssh/root/authorized_keys
fi
install -d -m 0755 /run/sshd
# Older releases do not know penalties, and take an unknown keyword for a fatal mistake.
if ! /usr/sbin/sshd -t -f /dev/null -h /etc/ssh/hostkeys/ssh_host_ed25519_key -o PerSourcePenalties=no 2> /dev/null; then
  rm -f /etc/ssh/sshd_config.d/20-penalties.conf
fi
/usr/sbin/sshd -t || { say "sshd does not accept its configuration"; exit 1; }

# --- sudo
if [ -e /input/sudoers ]; then
  put 0440 /input/sudoers /etc/sudoers.d/slurm-ops
  if command -v visudo > /dev/null; then
    visudo -cqf /etc/sudoers.d/slurm-ops || { say "sudo does not accept its configuration"; exit 1; }
  fi
fi
say "ready"
