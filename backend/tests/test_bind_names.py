"""Bind names in statements: the engine's tests read the same cases."""

import json
from time import process_time
from typing import Any

import pytest

from tests.support.contract import CONTRACT
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


def test_names_are_counted_once_without_being_compared_with_each_other() -> None:
    wanted = [f":new.c{number}" for number in range(20_000)]
    text = f"SELECT {', '.join(wanted * 2)}"
    begun = process_time()
    bound = bind_names(text)
    assert process_time() - begun < 5
    assert len(bound.names) == len(wanted)
    assert bound.names[-1].written == wanted[-1]
    assert bound.sql.endswith(", $19999, $20000")


@pytest.mark.parametrize(
    ("text", "into"),
    [
        ("SELECT :new.id INTO a.t", "at character 16"),
        ("SELECT 'ß' -- INTO\n into TEMP t FROM a.s", "at character 21"),
        ("WITH i AS (INSERT INTO a.t VALUES (1) RETURNING id) SELECT id INTO x FROM i", "at character 63"),
        ("WITH i AS (SELECT 1) INSERT /* a */ INTO a.t SELECT 'into', x.into, \"into\", 1 AS into FROM i", None),
        ("MERGE INTO a.t USING a.s ON t.id = :new.into WHEN NOT MATCHED THEN DO NOTHING", None),
        ("SELECT $$ INTO $$", None),
    ],
)
def test_the_into_of_a_select_is_found(text: str, into: str | None) -> None:
    assert bind_names(text).into == into
