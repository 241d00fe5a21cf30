# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users and groups of the demo's directory, in three schemas."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.directory import facts
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAF6LizJrx47flZb4vdDJNliNGGYcZUdzPjIcgmJvprT"
VARIABLES: dict[str, Any] = {
    "slurm_name": "slurm",
    "directory_base_dn": "dc=example,dc=org",
    "directory_groups": [
        {"name": "hpc", "gid": 10000},
        {"name": "admins", "gid": 10100},
        {"name": "empty", "gid": 10200},
    ],
    "directory_users": [
        {"name": "alice", "uid": 10001, "groups": ["hpc"], "gecos": "Alice Example", "generate_ssh_key": True},
        {"name": "bob", "uid": 10002, "groups": ["hpc"], "ssh_keys": [f"{KEY}  bob@desk"], "password": False},
        {"name": "carol", "uid": 10003, "groups": ["hpc", "admins"], "password_secret": {"name": "carol", "key": "pw"}},
        {
            "name": "dan",
            "uid": 10004,
            "groups": ["admins"],
            "disabled": True,
            "home": "/scratch/dan",
            "shell": "/bin/sh",
        },
    ],
}

Entry = dict[str, list[str]]


def entries(**variables: Any) -> dict[str, Entry]:
    """{dn: {attribute: values}} of the LDIF; base64 is decoded as far as it is text."""
    found: dict[str, Entry] = {}
    for block in facts(VARIABLES | variables)["entries"].split("\n\n"):
        entry: Entry = {}
        for line in block.strip().splitlines():
            name, value = line.split(":", 1)
            if value.startswith(":"):
                value = base64.b64decode(value[1:]).decode(errors="replace")
            entry.setdefault(name, []).append(value.strip())
        found[entry["dn"][0]] = entry
    return found


def user(name: str, **variables: Any) -> Entry:
    return entries(**variables)[f"uid={name},ou=people,dc=example,dc=org"]


def group(name: str, **variables: Any) -> Entry:
    return entries(**variables)[f"cn={name},ou=groups,dc=example,dc=org"]


def problems_of(**variables: Any) -> str:
    with pytest.raises(OperationError) as caught:
        facts(VARIABLES | variables)
    return str(caught.value)


def one_user(**fields: Any) -> dict[str, Any]:
    return {"directory_users": [{"name": "eve", "uid": 10009, "groups": ["hpc"]} | fields]}


def test_parents_come_before_children() -> None:
    seen: set[str] = set()
    for dn in entries():
        parent = dn.partition(",")[2]
        assert dn == "dc=example,dc=org" or parent in seen
        seen.add(dn)


@pytest.mark.parametrize("schema", ["rfc2307", "rfc2307bis"])
def test_posix_user(schema: str) -> None:
    alice = user("alice", directory_schema=schema)
    assert alice["uidNumber"] == ["10001"]
    assert alice["gidNumber"] == ["10000"]
    assert alice["homeDirectory"] == ["/home/alice"]
    assert alice["loginShell"] == ["/bin/bash"]
    assert alice["gecos"] == alice["cn"] == ["Alice Example"]
    assert "shadowExpire" not in alice
    dan = user("dan", directory_schema=schema)
    assert dan["shadowExpire"] == ["1"]
    assert dan["homeDirectory"] == ["/scratch/dan"]


def test_secrets_are_named_and_not_there() -> None:
    assert user("alice")["userPassword"] == ["random:passwords/alice"]
    assert user("alice")["sshPublicKey"] == ["secret:keys/alice"]
    assert user("bob")["sshPublicKey"] == [f"{KEY} bob@desk"]
    assert "userPassword" not in user("bob")
    assert user("carol")["userPassword"] == ["secret:passwords/carol"]
    assert entries()["cn=sssd,dc=example,dc=org"]["userPassword"] == ["random:passwords/sssd"]


