# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Where the data of a cluster is, and the streams from and to it: what backup and restore have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.names import auth_secret
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.transfer import PASSWORD_FILE, Database
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.exec import Finished, stream_in_pod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import ArgumentSpec
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.controllers import command_pod
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.module import Run
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.tool_pod import CONTAINER, tool_pod

ANSWERED_WITHIN = 120  # seconds for a command that only tells something
_WORD = re.compile(r"[A-Za-z0-9_$-]+", re.ASCII)  # names of databases that need no quoting

# Documented in plugins/doc_fragments/archive.py.
ARGS_ARCHIVE = ArgumentSpec(
    {
        "passphrase": {"type": "str", "no_log": True},
        "auth_secret": {"type": "str", "no_log": False},
        "database_host": {"type": "str", "default": ""},
        "database_port": {"type": "int", "default": 3306},
        "database_user": {"type": "str", "default": "slurm"},
        "database_name": {"type": "str", "default": "slurm_acct_db"},
        "database_secret": {"type": "str", "no_log": False},
        "database_secret_key": {"type": "str", "default": "password", "no_log": False},
        "database_image": {"type": "str", "default": "docker.io/library/mariadb:11.8"},
        "database_run_as_user": {"type": "int", "default": 999},
        "image_pull_policy": {"type": "str", "default": "IfNotPresent"},
        "image_pull_secrets": {"type": "list", "elements": "dict", "default": [], "no_log": False},
        "pod_spec": {"type": "dict", "default": {}},
        "s3_endpoint_url": {"type": "str", "default": "https://s3.amazonaws.com"},
        "s3_region": {"type": "str", "default": ""},
        "s3_access_key": {"type": "str", "no_log": False},
        "s3_secret_key": {"type": "str", "no_log": True},
        "wait_timeout": {"type": "int", "default": 3600},
    },
    required_together=[("s3_access_key", "s3_secret_key")],
)


@dataclass(frozen=True, slots=True)
class Reach:
    """A container in which a command reaches the data."""

    run: Run
    pod: str
    container: str

    def stream(
        self,
        what: str,
        command: Sequence[str],
        *,
        source: Iterable[bytes] | None = None,
        sink: Callable[[bytes], object] | None = None,
        timeout: float | None = None,
    ) -> Finished:
        """Run a command, for the option ``wait_timeout`` at most; raises OperationError that says what failed."""
        params = self.run.params
        try:
            return stream_in_pod(
                self.run.kubernetes,
                params["namespace"],
                self.pod,
                command,
                container=self.container,
                source=source,
                sink=sink,
                timeout=timeout or params["wait_timeout"],
                reads=source is None,
            )
        except OperationError as error:
            if error.reason in ("Unwritable", "Damaged", "WrongPassphrase"):
                raise
            raise OperationError(f"{what} failed: {error.msg}", reason=error.reason, hint=error.hint) from error

    def read(self, what: str, command: Sequence[str], sink: Callable[[bytes], object] | None = None) -> str:
        """Run a command that must succeed; returns its stdout, which has to come soon unless it goes to ``sink``."""
        ended = self.stream(what, command, sink=sink, timeout=None if sink else ANSWERED_WITHIN)
        require(ended, what, self.pod)
        return ended.stdout


def require(ended: Finished, what: str, pod: str) -> None:
    """Raise OperationError (CommandFailed) unless it ended well."""
    if ended.rc:
        said = " ".join(ended.stderr.split())[-600:] or f"exit code {ended.rc}"
        raise OperationError(f"{what} failed in Pod {pod}: {said}.", reason="CommandFailed", hint="See what it says.")


class Places:
    """A cluster's Pods and objects by name."""

    def __init__(self, run: Run) -> None:
        params = run.params
        self._run = run
        name = params["name"]
        self.auth_secret = auth_secret(name, params["auth_secret"])
        self.database_secret = params["database_secret"] or f"{name}-database"
        self.external = bool(params["database_host"])
        self.database = Database(
            host=params["database_host"] or "127.0.0.1",
            port=params["database_port"] if self.external else 3306,
            user=params["database_user"],
            name=params["database_name"],
        )
        if not _WORD.fullmatch(self.database.name):
            raise OperationError(
                f"{self.database.name!r} is no name for a database.", reason="Malformed", hint="Check database_name."
            )

    @cached_property
    def controller(self) -> Reach:
        """Where slurmctld is, or the one that serves."""
        params = self._run.params
        return self.reach(command_pod(self._run.kubernetes, params["namespace"], params["name"]), "slurmctld")

    @property
    def database_target(self) -> str:
        """The database as people name it."""
        where = self._run.params["database_host"] or f"Pod {self._run.params['namespace']}/{self.database_pod}"
        return f"database {self.database.name} of {where}"

    @property
    def database_pod(self) -> str:
        """The Pod of a database that is ours."""
        return f"{self._run.params['name']}-database-0"

    def reach(self, pod: str, container: str) -> Reach:
        """A container by name."""
        return Reach(self._run, pod, container)

    @contextmanager
    def database_client(self) -> Iterator[Reach]:
        """Yield where a client reaches the database: its own Pod, or a Pod for a moment for one elsewhere."""
        if not self.external:
            yield self.reach(self.database_pod, "mariadb")
            return
        params = self._run.params
        folder, _slash, file = PASSWORD_FILE.rpartition("/")
        items = [{"key": params["database_secret_key"], "path": file}]
        secret: dict[str, Any] = {"secretName": self.database_secret, "defaultMode": 0o440, "items": items}
        volumes = [{"name": "password", "secret": secret}]
        mounts = [{"name": "password", "mountPath": folder, "readOnly": True}]
        image, user = params["database_image"], params["database_run_as_user"]
        with tool_pod(self._run, "database", image, user, volumes, mounts, params["wait_timeout"]) as pod:
            yield self.reach(pod, CONTAINER)
