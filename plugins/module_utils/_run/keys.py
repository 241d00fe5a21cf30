# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Make keys, passwords and certificates. What is made here goes to the API server and nowhere else."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.key_set import base64url
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.library import missing_library

RSA_BITS = 3072  # what ssh-keygen makes
FOR = "to make SSH host keys, certificates and keys of tokens"


def make(how: str, name: str, arguments: Mapping[str, Any], existing: bytes | None = None) -> dict[str, bytes]:
    """Return all keys of one entry of the module secret's option ``data``: key of the Secret -> content.

    ``existing`` is the private key that is there already, when only its public key is missing.
    """
    if how == "bytes":
        return {name: secrets.token_bytes(arguments["count"])}
    if how == "password":
        characters: str = arguments["characters"]
        return {name: "".join(secrets.choice(characters) for _number in range(arguments["length"])).encode()}
    if how == "text":
        return {name: str(arguments["text"]).encode()}
    if how == "ssh_host_key":
        return ssh_host_key(name, arguments["type"], existing)
    return certificate(arguments)


def ssh_host_key(name: str, kind: str, existing: bytes | None = None) -> dict[str, bytes]:
    """Return a private key in OpenSSH's format under ``name`` and its public key under ``name``.pub."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    except ImportError as error:
        raise missing_library("cryptography", FOR) from error

    private: Any
    if existing is not None:
        try:
            private = serialization.load_ssh_private_key(existing, password=None)
        except (ValueError, TypeError):
            raise OperationError(
                f"The key {name} of the Secret is no readable private key, so {name}.pub cannot be made from it.",
                reason="Incomplete",
                hint=f"Add {name}.pub by hand, or delete {name} so that both are made anew.",
            ) from None
    elif kind == "ed25519":
        private = ed25519.Ed25519PrivateKey.generate()
    elif kind == "rsa":
        private = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    else:
        private = ec.generate_private_key(ec.SECP256R1())
    public = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    secret = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    return {name: existing if existing is not None else secret, f"{name}.pub": public + b"\n"}


def certificate(arguments: Mapping[str, Any]) -> dict[str, bytes]:
    """Return ca.crt, tls.crt and tls.key: a server's certificate, from a CA whose key is thrown away at once."""
    import datetime
    import ipaddress

    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ImportError as error:
        raise missing_library("cryptography", FOR) from error

    names: list[x509.GeneralName] = [
        x509.DNSName(item) for item in arguments["dns_names"] or [arguments["common_name"]]
    ]
    try:
        names += [x509.IPAddress(ipaddress.ip_address(item)) for item in arguments["ip_addresses"]]
    except ValueError as error:
        raise OperationError(f"ip_addresses: {error}.", reason="Malformed", hint="Nothing was sent.") from error

    begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=5)  # clocks differ
    end = begin + datetime.timedelta(days=arguments["days"], minutes=5)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{arguments['common_name'][:61]} CA")])
    ca = (
        x509.CertificateBuilder()
        .subject_name(ca_name)
        .issuer_name(ca_name)
        .public_key(ca_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(x509, signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    server = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, arguments["common_name"])]))
        .issuer_name(ca_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(x509, signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    return {
        "ca.crt": ca.public_bytes(pem),
        "tls.crt": server.public_bytes(pem),
        "tls.key": key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    }


def token_key(kid: str) -> dict[str, str]:
    """Return a private JSON Web Key (RFC 7517) that signs tokens with RS256, under a name."""
    try:
        from cryptography.hazmat.primitives.asymmetric import rsa
    except ImportError as error:
        raise missing_library("cryptography", FOR) from error

    def text(number: int) -> str:
        return base64url(number.to_bytes((number.bit_length() + 7) // 8, "big"))

    key = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS).private_numbers()
    parts = {"n": key.public_numbers.n, "e": key.public_numbers.e, "d": key.d, "p": key.p, "q": key.q}
    parts |= {"dp": key.dmp1, "dq": key.dmq1, "qi": key.iqmp}
    return {
        "kty": "RSA",
        "alg": "RS256",
        "use": "sig",
        "kid": kid,
        **{name: text(part) for name, part in parts.items()},
    }


def _usage(x509: Any, signs: bool) -> Any:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