def test_members() -> None:
    assert group("hpc")["memberUid"] == ["alice", "bob", "carol"]
    assert group("admins")["memberUid"] == ["carol", "dan"]
    assert "memberUid" not in group("empty")
    members = group("admins", directory_schema="rfc2307bis")["member"]
    assert members == [f"uid={name},ou=people,dc=example,dc=org" for name in ("carol", "dan")]
    # groupOfNames cannot be empty.
    assert group("empty", directory_schema="rfc2307bis")["member"] == ["cn=sssd,dc=example,dc=org"]


def test_groups_may_name_members_themselves() -> None:
    groups = [{"name": "hpc", "gid": 10000}, {"name": "admins", "gid": 10100, "members": ["bob", "dan"]}]
    assert group("admins", directory_groups=groups)["memberUid"] == ["carol", "dan", "bob"]


def test_active_directory() -> None:
    alice = user("alice", directory_schema="active_directory")
    assert alice["sAMAccountName"] == ["alice"]
    assert alice["userPrincipalName"] == ["alice@example.org"]
    assert alice["userAccountControl"] == ["512"]
    assert user("dan", directory_schema="active_directory")["userAccountControl"] == ["514"]
    # Those whose primary group it is are no members, as in Active Directory.
    carol = "uid=carol,ou=people,dc=example,dc=org"
    assert group("admins", directory_schema="active_directory")["member"] == [carol]
    assert "member" not in group("hpc", directory_schema="active_directory")
    assert user("carol", directory_schema="active_directory")["memberOf"] == ["cn=admins,ou=groups,dc=example,dc=org"]


def test_sids_have_the_domain_of_the_base_dn_and_end_in_the_number() -> None:
    def sid(text: str) -> bytes:
        line = next(line for line in text.splitlines() if line.startswith("objectSid:: "))
        return base64.b64decode(line.partition(":: ")[2])

    variables = VARIABLES | {"directory_schema": "active_directory"}
    first = sid(facts(variables)["entries"])
    assert len(first) == 28
    assert first[:8] == b"\x01\x05\x00\x00\x00\x00\x00\x05"
    assert first[8:12] == (21).to_bytes(4, "little")
    assert first[-4:] == (10001).to_bytes(4, "little")
    other = sid(facts(variables | {"directory_base_dn": "dc=example,dc=net"})["entries"])
    assert other[:12] == first[:12]
    assert other[12:24] != first[12:24]


def test_the_same_variables_make_the_same_entries() -> None:
    assert facts(VARIABLES) == facts(VARIABLES)
    assert user("alice")["entryUUID"] == user("alice", directory_users=VARIABLES["directory_users"][:1])["entryUUID"]


def test_what_the_secret_module_makes() -> None:
    assert facts(VARIABLES)["secret_data"] == {
        "bind-password": {"password": {"length": 32}},
        "alice.password": {"password": {"length": 20}},
        "alice.ssh_key": {"ssh_host_key": "ed25519"},
        "dan.password": {"password": {"length": 20}},
    }


def test_where_the_pod_finds_secrets() -> None:
    found = facts(VARIABLES)
    assert [source["secret"]["name"] for source in found["sources"]] == ["slurm-directory", "carol"]
    own = {item["key"]: item["path"] for item in found["sources"][0]["secret"]["items"]}
    assert own == {
        "bind-password": "passwords/sssd",
        "alice.password": "passwords/alice",
        "alice.ssh_key.pub": "keys/alice",
        "dan.password": "passwords/dan",
    }
    assert found["sources"][1]["secret"]["items"] == [{"key": "pw", "path": "passwords/carol"}]
    assert found["restart_on"] == ["secret/slurm-directory", "secret/carol"]


