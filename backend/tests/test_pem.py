"""Certificates and keys that are given as PEM: what they may cost."""

import base64
import random
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from tests.support.tls import Authority
from thalweg.alerting.senders.settings import EmailSettings
from thalweg.kernel.pem import CHAIN_MAX, KEY_BYTES_MAX, PEM_FIELDS, check_pair

NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "somebody")])


def _element(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag]) + (bytes([size]) if size < 128 else bytes([0x80 | len(length)]) + length) + content


def rsa_key(bits: int, seed: int = 1, exponent: int = 65537, *, fits: bool = True) -> str:
    """In the form of a key, but of odd numbers instead of primes: real ones of this length take minutes to find."""
    chance = random.Random(seed)  # noqa: S311
    p, q = (chance.getrandbits(bits // 2) | 3 << (bits // 2 - 2) | 1 for _ in range(2))
    numbers = (0, p * q if fits else p * q + 2, exponent, chance.getrandbits(bits - 1) | 1, p, q, 1, 1, 1)
    content = b"".join(_element(2, number.to_bytes(number.bit_length() // 8 + 1, "big")) for number in numbers)
    text = base64.encodebytes(_element(0x30, content)).decode()
    return f"-----BEGIN RSA PRIVATE KEY-----\n{text}-----END RSA PRIVATE KEY-----\n"


def certificate_of(key_pem: str) -> str:
    """For the key, signed by another one."""
    key = load_pem_private_key(key_pem.encode(), None, unsafe_skip_rsa_key_validation=True)
    assert isinstance(key, rsa.RSAPrivateKey)
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(NAME).issuer_name(NAME).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return signed.public_bytes(Encoding.PEM).decode()


def test_keys_are_as_long_as_a_handshake_bears() -> None:
    fits = rsa_key(8192)
    PEM_FIELDS["sslkey"](fits)
    check_pair(certificate_of(fits), fits)
    for field, pem in (("sslkey", rsa_key(8194)), ("sslcert", certificate_of(rsa_key(16384)))):
        with pytest.raises(ValueError, match="bits: give one of 8192 at most"):
            PEM_FIELDS[field](pem)
    long_exponent = rsa_key(2048, exponent=(1 << 64) + 1)
    for field, pem in (("sslkey", long_exponent), ("sslrootcert", certificate_of(long_exponent))):
        with pytest.raises(ValueError, match="exponent"):
            PEM_FIELDS[field](pem)


def test_a_long_key_anywhere_in_the_chain_is_refused() -> None:
    chain = Authority().certificate + certificate_of(rsa_key(9000))
    for field in ("sslcert", "sslrootcert"):
        with pytest.raises(ValueError, match="9000 bits"):
            PEM_FIELDS[field](chain)
    with pytest.raises(ValueError, match="9000 bits"):
        EmailSettings(host="mail", sender="a@b.org", recipients=["c@d.org"], ca_certificate=chain)


def test_parts_that_do_not_fit_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="damaged"):
        PEM_FIELDS["sslkey"](rsa_key(2048, fits=False))


def test_chains_and_texts_have_an_end() -> None:
    certificate = Authority().certificate
    PEM_FIELDS["sslcert"](certificate * CHAIN_MAX)
    with pytest.raises(ValueError, match="11 certificates: give 10 at most"):
        PEM_FIELDS["sslcert"](certificate * (CHAIN_MAX + 1))
    with pytest.raises(ValueError, match="51 certificates: give 50 at most"):
        PEM_FIELDS["sslrootcert"](certificate * 51)
    with pytest.raises(ValueError, match=f"give {KEY_BYTES_MAX} at most"):
        PEM_FIELDS["sslkey"]("# a comment\n" * 2000 + rsa_key(2048))


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_a_passphrase_is_told_of(form: PrivateFormat) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    encrypted = key.private_bytes(Encoding.PEM, form, BestAvailableEncryption(b"phrase")).decode()
    with pytest.raises(ValueError, match="without its passphrase"):
        PEM_FIELDS["sslkey"](encrypted)
    PEM_FIELDS["sslkey"](key.private_bytes(Encoding.PEM, form, NoEncryption()).decode())
