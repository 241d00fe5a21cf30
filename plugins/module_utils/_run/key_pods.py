# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The Pods that have keys: bringing the Secret's keys into them at once, and seeing which daemons have read them.

A daemon reads its keys when it starts, and a reconfigure starts it anew (slurmctld, slurmd, sackd) without touching
jobs and sessions. So it works with the keys of its Pod if, and only if, it is younger than they are. sackd
stays the same process; that it has started anew is seen by the configuration, which it writes just before.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import names
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import rollout
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.exec import exec_in_pod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.pods import runs
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.resources import POD, STATEFUL_SET
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import key_rotation as planner
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.controllers import can_be_asked, controller_pods
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.pod_look import (
    CLOCKS,
    PROCESSES,
    hashes,
    is_younger,
    oldest,
    processes,
    sections,
)

# What the daemons have of the Secret, by the name of the file.
BETWEEN_DAEMONS = (planner.SLURM_KEY, planner.SLURM_JWKS)
ALL = (*BETWEEN_DAEMONS, planner.JWT_KEY, planner.PUBLIC)

_LOOK = rf"""
cd "$2" || exit 1
printf '=== hashes\n'; sha256sum $3 2>/dev/null
printf '=== times\n'; stat -L -c %.3Y $3 2>/dev/null | sort -n | tail -n 1; {CLOCKS}
printf '=== configuration\n'; stat -L -c %.3Y /run/slurm/conf/slurm.conf 2>/dev/null
{PROCESSES}
exit 0
"""
# sackd wants to own its keys, so login Pods have copies: role login's compose.sh, and service sackd of the images.
_COPY = r"""
for folder in /etc/slurm /run/slurm-keys; do
  [ -e "$folder/slurm.key" ] || continue
  for key in slurm.key slurm.jwks; do
    if [ ! -e "/etc/slurm-keys/$key" ]; then
      [ ! -e "$folder/$key" ] || { rm "$folder/$key" && touch "$folder/slurm.key"; } || exit 1
    elif ! cmp -s "/etc/slurm-keys/$key" "$folder/$key"; then
      install -o 401 -g 401 -m 0600 "/etc/slurm-keys/$key" "$folder/$key" || exit 1
    fi
  done
done
"""
_ASK = r"""for process in $2; do kill "-$1" "$process"; done"""


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of Pod: how it is found, and where in it which daemon has its keys."""

    daemon: str
    container: str
    folder: str
    files: tuple[str, ...]
    # What makes it start anew: a reconfigure of its own, or its end, after which its supervisor starts it.
    signal: str = "HUP"


@dataclass(frozen=True, slots=True)
class Lack:
    """Why a daemon does not work with the keys: its Pod does not have them (``files``), or it has not read them."""

    text: str
    files: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """A look into a Pod: hashes of its keys, the times for is_younger, when the configuration came, and {number: start}
    of the daemon's processes."""

    hashes: Mapping[str, str]
    times: list[str]
    configured: float
    processes: Mapping[str, int]


CONTROLLER = Part("slurmctld", "slurmctld", "/etc/slurm", ALL)
# One that waits for its turn takes no part in a reconfigure.
STANDBY = Part("slurmctld", "slurmctld", "/etc/slurm", ALL, signal="TERM")
WORKER = Part("slurmd", "slurmd", "/etc/slurm", BETWEEN_DAEMONS)
LOGIN = Part("sackd", "login", "/etc/slurm", BETWEEN_DAEMONS, signal="TERM")
ACCOUNTING = Part("slurmdbd", "slurmdbd", "/etc/slurm", ALL)


