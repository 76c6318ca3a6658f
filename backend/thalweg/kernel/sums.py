"""The one rule for sums of which parts may be unknown (docs/concepts.md); the console's is frontend/src/lib/sums.ts."""

from collections.abc import Iterable
from typing import TypeVar

Number = TypeVar("Number", int, float)


def known_sum(parts: Iterable[Number | None]) -> Number | None:
    """The known part of the sum: a lower bound while a part is unknown. None if no part is known."""
    known = [part for part in parts if part is not None]
    return sum(known[1:], known[0]) if known else None
