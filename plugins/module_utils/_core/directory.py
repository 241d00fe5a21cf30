# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Users and groups of an LDAP directory, read from variables and checked, and the secrets that they take."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from . import directory_entries
from .directory_entries import BIND_NAME, SCHEMAS, Directory, Group, User
from .fields import Fields
from .problems import Problems

KEYS = ("slurm_name", "directory_base_dn", "directory_schema", "directory_users", "directory_groups")
_USER_KEYS = (
    "name", "uid", "group", "groups", "gecos", "shell", "home", "ssh_keys", "generate_ssh_key", "password",
    "password_secret", "disabled",
)  # fmt: skip
_GROUP_KEYS = ("name", "gid", "members")

_NAME = re.compile(r"[a-z_](?:[a-z0-9_.-]{0,30}[a-z0-9_-])?", re.ASCII)
_BASE_DN = re.compile(r"dc=[a-z0-9-]+(?:,dc=[a-z0-9-]+)*", re.ASCII)
_PATH = re.compile(r"/[A-Za-z0-9._/+-]*", re.ASCII)
_KEY_TYPE = re.compile(r"ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)|sk-[a-z0-9@.-]+", re.ASCII)
# Accounts of the images, and ours.
_RESERVED = frozenset({"root", "slurm", BIND_NAME, "nobody", "nogroup", "sshd", "daemon", "bin", "sys"})
_MINIMUM_ID = 1000
_NOBODY = (65534, 65535)
# A ConfigMap holds at most 1 MiB.
_MAXIMUM_BYTES = 900_000


