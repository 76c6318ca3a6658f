"""Sentences that are put together: one full stop, and a capital letter first."""

import ast
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from thalweg.inspection.failure import failure_of
from thalweg.inspection.target import Target
from thalweg.kernel.settings import PACKAGE
from thalweg.kernel.words import ended

FOREIGN = ("error", "failure.message", "problem.message", "reason", "why", "rounds.history_failure")
"""Texts that others wrote: they may end with a full stop, or with a question mark."""
TARGET = Target("db.example", 5432, "shop", "app", "secret", "prefer")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("It is gone", "It is gone."), ("It is gone.", "It is gone."), ("Does it run?", "Does it run?"), ("“x.”", "“x.”")],
)
def test_a_sentence_ends_once(text: str, sentence: str) -> None:
    assert ended(text) == sentence


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            'connection to server at "10.0.0.1", port 5432 failed: Connection refused\n'
            "\tIs the server running on that host and accepting TCP/IP connections?\n",
            "Connection refused. Is the server running on that host and accepting TCP/IP connections?",
        ),
        (
            'connection to server at "10.0.0.1", port 5432 failed: server closed the connection unexpectedly\n'
            "\tThis probably means the server terminated abnormally\n\tbefore or while processing the request.\n",
            "Server closed the connection unexpectedly. This probably means the server terminated abnormally before or "
            "while processing the request.",
        ),
        ("connection timeout expired", "Connection timeout expired."),
    ],
)
def test_what_libpq_says_is_a_sentence(said: str, message: str) -> None:
    assert failure_of(psycopg.OperationalError(said), TARGET).message == message


def _joined(tree: ast.AST) -> Iterator[tuple[ast.FormattedValue, str]]:
    """Each value in a text, with the constant behind it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for part, after in zip(node.values, node.values[1:], strict=False):
                if isinstance(part, ast.FormattedValue) and isinstance(after, ast.Constant):
                    yield part, str(after.value)


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.py")), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_full_stop_is_put_behind_what_others_wrote(file: Path) -> None:
    found = [
        f"{part.lineno}: {value}"
        for part, after in _joined(ast.parse(file.read_text()))
        if after.startswith(". ") or after == "."
        for value in [ast.unparse(part.value)]
        if value in FOREIGN or value.endswith(("rstrip('.')", "str(error)"))
    ]
    assert found == [], "use ended(), which looks at how the text ends"
