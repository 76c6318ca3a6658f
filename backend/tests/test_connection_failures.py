"""Failed attempts to connect, as libpq tells them: one failure with a cure."""

import psycopg

from thalweg.inspection.failure import failure_of
from thalweg.inspection.target import Target

TARGET = Target("db", 5432, "shop", "clerk", "secret", "prefer")
AT = 'connection to server at "10.0.0.5", port 5432 failed: '
WRONG = f'{AT}FATAL:  password authentication failed for user "clerk"\n'


def no_entry(how: str) -> str:
    return f'{AT}FATAL:  no pg_hba.conf entry for host "10.0.0.9", user "clerk", database "shop", {how}\n'


def test_a_second_attempt_without_tls_does_not_hide_why_the_first_failed() -> None:
    """As with sslmode prefer at a server that has hostssl lines only."""
    for second in (no_entry("no encryption"), no_entry("SSL off")):
        failure = failure_of(psycopg.OperationalError(WRONG + second), TARGET)
        assert failure.message == 'FATAL: password authentication failed for user "clerk".'
        assert (failure.code, "the password" in failure.cure) == ("authentication_failed", True)
    failure = failure_of(psycopg.OperationalError(no_entry("SSL encryption") + no_entry("no encryption")), TARGET)
    assert (failure.message.endswith("SSL encryption."), "pg_hba.conf" in failure.cure) == (True, True)


def test_a_missing_entry_is_told_where_nothing_else_is() -> None:
    failure = failure_of(psycopg.OperationalError(no_entry("no encryption")), TARGET)
    assert ("pg_hba.conf" in failure.cure, failure.message.endswith("no encryption.")) == (True, True)
    failure = failure_of(psycopg.OperationalError(no_entry("no encryption") + WRONG), TARGET)
    assert "password authentication failed" in failure.message
