"""Transactions that wait for their retry by an error policy, in words."""

from datetime import UTC, datetime
from typing import Any

from thalweg.kernel.lifecycle import ObservedStatus
from thalweg.kernel.words import counted
from thalweg.live.schemas import TransactionRetry


def shown_retry(retry: dict[str, Any] | None, *, reveals: bool) -> TransactionRetry | None:
    """`retry` is of the contract's document. `reveals`: what the engine says of the row."""
    if retry is None:
        return None
    error = retry["error"]
    return TransactionRetry(
        number=retry["number"], times=retry["times"], at=retry["at"], code=error["code"],
        sqlstate=error["sqlstate"] or None, table=error["table"] or None, message=error["message"],
        detail=(error["detail"] or None) if reveals else None,
    )  # fmt: skip


def retry_in_words(destination: dict[str, Any]) -> str | None:
    """`destination` is of the contract's document. Gives the waiting work and the end of the wait; None: nothing waits,
    or it has an error of its own, or is stopped."""
    retry = destination.get("next_retry")
    if retry is None or destination["error"] is not None or destination["status"] != ObservedStatus.ENABLED:
        return None
    count = destination["retrying_transactions"]
    at = datetime.fromisoformat(retry["at"]).astimezone(UTC)
    which = f"retry {retry['number']} of {retry['times']} at {at:%H:%M:%S} UTC"
    if count == 1:
        return f"1 transaction waits for its {which}"
    return f"{counted(count, 'transaction')} wait for their retries, the first for {which}"
