"""Counts in sentences have the noun that fits."""

import pytest

from thalweg.cli.commands.alerts import _outcome
from thalweg.cli.commands.watching import _amiss
from thalweg.kernel.sums import Sum
from thalweg.kernel.words import counted, parked_in_words


@pytest.mark.parametrize(
    ("count", "told"), [(0, "0 tables"), (1, "1 table"), (2, "2 tables"), (1234, "1\u202f234 tables")]
)
def test_a_count_has_its_noun(count: int, told: str) -> None:
    assert counted(count, "table") == told


def test_one_is_parked_and_two_are() -> None:
    assert [parked_in_words(Sum(count)) for count in (1, 2)] == [
        "1 transaction is parked", "2 transactions are parked",
    ]  # fmt: skip


def test_what_is_parked_is_a_lower_bound_or_unknown_while_a_queue_is() -> None:
    assert parked_in_words(Sum.of([1, None])) == "at least 1 transaction is parked"
    assert parked_in_words(Sum.of([3, 4, None])) == "at least 7 transactions are parked"
    assert parked_in_words(Sum.of([None, None])) == "an unknown number of transactions is parked"


def test_the_command_line_counts_engines_and_tries() -> None:
    def silent(online: int) -> list[str]:
        return _amiss({"engines_online": online, "engines_total": 2, "live": True})

    assert [*silent(1), *silent(0)] == ["1 of 2 engines does not answer.", "2 of 2 engines do not answer."]
    error = {"message": "No answer.", "cure": "Try the address."}
    told = [_outcome({"state": "failed", "tries": tries, "error": error}) for tries in (1, 3)]
    assert told == [f"failed after {tries}: No answer. Try the address." for tries in ("1 try", "3 tries")]
