"""Certificates, keys and revocation lists that users give: PEM contents, checked before they are kept.

All accepted text is worked on in each handshake, by the control plane and by engines; so keys, chains and texts have
sizes that a handshake can bear, and reading them takes no time that other requests would notice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from thalweg.kernel.words import ended

PEM_BYTES_MAX = 64 * 1024
KEY_BYTES_MAX = 16 * 1024
KEY_BITS_MAX = 8192
EXPONENT_BITS_MAX = 64
"""OpenSSL's own limit for long keys: each check of a signature takes as many steps."""
CHAIN_MAX = 10
"""Certificates from a user's own to the authority's."""
ROOTS_MAX = 50


@dataclass(frozen=True)
class PemFacts:
    """Public facts of a PEM text. For a revocation list, the subject is its issuer and the end its next update."""

    subject: str | None = None
    expires_at: datetime | None = None


def facts_of_chain(pem: str) -> PemFacts:
    """Facts of the first certificate; those that it comes from may follow. Raises ValueError with the cure."""
    return _facts(_certificates(pem, CHAIN_MAX))


def facts_of_roots(pem: str) -> PemFacts:
    return _facts(_certificates(pem, ROOTS_MAX))


def _facts(certificates: list[x509.Certificate]) -> PemFacts:
    first = certificates[0]
    return PemFacts(first.subject.rfc4514_string(), first.not_valid_after_utc)


def facts_of_key(pem: str) -> PemFacts:
    _public_part(pem)
    return PemFacts()


def facts_of_revocations(pem: str) -> PemFacts:
    _check_form(pem, "X509 CRL", PEM_BYTES_MAX)
    try:
        found = x509.load_pem_x509_crl(pem.encode())
    except ValueError as error:
        raise ValueError(f"The revocation list cannot be read: {ended(str(error))}") from error
    return PemFacts(found.issuer.rfc4514_string(), found.next_update_utc)


def check_pair(certificate: str, key: str) -> None:
    """Raises ValueError when the key is not the certificate's."""
    public = _certificates(certificate, CHAIN_MAX)[0].public_key()
    if public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) != _public_part(key):
        raise ValueError("The key does not belong to the certificate: give the two that were made together.")


def _certificates(pem: str, count_max: int) -> list[x509.Certificate]:
    _check_form(pem, "CERTIFICATE", PEM_BYTES_MAX)
    if (count := pem.count("-----BEGIN ")) > count_max:
        raise ValueError(f"The text holds {count} certificates: give {count_max} at most.")
    try:
        found = x509.load_pem_x509_certificates(pem.encode())
        keys = [certificate.public_key() for certificate in found]
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"The certificate cannot be read: {ended(str(error))}") from error
    for key in keys:
        _check_size(key, "certificate's key")
    return found


def _public_part(pem: str) -> bytes:
    _check_form(pem, "PRIVATE KEY", KEY_BYTES_MAX)
    if "ENCRYPTED" in pem:
        raise ValueError(
            "The key is encrypted. Give it without its passphrase (openssl pkey -in KEY): it is encrypted here."
        )
    try:
        # Whether an RSA key's factors are primes takes seconds to find out, and is its owner's own affair.
        key = load_pem_private_key(pem.encode(), password=None, unsafe_skip_rsa_key_validation=True)
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        raise ValueError("The key cannot be read: give a private key in PEM form.") from error
    public = key.public_key()
    _check_size(public, "key")
    if isinstance(key, rsa.RSAPrivateKey):
        _check_factors(key.private_numbers())
    return public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _check_size(public: object, what: str) -> None:
    bits = getattr(public, "key_size", 0)
    if bits > KEY_BITS_MAX:
        raise ValueError(f"The {what} has {bits} bits: give one of {KEY_BITS_MAX} at most.")
    if isinstance(public, rsa.RSAPublicKey) and public.public_numbers().e.bit_length() > EXPONENT_BITS_MAX:
        raise ValueError(f"The {what} has too large a public exponent: give one of {EXPONENT_BITS_MAX} bits at most.")


def _check_factors(numbers: rsa.RSAPrivateNumbers) -> None:
    if numbers.p * numbers.q != numbers.public_numbers.n:
        raise ValueError("The key is damaged: its parts do not fit each other.")


def _check_form(pem: str, label: str, bytes_max: int) -> None:
    if len(pem) > bytes_max:
        raise ValueError(f"The text has {len(pem)} bytes: give {bytes_max} at most, and nothing but the PEM contents.")
    if "-----BEGIN " not in pem or label not in pem:
        raise ValueError(f"Not PEM: give the contents of the file (-----BEGIN {label}-----), not its path.")


PEM_FIELDS: dict[str, Callable[[str], PemFacts]] = {
    "sslrootcert": facts_of_roots,
    "sslcert": facts_of_chain,
    "sslkey": facts_of_key,
    "sslcrl": facts_of_revocations,
}
"""libpq's names, and what each must be."""
