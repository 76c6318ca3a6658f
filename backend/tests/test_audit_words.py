"""Every action that is audited has words."""

import ast
from pathlib import Path

import pytest

import thalweg
from thalweg.db.audit_words import SENTENCES, sentence_of
from thalweg.features.streams.schemas import TroubleResolution
from thalweg.kernel.lifecycle import DestinationAction, StreamAction

MADE = {
    *(f"streams_{action}" for action in StreamAction), *(f"destinations_{action}" for action in DestinationAction),
    *(f"stream_tables_{how}" for how in (TroubleResolution.COPY, TroubleResolution.ACCEPT)),
    "stream_errors_edit", "stream_errors_leave_out", "destinations_in_effect",
}  # fmt: skip
"""Names that the code puts together, or chooses."""
WRITERS = ("record", "record_as", "asked", "_audit", "_change", "_take_away", "_recorded")
NOUNS = tuple({action.split("_")[0] for action in SENTENCES})


def audited() -> set[str]:
    """Of the calls that write the log, or of functions that do so with an action that they are given."""
    found = set()
    for path in Path(thalweg.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(getattr(node, "func", None), "id", "")
            if isinstance(node, ast.Call) and name in WRITERS:
                found |= {
                    argument.value for argument in node.args
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
                    and argument.value.startswith(NOUNS) and "_" in argument.value
                }  # fmt: skip
    return found


def test_every_action_has_a_sentence() -> None:
    assert len(audited()) > 40
    assert audited() | MADE == set(SENTENCES)


@pytest.mark.parametrize(
    ("action", "before", "after", "sentence"),
    [
        ("stream_errors_execute", None, {"destination_id": "w", "error_id": 7}, "Parked transaction 7 executed again"),
        (
            "stream_errors_execute", None, {"error_id": 7, "role": "clerk"},
            "Parked transaction 7 executed again as clerk",
        ),
        (
            "stream_errors_execute", None, {"error_id": 7, "executed": 3, "failed_again": None},
            "Parked transaction 7 executed again: applied, with 2 behind it; 1 behind it failed",
        ),
        (
            "stream_errors_execute_all", None, {"executed": 5, "failed_again": 2},
            "All parked transactions executed again: 5 applied, 2 failed",
        ),
        (
            "stream_errors_execute_all", None, {"state": "DONE", "executed": 5, "failed_again": 0},
            "All parked transactions executed again: 5 applied",
        ),
        (
            "stream_errors_execute", None, {"error_id": 7, "state": "FAILED", "executed": 0, "failed_again": 1},
            "Parked transaction 7 executed again: failed",
        ),
        (
            "stream_errors_execute", None, {"error_id": 7, "state": "RUNNING"},
            "Parked transaction 7 executed again, in progress",
        ),
        (
            "stream_errors_execute", None, {"error_id": 7, "state": "UNKNOWN"},
            "Parked transaction 7 executed again: the outcome is not known",
        ),
        ("stream_errors_execute_all", None, {"role": "clerk"}, "All parked transactions executed again as clerk"),
        (
            "stream_errors_execute_cause", None, {"cause": "5f3a", "sqlstate": "23505", "role": "clerk"},
            "Parked transactions with one cause (23505) executed again as clerk",
        ),
        (
            "stream_errors_execute", None, {"error_id": 7, "role": "clerk", "refused": "insufficient_privilege"},
            "Parked transaction 7 executed again as clerk: refused",
        ),
        ("stream_errors_dry_run", None, {"error_id": 7}, "Parked transaction 7 tried and rolled back"),
        (
            "stream_errors_dry_run", None, {"error_id": 7, "role": "clerk", "succeeds": True},
            "Parked transaction 7 tried as clerk and rolled back: it would be applied",
        ),
        (
            "stream_errors_dry_run", None,
            {"error_id": 7, "succeeds": False, "code": "apply_conflict", "sqlstate": "23505"},
            "Parked transaction 7 tried and rolled back: it would fail (23505)",
        ),
        (
            "stream_errors_dry_run", None,
            {"error_id": 7, "succeeds": False, "code": "apply_conflict", "sqlstate": None},
            "Parked transaction 7 tried and rolled back: it would fail (apply_conflict)",
        ),
        (
            "stream_errors_leave_out", {"id": 7}, {"error_id": 7, "change": 2},
            "Change 2 of parked transaction 7 left out",
        ),
        ("stream_errors_delete", {"id": 7}, {"destination_id": "w"}, "Parked transaction 7 discarded"),
        ("stream_errors_delete", {"id": 7}, {"finished": True}, "Parked transaction 7 discarded"),
        (
            "stream_errors_delete", {"id": 7}, {"finished": True, "values_cut": 1200},
            "Parked transaction 7 discarded, 1,200 of its values cut",
        ),
        (
            "stream_errors_delete", {"id": 7, "changes_total": 6001},
            {"finished": True, "changes_kept": 2700, "rows_not_read": 12, "partly_because": "no more than 64 MiB"},
            "Parked transaction 7 discarded, 2,700 of 6,001 changes kept (no more than 64 MiB), 12 of them without the "
            "destination's row",
        ),
        (
            "stream_errors_delete", {"id": 7, "changes_unreadable": "They are damaged."},
            {"finished": True, "partly_because": "They are damaged."},
            "Parked transaction 7 discarded, no changes kept (They are damaged)",
        ),
        (
            "stream_errors_delete", {"id": 7}, {"finished": False},
            "Parked transaction 7 discarded: the end is not known",
        ),
        (
            "stream_errors_delete", {"id": 7}, {"finished": False, "refused": "not_kept_whole"},
            "Parked transaction 7 discarded: refused",
        ),
        (
            "stream_errors_execute", None, {"error_id": 7, "refused": "apply_conflict"},
            "Parked transaction 7 executed again: failed again (apply_conflict)",
        ),
        ("destinations_stop", {"id": "w"}, {"id": "w"}, "Destination w paused"),
        ("destinations_drop", None, {"id": "w2", "database": "Warehouse 2"}, "Destination Warehouse 2 dropped"),
        ("stream_tables_copy", None, {"schema": "public", "table": "t"}, "Copy of public.t repeated"),
        (
            "stream_tables_copy", None, {"schema": "public", "table": "t", "refused": "not_found"},
            "Copy of public.t repeated: refused",
        ),
        ("streams_update", {"rules": 1, "parameters": 1}, {"rules": 2, "parameters": 1}, "Tables changed"),
        (
            "streams_update", {"rules": 1, "parameters": 1}, {"rules": 2, "parameters": 2},
            "Tables changed, parameters changed",
        ),
        (
            "searches_create", None, {"schema": "public", "table": "t", "search_id": "s1"},
            "Changes of public.t searched in the log",
        ),
        ("searches_create", None, {"search_id": "s1"}, "Changes of any table searched in the log"),
        ("something_older", None, None, "Something older"),
    ],
)  # fmt: skip
def test_what_it_says(action: str, before: dict | None, after: dict | None, sentence: str) -> None:  # type: ignore[type-arg]
    assert sentence_of(action, before, after) == sentence
