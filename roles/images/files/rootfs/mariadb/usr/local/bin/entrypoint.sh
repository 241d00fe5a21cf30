#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# mariadbd as an ordinary user. The environment is that of the public mariadb image:
#   MARIADB_DATABASE, MARIADB_USER, MARIADB_PASSWORD or MARIADB_PASSWORD_FILE
#   MARIADB_ROOT_PASSWORD or MARIADB_ROOT_PASSWORD_FILE; with MARIADB_RANDOM_ROOT_PASSWORD root has no password that
#   anybody could know. 
#   In any case the account mysql has all rights and gets in from inside the container only, over the socket.
# Other than there, database, user and password are made right at each start, not at the first one only, so that a
# changed password comes into force with a restart.
set -euo pipefail
shopt -s nullglob
umask 0077

data=/var/lib/mysql
socket_directory=/run/mysqld

fail() {
  echo "entrypoint: $*" >&2
  exit 1
}

# from_file NAME: the value of NAME, or what is in the file that NAME_FILE names.
from_file() {
  local file_variable=$1_FILE
  if [[ -n ${!1:-} && -n ${!file_variable:-} ]]; then
    fail "$1 and $file_variable exclude each other"
  elif [[ -n ${!file_variable:-} ]]; then
    [[ -r ${!file_variable} ]] || fail "$file_variable: ${!file_variable} cannot be read"
    printf '%s' "$(<"${!file_variable}")"
  else
    printf '%s' "${!1:-}"
  fi
}

# As text between single quotes in SQL.
quoted() {
  local text=${1//\\/\\\\}
  text=${text//\'/\'\'}
  printf "'%s'" "${text//$'\n'/\\n}"
}

identifier() {
  printf '\x60%s\x60' "${1//\`/\`\`}"
}

# Under another name first, so that a start that was cut off is not taken for a database.
initialise() {
  local fresh=$data/.fresh entry
  rm -rf "$fresh"
  mkdir "$fresh"
  echo "entrypoint: making an empty database" >&2
  # Nobody but the user who runs the server gets in, over the socket; no root account for the network.
  mariadb-install-db --no-defaults --datadir="$fresh" --skip-test-db --skip-name-resolve \
    --auth-root-authentication-method=socket --auth-root-socket-user=mysql >/tmp/mariadb-install-db.log 2>&1 \
    || { cat /tmp/mariadb-install-db.log >&2; fail "mariadb-install-db failed"; }
  rm -f "$fresh"/ib_buffer_pool
  for entry in "$fresh"/*; do
    # The mark of a complete database goes last.
    [[ $entry == */mysql ]] || mv "$entry" "$data/"
  done
  mv "$fresh/mysql" "$data/mysql"
  rm -rf "$fresh"
}

# What --init-file executes before the server listens: one statement a line.
statements() {
  local database=${MARIADB_DATABASE:-} user=${MARIADB_USER:-} password root_password account host
  password=$(from_file MARIADB_PASSWORD)
  root_password=$(from_file MARIADB_ROOT_PASSWORD)
  if [[ -n $database ]]; then
    echo "CREATE DATABASE IF NOT EXISTS $(identifier "$database");"
  fi
  if [[ -n $user ]]; then
    [[ -n $password ]] || fail "MARIADB_USER needs MARIADB_PASSWORD or MARIADB_PASSWORD_FILE"
    account="$(quoted "$user")@'%'"
    echo "CREATE USER IF NOT EXISTS $account;"
    echo "ALTER USER $account IDENTIFIED BY $(quoted "$password");"
    if [[ -n $database ]]; then
      # In a grant _ is a wildcard.
      echo "GRANT ALL ON $(identifier "${database//_/\\_}").* TO $account;"
    fi
  fi
  if [[ -n $root_password ]]; then
    host=$(quoted "${MARIADB_ROOT_HOST:-%}")
    echo "CREATE USER IF NOT EXISTS 'root'@$host;"
    echo "ALTER USER 'root'@$host IDENTIFIED BY $(quoted "$root_password");"
    echo "GRANT ALL ON *.* TO 'root'@$host WITH GRANT OPTION;"
  fi
}

if [[ ${1:-} == -* ]]; then
  set -- mariadbd "$@"
fi
if [[ ${1:-} != mariadbd ]]; then
  exec "$@"
fi
shift

[[ $(id -u) != 0 ]] || fail "run me as uid 999 (runAsUser), not as root"
[[ -w $data ]] || fail "$data is not writable for uid $(id -u): mount a volume, with fsGroup $(id -g)"
mkdir -p "$socket_directory"
[[ -d $data/mysql ]] || initialise
statements > "$socket_directory/init.sql"
exec mariadbd --datadir="$data" --ignore-db-dir=lost+found --init-file="$socket_directory/init.sql" "$@"
