# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Writes sssd.conf for an LDAP directory: a preset for each kind of directory, then the site's own options.

No secret is in it: the bind password comes in a file of its own that the Pod composes (see roles/login).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .fields import CONTROL_CHARACTERS, Fields, kind_of
from .problems import Problems

# Where the Pod has what the options name (roles/login/files/compose.sh).
CA_FILE = "/etc/slurm-login/ca.crt"
SYSTEM_CA_FILE = "/etc/ssl/certs/ca-certificates.crt"
CLIENT_CERTIFICATE = "/etc/slurm-login/tls.crt"
CLIENT_KEY = "/etc/slurm-login/tls.key"

REQCERT = ("demand", "hard", "try", "allow", "never")

_URI = re.compile(r"ldaps?://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::\d{1,5})?/?", re.ASCII)
_SERVICE_DISCOVERY = "_srv_"
_DOMAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
_SECTION = re.compile(r"[a-z_]+(?:/[A-Za-z0-9._-]+)*", re.ASCII)
_OPTION = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)

# The password would stand in a ConfigMap that many may read.
_SECRET_OPTIONS = {
    "ldap_default_authtok": "login_ldap_bind_secret",
    "ldap_default_authtok_type": "login_ldap_bind_secret",
}
# Lists of names to which a site's own names are added instead of replacing ours.
_UNITED = {("sssd", "services"), ("sssd", "domains"), ("nss", "filter_users"), ("nss", "filter_groups")}

Scalar: TypeAlias = "str | int | float | bool"


@dataclass(frozen=True, slots=True)
class Preset:
    """What is special about one kind of directory: options of its domain."""

    title: str
    options: Mapping[str, Scalar] = field(default_factory=dict)
    # ldap_account_expire_policy: how the directory says that an account is disabled. Without one, an SSH key would
    # still let a disabled account in, unless the site gives an access filter.
    expire_policy: str = ""
    client_certificate: bool = False


PRESETS: dict[str, Preset] = {
    "openldap_rfc2307": Preset(
        "OpenLDAP and others with memberUid groups (RFC 2307)",
        {"ldap_schema": "rfc2307", "ldap_user_ssh_public_key": "sshPublicKey"},
        expire_policy="shadow",
    ),
    "openldap_rfc2307bis": Preset(
        "OpenLDAP and others with groups of member DNs (RFC 2307bis)",
        {"ldap_schema": "rfc2307bis", "ldap_user_ssh_public_key": "sshPublicKey"},
        expire_policy="shadow",
    ),
    # The LDAP provider and not the AD one: a login Pod joins no domain, it has no machine account and no keytab.
    "active_directory": Preset(
        "Microsoft Active Directory, over LDAP with a bind account",
        {
            "ldap_schema": "ad",
            "ldap_id_mapping": True,
            "ldap_referrals": False,
            "ldap_user_ssh_public_key": "altSecurityIdentities",
            # AD compares names without regard to case; names come out as the directory writes them, in lower case.
            "case_sensitive": False,
            "fallback_homedir": "/home/%u",
            "default_shell": "/bin/bash",
        },
        expire_policy="ad",
    ),
    "authentik": Preset(
        "Authentik's LDAP outpost",
        {
            "ldap_schema": "rfc2307bis",
            "ldap_user_object_class": "user",
            "ldap_user_name": "cn",
            "ldap_group_object_class": "group",
            "ldap_group_name": "cn",
            "ldap_user_ssh_public_key": "sshPublicKey",
            "fallback_homedir": "/home/%u",
            "default_shell": "/bin/bash",
        },
    ),
    "okta": Preset(
        "Okta's LDAP interface",
        {
            "ldap_schema": "rfc2307bis",
            "ldap_user_object_class": "inetOrgPerson",
            "ldap_user_name": "uid",
            "ldap_user_fullname": "cn",
            "ldap_group_object_class": "groupOfUniqueNames",
            "ldap_group_name": "cn",
            "ldap_group_member": "uniqueMember",
            "ldap_user_ssh_public_key": "sshPublicKey",
            # Okta's names are mail addresses: the whole text is the name, no part of it is SSSD's domain.
            "re_expression": "(?P<name>.+)",
            "full_name_format": "%1$s",
            "auto_private_groups": True,
            "fallback_homedir": "/home/%u",
            "default_shell": "/bin/bash",
        },
    ),
    "google": Preset(
        "Google Workspace's Secure LDAP, with a client certificate",
        {
            "ldap_schema": "rfc2307bis",
            "ldap_user_uuid": "entryUUID",
            "ldap_user_ssh_public_key": "sshPublicKey",
            "fallback_homedir": "/home/%u",
            "default_shell": "/bin/bash",
        },
        client_certificate=True,
    ),
}

