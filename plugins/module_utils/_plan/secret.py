# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""A Secret that is made once: which keys are missing, which given values differ. Nothing that exists is replaced.

Pure: the Secret comes in as the API server returned it, what to generate goes out; nothing is generated here.
"""

from __future__ import annotations

import base64
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.manifests import HIDDEN, masked, readable

SSH_TYPES = ("ed25519", "rsa", "ecdsa")
LARGEST = 1_000_000  # bytes; a Secret holds 1 MiB in all
CHARACTERS = string.ascii_letters + string.digits
TLS_KEYS = ("ca.crt", "tls.crt", "tls.key")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the option ``data``: how it is made, and which keys of the Secret it makes."""

    name: str
    how: str  # bytes, password, ssh_host_key, tls, text, value
    arguments: Mapping[str, Any] = field(repr=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the Secret that come from this entry."""
        if self.how == "ssh_host_key":
            return self.name, f"{self.name}.pub"
        return TLS_KEYS if self.how == "tls" else (self.name,)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the Secret shall be."""

    name: str
    namespace: str
    entries: tuple[Entry, ...] = ()
    type: str = "Opaque"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    immutable: bool | None = None

    @property
    def target(self) -> str:
        """How messages name it."""
        return f"Secret {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Change:
    """What to send: entries to generate (with the keys that shall come from each), values and metadata to set."""

    generate: tuple[tuple[Entry, tuple[str, ...]], ...] = ()
    values: Mapping[str, str] = field(default_factory=dict, repr=False)  # base64
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    immutable: bool | None = None

    def manifest(self, wanted: Wanted, generated: Mapping[str, str]) -> dict[str, Any]:
        """Return the object (to create) or merge patch (to update) with these base64 values for what is generated."""
        metadata: dict[str, Any] = {"name": wanted.name, "namespace": wanted.namespace}
        if self.labels:
            metadata["labels"] = dict(self.labels)
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        result: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": wanted.type}
        data = {**self.values, **generated}
        if data:
            result["data"] = data
        if self.immutable is not None:
            result["immutable"] = self.immutable
        return result

    @property
    def placeholders(self) -> dict[str, str]:
        """Empty values in place of what is to be generated, for dry runs and predictions."""
        return {key: "" for _entry, keys in self.generate for key in keys}


# --- the option data ----------------------------------------------------------------------------------------------


def entries(data: Mapping[str, Any]) -> tuple[Entry, ...]:
    """Read the option ``data``. Raises OperationError; its message never quotes a value."""
    found = tuple(_entry(str(name), given) for name, given in data.items())
    owners: dict[str, str] = {}
    for entry in found:
        for key in entry.keys:
            if key in owners:
                raise _wrong(entry.name, f"makes the key {key}, as {owners[key]} does")
            owners[key] = entry.name
    return found


def _wrong(name: str, what: str) -> OperationError:
    return OperationError(
        f"data[{name!r}] {what}.",
        reason="Malformed",
        hint="Give each key one of bytes, password, ssh_host_key, tls, text, value. Nothing was sent.",
    )


def _entry(name: str, given: Any) -> Entry:
    if not isinstance(given, Mapping) or len(given) != 1:
        raise _wrong(name, "does not have just one way to make it")
    how, argument = next(iter(given.items()))
    if how not in _READERS:
        raise _wrong(name, f"has the unknown way {str(how)[:30]!r}")
    return Entry(name, how, _READERS[how](name, argument))


def _number(name: str, what: str, given: Any, least: int, most: int) -> int:
    try:
        number = int(given)
    except (TypeError, ValueError):
        raise _wrong(name, f"has {what} that is not a number") from None
    if isinstance(given, bool) or not least <= number <= most:
        raise _wrong(name, f"has {what} {number}, which is not between {least} and {most}")
    return number


def _bytes(name: str, given: Any) -> Mapping[str, Any]:
    return {"count": _number(name, "bytes", given, 1, LARGEST)}


def _options(name: str, given: Any, known: tuple[str, ...]) -> Mapping[str, Any]:
    options = {} if given is None else given
    if not isinstance(options, Mapping):
        raise _wrong(name, "needs a dictionary")
    unknown = sorted(str(key) for key in options if key not in known)
    if unknown:
        raise _wrong(name, f"has unknown options {', '.join(unknown)} (known: {', '.join(known)})")
    return options


def _password(name: str, given: Any) -> Mapping[str, Any]:
    options = _options(name, given, ("length", "characters"))
    characters = "".join(sorted(set(str(options.get("characters") or CHARACTERS))))
    if len(characters) < 2:
        raise _wrong(name, "has fewer than two characters to choose from")
    return {"length": _number(name, "length", options.get("length", 32), 8, 4096), "characters": characters}


def _ssh_host_key(name: str, given: Any) -> Mapping[str, Any]:
    if given not in SSH_TYPES:
        raise _wrong(name, f"has ssh_host_key that is none of {', '.join(SSH_TYPES)}")
    return {"type": given}


def _tls(name: str, given: Any) -> Mapping[str, Any]:
    options = _options(name, given, ("common_name", "dns_names", "ip_addresses", "days"))
    if not isinstance(options.get("common_name"), str) or not 1 <= len(options["common_name"]) <= 64:
        raise _wrong(name, "needs a common_name of 1 to 64 characters")
    lists: dict[str, list[str]] = {}
    for key in ("dns_names", "ip_addresses"):
        value = options.get(key) or []
        if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
            raise _wrong(name, f"has {key} that is not a list of strings")
        lists[key] = [str(item) for item in value]
    return {
        "common_name": options["common_name"],
        **lists,
        "days": _number(name, "days", options.get("days", 3650), 1, 36500),
    }


def _text(name: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, str):
        raise _wrong(name, "has a value that is not text")
    return {"text": given}


def _first_text(name: str, given: Any) -> Mapping[str, Any]:
    if not given:
        raise _wrong(name, "has an empty text")
    return _text(name, given)


_READERS: dict[str, Callable[[str, Any], Mapping[str, Any]]] = {
    "bytes": _bytes,
    "password": _password,
    "ssh_host_key": _ssh_host_key,
    "tls": _tls,
    "text": _first_text,
    "value": _text,
}


# --- the plan -----------------------------------------------------------------------------------------------------


def plan(wanted: Wanted, live: Mapping[str, Any] | None) -> tuple[Change, list[Action]]:
    """Return what to send and, if that is anything, the one action. Raises OperationError where it cannot be."""
    have: Mapping[str, str] = (live or {}).get("data") or {}
    metadata: Mapping[str, Any] = (live or {}).get("metadata") or {}
    change = Change(
        generate=_to_generate(wanted, have),
        values=_values_to_set(wanted, have),
        labels=_differing(wanted.labels, metadata.get("labels")),
        annotations=_differing(wanted.annotations, metadata.get("annotations")),
        immutable=wanted.immutable if wanted.immutable and not (live or {}).get("immutable") else None,
    )
    if live is None:
        after = change.manifest(wanted, change.placeholders)
        action = _action("create", wanted, None, after, "not there yet", live)
        return change, [action]
    if live.get("type", "Opaque") != wanted.type:
        raise OperationError(
            f"{wanted.target} is of type {live.get('type', 'Opaque')}, not {wanted.type}, and that cannot be changed.",
            reason="Immutable",
            hint="Use the type that it has, or another name.",
        )
    if change == Change():
        return change, []
    keys = sorted({*change.placeholders, *change.values})
    if live.get("immutable") and keys:
        raise OperationError(
            f"{wanted.target} is immutable, but {', '.join(keys)} would have to be set.",
            reason="Immutable",
            hint="Nothing can be added to it. Make a new Secret under another name.",
        )
    before = readable(live) or {}
    part = change.manifest(wanted, change.placeholders)
    after = {**before, "metadata": dict(before["metadata"])}
    for name in ("labels", "annotations"):
        if name in part["metadata"]:
            after["metadata"][name] = {**(before["metadata"].get(name) or {}), **part["metadata"][name]}
    if "data" in part:
        after["data"] = {**(before.get("data") or {}), **part["data"]}
    if "immutable" in part:
        after["immutable"] = part["immutable"]
    new = [key for key in keys if key not in have]
    reasons = [f"{', '.join(new)} missing"] if new else []
    reasons += (
        [f"given value of {', '.join(key for key in keys if key in have)} differs"] if len(new) < len(keys) else []
    )
    reasons += ["labels or annotations differ"] if change.labels or change.annotations else []
    reasons += ["not immutable yet"] if change.immutable else []
    return change, [_action("update", wanted, before, after, "; ".join(reasons), live)]


def plan_absent(wanted: Wanted, live: Mapping[str, Any] | None) -> list[Action]:
    """Return the deletion, if there is something to delete."""
    if live is None:
        return []
    return [_action("delete", wanted, readable(live), None, "is to be absent", live)]


def _differing(wanted: Mapping[str, str], live: Mapping[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in wanted.items() if (live or {}).get(key) != value}


def _values_to_set(wanted: Wanted, have: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for entry in wanted.entries:
        if entry.how == "value":
            value = base64.b64encode(entry.arguments["text"].encode()).decode()
            if have.get(entry.name) != value:
                found[entry.name] = value
    return found


def _to_generate(wanted: Wanted, have: Mapping[str, str]) -> tuple[tuple[Entry, tuple[str, ...]], ...]:
    found: list[tuple[Entry, tuple[str, ...]]] = []
    for entry in wanted.entries:
        missing = tuple(key for key in entry.keys if not have.get(key))
        if entry.how == "value" or not missing:
            continue
        present = [key for key in entry.keys if key not in missing]
        # A public key can be had from its private key; anything else would have to replace what exists.
        if present and not (entry.how == "ssh_host_key" and present == [entry.name]):
            raise OperationError(
                f"{wanted.target} has {', '.join(present)} but not {', '.join(missing)}, and these belong together.",
                reason="Incomplete",
                hint="Add the missing keys, or delete those that exist so that all are made anew.",
            )
        found.append((entry, missing))
    return tuple(found)


def _action(
    kind: str, wanted: Wanted, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, why: str, live: Any
) -> Action:
    hidden_before, hidden_after = masked(before, after)
    return Action(
        kind=kind,
        target=wanted.target,
        why=why,
        before=_keys(hidden_before),
        after=_keys(hidden_after),
        diff=(hidden_before, hidden_after),
        subject=live,
    )


def _keys(item: Mapping[str, Any] | None) -> dict[str, str] | None:
    return (
        None
        if item is None
        else {key: str(value) if value else HIDDEN for key, value in (item.get("data") or {}).items()}
    )
