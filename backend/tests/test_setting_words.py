"""Parameters in texts have the values that a person would set."""

from io import StringIO

import pytest

from thalweg.advisor.finding import Cure, CureKind, ParameterChange
from thalweg.cli.commands import advisor
from thalweg.cli.output import Terminal, settings_in_words
from thalweg.features.advisor.rendering.page import cure_in_html
from thalweg.kernel.words import setting_in_words


@pytest.mark.parametrize(("value", "told"), [(False, "false"), (True, "true"), (4, "4"), ("full", "full")])
def test_a_switch_is_true_or_false(value: bool | int | str, told: str) -> None:
    assert setting_in_words(value) == told


def test_the_command_line_shows_parameters_as_it_takes_them() -> None:
    assert settings_in_words({"data_layer": True, "parallelism": 8}) == "data_layer = true\nparallelism = 8"


def test_a_cure_shows_the_parameter_as_the_command_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(width=200, record=True, file=StringIO())
    monkeypatch.setattr(advisor, "out", terminal)
    change = {"name": "data_layer", "current": False, "proposed": True}
    cure = {"text": "Switch it on.", "parameters": [change], "sql": None}
    advisor._show_finding(
        {
            "rank": 1, "code": "apply_data_layer_off", "severity": "advice", "title": "It is off",
            "explanation": "Rows are written one by one.",
            "evidence": [], "expected_gain": None, "cures": [cure],
        },
        "shop → warehouse",
    )  # fmt: skip
    assert "data_layer = true  (now false)" in terminal.export_text()


def test_a_report_shows_the_parameter_as_it_is_set() -> None:
    change = ParameterChange(name="data_layer", current=False, proposed=True)
    cure = Cure(
        kind=CureKind.PARAMETER, text="Switch it on.", parameters=[change], sql=None, database=None, database_id=None,
        restart_needed=False,
    )  # fmt: skip
    assert "data_layer = true   (now false)" in cure_in_html(cure)
