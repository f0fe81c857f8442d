"""The certificate authority, server certificate and ServiceAccount key of one run. Nothing of it outlives the run."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Clocks of containers on one machine agree, those of a laptop after sleep may not.
_BACKDATE = dt.timedelta(hours=1)
# `rehearse --keep` may stay up for days.
_VALIDITY = dt.timedelta(days=30)
_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_ADDRESSES = ("127.0.0.1",)


@dataclass(frozen=True)
class Pki:
    """Files of a run's keys; the private ones are readable by their owner only."""

    ca: Path
    certificate: Path
    key: Path
    service_account_key: Path
    service_account_public_key: Path


def make_pki(folder: Path, addresses: Sequence[str] = ()) -> Pki:
    """Write a new CA certificate, one certificate for server and client use, and a ServiceAccount signing key.

    `addresses`: IP addresses of the servers besides loopback.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    now = dt.datetime.now(dt.UTC)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpupod-rehearsal-ca")])
    ca = (
        _builder(ca_name, ca_name, ca_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpupod-rehearsal")])
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in _NAMES]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in (*_ADDRESSES, *addresses)]
    certificate = (
        _builder(subject, ca_name, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        # Python 3.13 verifies strictly and wants the issuer's key named.
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    service_account = ec.generate_private_key(ec.SECP256R1())
    return Pki(
        ca=_write(folder / "ca.crt", ca.public_bytes(serialization.Encoding.PEM), secret=False),
        certificate=_write(folder / "tls.crt", certificate.public_bytes(serialization.Encoding.PEM), secret=False),
        key=_write(folder / "tls.key", _pem(key)),
        service_account_key=_write(folder / "sa.key", _pem(service_account)),
        service_account_public_key=_write(
            folder / "sa.pub",
            service_account.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            ),
            secret=False,
        ),
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, now: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(now + _VALIDITY)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes, *, secret: bool = True) -> Path:
    path.touch(mode=0o600 if secret else 0o644)
    path.write_bytes(content)
    return path
