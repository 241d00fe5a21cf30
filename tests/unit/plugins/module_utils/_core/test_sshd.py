# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""sshd's drop-in files from variables. The init container has the real sshd check them; tests/live/test_login.py."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import sshd
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.fields import Fields
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.problems import Problems

MAIN = "10-slurm-ops.conf"


def rendered(**variables: Any) -> tuple[dict[str, str], list[str]]:
    """The files and the problems; keyword arguments lack the prefix login_."""
    problems = Problems()
    found = {f"login_{name}": value for name, value in variables.items()}
    return sshd.render(Fields(found, "", problems, sshd.KEYS)), problems.lines


def lines(**variables: Any) -> list[str]:
    files, problems = rendered(**variables)
    assert problems == []
    return files[MAIN].splitlines()


def test_users_come_from_the_directory_and_root_from_nowhere() -> None:
    found = lines()
    assert "AuthorizedKeysCommand /usr/bin/sss_ssh_authorizedkeys %u" in found
    assert "AuthorizedKeysFile none" in found
    assert "PermitRootLogin no" in found
    assert "UsePAM yes" in found
    assert [line for line in found if line.startswith("HostKey ")] == [
        f"HostKey /etc/ssh/hostkeys/ssh_host_{kind}_key" for kind in ("ed25519", "ecdsa", "rsa")
    ]
    assert not [line for line in found if line.startswith("AllowGroups")]


def test_groups_with_blanks_are_quoted() -> None:
    assert 'AllowGroups hpc "domain users"' in lines(allowed_groups=["hpc", "domain users"])


def test_root_keys_open_the_door_for_root_only() -> None:
    files, problems = rendered(root_ssh_keys=["ssh-ed25519 AAAA ann"], allowed_groups=["hpc"])
    assert problems == []
    assert "PermitRootLogin prohibit-password" in files[MAIN].splitlines()
    assert "AllowGroups hpc root" in files[MAIN].splitlines()
    assert files["90-match.conf"] == (
        "Match User root\n    AuthorizedKeysFile /etc/ssh/root/authorized_keys\n    AuthorizedKeysCommand none\n"
    )


def test_own_options_replace_ours_whatever_their_case() -> None:
    found = lines(sshd_options={"x11forwarding": True, "AuthorizedKeysFile": ".ssh/authorized_keys"})
    assert "X11Forwarding yes" in found
    assert "X11Forwarding no" not in found
    assert [line for line in found if line.startswith("AuthorizedKeysFile")] == [
        "AuthorizedKeysFile .ssh/authorized_keys"
    ]


@pytest.mark.parametrize(
    ("keyword", "value", "line"),
    [
        ("MaxSessions", 5, "MaxSessions 5"),
        ("PermitTTY", False, "PermitTTY no"),
        ("AcceptEnv", ["LANG", "LC_*"], "AcceptEnv LANG LC_*"),
        ("Ciphers", ["a@openssh.com", "b"], "Ciphers a@openssh.com,b"),
        ("SetEnv", ["A=1", "B=2"], "SetEnv A=1 B=2"),
    ],
)
def test_values(keyword: str, value: Any, line: str) -> None:
    assert line in lines(sshd_options={keyword: value})


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({}, "PerSourcePenalties no\n"),
        ({"service_type": "LoadBalancer"}, "PerSourcePenalties no\n"),
        ({"service_type": "LoadBalancer", "service_external_traffic_policy": "Cluster"}, "PerSourcePenalties no\n"),
        (
            {"service_type": "LoadBalancer", "service_external_traffic_policy": "Local"},
            "PerSourcePenaltyExemptList 127.0.0.0/8,::1/128\n",
        ),
        (
            {"service_type": "NodePort", "service_external_traffic_policy": "Local", "sshd_penalties": "off"},
            "PerSourcePenalties no\n",
        ),
        (
            {"sshd_penalties": "on", "sshd_penalty_exempt": ["10.0.0.0/8", "127.0.0.0/8"]},
            "PerSourcePenaltyExemptList 127.0.0.0/8,::1/128,10.0.0.0/8\n",
        ),
    ],
)
def test_penalties_are_on_where_sshd_sees_who_it_is(variables: dict[str, Any], text: str) -> None:
    files, problems = rendered(**variables)
    assert problems == []
    assert files["20-penalties.conf"] == text


