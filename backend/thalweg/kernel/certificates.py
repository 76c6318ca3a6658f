"""The certificate authority for engines: X.509 over P-256 (RFC 5280). Pure: knows neither the store nor engines."""

from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from thalweg.kernel.words import ended

AUTHORITY_NAME = "Thalweg engines"
AUTHORITY_LIFETIME = timedelta(days=3650)
CERTIFICATE_LIFETIME = timedelta(days=90)
RENEW_BELOW = CERTIFICATE_LIFETIME / 3
# Hosts' clocks differ a little: a certificate holds from before it was made.
CLOCK_SKEW = timedelta(minutes=5)


class RequestRefused(ValueError):
    """The certificate request is not what was asked for; the message says how."""


def make_authority(at: datetime) -> tuple[str, str]:
    """(certificate, private key), both PEM; the key is not encrypted: seal it before it is stored."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, AUTHORITY_NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - CLOCK_SKEW)
        .not_valid_after(at + AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return _pem(certificate), private.decode()


def sign_request(request: str, name: str, authority: str, key: str, at: datetime) -> str:
    """The certificate (PEM) for `request` (PKCS #10, PEM), which must be for `name` alone. Raises RequestRefused.

    Of the request only the public key is taken: it cannot ask for more than an engine gets.
    """
    public_key = _checked(request, name)
    issuer = x509.load_pem_x509_certificate(authority.encode())
    signer = serialization.load_pem_private_key(key.encode(), password=None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise TypeError("The authority's key is not an elliptic curve's.")
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer.subject)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - CLOCK_SKEW)
        .not_valid_after(min(at + CERTIFICATE_LIFETIME, issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return _pem(certificate)


def _checked(request: str, name: str) -> ec.EllipticCurvePublicKey:
    try:
        parsed = x509.load_pem_x509_csr(request.encode())
        names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound) as error:
        raise RequestRefused(f"The certificate request cannot be read: {ended(str(error))}") from error
    if not parsed.is_signature_valid:
        raise RequestRefused("The certificate request is not signed by its own key.")
    if list(names) != [x509.DNSName(name)]:
        raise RequestRefused(f"The certificate request is not for {name} alone.")
    public_key = parsed.public_key()
    if not isinstance(public_key, ec.EllipticCurvePublicKey) or not isinstance(public_key.curve, ec.SECP256R1):
        raise RequestRefused("The key of the certificate request is not of the curve P-256.")
    return public_key


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
