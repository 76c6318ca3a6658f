"""Errors whose messages may quote rows: decides whether a text of a database is for operators alone."""

STATES_WITHOUT_ROWS = (
    "08", "25", "28", "3D", "3F", "40", "42501", "42703", "42704", "42883", "42P01", "53", "54", "55", "57", "58",
)  # fmt: skip
"""Beginnings of SQLSTATEs whose messages name objects, addresses and limits only. Others quote values (bad data,
violated constraints and views' conditions, statements that triggers build) or say whatever a function has raised."""


KINDS = {
    "22": "a value does not fit", "23502": "a column must not be null", "23503": "a foreign key is violated",
    "23505": "a unique key exists already", "23514": "a check is violated",
    "23P01": "an exclusion constraint is violated", "44000": "a view's check option is violated",
    "P0001": "a function or a trigger has raised an error",
}  # fmt: skip
"""Kinds of those others in words, by the beginnings of their SQLSTATEs; the names in their messages cannot be told from
the values."""


def kind_of_state(sqlstate: str) -> str | None:
    """In words that quote nothing. None: there are no better ones than the SQLSTATE."""
    return next((words for state, words in KINDS.items() if sqlstate.startswith(state)), None)


def state_quotes_rows(sqlstate: str) -> bool:
    """Whether the message of a statement that failed so may hold values of rows, keys among them."""
    return not sqlstate.startswith(STATES_WITHOUT_ROWS)
