"""The same cases as the console's sums: known_sums.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from thalweg.kernel.sums import Sum, known_sum

CASES = Path(__file__).with_name("known_sums.json")


@pytest.mark.parametrize("case", json.loads(CASES.read_text()), ids=lambda case: str(case["parts"]))
def test_a_sum_is_that_of_its_known_parts(case: dict[str, Any]) -> None:
    whole = Sum.of(case["parts"])
    assert (whole.value, whole.at_least) == (case["sum"], case["at_least"])
    assert whole.exact == (None if case["at_least"] else case["sum"])
    assert known_sum(case["parts"]) == case["sum"]