class KeyPods:
    """The Pods of one cluster that have keys."""

    def __init__(self, kubernetes: KubernetesClient, namespace: str, cluster: str, secret: str) -> None:
        self._kubernetes = kubernetes
        self._namespace = namespace
        self._cluster = cluster
        self._secret = secret

    def those(self, *, between_daemons: bool) -> dict[str, Part]:
        """{Pod: its part} of those that run. Tokens are read by slurmctld and slurmdbd only.

        Raises OperationError (NotMounted) for Pods that could not show a new key.
        """
        found = {}
        selectors = {"app.kubernetes.io/name=slurmd": WORKER, "app.kubernetes.io/name=login": LOGIN}
        controllers = {pod["metadata"]["name"]: pod for pod in self._controllers()}
        if not controllers:
            raise OperationError(
                f"There is no Pod {names.controller_pods(self._cluster)[0]}, so nobody could read new keys.",
                reason="NotRunning",
                hint="Start slurmctld first. Without any daemon, delete them from the Secret, and site makes new ones.",
            )
        pods = dict.fromkeys(controllers, STANDBY) | {next(iter(controllers)): CONTROLLER}
        listed: dict[str, Mapping[str, Any]] = dict(controllers)
        if between_daemons:
            for selector, part in selectors.items():
                labels = f"{selector},app.kubernetes.io/instance={self._cluster}"
                for pod in self._kubernetes.list(POD, self._namespace, labels=labels):
                    listed[pod["metadata"]["name"]] = pod
                    pods[pod["metadata"]["name"]] = part
        for name, part in pods.items():
            # One that starts later reads what the Secret holds then.
            if runs(listed[name], part.container) and not listed[name]["metadata"].get("deletionTimestamp"):
                found[name] = part
        wanted = planner.SLURM_JWKS if between_daemons else planner.PUBLIC
        blind = [name for name in found if not _shows(listed[name], self._secret, wanted)]
        if blind:
            raise OperationError(
                f"These Pods do not show {wanted} of Secret {self._namespace}/{self._secret}: {', '.join(blind[:10])}"
                f"{'...' if len(blind) > 10 else ''}. They were made from an older template.",
                reason="NotMounted",
                remaining=blind,
                hint="Run site, and for workers rollout. Nothing was changed.",
            )
        return found

    def behind(self, pods: Mapping[str, Part], data: planner.Data, *, copies: bool = False) -> dict[str, Lack]:
        """What the Pods lack whose daemons have not read the keys. ``copies``: bring them to login Pods too."""

        def look(name: str) -> Lack | None:
            return self._lacks(name, pods[name], data, copies=copies)

        found: dict[str, Lack] = {}
        looked_at = set()
        for name, outcome in self._kubernetes.map_concurrent(look, list(pods)):
            looked_at.add(name)
            if isinstance(outcome, OperationError):
                outcome = Lack(str(outcome), files=True)
            if outcome:
                found[name] = outcome
        # After an error no new one is begun: what was not looked at is not known to have read them.
        return found | {
            name: Lack(f"Pod {name} was not looked at", files=True) for name in pods if name not in looked_at
        }

    def nudge(self, pods: Sequence[str]) -> None:
        """Have the kubelets bring the keys into these Pods at once, and not in a minute."""
        change = {"metadata": {"annotations": {f"{names.DOMAIN}/keys": str(time.time_ns())}}}

        def patch(name: str) -> None:
            self._kubernetes.patch(POD, self._namespace, name, change)

        for _name, outcome in self._kubernetes.map_concurrent(patch, list(pods)):
            if isinstance(outcome, OperationError):
                raise outcome

    def reconfigure(self) -> None:
        """Have slurmctld, and by it slurmd and sackd, start anew with the keys that they have now."""
        first, *others = self._controllers()
        name = first["metadata"]["name"]
        ended = self._exec(name, CONTROLLER, ["scontrol", "reconfigure"], reads=False)
        if ended.rc:
            raise OperationError(
                f"slurmctld does not take the new keys: {(ended.stderr or ended.stdout).strip()}.",
                reason="Refused",
                hint=f"The old keys are still good. Look at the log of Pod {name}, and run again.",
            )
        self.ask_again({pod["metadata"]["name"]: STANDBY for pod in others if can_be_asked(pod)})

    def ask_again(self, pods: Mapping[str, Part]) -> None:
        """Have daemons whom slurmctld did not reach start anew by a signal."""
        for name, part in pods.items():
            numbers = " ".join(self._look(name, part).processes)
            self._exec(name, part, ["sh", "-c", _ASK, "ask", part.signal, numbers], reads=False)

    def _controllers(self) -> Sequence[Mapping[str, Any]]:
        return controller_pods(self._kubernetes, self._namespace, self._cluster)

    # --- slurmdbd -------------------------------------------------------------------------------------------------

    def has_slurmdbd(self) -> bool:
        """Whether the cluster has one here."""
        return self._slurmdbd() is not None

    def slurmdbd_is_behind(self, data: planner.Data) -> str:
        """What it lacks to work with the keys; empty if nothing, or if there is none."""
        live = self._slurmdbd()
        if live is None:
            return ""
        if missing := rollout.missing(live):
            return missing
        lack = self._lacks(f"{self._cluster}-accounting-0", ACCOUNTING, data)
        return lack.text if lack else ""

    def restart_slurmdbd(self) -> None:
        """Replace its Pod by one with new keys; slurmctld keeps what it has to record meanwhile."""
        change = {"spec": {"template": {"metadata": {"annotations": {names.RESTARTED: str(time.time_ns())}}}}}
        self._kubernetes.patch(STATEFUL_SET, self._namespace, f"{self._cluster}-accounting", change)

    def _slurmdbd(self) -> Mapping[str, Any] | None:
        return self._kubernetes.get(STATEFUL_SET, self._namespace, f"{self._cluster}-accounting")

    # --- one Pod --------------------------------------------------------------------------------------------------

    def _lacks(self, name: str, part: Part, data: planner.Data, *, copies: bool = False) -> Lack | None:
        if part is LOGIN and copies:
            self._exec(name, part, ["sh", "-c", _COPY], reads=False)
        seen = self._look(name, part)
        wanted = {file: hashlib.sha256(data[file]).hexdigest() for file in part.files if file in data}
        if seen.hashes != wanted:
            other = [file for file in part.files if seen.hashes.get(file) != wanted.get(file)]
            return Lack(f"Pod {name} does not have the Secret's {', '.join(other)} yet", files=True)
        started = oldest(seen.processes)
        if not started:
            return Lack(f"there is no {part.daemon} in Pod {name}")
        came = seen.times[:1]
        if is_younger(started, seen.times) or (part is LOGIN and came and seen.configured > float(came[0])):
            return None
        return Lack(f"{part.daemon} in Pod {name} has not read its keys since they came")

    def _look(self, name: str, part: Part) -> Seen:
        ended = self._exec(name, part, ["sh", "-c", _LOOK, "look", part.daemon, part.folder, " ".join(part.files)])
        shown = sections(ended.stdout)
        return Seen(
            hashes=hashes(shown.get("hashes", "")),
            times=shown.get("times", "").split(),
            configured=float(shown.get("configuration", "").strip() or 0),
            processes=processes(shown.get("processes", "")),
        )

    def _exec(self, name: str, part: Part, command: Sequence[str], *, reads: bool = True) -> Any:
        return exec_in_pod(
            self._kubernetes, self._namespace, name, command, container=part.container, timeout=60.0, reads=reads
        )


def _shows(pod: Mapping[str, Any], secret: str, key: str) -> bool:
    """Whether a Pod would show a key of the Secret that comes later."""
    for volume in pod["spec"].get("volumes") or ():
        for source in [volume, *((volume.get("projected") or {}).get("sources") or ())]:
            found = source.get("secret") or {}
            whole = not found.get("items")
            if secret in (found.get("name"), found.get("secretName")) and (
                whole or any(item["key"] == key for item in found["items"])
            ):
                return True
    return False