KEYS = (
    "login_ldap_preset",
    "login_ldap_domain",
    "login_ldap_uri",
    "login_ldap_search_base",
    "login_ldap_user_search_base",
    "login_ldap_group_search_base",
    "login_ldap_bind_dn",
    "login_ldap_bind_secret",
    "login_ldap_ca",
    "login_ldap_client_certificate_secret",
    "login_ldap_reqcert",
    "login_ldap_access_filter",
    "login_ldap_cache_seconds",
    "login_ldap_min_id",
    "login_sssd",
)


def render(fields: Fields) -> str:
    """The text of sssd.conf from the login_ldap_* variables and login_sssd.

    What is wrong goes to the problems of ``fields``; the text is then of no use.
    """
    problems = fields.problems
    preset = PRESETS[fields.choice("login_ldap_preset", PRESETS, "openldap_rfc2307")]
    domain = fields.text("login_ldap_domain", "ldap")
    if not _DOMAIN.fullmatch(domain):
        problems.add(fields.at("login_ldap_domain"), f"{domain!r} must be letters, digits, '.', '_' and '-'")
        domain = "ldap"
    sections: dict[str, dict[str, Scalar]] = {
        "sssd": {"services": "nss, pam, ssh", "domains": domain},
        # A user who was made a moment ago is not refused for long.
        "nss": {"filter_users": "root, slurm", "filter_groups": "root, slurm", "entry_negative_timeout": 5},
        # Days that a cached password is good for while the directory cannot be reached.
        "pam": {"offline_credentials_expiration": 7},
        "ssh": {},
        f"domain/{domain}": _domain(fields, preset),
    }
    _merge_own(fields, sections, f"domain/{domain}")
    return _text(sections)


def _domain(fields: Fields, preset: Preset) -> dict[str, Scalar]:
    """Options of the domain: what holds everywhere, the preset's, then what the variables say."""
    options: dict[str, Scalar] = {
        "id_provider": "ldap",
        "auth_provider": "ldap",
        "sudo_provider": "none",
        "autofs_provider": "none",
        "enumerate": False,
        "cache_credentials": True,
        "entry_cache_timeout": fields.integer("login_ldap_cache_seconds", 300, minimum=1),
        # A directory must not be able to hand out root, or the accounts of the image.
        "min_id": fields.integer("login_ldap_min_id", 1000, minimum=1),
        # How long a login waits for a directory that does not answer before the cache is used.
        "ldap_network_timeout": 3,
        "ldap_opt_timeout": 3,
        # Seconds between looks whether it is back; left alone, SSSD lets them grow to an hour.
        "offline_timeout": 5,
        "offline_timeout_max": 30,
        "offline_timeout_random_offset": 5,
        **preset.options,
    }
    options.update(_server(fields))
    options.update(_credentials(fields, preset))
    options.update(_access(fields, preset))
    return options


def _server(fields: Fields) -> dict[str, Scalar]:
    uris = fields.words("login_ldap_uri")
    if not uris:
        fields.problems.add(fields.at("login_ldap_uri"), "is required, as in ldaps://ldap.example.org")
    for index, uri in enumerate(uris):
        if uri != _SERVICE_DISCOVERY and not _URI.fullmatch(uri):
            fields.problems.add(
                f"{fields.at('login_ldap_uri')}[{index}]",
                f"{uri!r} must be ldap://host[:port] (then StartTLS is used) or ldaps://host[:port]",
            )
    options: dict[str, Scalar] = {
        "ldap_uri": ", ".join(uris),
        # Has no effect on ldaps://. SSSD itself refuses to send a password without TLS; this protects lookups too.
        "ldap_id_use_start_tls": True,
        "ldap_tls_reqcert": fields.choice("login_ldap_reqcert", REQCERT, "demand"),
        "ldap_tls_cacert": CA_FILE if fields.mapping("login_ldap_ca") else SYSTEM_CA_FILE,
        "ldap_search_base": fields.text("login_ldap_search_base", required=True),
    }
    for key in ("user_search_base", "group_search_base"):
        if text := fields.text(f"login_ldap_{key}"):
            options[f"ldap_{key}"] = text
    return options


