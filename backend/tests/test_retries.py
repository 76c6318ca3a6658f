"""Transactions that wait for their retry, as a stream's health, its destinations and its transactions tell of them."""

from typing import Any

import pytest

from tests.support.engine_double import example
from tests.test_health import destination, told
from thalweg.engine_client.documents import EngineError, StreamStatus, Transactions
from thalweg.live.retries import shown_retry
from thalweg.live.schemas import HealthLevel

WITHOUT_ROW = 'INSERT into "public"."ranks": a unique key exists already. The server\'s SQLSTATE: 23505.'
TROUBLE = f"A change does not fit the destination's row: {WITHOUT_ROW}"


def waiting() -> dict[str, Any]:
    status = StreamStatus.model_validate(example("status.fanout"))
    return status.model_dump(mode="json", by_alias=True)["destinations"][0]


def waits(name: str, transactions: int = 1, **more: Any) -> dict[str, Any]:
    retry = {"next_retry": waiting()["next_retry"], "retrying_transactions": transactions}
    return {**destination(name), **retry, **more}


def test_the_health_names_the_retry_and_the_error_without_the_row() -> None:
    one = f"1 transaction waits for its retry 2 of 10 at 10:00:30 UTC: {TROUBLE}"
    assert told(waits("a")) == (HealthLevel.WARNING, one)
    three = f"Warehouse: 3 transactions wait for their retries, the first for retry 2 of 10 at 10:00:30 UTC: {TROUBLE}"
    assert told(waits("a", 3), destination("b")) == (HealthLevel.WARNING, three)
    assert "waits for its retry" not in told(waits("a", status="DISABLED"), destination("b"))[1]


def test_only_operators_see_the_row() -> None:
    retry = waiting()["next_retry"]
    revealed, hidden = shown_retry(retry, reveals=True), shown_retry(retry, reveals=False)
    assert revealed is not None and revealed.detail is not None and "(id = 7)" in revealed.detail
    assert hidden is not None and hidden.message == WITHOUT_ROW and "id = 7" not in hidden.model_dump_json()


def test_older_engines_tell_nothing_of_retries() -> None:
    document = example("transactions")
    assert [one.retry is None for one in Transactions.model_validate(document).transactions] == [
        True, True, False, True,
    ]  # fmt: skip
    for transaction in document["transactions"]:
        del transaction["retry"]
    assert not any(one.retry for one in Transactions.model_validate(document).transactions)


@pytest.mark.parametrize(
    ("retries", "before"), [(0, ""), (1, "; retried once before"), (12, "; retried 12 times before")]
)
def test_an_error_tells_how_often_it_was_retried(retries: int, before: str) -> None:
    facts = {"sqlstate": "", "operation": "UPDATE", "row_missing": True, "retries": retries, "detail": ""}
    error = EngineError.model_validate({**waiting()["next_retry"]["error"], **facts})
    assert error.message == f'UPDATE of "public"."ranks": the destination has no such row{before}.'
