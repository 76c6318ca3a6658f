"""Codes of a second factor. Those of an authenticator: RFC 6238 with SHA-1, six digits and thirty seconds, which every
app knows. Recovery codes: random, each of use once."""

import hmac
import re
import secrets
from datetime import datetime
from urllib.parse import urlsplit

import pyotp
import segno

STEP_SECONDS = 30
DRIFT_STEPS = 1
"""A device's clock may be wrong by so many steps, either way."""
RECOVERY_CODES = 10
BEGINNING = 4
GROUPS = 4
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without what is mistaken for something else. Twelve of them, after the beginning, are 59 bits."""
_AUTHENTICATOR = re.compile(r"[0-9]{6}")


def new_factor() -> str:
    """160 bits in base32, as apps take it."""
    return pyotp.random_base32()


def address_of(factor: str, user_name: str, console_url: str) -> str:
    """The content of the QR code. The host distinguishes the entries of several installations."""
    return pyotp.TOTP(factor).provisioning_uri(
        name=f"{user_name}@{urlsplit(console_url).hostname}", issuer_name="Thalweg"
    )


def picture_of(address: str) -> str:
    """The QR code as an SVG in a data: address, on white with a margin: scanners want both, in a dark console too."""
    return segno.make(address, error="m", micro=False).svg_data_uri(scale=5, border=4, light="#fff")


def plain(code: str) -> str:
    """The form in which codes are compared: people type spaces, dashes and capitals."""
    return re.sub(r"[\s-]", "", code).lower()


def is_authenticators(code: str) -> bool:
    return _AUTHENTICATOR.fullmatch(code) is not None


def step_of(factor: str, code: str, at: datetime, last: int | None) -> int | None:
    """The time step that the code belongs to; None when it is wrong, or not later than the last accepted one."""
    if not is_authenticators(code):  # other letters than ASCII's cannot be compared in constant time
        return None
    otp = pyotp.TOTP(factor)
    current = int(at.timestamp()) // STEP_SECONDS
    for step in range(current - DRIFT_STEPS, current + DRIFT_STEPS + 1):
        if hmac.compare_digest(otp.generate_otp(step), code) and (last is None or step > last):
            return step
    return None


def new_recovery_codes() -> list[str]:
    """Their beginnings differ."""
    made: dict[str, str] = {}
    while len(made) < RECOVERY_CODES:
        groups = ["".join(secrets.choice(ALPHABET) for _ in range(BEGINNING)) for _ in range(GROUPS)]
        made[groups[0]] = "-".join(groups)
    return list(made.values())
