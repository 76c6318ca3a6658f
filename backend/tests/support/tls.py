"""Certificates of a test's own authority, and a server that wants them from its clients."""

import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.support.servers import POSTGRES_USER, Cluster, start_cluster


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


class Authority:
    def __init__(self, name: str = "Test authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self.certificate = self._sign(self._name, self._key, is_authority=True)

    def issue(self, common: str) -> tuple[str, str]:
        """(certificate, key), PEM, for this name and loopback."""
        key = ec.generate_private_key(ec.SECP256R1())
        return self._sign(_name(common), key, is_authority=False), key_pem(key)

    def revocations(self, *certificates: str) -> str:
        now = datetime.now(UTC)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self._name)
        builder = builder.last_update(now - timedelta(days=1)).next_update(now + timedelta(days=30))
        for pem in certificates:
            serial = x509.load_pem_x509_certificate(pem.encode()).serial_number
            entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now - timedelta(hours=1))
            builder = builder.add_revoked_certificate(entry.build())
        return builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool) -> str:
        now = datetime.now(UTC)
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")])
        builder = (
            x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=2)).not_valid_after(now + timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(names, critical=False)
        )  # fmt: skip
        return builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


@dataclass
class TlsServer:
    """User `keyholder` gets in by a certificate alone, `teller` by password over TLS."""

    cluster: Cluster
    authority: Authority
    certificate: str


def start_tls_server() -> TlsServer:
    authority = Authority()
    certificate, key = authority.issue("localhost")
    cluster = start_cluster()
    data = Path(cluster.directory, "data")
    for name, pem in (("server.crt", certificate), ("server.key", key), ("root.crt", authority.certificate)):
        path = data / name
        path.write_text(pem)
        path.chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(path, POSTGRES_USER, POSTGRES_USER)
    cluster.execute(
        "CREATE ROLE keyholder LOGIN", "CREATE ROLE teller LOGIN PASSWORD 'secret of teller'",
        "ALTER SYSTEM SET ssl_ca_file = 'root.crt'", "ALTER SYSTEM SET ssl = on",
    )  # fmt: skip
    (data / "pg_hba.conf").write_text(
        f"host all {POSTGRES_USER} 127.0.0.1/32 trust\n"
        "hostssl all keyholder 127.0.0.1/32 cert\n"
        "hostssl all teller 127.0.0.1/32 scram-sha-256\n"
    )
    cluster.execute("SELECT pg_reload_conf()")
    return TlsServer(cluster, authority, certificate)
