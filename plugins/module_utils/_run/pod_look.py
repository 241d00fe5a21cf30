# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""A look into a Pod with one script: the parts of what it says, and whether a daemon is younger than its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# Of a script whose first argument is the name of a daemon.
PROCESSES = r"""
printf '=== processes\n'
for process in /proc/[0-9]*; do
  case $(cat "$process/comm" 2>/dev/null) in
    "$1"*) echo "${process#/proc/} $(sed 's/.*) //' "$process/stat" 2>/dev/null | cut -d' ' -f20)" ;;
  esac
done
"""
# The last two of the times that is_younger wants.
CLOCKS = "date +%s.%N; cut -d' ' -f1 /proc/uptime"
_MARK = "=== "
# How much younger than its files a daemon may seem to be and yet is older: clocks are read one after the other.
_TOLERANCE = 0.1  # seconds
_TICKS = 100  # of /proc, a second; the same on every Linux


def sections(output: str) -> dict[str, str]:
    """The parts of a script's output that it began with "=== name"."""
    found: dict[str, str] = {}
    head = ""
    for line in output.splitlines():
        if line.startswith(_MARK):
            head = line.removeprefix(_MARK)
            found[head] = ""
        else:
            found[head] = found.get(head, "") + line + "\n"
    return found


def hashes(text: str) -> dict[str, str]:
    """{file: hash} of what sha256sum writes."""
    found = {}
    for line in text.splitlines():
        value, _blank, name = line.partition("  ")
        found[name] = value
    return found


def processes(text: str) -> dict[str, int]:
    """{number: start, in ticks since the machine's} of what PROCESSES writes; one that just ends has no start."""
    found = (line.split() for line in text.splitlines())
    return {words[0]: int(words[1]) for words in found if len(words) == 2}


def oldest(started: Mapping[str, int]) -> int:
    """When a daemon began that has these processes; 0: there is none."""
    # In a reconfigure the old one serves until the new one is ready.
    return min(started.values(), default=0)


def is_younger(started: int, times: Sequence[str]) -> bool:
    """Whether what began at a tick (0: nothing did) began after its files came, so that it has read them.

    ``times``: when the files came, the time now, and the seconds that the machine is up.
    """
    if not started or len(times) != 3:
        return False
    files, now, uptime = map(float, times)
    return now - uptime + started / _TICKS > files - _TOLERANCE
