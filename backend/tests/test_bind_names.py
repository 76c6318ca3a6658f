"""Bind names in statements: the engine's tests read the same cases."""

import json
from typing import Any

import pytest

from tests.support.engine_double import CONTRACT
from thalweg.kernel.bind_names import BindFault, bind_names

CASES: list[dict[str, Any]] = json.loads((CONTRACT / "bind-names.cases.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["statement"][:40])
def test_cases_of_the_contract(case: dict[str, Any]) -> None:
    if "fault" in case:
        with pytest.raises(BindFault) as refused:
            bind_names(case["statement"])
        assert str(refused.value) == case["fault"]
        return
    bound = bind_names(case["statement"])
    assert (bound.sql, [name.written for name in bound.names]) == (case["sql"], case["names"])


def test_places_of_the_servers_errors_are_those_of_the_text() -> None:
    text = 'SELECT :new."a long name", :new."a long name", wrong'
    bound = bind_names(text)
    assert text[bound.place_of(bound.sql.index("wrong")) :] == "wrong"
    assert bound.place_of(0) == 0
