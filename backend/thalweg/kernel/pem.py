"""Certificates, keys and revocation lists that users give: PEM contents, checked before they are kept."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

PEM_BYTES_MAX = 64 * 1024


@dataclass(frozen=True)
class PemFacts:
    """Public facts of a PEM text. For a revocation list, the subject is its issuer and the end its next update."""

    subject: str | None = None
    expires_at: datetime | None = None


def facts_of_certificates(pem: str) -> PemFacts:
    """Facts of the first certificate; a chain or several roots may follow. Raises ValueError with the cure."""
    first = _certificates(pem)[0]
    return PemFacts(first.subject.rfc4514_string(), first.not_valid_after_utc)


def facts_of_key(pem: str) -> PemFacts:
    _public_part(pem)
    return PemFacts()


def facts_of_revocations(pem: str) -> PemFacts:
    _check_form(pem, "X509 CRL")
    try:
        found = x509.load_pem_x509_crl(pem.encode())
    except ValueError as error:
        raise ValueError(f"The revocation list cannot be read: {error}.") from error
    return PemFacts(found.issuer.rfc4514_string(), found.next_update_utc)


def check_pair(certificate: str, key: str) -> None:
    """Raises ValueError when the key is not the certificate's."""
    public = _certificates(certificate)[0].public_key()
    if public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) != _public_part(key):
        raise ValueError("The key does not belong to the certificate: give the two that were made together.")


def _certificates(pem: str) -> list[x509.Certificate]:
    _check_form(pem, "CERTIFICATE")
    try:
        return x509.load_pem_x509_certificates(pem.encode())
    except ValueError as error:
        raise ValueError(f"The certificate cannot be read: {error}.") from error


def _public_part(pem: str) -> bytes:
    _check_form(pem, "PRIVATE KEY")
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except TypeError as error:
        raise ValueError(
            "The key is encrypted. Give it without its passphrase (openssl pkey -in KEY): it is encrypted here."
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError("The key cannot be read: give a private key in PEM form.") from error
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _check_form(pem: str, label: str) -> None:
    if "-----BEGIN " not in pem or label not in pem:
        raise ValueError(f"Not PEM: give the contents of the file (-----BEGIN {label}-----), not its path.")


PEM_FIELDS: dict[str, Callable[[str], PemFacts]] = {
    "sslrootcert": facts_of_certificates,
    "sslcert": facts_of_certificates,
    "sslkey": facts_of_key,
    "sslcrl": facts_of_revocations,
}
"""libpq's names, and what each must be."""
