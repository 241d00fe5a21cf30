# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An SSH client inside the cluster: it reaches login Pods wherever the tests themselves run."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .kube import Kube
from .process import Completed

_NAME = "live-ssh-client"
_OPTIONS = (
    "-o ConnectTimeout=10 -o LogLevel=ERROR -o NumberOfPasswordPrompts=1"
    " -o UserKnownHostsFile=/tmp/known_hosts -o StrictHostKeyChecking"
)


class SshClient:
    """A Pod with ssh, and the passwords and keys of the directory's users."""

    def __init__(self, kube: Kube, namespace: str, name: str = "slurm") -> None:
        self.kube = kube
        self.namespace = namespace
        self.name = name
        self.host = f"{name}-login.{namespace}.svc"

    @contextmanager
    def running(self, image: str) -> Iterator[SshClient]:
        """The Pod, for as long as the context lasts; ``image`` is any that has ssh."""
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        container = {"name": "ssh", "image": image, "command": ["sleep", "infinity"], "imagePullPolicy": "IfNotPresent"}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": _NAME},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, "enableServiceLinks": False},
        }
        self.kube.create(pods, pod)
        try:
            self.kube.wait(
                f"{pods}/{_NAME}", lambda found: found and found["status"]["phase"] == "Running", what="an SSH client"
            )
            yield self
        finally:
            self.kube.delete(f"{pods}/{_NAME}")
            self.kube.wait(lambda: self.kube.find(f"{pods}/{_NAME}"), lambda found: found is None)

    def secret(self, key: str, name: str = "directory") -> str:
        """One value of a Secret of the cluster, as text."""
        secret = self.kube.get(f"/api/v1/namespaces/{self.namespace}/secrets/{self.name}-{name}")
        return base64.b64decode(secret["data"][key]).decode()

    def by_key(self, user: str, command: str = "true", *, strict: str = "accept-new", login: str = "") -> Completed:
        """Run a command as a user, by the key that was generated for ``user`` (logging in as ``login``)."""
        self._file(f"/tmp/{user}.key", self.secret(f"{user}.ssh_key"))
        return self._ssh(f"-o BatchMode=yes -i /tmp/{user}.key", login or user, command, strict)

    def by_password(self, user: str, command: str = "true", *, password: str | None = None) -> Completed:
        """Run a command as a user, by password; the directory's own unless one is given."""
        self._file("/tmp/password", password or self.secret(f"{user}.password"))
        self._file("/tmp/askpass", "#!/bin/sh\ncat /tmp/password\n", mode="700")
        return self._ssh(
            "-o PubkeyAuthentication=no",
            user,
            command,
            "accept-new",
            before="SSH_ASKPASS=/tmp/askpass SSH_ASKPASS_REQUIRE=force",
        )

    def _ssh(self, how: str, user: str, command: str, strict: str, before: str = "") -> Completed:
        line = f"{before} ssh {_OPTIONS}={strict} {how} {user}@{self.host} {shlex.quote(command)}"
        return self.kube.exec(self.namespace, _NAME, ["sh", "-c", line], timeout=120)

    def _file(self, path: str, text: str, mode: str = "600") -> None:
        line = f"umask 077; printf %s {shlex.quote(text)} > {path}; chmod {mode} {path}"
        self.kube.exec(self.namespace, _NAME, ["sh", "-c", line]).check()


def conditions(pod: dict[str, Any]) -> dict[str, str]:
    """{type: status} of a Pod's conditions."""
    return {entry["type"]: entry["status"] for entry in pod["status"].get("conditions", [])}
