# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Ask a real slurmctld what it thinks of configuration files, before the running one reads them.

slurmctld has no test mode. A second one is started in the controller's Pod, in a private directory that is removed
again, with its own port, state and no accounting; it decides in less than a tenth of a second and is ended. Nothing of
the running one is touched: not its files, not its state, not its socket.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import hostlist, slurm_conf
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.config_change import configured_nodes
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.slurm_conf import Line
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.exec import exec_in_pod

CONTAINER = "slurmctld"
TIMEOUT = 60.0  # seconds for all of it; slurmctld itself gets half of that
PRIMARY = "Running as primary controller"

# What the second slurmctld has of its own. A key that names a service or a place of the running one is left out.
_LEFT_OUT = frozenset(
    {
        "authinfo", "communicationparameters", "controlmachine", "maxnodecount", "metricstype", "slurmctldhost",
        "slurmctldlogfile", "slurmctldparameters", "slurmctldpidfile", "slurmctldport", "slurmctldsyslogdebug",
        "slurmctlddebug", "statesavelocation",
    }
)  # fmt: skip
# The shell fills in $dir and $port.
_OWN = r"""
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$port
SlurmctldPidFile=$dir/pid
SlurmctldDebug=info
StateSaveLocation=$dir/state
AccountingStorageType=accounting_storage/none
AuthInfo=use_client_ids,disable_sack
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
"""
_SCRIPT = r"""
dir=$(mktemp -d) || exit 70
child=
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 70' HUP INT TERM
umask 077
mkdir "$dir/state" || exit 70
for file in /etc/slurm/*; do
  [ ! -f "$file" ] || cp "$file" "$dir" || exit 70
done
@REMOVE@
port=$((20000 + $$ % 10000))
@FILES@
# What is included may be new, too; slurmctld would wait a minute for a file that is not there.
sed -i "s#^\([[:blank:]]*[Ii][Nn][Cc][Ll][Uu][Dd][Ee][[:blank:]]*\)/etc/slurm/#\1$dir/#" "$dir"/*.conf || exit 70
cat >>"$dir/slurm.conf" <<END_OF_OUR_OWN || exit 70
@OWN@
END_OF_OUR_OWN
SLURM_CONF="$dir/slurm.conf" slurmctld -D -c -i >"$dir/log" 2>&1 &
child=$!
turn=0
while [ $turn -lt 600 ] && kill -0 $child 2>/dev/null && ! grep -q -e '@PRIMARY@' -e 'fatal:' "$dir/log"; do
  turn=$((turn + 1))
  sleep 0.05
done
cat "$dir/log"
exit 0
"""
_STAMP = re.compile(r"^(?:\[[^\]]*\]\s*|slurmctld:\s*)+")
_WORD = re.compile(r"^(?:fatal|error|warning)\b", re.IGNORECASE)
# What a slurmctld in a private directory says of any configuration.
_NOISE = re.compile(
    r"state file|backup state|plugstack|MailProg|disable_sack|Could not open|state save|High latency|cgroup",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What slurmctld decided, and its words: fatal errors first, then errors and warnings."""

    accepted: bool
    words: tuple[str, ...]

    def require(self, what: str, *, hint: str) -> None:
        """Raise OperationError (Refused) with slurmctld's words unless it accepted."""
        if not self.accepted:
            raise OperationError(
                f"slurmctld would not start with {what}: {'; '.join(self.words) or 'it said nothing'}.",
                reason="Refused",
                hint=hint,
            )


def lint(
    kubernetes: KubernetesClient,
    namespace: str,
    pod: str,
    files: Mapping[str, str],
    *,
    nodes: Iterable[str] = (),
    max_nodes: int = 0,
    removed: Iterable[str] = (),
    container: str = CONTAINER,
) -> Verdict:
    """What slurmctld would say of ``files`` ({name: text} of /etc/slurm, slurm.conf among them).

    Files that are neither given nor ``removed`` are those of the running one; a topology.yaml or topology.conf replaces
    either. ``nodes`` are NodeName lines of nodes that are not in slurm.conf (dynamic ones; there are ``max_nodes``
    nodes in all).
    """
    texts = {**files, "slurm.conf": private_conf(files["slurm.conf"], nodes, max_nodes)}
    script = _SCRIPT.replace("@FILES@", "\n".join(_here(name, text) for name, text in sorted(texts.items())))
    unwanted = [f'"$dir/{name}"' for name in sorted(removed)]
    if any(name.startswith("topology.") for name in files):
        unwanted.append('"$dir"/topology.*')
    script = script.replace("@REMOVE@", f"rm -f {' '.join(unwanted)}" if unwanted else "")
    script = script.replace("@OWN@", _OWN.strip()).replace("@PRIMARY@", PRIMARY)
    ended = exec_in_pod(
        kubernetes,
        namespace,
        pod,
        ["sh", "-s"],
        container=container,
        stdin=script,
        timeout=TIMEOUT,
        reads=True,  # it leaves nothing behind
    )
    return verdict(ended.stdout, ended.stderr)


def private_conf(text: str, nodes: Iterable[str] = (), max_nodes: int = 0) -> str:
    """The slurm.conf for the second slurmctld, but for the lines that the script adds."""
    lines = slurm_conf.parse(text)
    configured = [int(line.value) for line in lines if line.key.lower() == "maxnodecount" and line.value.isdigit()]
    kept = [
        line
        for line in lines
        if line.key.lower() not in _LEFT_OUT and not line.key.lower().startswith(("accountingstorage", "jobcomp"))
    ]
    if configured or max_nodes:
        kept.insert(0, Line((("MaxNodeCount", str(max([max_nodes, *configured]))),)))
    return slurm_conf.render(kept) + "".join(f"{node}\n" for node in nodes)


def node_lines(conf: str, known: Iterable[str], places: Mapping[str, str], *, yaml: bool) -> Iterable[str]:
    """NodeName lines for known nodes that ``conf`` does not have, each with its place if the release has places."""
    configured = configured_nodes(slurm_conf.parse(conf))
    groups: dict[str, list[str]] = {}
    for name in frozenset(known) - configured:
        groups.setdefault(places.get(name, "") if yaml else "", []).append(name)
    state = "EXTERNAL" if yaml else "CLOUD"
    for place, names in sorted(groups.items()):
        yield f"NodeName={hostlist.compress(names, sort=True)} State={state}" + (f" Topology={place}" if place else "")


def _here(name: str, text: str) -> str:
    """A here-document of the shell; the quotes keep it from reading anything in the text."""
    end = "END_OF_FILE"
    while end in text:
        end += "_"
    line_end = "" if text.endswith("\n") or not text else "\n"
    return f"""cat >"$dir/{name}" <<'{end}' || exit 70\n{text}{line_end}{end}"""


def verdict(output: str, errors: str = "") -> Verdict:
    """The Verdict of what a slurmctld wrote."""
    accepted = PRIMARY in output and "fatal:" not in output
    said = [_STAMP.sub("", line).strip() for line in output.splitlines()]
    words = list(words_of(said, _NOISE))
    if not accepted and not words:
        words = _short([*said[-3:], *errors.splitlines()[-3:]])
    return Verdict(accepted, tuple(words))


def words_of(log: Iterable[str], noise: re.Pattern[str]) -> Sequence[str]:
    """The fatal errors of a log, then its errors and warnings, but for what is always said."""
    said = [_STAMP.sub("", line).strip() for line in log]
    words = [line for line in said if _WORD.match(line) and not noise.search(line)]
    words.sort(key=lambda line: not line.lower().startswith("fatal"))
    return _short(words)


def _short(words: Sequence[str], limit: int = 8) -> list[str]:
    unique = list(dict.fromkeys(word for word in words if word))
    return unique[:limit] + ([f"and {len(unique) - limit} more lines"] if len(unique) > limit else [])
