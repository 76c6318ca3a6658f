"""How fast tables change, from totals that start over, come late or stand still."""

from datetime import UTC, datetime, timedelta
from typing import Any

from thalweg.workers.table_rates import TableRates

AT = datetime(2026, 11, 23, tzinfo=UTC)


def document(**totals: int) -> dict[str, Any]:
    tables = [
        {"schema": "public", "table": name, "inserts": total - 1, "updates": 1, "deletes": 0, "truncates": 0}
        for name, total in totals.items()
    ]
    return {"id": "stream01", "destinations": [{"id": "a", "tables": tables}]}


def look(rates: TableRates, second: int, **totals: int) -> dict[str, float | None]:
    seen = document(**totals)
    rates.add_to(seen, AT + timedelta(seconds=second))
    return {table["table"]: table["changes_per_second"] for table in seen["destinations"][0]["tables"]}


def test_a_rate_is_known_after_a_while_and_follows_the_last_half_minute() -> None:
    rates = TableRates()
    assert look(rates, 0, orders=100, quiet=1) == {"orders": None, "quiet": None}
    assert look(rates, 4, orders=140, quiet=1) == {"orders": None, "quiet": None}
    assert look(rates, 10, orders=200, quiet=1) == {"orders": 10.0, "quiet": 0.0}
    for second in range(11, 60):
        last = look(rates, second, orders=200, quiet=1)
    assert last == {"orders": 0.0, "quiet": 0.0}


def test_a_table_that_came_in_has_no_rate_yet() -> None:
    rates = TableRates()
    look(rates, 0, orders=100)
    assert look(rates, 10, orders=200, late=50) == {"orders": 10.0, "late": None}


def test_a_table_that_went_takes_no_other_s_rate_along() -> None:
    rates = TableRates()
    look(rates, 0, orders=100, dropped=5)
    assert look(rates, 10, orders=200) == {"orders": 10.0}


def test_totals_that_start_over_are_no_negative_rate() -> None:
    rates = TableRates()
    look(rates, 0, orders=100)
    look(rates, 10, orders=200)
    assert look(rates, 20, orders=7) == {"orders": None}
    assert look(rates, 30, orders=57) == {"orders": 5.0}


def test_what_is_seen_no_more_is_forgotten() -> None:
    rates = TableRates()
    look(rates, 0, orders=100)
    rates.forget_before(AT + timedelta(seconds=31))
    assert look(rates, 32, orders=420) == {"orders": None}
