# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The entries of an LDAP directory as LDIF: the same users and groups in one of three schemas.

rfc2307, rfc2307bis, and active_directory: the attribute names and SIDs of Active Directory, to try that preset of role
``login``. Secrets are not here: a value ``secret:<file>`` stands for what the Pod's init container puts in from a file
of that name, and ``random:<file>`` for a password of many random characters, which needs no slow hash
(roles/directory/files/seed.sh).
"""

from __future__ import annotations

import base64
import struct
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from .fields import CONTROL_CHARACTERS

SCHEMAS = ("rfc2307", "rfc2307bis", "active_directory")
# The account that looks users up, and the file of its password.
BIND_NAME = "sssd"

Attributes: TypeAlias = "list[tuple[str, str | bytes]]"
Entry: TypeAlias = "tuple[str, Attributes]"

# userAccountControl of Active Directory.
_NORMAL_ACCOUNT = 0x200
_ACCOUNT_DISABLED = 0x2
# groupType of a global security group.
_SECURITY_GROUP = -(2**31) + 2


@dataclass(frozen=True, slots=True)
class User:
    """One account, checked. ``password_secret`` is (Secret, key) when the site brings the password."""

    name: str
    uid: int
    group: str
    groups: tuple[str, ...]
    gecos: str
    shell: str
    home: str
    ssh_keys: tuple[str, ...]
    disabled: bool
    generate_password: bool
    password_secret: tuple[str, str] | None
    generate_ssh_key: bool


@dataclass(frozen=True, slots=True)
class Group:
    """One group, checked; members in the order of the users."""

    name: str
    gid: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Directory:
    """Everything that the entries are made of."""

    base_dn: str
    users: tuple[User, ...]
    groups: tuple[Group, ...]

    def user_dn(self, name: str) -> str:
        return f"uid={name},ou=people,{self.base_dn}"

    def group_dn(self, name: str) -> str:
        return f"cn={name},ou=groups,{self.base_dn}"

    @property
    def bind_dn(self) -> str:
        return f"cn={BIND_NAME},{self.base_dn}"

    @property
    def realm(self) -> str:
        return ".".join(part.partition("=")[2] for part in self.base_dn.split(","))

    def gid(self, group: str) -> int:
        return next(entry.gid for entry in self.groups if entry.name == group)


def render(directory: Directory, schema: str) -> str:
    """The whole directory as LDIF, parents before children."""
    user, group = _SCHEMA_ENTRIES[schema]
    return ldif(
        [
            *_containers(directory),
            *(user(directory, item) for item in directory.users),
            *(group(directory, item) for item in directory.groups),
        ]
    )


def ldif(entries: Iterable[Entry]) -> str:
    """Entries as LDIF (RFC 2849); values that are not plain text in base64.

    The entryUUID is the same for the same DN, so that a directory that was made anew is no stranger to a cache.
    """
    blocks = []
    for dn, attributes in entries:
        lines = [f"dn: {dn}", *(_ldif_line(name, value) for name, value in attributes), f"entryUUID: {_uuid(dn)}"]
        blocks.append("".join(line + "\n" for line in lines))
    return "\n".join(blocks)


def _ldif_line(name: str, value: str | bytes) -> str:
    if isinstance(value, str) and _is_plain(value):
        return f"{name}: {value}"
    raw = value if isinstance(value, bytes) else value.encode()
    return f"{name}:: {base64.b64encode(raw).decode()}"


def _is_plain(value: str) -> bool:
    """True for what LDIF takes as it is (a SAFE-STRING that does not end in a blank)."""
    safe = value.isascii() and not CONTROL_CHARACTERS.search(value)
    return safe and value != "" and value[0] not in " :<" and value[-1] != " "


def _containers(directory: Directory) -> list[Entry]:
    base = directory.base_dn
    first = base.partition(",")[0].partition("=")[2]
    units: list[Entry] = [
        (f"ou={unit},{base}", [("objectClass", "organizationalUnit"), ("ou", unit)]) for unit in ("people", "groups")
    ]
    return [
        (base, [("objectClass", "dcObject"), ("objectClass", "organization"), ("o", first), ("dc", first)]),
        (
            directory.bind_dn,
            [
                ("objectClass", "organizationalRole"),
                ("objectClass", "simpleSecurityObject"),
                ("cn", BIND_NAME),
                ("userPassword", f"random:passwords/{BIND_NAME}"),
            ],
        ),
        *units,
    ]


def _posix_user(directory: Directory, user: User) -> Entry:
    attributes: Attributes = [
        *(("objectClass", name) for name in ("inetOrgPerson", "posixAccount", "shadowAccount", "ldapPublicKey")),
        ("uid", user.name),
        ("cn", user.gecos),
        ("sn", user.name),
        ("uidNumber", str(user.uid)),
        ("gidNumber", str(directory.gid(user.group))),
        ("homeDirectory", user.home),
        ("loginShell", user.shell),
    ]
    if user.gecos.isascii():
        attributes.append(("gecos", user.gecos))
    if user.disabled:
        # A day of 1970. Not 0, which SSSD takes as not set.
        attributes.append(("shadowExpire", "1"))
    return directory.user_dn(user.name), [*attributes, *_credentials(user, "sshPublicKey")]


def _rfc2307_group(directory: Directory, group: Group) -> Entry:
    return directory.group_dn(group.name), [
        ("objectClass", "posixGroup"),
        ("cn", group.name),
        ("gidNumber", str(group.gid)),
        *(("memberUid", name) for name in group.members),
    ]


def _rfc2307bis_group(directory: Directory, group: Group) -> Entry:
    # groupOfNames must have a member; SSSD passes over one that is no user.
    members = [directory.user_dn(name) for name in group.members] or [directory.bind_dn]
    return directory.group_dn(group.name), [
        ("objectClass", "groupOfNames"),
        ("objectClass", "posixGroup"),
        ("cn", group.name),
        ("gidNumber", str(group.gid)),
        *(("member", dn) for dn in members),
    ]


def _ad_user(directory: Directory, user: User) -> Entry:
    dn = directory.user_dn(user.name)
    gid = directory.gid(user.group)
    attributes: Attributes = [
        *(("objectClass", name) for name in ("person", "organizationalPerson", "user", "uidObject")),
        ("uid", user.name),
        ("cn", user.gecos),
        ("sn", user.name),
        ("displayName", user.gecos),
        ("sAMAccountName", user.name),
        ("userPrincipalName", f"{user.name}@{directory.realm}"),
        ("objectSid", _sid(directory, user.uid)),
        ("objectGUID", _uuid(dn).bytes_le),
        ("primaryGroupID", str(gid)),
        ("userAccountControl", str(_NORMAL_ACCOUNT | (_ACCOUNT_DISABLED if user.disabled else 0))),
        ("uidNumber", str(user.uid)),
        ("gidNumber", str(gid)),
        ("unixHomeDirectory", user.home),
        ("loginShell", user.shell),
    ]
    others = [group.name for group in directory.groups if user.name in group.members and group.name != user.group]
    attributes += [("memberOf", directory.group_dn(name)) for name in others]
    return dn, [*attributes, *_credentials(user, "altSecurityIdentities")]


def _ad_group(directory: Directory, group: Group) -> Entry:
    dn = directory.group_dn(group.name)
    # Active Directory does not list those whose primary group it is.
    primary = {user.name for user in directory.users if user.group == group.name}
    return dn, [
        ("objectClass", "group"),
        ("cn", group.name),
        ("sAMAccountName", group.name),
        ("objectSid", _sid(directory, group.gid)),
        ("objectGUID", _uuid(dn).bytes_le),
        ("groupType", str(_SECURITY_GROUP)),
        ("gidNumber", str(group.gid)),
        *(("member", directory.user_dn(name)) for name in group.members if name not in primary),
    ]


_SCHEMA_ENTRIES = {
    "rfc2307": (_posix_user, _rfc2307_group),
    "rfc2307bis": (_posix_user, _rfc2307bis_group),
    "active_directory": (_ad_user, _ad_group),
}


def _credentials(user: User, key_attribute: str) -> Attributes:
    values: Attributes = []
    if user.generate_password or user.password_secret:
        kind = "random" if user.generate_password else "secret"
        values.append(("userPassword", f"{kind}:passwords/{user.name}"))
    values += [(key_attribute, key) for key in user.ssh_keys]
    if user.generate_ssh_key:
        values.append((key_attribute, f"secret:keys/{user.name}"))
    return values


def _uuid(dn: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_X500, dn)


def _sid(directory: Directory, identifier: int) -> bytes:
    """S-1-5-21-x-y-z-<identifier> as Active Directory stores it; x, y and z come from the base DN."""
    parts = struct.unpack(">III", _uuid(directory.base_dn).bytes[:12])
    return bytes([1, 5]) + (5).to_bytes(6, "big") + struct.pack("<5I", 21, *parts, identifier)
