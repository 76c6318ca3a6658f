"""Opaque cursors: the sort key of the last item, encoded so that nobody builds one by hand."""

import base64
import binascii
import json
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Query

from thalweg.kernel.models import FieldProblem
from thalweg.kernel.problems import Problem

LIMIT_DEFAULT = 100
LIMIT_MAX = 1000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROS_MAX = 2**52
"""In the year 2112: later than anything that a list holds."""

Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX, description="Items per page.")]
Cursor = Annotated[
    str | None,
    Query(max_length=1000, description="`next_cursor` of the previous page.", pattern=r"^[A-Za-z0-9_=-]*$"),
]


def encode_cursor(*key: str | int) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def micros_of(at: datetime) -> int:
    """A time as part of a cursor's key: whole microseconds since 1970."""
    return (at - EPOCH) // timedelta(microseconds=1)


def time_of(micros: int) -> datetime:
    """The time again. Raises invalid_request when no list can have given it."""
    if not 0 <= micros < MICROS_MAX:
        raise _foreign()
    return EPOCH + timedelta(microseconds=micros)


def decode_cursor(cursor: str, *kinds: type[str] | type[int]) -> list[str | int]:
    """The key again. Raises invalid_request when the cursor is not one of ours."""
    try:
        key = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, UnicodeDecodeError, RecursionError):
        key = None
    fits = isinstance(key, list) and len(key) == len(kinds)
    if not fits or not all(_clean(part, kind) for part, kind in zip(key, kinds, strict=True)):
        raise _foreign()
    return list(key)


def _foreign() -> Problem:
    return Problem(
        "invalid_request", "The cursor is not one that this list has given.", "Start again without a cursor.",
        errors=[FieldProblem(pointer="/query/cursor", code="invalid_cursor", message="Not a cursor.")],
    )  # fmt: skip


def _clean(part: object, kind: type[str] | type[int]) -> bool:
    if type(part) is not kind:
        return False
    if isinstance(part, int):
        return abs(part) < 2**62
    try:
        return "\x00" not in str(part) and bool(str(part).encode()) in (True, False)
    except UnicodeEncodeError:
        return False
