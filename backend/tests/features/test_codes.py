"""Codes as RFC 6238 makes them, and recovery codes."""

import base64
from datetime import UTC, datetime
from urllib.parse import unquote

import pyotp
import pytest

from thalweg.features.identity import codes

SECRET = base64.b32encode(b"12345678901234567890").decode()
"""Of RFC 6238, appendix B."""


@pytest.mark.parametrize(
    ("seconds", "eight_digits"),
    [
        (59, "94287082"),
        (1111111109, "07081804"),
        (1111111111, "14050471"),
        (1234567890, "89005924"),
        (2000000000, "69279037"),
        (20000000000, "65353130"),
    ],
)
def test_vectors_of_the_rfc(seconds: int, eight_digits: str) -> None:
    at = datetime.fromtimestamp(seconds, UTC)
    assert codes.step_of(SECRET, eight_digits[2:], at, None) == seconds // 30
    assert codes.step_of(SECRET, f"{(int(eight_digits) + 1) % 10**6:06}", at, None) is None


@pytest.mark.parametrize(("steps", "accepted"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_a_clock_may_be_wrong_by_one_step(steps: int, accepted: bool) -> None:
    at = datetime(2026, 11, 22, 12, 0, 15, tzinfo=UTC)
    current = int(at.timestamp()) // 30
    code = pyotp.TOTP(SECRET).generate_otp(current + steps)
    assert codes.step_of(SECRET, code, at, None) == (current + steps if accepted else None)


def test_neither_a_code_nor_one_before_it_counts_again() -> None:
    at = datetime(2026, 11, 22, 12, 0, 15, tzinfo=UTC)
    current = int(at.timestamp()) // 30
    otp = pyotp.TOTP(SECRET)
    assert codes.step_of(SECRET, otp.generate_otp(current), at, current) is None
    assert codes.step_of(SECRET, otp.generate_otp(current - 1), at, current) is None
    assert codes.step_of(SECRET, otp.generate_otp(current + 1), at, current) == current + 1


def test_codes_are_taken_as_people_type_them() -> None:
    assert codes.plain(" 492 039\t") == "492039"
    assert codes.plain("NKWX-72rm pd4t-hq9s") == "nkwx72rmpd4thq9s"
    assert not codes.is_authenticators("٤٩٢٠٣٩")
    assert codes.step_of(SECRET, "٤٩٢٠٣٩", datetime(2026, 11, 22, tzinfo=UTC), None) is None


def test_recovery_codes_differ_from_their_beginnings_on() -> None:
    made = codes.new_recovery_codes()
    assert len({code[: codes.BEGINNING] for code in made}) == codes.RECOVERY_CODES
    assert all(len(codes.plain(code)) == codes.GROUPS * codes.BEGINNING for code in made)


def test_the_qr_code_needs_nothing_from_elsewhere() -> None:
    address = codes.address_of(SECRET, "Ada Lovelace", "https://thalweg.example.com:8642")
    assert address.startswith("otpauth://totp/Thalweg:Ada%20Lovelace%40thalweg.example.com?")
    assert f"secret={SECRET}" in address
    picture = codes.picture_of(address)
    assert picture.startswith("data:image/svg+xml")
    assert "#fff" in unquote(picture)
