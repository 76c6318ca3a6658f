"""Causes of parked transactions in words."""

import json
from pathlib import Path

import pytest

from thalweg.engine_client.documents import ROW_DIFFERS, SEVERAL_ROWS, UNWRITTEN
from thalweg.features.streams.error_causes import CauseKind, likely

WORDS = Path(__file__).resolve().parents[3] / "engine" / "contract" / "row-errors.json"


def test_the_words_of_causes_are_the_engines() -> None:
    """Its own test compares it with the same file."""
    words = json.loads(WORDS.read_text())
    assert words == {"row_differs": ROW_DIFFERS, "unwritten": UNWRITTEN, "several_rows": SEVERAL_ROWS}


@pytest.mark.parametrize(
    ("code", "sqlstate", "kind"),
    [
        ("apply_conflict", "23505", CauseKind.DUPLICATE_KEY),
        ("apply_conflict", "", CauseKind.MISSING_ROW),
        ("apply_failed", "23503", CauseKind.MISSING_PARENT),
        ("apply_failed", "23502", CauseKind.NULL_REFUSED),
        ("apply_failed", "23514", CauseKind.CHECK_VIOLATED),
        ("apply_failed", "23P01", CauseKind.CHECK_VIOLATED),
        ("apply_failed", "22001", CauseKind.VALUE_TOO_LONG),
        ("apply_failed", "22003", CauseKind.VALUE_REFUSED),
        ("apply_failed", "P0001", CauseKind.TRIGGER),
        ("apply_failed", "42P01", CauseKind.TRIGGER),
        ("apply_failed", "42501", CauseKind.MISSING_PRIVILEGE),
        ("insufficient_privilege", "42501", CauseKind.MISSING_PRIVILEGE),
        ("destination_table_differs", "", CauseKind.TABLE_DIFFERS),
        ("initial_copy_inconsistent", "23505", CauseKind.COPY_INCONSISTENT),
        ("parked_behind", "", CauseKind.WAITS),
        ("parked_freed", "", CauseKind.FREED),
        ("of_a_newer_engine", "XX000", CauseKind.OTHER),
    ],
)
def test_a_cause_has_its_most_likely_cure(code: str, sqlstate: str, kind: CauseKind) -> None:
    found = likely(code, sqlstate)
    assert found.kind == kind
    assert found.title and found.cure


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("the destination's row is not as the source's was before", CauseKind.ROW_DIFFERS),
        ("the row is there, but was not written", CauseKind.ROW_NOT_WRITTEN),
        ("the destination has more than one such row", CauseKind.SEVERAL_ROWS),
        ("the destination has no such row", CauseKind.MISSING_ROW),
    ],
)
def test_a_row_that_is_there_is_not_said_to_be_missing(words: str, kind: CauseKind) -> None:
    assert likely("apply_conflict", "", words).kind == kind
    assert likely("apply_conflict", "", f'UPDATE of "public"."t" ("id" = 1), commit LSN 0/1: {words}; x').kind == kind
    assert likely("apply_conflict", "23505", words).kind == CauseKind.DUPLICATE_KEY


@pytest.mark.parametrize("code", ["apply_failed", "insufficient_privilege"])
def test_what_a_role_may_not_do_is_cured_by_a_grant_or_the_policy(code: str) -> None:
    found = likely(code, "42501")
    assert "Grant the privilege" in found.cure and "policy" in found.cure
    assert "trigger" not in found.cure
