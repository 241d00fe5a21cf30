# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Writes the login Pod's part of sshd_config: what makes users of a directory log in, then the site's own options.

These are drop-in files, read before the distribution's own sshd_config; sshd takes the first value of each keyword.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from .fields import CONTROL_CHARACTERS, Fields, kind_of
from .problems import Problems, did_you_mean

# Where the Pod has them (roles/login/files/compose.sh).
HOST_KEYS = "/etc/ssh/hostkeys"
ROOT_KEYS = "/etc/ssh/root/authorized_keys"
KEY_TYPES = ("ed25519", "ecdsa", "rsa")

# Keywords of sshd_config(5), OpenSSH 8.7 to 10.
_KEYWORD_TEXT = """
    AcceptEnv AddressFamily AllowAgentForwarding AllowGroups AllowStreamLocalForwarding AllowTcpForwarding AllowUsers
    AuthenticationMethods AuthorizedKeysCommand AuthorizedKeysCommandUser AuthorizedKeysFile AuthorizedPrincipalsCommand
    AuthorizedPrincipalsCommandUser AuthorizedPrincipalsFile Banner CASignatureAlgorithms ChannelTimeout ChrootDirectory
    Ciphers ClientAliveCountMax ClientAliveInterval Compression DenyGroups DenyUsers DisableForwarding ExposeAuthInfo
    FingerprintHash ForceCommand GatewayPorts GSSAPIAuthentication GSSAPICleanupCredentials GSSAPIStrictAcceptorCheck
    HostbasedAcceptedAlgorithms HostbasedAuthentication HostbasedUsesNameFromPacketOnly HostCertificate HostKey
    HostKeyAgent HostKeyAlgorithms IgnoreRhosts IgnoreUserKnownHosts Include IPQoS KbdInteractiveAuthentication
    KerberosAuthentication KerberosGetAFSToken KerberosOrLocalPasswd KerberosTicketCleanup KexAlgorithms ListenAddress
    LoginGraceTime LogLevel LogVerbose MACs Match MaxAuthTries MaxSessions MaxStartups ModuliFile PAMServiceName
    PasswordAuthentication PermitEmptyPasswords PermitListen PermitOpen PermitRootLogin PermitTTY PermitTunnel
    PermitUserEnvironment PermitUserRC PerSourceMaxStartups PerSourceNetBlockSize PerSourcePenalties
    PerSourcePenaltyExemptList PidFile Port PrintLastLog PrintMotd PubkeyAcceptedAlgorithms PubkeyAuthentication
    PubkeyAuthOptions RDomain RefuseConnection RekeyLimit RequiredRSASize RevokedKeys SecurityKeyProvider SetEnv
    SshdAuthPath SshdSessionPath StreamLocalBindMask StreamLocalBindUnlink StrictModes Subsystem SyslogFacility
    TCPKeepAlive TrustedUserCAKeys UnusedConnectionTimeout UseDNS UsePAM VersionAddendum X11DisplayOffset X11Forwarding
    X11UseLocalhost XAuthLocation
"""
_KEYWORDS = _KEYWORD_TEXT.split()
_BY_LOWER_NAME = {keyword.lower(): keyword for keyword in _KEYWORDS}

# Set by other variables, or fixed by how the Pod is built.
_OURS = {
    "allowgroups": "set login_allowed_groups",
    "hostcertificate": "the host keys are in the Secret named by login_host_keys_secret",
    "hostkey": "the host keys are in the Secret named by login_host_keys_secret",
    "hostkeyagent": "the host keys are in the Secret named by login_host_keys_secret",
    "include": "give the options themselves",
    "listenaddress": "sshd listens on all addresses of its Pod",
    "match": "set login_sshd_match",
    "permitrootlogin": "set login_root_ssh_keys",
    "pidfile": "the image's supervisor knows its place",
    "port": "sshd listens on port 22 of its Pod; set login_service_port",
    "subsystem": "sftp is there already; use ForceCommand internal-sftp in login_sshd_match to insist on it",
    "usepam": "sessions need PAM: it makes home directories and asks SSSD",
}
# Joined by commas; all other lists are joined by blanks.
_COMMA_LISTS = {
    "casignaturealgorithms", "ciphers", "hostbasedacceptedalgorithms", "hostkeyalgorithms", "kexalgorithms",
    "logverbose", "macs", "pubkeyacceptedalgorithms", "pubkeyauthoptions",
}  # fmt: skip

_DEFAULTS: dict[str, str] = {
    "AuthorizedKeysFile": "none",
    "AuthorizedKeysCommand": "/usr/bin/sss_ssh_authorizedkeys %u",
    "AuthorizedKeysCommandUser": "nobody",
    "PasswordAuthentication": "yes",
    "KbdInteractiveAuthentication": "no",
    "X11Forwarding": "no",
    "MaxAuthTries": "4",
    # Load balancers and NAT forget a silent connection after some minutes.
    "ClientAliveInterval": "60",
    "UseDNS": "no",
}

PENALTIES = ("auto", "on", "off")
# Health checks and port forwarding come from here.
_ALWAYS_EXEMPT = ("127.0.0.0/8", "::1/128")

KEYS = (
    "login_allowed_groups",
    "login_root_ssh_keys",
    "login_sshd_options",
    "login_sshd_match",
    "login_sshd_penalties",
    "login_sshd_penalty_exempt",
    "login_service_type",
    "login_service_external_traffic_policy",
)