def _credentials(fields: Fields, preset: Preset) -> dict[str, Scalar]:
    options: dict[str, Scalar] = {}
    bind_dn = fields.text("login_ldap_bind_dn")
    has_password = bool(fields.mapping("login_ldap_bind_secret"))
    if bind_dn:
        options["ldap_default_bind_dn"] = bind_dn
        if not has_password:
            fields.problems.add(fields.at("login_ldap_bind_secret"), "is required with login_ldap_bind_dn: {name, key}")
    elif has_password:
        fields.problems.add(fields.at("login_ldap_bind_dn"), "is required with login_ldap_bind_secret")
    if fields.text("login_ldap_client_certificate_secret"):
        options["ldap_tls_cert"] = CLIENT_CERTIFICATE
        options["ldap_tls_key"] = CLIENT_KEY
    elif preset.client_certificate:
        fields.problems.add(
            fields.at("login_ldap_client_certificate_secret"),
            "is required by this preset: a Secret with the keys tls.crt and tls.key",
        )
    return options


def _access(fields: Fields, preset: Preset) -> dict[str, Scalar]:
    """Who may log in as far as the directory is concerned; groups are sshd's matter (AllowGroups)."""
    checks = []
    options: dict[str, Scalar] = {}
    if access_filter := fields.text("login_ldap_access_filter"):
        checks.append("filter")
        options["ldap_access_filter"] = access_filter
    if preset.expire_policy:
        checks.append("expire")
        options["ldap_account_expire_policy"] = preset.expire_policy
    if not checks:
        return {"access_provider": "permit"}
    return {"access_provider": "ldap", "ldap_access_order": ", ".join(checks), **options}


def _merge_own(fields: Fields, sections: dict[str, dict[str, Scalar]], domain: str) -> None:
    """Puts login_sssd ({section: {option: value}}) over ours; the section ``domain`` means our domain."""
    for section, own in fields.mapping("login_sssd").items():
        path = f"{fields.at('login_sssd')}.{section}"
        if not _SECTION.fullmatch(section):
            fields.problems.add(path, "is no section of sssd.conf, as sssd, nss, pam, ssh or domain")
            continue
        if not isinstance(own, Mapping):
            fields.problems.add(path, f"must be a dictionary, is {kind_of(own)}")
            continue
        name = domain if section == "domain" else section
        target = sections.setdefault(name, {})
        for option, value in own.items():
            text = _own_value(fields.problems, f"{path}.{option}", option, value)
            if text is not None:
                target[option] = _united(target.get(option), text) if (name, option) in _UNITED else text
        if name.startswith("domain/") and name.count("/") == 1 and name != domain:
            sections["sssd"]["domains"] = _united(sections["sssd"].get("domains"), name.removeprefix("domain/"))


def _own_value(problems: Problems, path: str, option: Any, value: Any) -> str | None:
    if not isinstance(option, str) or not _OPTION.fullmatch(option):
        problems.add(path, "is no option of sssd.conf: lower case letters, digits and '_'")
        return None
    if option in _SECRET_OPTIONS:
        problems.add(
            path, f"a password does not belong here: name the Secret that holds it in {_SECRET_OPTIONS[option]}"
        )
        return None
    items = value if isinstance(value, (list, tuple)) else [value]
    if not items or any(isinstance(item, (Mapping, list, tuple)) or item is None for item in items):
        problems.add(path, f"must be a string, number, boolean or list of them, is {kind_of(value)}")
        return None
    text = ", ".join(_scalar(item) for item in items)
    if CONTROL_CHARACTERS.search(text):
        problems.add(path, "must not hold line breaks or control characters")
        return None
    return text


def _united(ours: Scalar | None, own: str) -> str:
    """Both comma lists, ours first, each name once."""
    names = [name.strip() for name in f"{ours or ''},{own}".split(",")]
    return ", ".join(dict.fromkeys(name for name in names if name))


def _scalar(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(sections: Mapping[str, Mapping[str, Scalar]]) -> str:
    """The sections as an INI file."""
    parts = []
    for section, options in sections.items():
        lines = [f"[{section}]", *(f"{option} = {_scalar(value)}" for option, value in options.items())]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
