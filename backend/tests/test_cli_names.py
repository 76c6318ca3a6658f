"""Names in the command line: of tables, and in files of streams those of databases and engines."""

from collections.abc import Iterator
from typing import Any

import pytest

from thalweg.cli.client import Api, CommandError, Json
from thalweg.cli.placement import check_one_engine
from thalweg.cli.stream_files import with_ids
from thalweg.cli.table_names import table_ref, table_rule


class Known(Api):
    """Lists what it is given, and asks nobody."""

    def __init__(self, engines: tuple[str, ...] = ("alpha", "bravo")) -> None:
        self._known = {
            "/databases": [{"name": "orders", "id": "db01"}, {"name": "ware", "id": "db02"}],
            "/engines": [{"name": name, "id": f"id-{name}"} for name in engines],
        }

    def items(self, path: str, **query: Any) -> Iterator[Json]:
        yield from self._known[path]


@pytest.mark.parametrize(
    ("text", "schema", "table"),
    [
        ("public.orders", "public", "orders"),
        ('public."Odd Name"', "public", "Odd Name"),
        ('"my.schema"."the ""odd"" one"', "my.schema", 'the "odd" one'),
        ("public.with space", "public", "with space"),
        ("public.a.b", "public", "a.b"),
    ],
)
def test_parts_may_be_quoted_as_in_sql(text: str, schema: str, table: str) -> None:
    assert table_rule(text) == table_ref(text) == {"schema": schema, "table": table}


@pytest.mark.parametrize("text", ["orders", ".orders", "public.", 'public."orders', 'public."a"b', '"".x', 'pub"lic.x'])
def test_what_names_no_table_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(CommandError, match=r"is not schema\.table") as caught:
        table_rule(text)
    assert "public.orders" in caught.value.cure


def test_a_wildcard_cannot_be_quoted_away() -> None:
    assert table_rule('"my.schema".*') == {"schema": "my.schema", "table": "*"}
    with pytest.raises(CommandError, match="wildcards all the same"):
        table_rule('public."what?"')
    assert table_ref('public."what?"') == {"schema": "public", "table": "what?"}


def test_a_file_names_databases_and_engines() -> None:
    body = {
        "name": "s", "source": "orders", "capture_engine": "alpha",
        "destinations": [{"database": "ware", "engine": "bravo", "parameters": {}}, {"database_id": "db01"}],
    }  # fmt: skip
    assert with_ids(Known(), body) == {
        "name": "s", "source_id": "db01", "capture_engine_id": "id-alpha",
        "destinations": [{"database_id": "db02", "engine_id": "id-bravo", "parameters": {}}, {"database_id": "db01"}],
    }  # fmt: skip
    assert with_ids(Known(("alpha",)), {"name": "s", "source_id": "ware", "destinations": "?"})["source_id"] == "db02"


@pytest.mark.parametrize(
    ("body", "message", "cure"),
    [
        ({"source": "order"}, "source: There is no database “order”.", "There are: orders, ware."),
        ({"source": "orders", "source_id": "db01"}, "The file has both source and source_id.", "Give one of them."),
        (
            {"source": "orders", "destinations": [{"database": "ware", "engine": "charlie"}]},
            "destinations[0].engine: There is no engine “charlie”.",
            "There are: alpha, bravo.",
        ),
        (
            {"source": "orders", "destinations": [{"database": "ware"}]},
            "There are several engines, and none is named to capture.",
            "Name one with capture_engine: NAME in the file: alpha, bravo. Ideally one near the source.",
        ),
    ],
)
def test_names_in_a_file_that_are_none(body: Json, message: str, cure: str) -> None:
    with pytest.raises(CommandError) as caught:
        with_ids(Known(), {"name": "s", **body})
    assert (caught.value.message, caught.value.cure) == (message, cure)


def test_a_name_that_is_also_an_id_is_ambiguous() -> None:
    known = Known()
    known._known["/databases"].append({"name": "db01", "id": "db03"})
    with pytest.raises(CommandError, match=r"can be several: orders \(db01\), db01 \(db03\)") as caught:
        known.find("/databases", "database", "db01")
    assert "Give the id" in caught.value.cure


def test_one_of_several_engines_is_asked_for_by_its_option() -> None:
    with pytest.raises(CommandError, match="several engines") as caught:
        check_one_engine(Known(), None, [None])
    assert caught.value.cure == "Name one with --engine: alpha, bravo. Ideally one near the source."
    check_one_engine(Known(), "alpha", [None])
    check_one_engine(Known(), None, ["id-bravo"])
    check_one_engine(Known(("alpha",)), None, [None, None])