def test_own_penalties_stand_alone() -> None:
    files, problems = rendered(sshd_options={"PerSourcePenalties": "authfail:5s"})
    assert problems == []
    assert "20-penalties.conf" not in files


def test_match_blocks() -> None:
    files, problems = rendered(
        sshd_match={"Group sftponly": {"ForceCommand": "internal-sftp", "allowtcpforwarding": False}}
    )
    assert problems == []
    assert files["90-match.conf"] == "Match Group sftponly\n    ForceCommand internal-sftp\n    AllowTcpForwarding no\n"


@pytest.mark.parametrize(
    ("variables", "path", "text"),
    [
        ({"sshd_options": {"MaxSesions": 1}}, "login_sshd_options.MaxSesions", "did you mean MaxSessions?"),
        ({"sshd_options": {"Banner": "a\nPort 23"}}, "login_sshd_options.Banner", "line breaks"),
        ({"sshd_options": {"Banner": ""}}, "login_sshd_options.Banner", "must not be empty"),
        ({"sshd_options": {"Banner": None}}, "login_sshd_options.Banner", "must be a string"),
        ({"sshd_options": {"AcceptEnv": ["A", {}]}}, "login_sshd_options.AcceptEnv", "must be a string"),
        ({"sshd_options": {"Port": 23}}, "login_sshd_options.Port", "login_service_port"),
        ({"sshd_options": {"AllowGroups": "x"}}, "login_sshd_options.AllowGroups", "login_allowed_groups"),
        ({"sshd_options": {"PermitRootLogin": True}}, "login_sshd_options.PermitRootLogin", "login_root_ssh_keys"),
        ({"sshd_options": {"Include": "/x"}}, "login_sshd_options.Include", "belongs to the role"),
        ({"sshd_options": {"Match": "all"}}, "login_sshd_options.Match", "login_sshd_match"),
        ({"sshd_match": {"all\nPort 1": {}}}, "login_sshd_match[all\nPort 1]", "what follows Match"),
        ({"sshd_match": {"all": []}}, "login_sshd_match[all]", "must be a dictionary"),
        ({"sshd_match": {"all": {"HostKey": "/x"}}}, "login_sshd_match[all].HostKey", "belongs to the role"),
        ({"allowed_groups": ["hp*"]}, "login_allowed_groups", "'hp*' must be a name"),
        ({"allowed_groups": ['a" b']}, "login_allowed_groups", "must be a name"),
        ({"allowed_groups": ["a\nb"]}, "login_allowed_groups[0]", "line breaks"),
        ({"root_ssh_keys": ["ssh-rsa A\nssh-rsa B"]}, "login_root_ssh_keys[0]", "line breaks"),
        ({"sshd_penalties": "maybe"}, "login_sshd_penalties", "must be one of"),
        (
            {"sshd_penalties": "on", "sshd_penalty_exempt": ["10.0.0.1/8"]},
            "login_sshd_penalty_exempt[0]",
            "is no network",
        ),
    ],
)
def test_what_is_refused(variables: dict[str, Any], path: str, text: str) -> None:
    found = rendered(**variables)[1]
    assert any(line.startswith(f"{path}: ") and text in line for line in found), found


@given(
    st.dictionaries(
        st.sampled_from(["Banner", "Ciphers", "SetEnv"]),
        st.text(max_size=30) | st.lists(st.text(max_size=9), max_size=3),
    )
)
def test_one_option_is_one_line(options: dict[str, Any]) -> None:
    files, problems = rendered(sshd_options=options)
    if not problems:
        assert len(files[MAIN].splitlines()) == len(lines()) + len(options)