def facts(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that role ``directory`` needs; raises OperationError (InvalidVariables).

    ``entries``: the directory as LDIF. ``secret_data``: what the module ``secret`` has to make in Secret
    <name>-directory. ``sources``: of a projected volume with the files passwords/<user> and keys/<user>.
    ``restart_on``: the Secrets in it.
    """
    problems = Problems()
    fields = Fields(variables, "", problems, KEYS)
    name = fields.text("slurm_name", required=True)
    base_dn = fields.text("directory_base_dn", "dc=example,dc=org")
    if not _BASE_DN.fullmatch(base_dn):
        problems.add("directory_base_dn", f"{base_dn!r} must be dc=...[,dc=...] in lower case")
    schema = fields.choice("directory_schema", SCHEMAS, "rfc2307")
    gids, extra_members = _groups(fields)
    users = _users(fields, gids)
    groups = [Group(group, gid, _members(group, users, extra_members[group])) for group, gid in gids.items()]
    text = "" if problems else directory_entries.render(Directory(base_dn, tuple(users), tuple(groups)), schema)
    if len(text) > _MAXIMUM_BYTES:
        problems.add(
            "directory_users",
            f"make {len(text)} bytes of entries, and at most {_MAXIMUM_BYTES} fit; use a directory of your own",
        )
    problems.raise_if_any("The directory cannot be described")
    sources = _sources(f"{name}-directory", users)
    return {
        "entries": text,
        "secret_data": _secret_data(users),
        "sources": sources,
        "restart_on": [f"secret/{secret}" for secret in dict.fromkeys(each["secret"]["name"] for each in sources)],
    }


def _groups(fields: Fields) -> tuple[dict[str, int], dict[str, list[str]]]:
    """{group: gid} in the order given, and the members that groups name themselves."""
    known = {item.get("name") for item in fields.items("directory_users") if isinstance(item, Mapping)}
    gids: dict[str, int] = {}
    members: dict[str, list[str]] = {}
    for index, data in enumerate(fields.items("directory_groups")):
        group = Fields(data, f"{fields.at('directory_groups')}[{index}]", fields.problems, _GROUP_KEYS)
        name, gid = _name(group, gids), _identifier(group, "gid", gids)
        named = group.words("members")
        for unknown in [each for each in named if each not in known]:
            fields.problems.add(group.at("members"), f"{unknown!r} is not in directory_users")
        if name and gid:
            gids[name] = gid
            members[name] = named
    return gids, members


def _users(fields: Fields, gids: Mapping[str, int]) -> list[User]:
    users: list[User] = []
    uids: dict[str, int] = {}
    for index, data in enumerate(fields.items("directory_users")):
        user = Fields(data, f"{fields.at('directory_users')}[{index}]", fields.problems, _USER_KEYS)
        name, uid = _name(user, uids), _identifier(user, "uid", uids)
        groups = user.words("groups")
        group = user.text("group", groups[0] if groups else "")
        if not group:
            fields.problems.add(user.at("groups"), "must name a group: the first one is the user's primary group")
        for unknown in [each for each in dict.fromkeys([group, *groups]) if each and each not in gids]:
            fields.problems.add(user.at("groups"), f"{unknown!r} is not in directory_groups")
        password_secret = _password_secret(user)
        checked = User(
            name=name,
            uid=uid,
            group=group,
            groups=tuple(groups),
            gecos=user.text("gecos", name),
            shell=_path(user, "shell", "/bin/bash"),
            home=_path(user, "home", f"/home/{name}"),
            ssh_keys=tuple(_ssh_keys(user)),
            disabled=user.flag("disabled", False),
            generate_password=user.flag("password", True) and password_secret is None,
            password_secret=password_secret,
            generate_ssh_key=user.flag("generate_ssh_key", False),
        )
        if name and uid:
            uids[name] = uid
            users.append(checked)
    return users


def _members(group: str, users: Iterable[User], named: Iterable[str]) -> tuple[str, ...]:
    """Users that are in the group by their own entry, then those that the group names."""
    own = [user.name for user in users if group == user.group or group in user.groups]
    return tuple(dict.fromkeys([*own, *named]))


def _name(item: Fields, taken: Mapping[str, int]) -> str:
    """The item's name, or empty text when it cannot be one."""
    name = item.text("name", required=True)
    why = ""
    if name and not _NAME.fullmatch(name):
        why = f"{name!r} must be lower case letters, digits, '_', '-' and '.', at most 32"
    elif name in _RESERVED:
        why = f"{name!r} is an account of the images"
    elif name in taken:
        why = f"{name!r} is there already"
    if why:
        item.problems.add(item.at("name"), why)
    return "" if why else name


def _identifier(item: Fields, key: str, taken: Mapping[str, int]) -> int:
    """The item's uid or gid, or 0 when it cannot be one."""
    if not item.given(key):
        item.problems.add(item.at(key), "is required")
        return 0
    number = item.integer(key, 0, minimum=_MINIMUM_ID)
    owner = next((name for name, other in taken.items() if other == number), None)
    if owner:
        item.problems.add(item.at(key), f"{number} is that of {owner} already")
        return 0
    if number in _NOBODY:
        item.problems.add(item.at(key), f"{number} means nobody")
        return 0
    return number


def _path(user: Fields, key: str, default: str) -> str:
    path = user.text(key, default)
    if not _PATH.fullmatch(path) or ".." in path.split("/"):
        user.problems.add(user.at(key), f"{path!r} must be an absolute path of letters, digits and . _ + -")
    return path


def _password_secret(user: Fields) -> tuple[str, str] | None:
    if not user.mapping("password_secret"):
        return None
    secret = Fields(user.raw("password_secret"), user.at("password_secret"), user.problems, ("name", "key"))
    return secret.text("name", required=True), secret.text("key", required=True)


def _ssh_keys(user: Fields) -> list[str]:
    keys = []
    for index, text in enumerate(user.words("ssh_keys")):
        parts = text.split()
        why = _public_key_problem(parts)
        if why:
            user.problems.add(f"{user.at('ssh_keys')}[{index}]", why)
        else:
            keys.append(" ".join(parts))
    return keys


def _public_key_problem(parts: list[str]) -> str:
    """Why words are no line of a .pub file, or empty text."""
    if len(parts) < 2 or not _KEY_TYPE.fullmatch(parts[0]):
        return "must be as in a .pub file: <type> <base64> [comment]; options in front are not passed on by SSSD"
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except binascii.Error:
        blob = b""
    # The blob begins with its own type, length first.
    if not blob.startswith(struct.pack(">I", len(parts[0])) + parts[0].encode()):
        return f"is no {parts[0]} key: its second word does not decode to one"
    return ""


def _secret_data(users: Iterable[User]) -> dict[str, Any]:
    """Keys of Secret <name>-directory, and how the module ``secret`` makes them."""
    data: dict[str, Any] = {"bind-password": {"password": {"length": 32}}}
    for user in users:
        if user.generate_password:
            data[f"{user.name}.password"] = {"password": {"length": 20}}
        if user.generate_ssh_key:
            data[f"{user.name}.ssh_key"] = {"ssh_host_key": "ed25519"}
    return data


def _sources(own: str, users: Iterable[User]) -> list[dict[str, Any]]:
    """Sources of the projected volume: the Secret of our own, then those that bring a user's password."""
    items = {"bind-password": f"passwords/{BIND_NAME}"}
    given = []
    for user in users:
        if user.generate_password:
            items[f"{user.name}.password"] = f"passwords/{user.name}"
        if user.generate_ssh_key:
            items[f"{user.name}.ssh_key.pub"] = f"keys/{user.name}"
        if user.password_secret:
            given.append(_secret(user.password_secret[0], {user.password_secret[1]: f"passwords/{user.name}"}))
    return [_secret(own, items), *given]


def _secret(name: str, items: Mapping[str, str]) -> dict[str, Any]:
    return {"secret": {"name": name, "items": [{"key": key, "path": path} for key, path in items.items()]}}
