"""`make lint` finds commands of pages that name no file, or select no test."""

from pathlib import Path

import pytest

LINT = Path(__file__).resolve().parents[2] / "scripts" / "lint"


@pytest.mark.parametrize(
    ("command", "problems"),
    [
        ("source scripts/settings.sh && e2e/run.sh journeys/lab", []),
        ("$THALWEG_BUILD/release/apply_test --gtest_filter='ScheduleTest.*'  # scripts/gone.sh", []),
        ("pytest tests/test_commands_lint.py -k commands", []),
        ("curl http://127.0.0.1:8642/api/v1/streams -o /tmp/x.py; cat {dir}/gone.py", []),
        ("scripts/gone.sh", ["names scripts/gone.sh in a command, which is not there"]),
        ("npx vitest run src/gone", ["names src/gone in a command, which is not there"]),
        ("pytest gone.py", ["names gone.py in a command, which is not there"]),
        ("apply_test --gtest_filter='Gone*'", ["--gtest_filter='Gone*' selects no test"]),
        ("pytest test_links.py -k gone", ["-k gone selects no test of test_links.py"]),
    ],
)
def test_commands_name_what_is_there(monkeypatch: pytest.MonkeyPatch, command: str, problems: list[str]) -> None:
    monkeypatch.syspath_prepend(str(LINT))
    lint = __import__("commands")
    assert list(lint.problems_of(f"Text.\n\n```sh\n{command}\n```\n")) == problems


def test_filters_in_sentences_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(LINT))
    lint = __import__("commands")
    assert len(list(lint.problems_of("Run `rules_test --gtest_filter='Gone*'`, and scripts/gone.sh."))) == 1