@pytest.mark.parametrize(
    ("gecos", "line"),
    [
        ("Ann", "cn: Ann"),
        (" Ann", "cn:: IEFubg=="),
        ("Ann ", "cn:: QW5uIA=="),
        (":Ann", "cn:: OkFubg=="),
        ("<Ann", "cn:: PEFubg=="),
        ("Änn", "cn:: w4Rubg=="),
    ],
)
def test_ldif_values(gecos: str, line: str) -> None:
    text = facts(VARIABLES | one_user(gecos=gecos))["entries"]
    assert line in text.splitlines()
    # gecos is IA5 text in the schema: a name that does not fit is in cn alone.
    assert ("gecos:" in text) == gecos.isascii()


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"directory_base_dn": "o=Example"}, "directory_base_dn: 'o=Example' must be dc="),
        ({"directory_base_dn": 'dc=a"\nrootdn x'}, "directory_base_dn: must not hold line breaks"),
        ({"directory_schema": "nis"}, "directory_schema: must be one of"),
        ({"directory_users": {}}, "directory_users: must be a list"),
        ({"directory_groups": [{"name": "hpc"}]}, "directory_groups[0].gid: is required"),
        ({"directory_groups": [{"name": "hpc", "gid": 5}]}, "directory_groups[0].gid: must be from 1000"),
        (
            {"directory_groups": [{"name": "a", "gid": 5000}, {"name": "b", "gid": 5000}]},
            "directory_groups[1].gid: 5000 is that of a already",
        ),
        (
            {"directory_groups": [{"name": "a", "gid": 5000, "members": ["zoe"]}]},
            "directory_groups[0].members: 'zoe' is not in directory_users",
        ),
        (one_user(name="root"), "directory_users[0].name: 'root' is an account of the images"),
        (one_user(name="Eve"), "directory_users[0].name: 'Eve' must be lower case"),
        (one_user(name="eve,ou=x"), "directory_users[0].name: 'eve,ou=x' must be lower case"),
        (one_user(name="a" * 33), "must be lower case"),
        (one_user(name=None), "directory_users[0].name: is required"),
        (one_user(uid=0), "directory_users[0].uid: must be from 1000"),
        (one_user(uid=65534), "directory_users[0].uid: 65534 means nobody"),
        (one_user(uid=True), "directory_users[0].uid: must be a whole number"),
        (one_user(groups=[]), "directory_users[0].groups: must name a group"),
        (one_user(groups=["hcp"]), "directory_users[0].groups: 'hcp' is not in directory_groups"),
        (one_user(group="hcp"), "directory_users[0].groups: 'hcp' is not in directory_groups"),
        (one_user(shell="bash"), "directory_users[0].shell: 'bash' must be an absolute path"),
        (one_user(home="/home/../root"), "directory_users[0].home: '/home/../root' must be an absolute path"),
        (one_user(gecos="a\nuid: root"), "directory_users[0].gecos: must not hold line breaks"),
        (one_user(ssh_keys=["AAAA"]), "directory_users[0].ssh_keys[0]: must be as in a .pub file"),
        (one_user(ssh_keys=[f"command=x {KEY}"]), "directory_users[0].ssh_keys[0]: must be as in a .pub file"),
        (one_user(ssh_keys=["ssh-rsa " + KEY.split()[1]]), "directory_users[0].ssh_keys[0]: is no ssh-rsa key"),
        (one_user(ssh_keys=["ssh-ed25519 ***"]), "directory_users[0].ssh_keys[0]: is no ssh-ed25519 key"),
        (one_user(password_secret={"name": "x"}), "directory_users[0].password_secret.key: is required"),
        (one_user(sudo=True), "directory_users[0].sudo: unknown key"),
    ],
)
def test_what_is_refused(variables: dict[str, Any], text: str) -> None:
    assert text in problems_of(**variables)


def test_the_same_name_or_number_twice() -> None:
    users = [
        {"name": "a", "uid": 5000, "groups": ["hpc"]},
        {"name": "a", "uid": 5001, "groups": ["hpc"]},
        {"name": "b", "uid": 5000, "groups": ["hpc"]},
    ]
    text = problems_of(directory_users=users)
    assert "directory_users[1].name: 'a' is there already" in text
    assert "directory_users[2].uid: 5000 is that of a already" in text


def test_more_users_than_a_configmap_holds() -> None:
    many = [{"name": f"u{number}", "uid": number, "groups": ["hpc"]} for number in range(10_000, 14_000)]
    assert "use a directory of your own" in problems_of(directory_users=many)
    assert len(entries(directory_users=many[:1500])) == 1500 + 7
