#!/bin/sh
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Init container of the directory: makes the database anew from
#   /config/entries.ldif, /config/slapd.conf, /config/own.schema   (the role's ConfigMap)
#   /secrets/passwords/<user>, /secrets/keys/<user>                (public keys)
# and leaves it in /var/lib/ldap, with the configuration for slapd in /run/slapd/slapd.conf.
set -eu
umask 077

run=/run/slapd
conf=$run/slapd.conf

# The first of these files that exists, without its last two parts: places differ between distributions.
first_directory() {
  for path in "$@"; do
    if [ -e "$path" ]; then
      dirname "$path"
      return
    fi
  done
}
schema=$(first_directory /etc/ldap/schema/core.schema /etc/openldap/schema/core.schema /opt/bitnami/openldap/etc/schema/core.schema)
modules=$(first_directory /usr/lib/ldap/argon2.so /usr/lib/openldap/argon2.so /usr/lib64/openldap/argon2.so \
  /opt/bitnami/openldap/lib/openldap/argon2.so)
if [ -z "$schema" ]; then
  echo "seed: this image has no OpenLDAP schema files where they are expected" >&2
  exit 1
fi

# --- slapd.conf: the database back end is a module on some distributions, and built in on others
load=''
if [ -n "$modules" ]; then
  load="modulepath $modules\\nmoduleload argon2"
  if [ -e "$modules/back_mdb.so" ]; then
    load="$load\\nmoduleload back_mdb"
  fi
fi
sed -e "s|@SCHEMA@|$schema|" -e "s|^@MODULES@\$|$load|" /config/slapd.conf > "$conf"

# --- entries, with the secrets put in
# hash SCHEME FILE: the password in the file, hashed. It never becomes an argument of a program.
hash() {
  IFS= read -r password < "$2" || [ -n "$password" ]
  if [ -z "$password" ]; then
    echo "seed: no password in $2" >&2
    exit 1
  fi
  printf %s "$password" > "$run/password"
  if [ "$1" = ARGON2 ] && [ -n "$modules" ]; then
    slappasswd -n -o "module-path=$modules" -o module-load=argon2 -h '{ARGON2}' -T "$run/password"
  else
    slappasswd -n -h '{SSHA}' -T "$run/password"
  fi
}
while IFS= read -r line; do
  case $line in
    # What a person chose is worth a slow hash; twenty random characters are safe behind a quick one.
    'userPassword: secret:'*) hashed=$(hash ARGON2 "/secrets/${line#*secret:}") ;;
    'userPassword: random:'*) hashed=$(hash SSHA "/secrets/${line#*random:}") ;;
    'sshPublicKey: secret:'* | 'altSecurityIdentities: secret:'*)
      IFS= read -r key < "/secrets/${line#*secret:}" || [ -n "$key" ]
      line="${line%%:*}: $key"
      ;;
  esac
  case $line in
    'userPassword: '*) printf 'userPassword: %s\n' "$hashed" ;;
    *) printf '%s\n' "$line" ;;
  esac
done < /config/entries.ldif > "$run/entries.ldif"

rm -rf /var/lib/ldap/*
slapadd -q -f "$conf" -l "$run/entries.ldif"
rm -f "$run/password" "$run/entries.ldif"
echo "seed: $(grep -c '^dn: ' /config/entries.ldif) entries"
