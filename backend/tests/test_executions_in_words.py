"""The words of `thalweg errors` for an execution of parked transactions."""

import pytest

from thalweg.cli.commands.destinations import edits_in_words, execution_in_words

ALL = {"error_id": None, "cause": None, "executed": 3, "total": 4, "failed_again": 0, "message": None}


@pytest.mark.parametrize(
    ("execution", "words"),
    [
        ({"state": "RUNNING"}, "The execution of all has applied 3 of 4 and is under way."),
        (
            {"state": "RUNNING", "failed_again": 1, "cause": "27a9"},
            "The execution of those with the cause 27a9 has applied 3 of 4, 1 failed again, and is under way.",
        ),
        (
            {"state": "FAILED", "failed_again": 1, "message": "duplicate key. 1 stays."},
            "The execution of all has applied 3 of 4; 1 failed again: duplicate key. 1 stays.",
        ),
        (
            {"state": "FAILED", "error_id": "7", "message": "The engine stops."},
            "The execution of 7 has applied 3 of 4 and stopped: The engine stops.",
        ),
    ],
)
def test_one_that_has_tried_them_all_has_not_stopped(execution: dict[str, object], words: str) -> None:
    assert execution_in_words({**ALL, **execution}) == words


def test_changes_that_are_not_applied_as_they_came() -> None:
    assert edits_in_words({"left_out": 1, "edited": 0, "settled": 2}) == " (1 left out, 2 settled by error handlers)"
    assert edits_in_words({"left_out": 0, "edited": 0, "lcrs": 3}) == ""
