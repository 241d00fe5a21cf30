# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The commands that read and write a cluster's data where it is: in Pods of the database, of slurmctld, of a volume.

They run in bash, of which both images have one. Values are arguments, never part of a script. A password is read from
the file that the Pod has of its Secret, and given to the client in its environment, so that it is in no argument list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

STATE_FOLDER = "/var/spool/slurmctld"
PASSWORD_FILE = "/run/secrets/database/password"
NOT_EMPTY = 65  # exit code of a load into a database that has tables
NO_ARCHIVE = 66  # exit code of reading an archive that is not there

# slurmctld writes changes to its state 5 seconds after the last writing at most (SAVE_MAX_WAIT, looked at every
# second).
SAVED_WITHIN = 7
# Without these slurmctld 26.05 does not start again (24.11 does); with .old, they are there at any moment. A new
# cluster has them when slurmctld has saved all that it knows for the first time, after 5 minutes (PERIODIC_CHECKPOINT)
# or at a reconfigure. That is waited for.
STATE_FILES = ("assoc_usage", "fed_mgr_state", "job_state", "node_state", "resv_state", "trigger_state")
FIRST_SAVED_WITHIN = 330

_DATABASE = f"""set -euo pipefail
MYSQL_PWD=$(cat {PASSWORD_FILE})
export MYSQL_PWD
# A client that is given its password like this does not verify certificates; being told so, it does not warn of it.
where=(--no-defaults --disable-ssl-verify-server-cert "--host=$1" "--port=$2" "--user=$3")
"""

# Tables are InnoDB: one transaction sees them all at its first moment, and nobody waits for it. slurmdbd makes its
# stored procedures at each start, so they are left out.
_DUMP = (
    _DATABASE
    + """mariadb-dump "${where[@]}" --single-transaction --quick --skip-lock-tables --no-tablespaces --hex-blob \\
  --max-allowed-packet=1G "$4" | gzip -1
"""
)
_SIZE = (
    _DATABASE
    + """command -v mariadb-dump >/dev/null || { echo "the image has no mariadb-dump" >&2; exit 1; }
mariadb "${where[@]}" --batch --skip-column-names \\
  --execute="SELECT COALESCE(SUM(data_length + index_length), 0) FROM information_schema.tables
  WHERE table_schema = '$4'"
"""
)
_LOAD = (
    _DATABASE
    + f"""sql() {{ mariadb "${{where[@]}}" --batch --skip-column-names "$@"; }}
tables=$(sql --execute="SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '$4'")
if [ "$tables" != 0 ]; then
  [ "$6" = replace ] || {{ echo "$tables" >&2; exit {NOT_EMPTY}; }}
  sql --execute="DROP DATABASE \\`$4\\`; CREATE DATABASE \\`$4\\`"
fi
# Of a statement that fails the client shows all, which may be long, and is nobody's business.
head -c "$5" | gzip -dc | sql --max-allowed-packet=1G "$4" 2>&1 | cut -b -200 | tail -n 1 >&2
"""
)

# A file of the state is always whole: slurmctld writes a new one, and renames. For a moment the name is missing; what
# it was is then there with .old, which slurmctld reads in that case. Scripts of jobs come last: one that is there
# without its job is removed by slurmctld, a job without its script could not run. tar ends with 1 when a file went away
# meanwhile.
_COPY = """set -euo pipefail
sleep "$2"
cd "$1"
for file in "${@:4}"; do
  until [ -e "$file" ] || [ -e "$file.old" ]; do
    [ "$SECONDS" -lt "$3" ] || { echo "slurmctld has not written $file" >&2; exit 1; }
    sleep 1
  done
done
{ find . -mindepth 1 -maxdepth 1 ! -name 'hash.*' ! -name '*.new' ! -name lost+found -print0
  find . -mindepth 1 -maxdepth 1 -name 'hash.*' -print0
} | { tar --create --null --files-from=- --ignore-failed-read --warning=no-file-changed || [ $? = 1 ]; } | gzip -1
"""
_STATE_SIZE = 'set -euo pipefail; du --summarize --bytes "$1" | cut -f1'
_UNPACK = """set -euo pipefail
find "$1" -mindepth 1 -maxdepth 1 ! -name lost+found -exec rm -rf {} +
head -c "$2" | tar --extract --gzip --no-same-owner --preserve-permissions "--directory=$1"
sync
"""

# Archives in a folder of a volume. One that has its own name is whole, as in a folder of a machine.
_LIST = """set -euo pipefail
[ ! -d "$1" ] || find "$1" -mindepth 1 -maxdepth 1 -type f -name '*.zip*' -printf '%f\\n'
"""
_PUT = """set -euo pipefail
umask 077
mkdir -p "$1"
draft=$1/$3
trap 'rm -f "$draft"' EXIT
head -c "$4" > "$draft"
[ "$(sha256sum < "$draft")" = "$5  -" ] || { echo "what arrived is not what was sent" >&2; exit 1; }
sync
mv "$draft" "$1/$2"
"""
_GET = f"""set -euo pipefail
[ -e "$1/$2" ] || exit {NO_ARCHIVE}
cat "$1/$2"
"""
_REMOVE = 'set -euo pipefail; rm -f "$1/$2"'


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder of a volume, for archives."""

    folder: str

    def names(self) -> Sequence[str]:
        """Print the names in it, one a line."""
        return self._command(_LIST)

    def put(self, name: str, draft: str, size: int, sha256: str) -> Sequence[str]:
        """Read an archive of ``size`` bytes from stdin; it gets its name once it is there as a whole."""
        return self._command(_PUT, name, draft, str(size), sha256)

    def get(self, name: str) -> Sequence[str]:
        """Write an archive to stdout; ends with NO_ARCHIVE if there is none of that name."""
        return self._command(_GET, name)

    def remove(self, name: str) -> Sequence[str]:
        """Remove one file."""
        return self._command(_REMOVE, name)

    def _command(self, script: str, *arguments: str) -> list[str]:
        return ["bash", "-c", script, "archives", self.folder, *arguments]


@dataclass(frozen=True, slots=True)
class Database:
    """A database as its client reaches it."""

    host: str
    port: int
    user: str
    name: str

    def dump(self) -> Sequence[str]:
        """Write it to stdout as SQL, compressed."""
        return self._command(_DUMP)

    def size(self) -> Sequence[str]:
        """Print about how many bytes it takes."""
        return self._command(_SIZE)

    def load(self, size: int, *, replace: bool) -> Sequence[str]:
        """Read ``size`` bytes of compressed SQL from stdin into it; ends with NOT_EMPTY if it has tables."""
        return [*self._command(_LOAD), str(size), "replace" if replace else "keep"]

    def _command(self, script: str) -> list[str]:
        return ["bash", "-c", script, "database", self.host, str(self.port), self.user, self.name]


def copy_state(
    folder: str = STATE_FOLDER, *, pause: int = SAVED_WITHIN, most: int = FIRST_SAVED_WITHIN
) -> Sequence[str]:
    """Write StateSaveLocation to stdout as a compressed tar, once slurmctld has saved what it knows by now."""
    return ["bash", "-c", _COPY, "state", folder, str(pause), str(most), *STATE_FILES]


def state_size(folder: str = STATE_FOLDER) -> Sequence[str]:
    """Print how many bytes StateSaveLocation takes."""
    return ["bash", "-c", _STATE_SIZE, "state", folder]


def unpack_state(folder: str, size: int) -> Sequence[str]:
    """Make the folder hold what the ``size`` bytes of compressed tar on stdin hold, and nothing else."""
    return ["bash", "-c", _UNPACK, "state", folder, str(size)]
