# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""sssd.conf from variables. tests/live/test_login.py has the real sssctl look at every preset."""

from __future__ import annotations

import configparser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import sssd
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.fields import Fields
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.problems import Problems

MINIMAL: dict[str, Any] = {
    "login_ldap_uri": ["ldaps://ldap.example.org"],
    "login_ldap_search_base": "dc=example,dc=org",
    "login_ldap_client_certificate_secret": "ldap-client",
}


def rendered(**variables: Any) -> tuple[configparser.RawConfigParser, list[str]]:
    """The file, read again, and the problems; keyword arguments lack the prefix login_."""
    problems = Problems()
    given_variables = MINIMAL | {f"login_{name}": value for name, value in variables.items()}
    text = sssd.render(Fields(given_variables, "", problems, sssd.KEYS))
    parser = configparser.RawConfigParser(delimiters=("=",), comment_prefixes=("#", ";"), strict=True)
    parser.read_string(text)
    return parser, problems.lines


def problems_of(**variables: Any) -> list[str]:
    return rendered(**variables)[1]


def domain(**variables: Any) -> dict[str, str]:
    parser, problems = rendered(**variables)
    assert problems == []
    return dict(parser[f"domain/{variables.get('ldap_domain', 'ldap')}"])


# What each preset is about: the options that must not change by accident.
PRESETS = [
    (
        "openldap_rfc2307",
        {
            "ldap_schema": "rfc2307",
            "ldap_account_expire_policy": "shadow",
            "ldap_user_ssh_public_key": "sshPublicKey",
            "access_provider": "ldap",
        },
    ),
    ("openldap_rfc2307bis", {"ldap_schema": "rfc2307bis", "ldap_account_expire_policy": "shadow"}),
    (
        "active_directory",
        {
            "id_provider": "ldap",
            "ldap_schema": "ad",
            "ldap_id_mapping": "true",
            "ldap_referrals": "false",
            "ldap_user_ssh_public_key": "altSecurityIdentities",
            "ldap_account_expire_policy": "ad",
            "case_sensitive": "false",
            "fallback_homedir": "/home/%u",
        },
    ),
    (
        "authentik",
        {
            "ldap_user_object_class": "user",
            "ldap_user_name": "cn",
            "ldap_group_object_class": "group",
            "access_provider": "permit",
        },
    ),
    (
        "okta",
        {
            "ldap_group_object_class": "groupOfUniqueNames",
            "ldap_group_member": "uniqueMember",
            "re_expression": "(?P<name>.+)",
            "access_provider": "permit",
        },
    ),
    (
        "google",
        {
            "ldap_schema": "rfc2307bis",
            "ldap_user_uuid": "entryUUID",
            "ldap_tls_cert": "/etc/slurm-login/tls.crt",
            "ldap_tls_key": "/etc/slurm-login/tls.key",
        },
    ),
]


@pytest.mark.parametrize(("preset", "options"), PRESETS)
def test_presets(preset: str, options: dict[str, str]) -> None:
    found = domain(ldap_preset=preset)
    assert {key: found.get(key) for key in options} == options


def test_every_preset_is_tested() -> None:
    assert {name for name, _options in PRESETS} == set(sssd.PRESETS)


@pytest.mark.parametrize("preset", sssd.PRESETS)
def test_what_holds_for_every_directory(preset: str) -> None:
    found = domain(ldap_preset=preset)
    assert found["ldap_id_use_start_tls"] == "true"
    assert found["ldap_tls_reqcert"] == "demand"
    assert found["ldap_tls_cacert"] == "/etc/ssl/certs/ca-certificates.crt"
    assert found["min_id"] == "1000"
    assert found["enumerate"] == "false"
    assert "ldap_default_authtok" not in found


def test_a_ca_of_ones_own_is_where_the_pod_has_it() -> None:
    assert domain(ldap_ca={"secret": "ca"})["ldap_tls_cacert"] == "/etc/slurm-login/ca.crt"


def test_several_servers_in_order() -> None:
    uris = ["ldaps://a.example.org", "ldap://[2001:db8::1]:389", "_srv_"]
    assert domain(ldap_uri=uris)["ldap_uri"] == ", ".join(uris)


def test_search_bases_are_passed_on_and_left_out_when_empty() -> None:
    assert "ldap_group_search_base" not in domain()
    base = "ou=people,dc=example,dc=org?onelevel?(objectClass=person)"
    assert domain(ldap_user_search_base=base)["ldap_user_search_base"] == base


@pytest.mark.parametrize(
    ("preset", "access_filter", "expected"),
    [
        ("openldap_rfc2307", "", {"access_provider": "ldap", "ldap_access_order": "expire"}),
        (
            "openldap_rfc2307",
            "(a=b)",
            {"access_provider": "ldap", "ldap_access_order": "filter, expire", "ldap_access_filter": "(a=b)"},
        ),
        ("okta", "", {"access_provider": "permit"}),
        ("okta", "(a=b)", {"access_provider": "ldap", "ldap_access_order": "filter", "ldap_access_filter": "(a=b)"}),
    ],
)
def test_access(preset: str, access_filter: str, expected: dict[str, str]) -> None:
    found = domain(ldap_preset=preset, ldap_access_filter=access_filter)
    keys = ("access_provider", "ldap_access_order", "ldap_access_filter")
    assert {key: found[key] for key in keys if key in found} == expected


