# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Options of modules, in pieces that are put together just as the documentation fragments are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class ArgumentSpec:
    """An argument spec with its rules; two of them add up.

    ``sensitive`` names options in which secrets may sit somewhere inside (a kubeconfig as a mapping, manifests): they
    are not logged and not returned. no_log would do that too, but would also black out every equal string in results.
    """

    def __init__(
        self,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        mutually_exclusive: Sequence[Sequence[str]] = (),
        required_together: Sequence[Sequence[str]] = (),
        required_one_of: Sequence[Sequence[str]] = (),
        required_if: Sequence[Sequence[Any]] = (),
        required_by: Mapping[str, Sequence[str]] | None = None,
        sensitive: Sequence[str] = (),
    ) -> None:
        self.options = dict(options or {})
        self.mutually_exclusive = tuple(mutually_exclusive)
        self.required_together = tuple(required_together)
        self.required_one_of = tuple(required_one_of)
        self.required_if = tuple(required_if)
        self.required_by = dict(required_by or {})
        self.sensitive = frozenset(sensitive)

    def __add__(self, other: ArgumentSpec) -> ArgumentSpec:
        """Return both together; an option that both have is taken from the right one."""
        return ArgumentSpec(
            {**self.options, **other.options},
            mutually_exclusive=self.mutually_exclusive + other.mutually_exclusive,
            required_together=self.required_together + other.required_together,
            required_one_of=self.required_one_of + other.required_one_of,
            required_if=self.required_if + other.required_if,
            required_by={**self.required_by, **other.required_by},
            sensitive=tuple(self.sensitive | other.sensitive),
        )

    def module_arguments(self) -> dict[str, Any]:
        """Return the keyword arguments for AnsibleModule."""
        return {
            "argument_spec": {name: dict(option) for name, option in self.options.items()},
            "mutually_exclusive": list(self.mutually_exclusive),
            "required_together": list(self.required_together),
            "required_one_of": list(self.required_one_of),
            "required_if": list(self.required_if),
            "required_by": self.required_by,
        }


# Documented in plugins/doc_fragments/kubernetes.py; names, aliases and environment as kubernetes.core has them. The
# environment is read in _kube/config.py, which must know whether a value came from there.
ARGS_KUBERNETES = ArgumentSpec(
    {
        "kubeconfig": {"type": "raw"},
        "context": {"type": "str"},
        "host": {"type": "str"},
        "api_key": {"type": "str", "no_log": True},
        "username": {"type": "str"},
        "password": {"type": "str", "no_log": True},
        "validate_certs": {"type": "bool", "aliases": ["verify_ssl"]},
        "ca_cert": {"type": "path", "aliases": ["ssl_ca_cert"]},
        "client_cert": {"type": "path", "aliases": ["cert_file"]},
        "client_key": {"type": "path", "aliases": ["key_file"], "no_log": False},
        "proxy": {"type": "str"},
        "no_proxy": {"type": "str"},
        "impersonate_user": {"type": "str"},
        "impersonate_groups": {"type": "list", "elements": "str"},
    },
    required_together=[("username", "password")],
    sensitive=["kubeconfig"],
)

# Documented in plugins/doc_fragments/wait.py.
ARGS_WAIT = ArgumentSpec(
    {
        "wait": {"type": "bool", "default": False},
        "wait_timeout": {"type": "int", "default": 300},
        "wait_sleep": {"type": "int", "default": 2},
    }
)

# Documented in plugins/doc_fragments/cluster.py: which Slurm cluster.
ARGS_CLUSTER = ArgumentSpec(
    {
        "namespace": {"type": "str", "default": "slurm"},
        "name": {"type": "str", "default": "slurm"},
    }
)
