"""The one rule for sums of which parts may be unknown (docs/concepts.md); the console's is frontend/src/lib/sums.ts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Sum(Generic[Number]):
    """`value` is the known part, None if no part is known; `at_least`: it is a lower bound, because a part is not."""

    value: Number | None
    at_least: bool = False

    @property
    def exact(self) -> Number | None:
        """The whole sum. None while a part is unknown."""
        return None if self.at_least else self.value

    @classmethod
    def of(cls, parts: Iterable[Number | None]) -> "Sum[Number]":
        values = list(parts)
        known = [part for part in values if part is not None]
        return cls(sum(known[1:], known[0]), len(known) < len(values)) if known else cls(None)


def known_sum(parts: Iterable[Number | None]) -> Number | None:
    """The known part alone, for answers that tell its parts beside it."""
    return Sum.of(parts).value
