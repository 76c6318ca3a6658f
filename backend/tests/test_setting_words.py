"""Parameters in texts have the values that a person would set."""

import pytest

from thalweg.advisor.finding import Cure, CureKind, ParameterChange
from thalweg.features.advisor.rendering.page import cure_in_html
from thalweg.kernel.words import setting_in_words


@pytest.mark.parametrize(("value", "told"), [(False, "false"), (True, "true"), (4, "4"), ("full", "full")])
def test_a_switch_is_true_or_false(value: bool | int | str, told: str) -> None:
    assert setting_in_words(value) == told


def test_a_report_shows_the_parameter_as_it_is_set() -> None:
    change = ParameterChange(name="data_layer", current=False, proposed=True)
    cure = Cure(
        kind=CureKind.PARAMETER, text="Switch it on.", parameters=[change], sql=None, database=None, database_id=None,
        restart_needed=False,
    )  # fmt: skip
    assert "data_layer = true   (now false)" in cure_in_html(cure)
