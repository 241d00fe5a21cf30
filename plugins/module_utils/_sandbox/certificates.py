# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Keys and certificates: one authority for a sandbox, one certificate for each component, none readable by others."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

# Whoever can run ansible-core has this library, but the module may run in another Python than ansible-core does.
try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:
    CRYPTOGRAPHY_ERROR: ImportError | None = error
else:
    CRYPTOGRAPHY_ERROR = None

# A sandbox is thrown away, not renewed: certificates outlive it. They begin an hour ago in case the clock is set back.
_LIFETIME = datetime.timedelta(days=3650)
_SKEW = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate to have: user and groups for clients, addresses and names for servers."""

    file: str
    user: str
    groups: tuple[str, ...] = ()
    addresses: tuple[IPv4Address, ...] = ()
    names: tuple[str, ...] = ()
    client: bool = True

    @property
    def subject(self) -> x509.Name:
        groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in self.groups]
        return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, self.user)])

    @property
    def alternatives(self) -> list[x509.GeneralName]:
        return [*(x509.DNSName(n) for n in self.names), *(x509.IPAddress(a) for a in self.addresses)]


def write_secret(path: Path, content: bytes) -> None:
    """Write so that the content is never readable by others, nor half there."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    os.replace(temporary, path)


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    # The traditional form: Kubernetes reads service account keys in it only.
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFETIME)
    )


class Authority:
    """The sandbox's certificate authority, kept as ``<name>.crt`` and ``<name>.key`` in one directory."""

    def __init__(self, directory: Path, name: str = "ca") -> None:
        self._directory = directory
        self._certificate_file = directory / f"{name}.crt"
        self._key_file = directory / f"{name}.key"
        if not (self._certificate_file.exists() and self._key_file.exists()):
            self._create(f"slurm_ops.kubernetes sandbox {name}")
        self._certificate = x509.load_pem_x509_certificate(self._certificate_file.read_bytes())
        public_key = self._certificate.public_key()
        if not isinstance(public_key, ec.EllipticCurvePublicKey):
            raise ValueError(f"{self._certificate_file} is not a certificate of the sandbox")
        self._public_key = public_key

    def _create(self, common_name: str) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        certificate = (
            _builder(subject, subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        write_secret(self._key_file, _key_bytes(key))
        write_secret(self._certificate_file, certificate.public_bytes(serialization.Encoding.PEM))

    def ensure(self, identities: Sequence[Identity]) -> list[str]:
        """Make the certificates that are missing or no longer fit. Returns the names of the files made."""
        made = [identity for identity in identities if not self._fits(identity)]
        if made:
            key = serialization.load_pem_private_key(self._key_file.read_bytes(), None)
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise ValueError(f"{self._key_file} is not a key of the sandbox")
            for identity in made:
                self._issue(identity, key)
        return [identity.file for identity in made]

    def _fits(self, identity: Identity) -> bool:
        try:
            text = (self._directory / f"{identity.file}.crt").read_bytes()
        except FileNotFoundError:
            return False
        if not (self._directory / f"{identity.file}.key").exists():
            return False
        certificate = x509.load_pem_x509_certificate(text)
        alternatives: list[x509.GeneralName] = []
        issuer = None
        for extension in certificate.extensions:
            if isinstance(extension.value, x509.SubjectAlternativeName):
                alternatives = list(extension.value)
            elif isinstance(extension.value, x509.AuthorityKeyIdentifier):
                issuer = extension.value
        # Not the name: an authority that had to be made anew has the same.
        return (
            issuer == x509.AuthorityKeyIdentifier.from_issuer_public_key(self._public_key)
            and certificate.subject == identity.subject
            and alternatives == identity.alternatives
        )

    def _issue(self, identity: Identity, authority_key: ec.EllipticCurvePrivateKey) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH] if identity.client else []
        if identity.alternatives:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
        builder = (
            _builder(identity.subject, self._certificate.subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
            )
        )
        if identity.alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(identity.alternatives), critical=False)
        certificate = builder.sign(authority_key, hashes.SHA256())
        write_secret(self._directory / f"{identity.file}.key", _key_bytes(key))
        write_secret(self._directory / f"{identity.file}.crt", certificate.public_bytes(serialization.Encoding.PEM))


def ensure_service_account_key(directory: Path) -> bool:
    """The key pair that signs ServiceAccount tokens. Returns whether it had to be made."""
    private, public = directory / "service-accounts.key", directory / "service-accounts.pub"
    if private.exists() and public.exists():
        return False
    key = ec.generate_private_key(ec.SECP256R1())
    write_secret(private, _key_bytes(key))
    write_secret(
        public,
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
    )
    return True