def test_own_options_win_and_lists_are_joined() -> None:
    parser, problems = rendered(
        sssd={
            "sssd": {"services": ["pam", "ifp"]},
            "nss": {"filter_users": "daemon", "entry_negative_timeout": 15},
            "domain": {"enumerate": True, "ldap_user_name": "mail"},
            "domain/partner": {"id_provider": "proxy"},
        }
    )
    assert problems == []
    assert parser["sssd"]["services"] == "nss, pam, ssh, ifp"
    assert parser["sssd"]["domains"] == "ldap, partner"
    assert parser["nss"]["filter_users"] == "root, slurm, daemon"
    assert parser["nss"]["entry_negative_timeout"] == "15"
    assert parser["domain/ldap"]["enumerate"] == "true"
    assert parser["domain/ldap"]["ldap_user_name"] == "mail"
    assert parser["domain/partner"]["id_provider"] == "proxy"


@pytest.mark.parametrize(
    ("variables", "path", "text"),
    [
        ({"ldap_preset": "openldap"}, "login_ldap_preset", "must be one of"),
        ({"ldap_uri": []}, "login_ldap_uri", "is required"),
        ({"ldap_uri": ["ldap.example.org"]}, "login_ldap_uri[0]", "must be ldap://"),
        ({"ldap_uri": ["ldaps://a", "https://b"]}, "login_ldap_uri[1]", "must be ldap://"),
        ({"ldap_uri": ["ldaps://a\nldap_tls_reqcert = never"]}, "login_ldap_uri[0]", "line breaks"),
        ({"ldap_search_base": ""}, "login_ldap_search_base", "must not be empty"),
        ({"ldap_search_base": "dc=a\n[nss]"}, "login_ldap_search_base", "line breaks"),
        ({"ldap_domain": "a]b"}, "login_ldap_domain", "must be letters"),
        ({"ldap_bind_dn": "cn=x"}, "login_ldap_bind_secret", "is required"),
        ({"ldap_bind_secret": {"name": "a", "key": "b"}}, "login_ldap_bind_dn", "is required"),
        ({"ldap_reqcert": "maybe"}, "login_ldap_reqcert", "must be one of"),
        ({"ldap_cache_seconds": 0}, "login_ldap_cache_seconds", "must be from 1"),
        ({"ldap_access_filter": "(a=b)\nx=y"}, "login_ldap_access_filter", "line breaks"),
        (
            {"ldap_preset": "google", "ldap_client_certificate_secret": ""},
            "login_ldap_client_certificate_secret",
            "is required",
        ),
        ({"sssd": {"NSS]": {}}}, "login_sssd.NSS]", "is no section"),
        ({"sssd": {"nss": "x"}}, "login_sssd.nss", "must be a dictionary"),
        ({"sssd": {"nss": {"a b": 1}}}, "login_sssd.nss.a b", "is no option"),
        ({"sssd": {"nss": {"a": None}}}, "login_sssd.nss.a", "must be a string"),
        ({"sssd": {"nss": {"a": {}}}}, "login_sssd.nss.a", "must be a string"),
        ({"sssd": {"nss": {"a": []}}}, "login_sssd.nss.a", "must be a string"),
        ({"sssd": {"nss": {"a": "1\n[sssd]"}}}, "login_sssd.nss.a", "line breaks"),
        ({"sssd": {"nss": {"a": ["1", "2\r3"]}}}, "login_sssd.nss.a", "line breaks"),
        (
            {"sssd": {"domain": {"ldap_default_authtok": "secret"}}},
            "login_sssd.domain.ldap_default_authtok",
            "login_ldap_bind_secret",
        ),
    ],
)
def test_what_is_refused(variables: dict[str, Any], path: str, text: str) -> None:
    found = problems_of(**variables)
    assert any(line.startswith(f"{path}: ") and text in line for line in found), found


def test_a_password_is_never_quoted_back() -> None:
    assert "geheim" not in "\n".join(problems_of(sssd={"domain": {"ldap_default_authtok": "geheim"}}))


@given(
    st.dictionaries(
        st.text(max_size=12), st.dictionaries(st.text(max_size=12), st.text(max_size=30), max_size=3), max_size=3
    )
)
def test_free_form_options_never_make_sections_or_options_of_their_own(own: dict[str, dict[str, str]]) -> None:
    parser, problems = rendered(sssd=own)
    if problems:
        return
    known = {"sssd", "nss", "pam", "ssh", "domain/ldap"}
    assert set(parser.sections()) == known | {name for name in own if name != "domain"}
    for section, options in own.items():
        wanted = "domain/ldap" if section == "domain" else section
        assert set(options) <= set(parser[wanted])