def render(fields: Fields) -> dict[str, str]:
    """Drop-in files of /etc/ssh/sshd_config.d from the login_sshd_* variables: name to text.

    What is wrong goes to the problems of ``fields``.
    """
    options = _own_options(fields.mapping("login_sshd_options"), fields.at("login_sshd_options"), fields.problems)
    files = {"10-slurm-ops.conf": _main(fields, options)}
    if not {"persourcepenalties", "persourcepenaltyexemptlist"} & {keyword.lower() for keyword in options}:
        files["20-penalties.conf"] = _penalties(fields)
    if match := _match(fields):
        files["90-match.conf"] = match
    return files


def _main(fields: Fields, own: Mapping[str, str]) -> str:
    root_keys = fields.words("login_root_ssh_keys")
    lines = [f"HostKey {HOST_KEYS}/ssh_host_{kind}_key" for kind in KEY_TYPES]
    lines.append("UsePAM yes")
    lines.append(f"PermitRootLogin {'prohibit-password' if root_keys else 'no'}")
    groups = fields.words("login_allowed_groups")
    if groups:
        # Root's own group, or its keys would not help.
        wanted = [*groups, "root"] if root_keys else groups
        lines.append("AllowGroups " + " ".join(_quoted(fields, group) for group in dict.fromkeys(wanted)))
    taken = {keyword.lower() for keyword in own}
    lines += [f"{keyword} {value}" for keyword, value in own.items()]
    lines += [f"{keyword} {value}" for keyword, value in _DEFAULTS.items() if keyword.lower() not in taken]
    return "\n".join(lines) + "\n"


def _quoted(fields: Fields, group: str) -> str:
    """A group as a pattern that matches just this group: sshd gives a meaning to * ? ! and quotes."""
    if not group or any(character in '*?!"\\#' for character in group):
        fields.problems.add(fields.at("login_allowed_groups"), f'{group!r} must be a name without * ? ! # " and \\')
    return f'"{group}"' if " " in group else group


def _penalties(fields: Fields) -> str:
    """PerSourcePenalties (OpenSSH 9.8 and newer), which refuse an address for a while after failed logins.

    They are of use only where the address is the user's own. Behind the address translation of Kubernetes one user's
    mistyped password locks out everybody, so ``auto`` means on with externalTrafficPolicy Local and off without.
    """
    choice = fields.choice("login_sshd_penalties", PENALTIES, "auto")
    if choice == "auto":
        external = fields.text("login_service_type", "ClusterIP") in ("NodePort", "LoadBalancer")
        choice = "on" if external and fields.text("login_service_external_traffic_policy") == "Local" else "off"
    if choice == "off":
        return "PerSourcePenalties no\n"
    exempt = [*_ALWAYS_EXEMPT]
    for index, item in enumerate(fields.words("login_sshd_penalty_exempt")):
        try:
            exempt.append(str(ipaddress.ip_network(item)))
        except ValueError as error:
            fields.problems.add(f"{fields.at('login_sshd_penalty_exempt')}[{index}]", f"is no network: {error}")
    return "PerSourcePenaltyExemptList " + ",".join(dict.fromkeys(exempt)) + "\n"


def _match(fields: Fields) -> str:
    """Match blocks: {criteria: {keyword: value}}, and root's keys."""
    blocks: list[tuple[str, Mapping[str, str]]] = []
    if fields.words("login_root_ssh_keys"):
        blocks.append(("User root", {"AuthorizedKeysFile": ROOT_KEYS, "AuthorizedKeysCommand": "none"}))
    for criteria, options in fields.mapping("login_sshd_match").items():
        path = f"{fields.at('login_sshd_match')}[{criteria}]"
        if not criteria.strip() or CONTROL_CHARACTERS.search(criteria):
            fields.problems.add(path, "must be what follows Match, as in: Group sftponly")
        elif not isinstance(options, Mapping):
            fields.problems.add(path, f"must be a dictionary, is {kind_of(options)}")
        else:
            blocks.append((criteria, _own_options(options, path, fields.problems, in_match=True)))
    lines = []
    for criteria, block in blocks:
        lines += [f"Match {criteria}", *(f"    {keyword} {value}" for keyword, value in block.items())]
    return "".join(line + "\n" for line in lines)


def _own_options(
    options: Mapping[Any, Any], path: str, problems: Problems, *, in_match: bool = False
) -> dict[str, str]:
    """A site's keywords with their values as text; keywords are spelled as the manual spells them."""
    result: dict[str, str] = {}
    for name, value in options.items():
        where = f"{path}.{name}"
        keyword = _BY_LOWER_NAME.get(str(name).lower())
        if keyword is None:
            problems.add(where, f"is no keyword of sshd_config{did_you_mean(str(name), _KEYWORDS)}")
        elif keyword.lower() in _OURS and not (in_match and keyword == "AllowGroups"):
            problems.add(where, f"belongs to the role; {_OURS[keyword.lower()]}")
        else:
            text = _value(keyword, value, where, problems)
            if text is not None:
                result[keyword] = text
    return result


def _value(keyword: str, value: Any, path: str, problems: Problems) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    items: Iterable[Any] = value if isinstance(value, (list, tuple)) else [value]
    words = []
    for item in items:
        if isinstance(item, bool) or not isinstance(item, (str, int, float)):
            problems.add(path, f"must be a string, number, boolean or list of strings, is {kind_of(item)}")
            return None
        words.append(str(item))
    text = ("," if keyword.lower() in _COMMA_LISTS else " ").join(words)
    if not text.strip():
        problems.add(path, "must not be empty")
        return None
    if CONTROL_CHARACTERS.search(text):
        problems.add(path, "must not hold line breaks or control characters")
        return None
    return text
