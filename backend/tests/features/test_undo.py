"""SQL that undoes changes: what it says, and that a server which runs it has the rows again that it had before."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from tests.support.engine_double import example
from tests.support.servers import Cluster
from thalweg.engine_client.search_documents import FoundChange, FoundChanges
from thalweg.features.changes import sql_text
from thalweg.features.changes.sql_text import equals, identifier, literal, typed
from thalweg.features.changes.undo import WHOLE_ROWS, Undo, script_of, script_part, undo_of

NASTY = [
    "plain", "", "it's", "''", "\\", "a\\'; DROP TABLE t; --", "line\nbreak", "\r\n\t", "'||current_user||'",
    "$$ $1 :x ?",
    'quo"te', "NULL", "\u202egnirts", "\x1b]0;title\x07", "\u2028", "naïve 漢字 🐘", "E'x'", "\\x41", "{a,b}",
    "\\u0041", "\\'", "\x7f", "%s %(a)s",
]  # fmt: skip
NAMES = [
    "plain",
    'quo"te',
    "back\\slash",
    "sp ace",
    "semi;--",
    "ünï",
    "line\nbreak",
    "\u202egnirts",
    "Select",
    "a'b",
    "x$1",
]
ODD_TABLE = 'ta"ble; DROP TABLE t\n-- \\'


def value(text: str | None, **facts: bool) -> dict[str, Any]:
    return {"text": text, "cut": False, "masked": False, **facts}


def column(name: str, before: Any, after: Any, type_: str = "text", *, key: bool = False) -> dict[str, Any]:
    return {"name": name, "type": type_, "key": key, "before": before, "after": after}


def change(operation: str, *columns: dict[str, Any], number: int = 1, **facts: Any) -> FoundChange:
    return FoundChange.model_validate(
        {
            "number": number, "xid": 7, "commit_lsn": "0/1", "commit_time": datetime(2026, 11, 30, tzinfo=UTC),
            "lsn": "0/1", "origin": None, "schema": "public", "table": "t", "operation": operation,
            "before_is": "whole", "columns": list(columns), **facts,
        }
    )  # fmt: skip


ID = column("id", value("5"), value("5"), "bigint", key=True)
NEW_ID = {**ID, "before": None}
OLD_ID = {**ID, "after": None}


@pytest.mark.parametrize(
    ("found", "sql"),
    [
        (
            change("INSERT", NEW_ID, column("a", None, value("x"))),
            """DELETE FROM "public"."t" WHERE "id" = '5'::bigint;""",
        ),
        (
            change("UPDATE", ID, column("a", value("old"), value("new")), column("b", value("x"), value("x"))),
            """UPDATE "public"."t" SET "a" = 'old'::text WHERE "id" = '5'::bigint;""",
        ),
        (
            change("UPDATE", ID, column("a", value(None), value("new")), column("b", value("x"), value(None))),
            """UPDATE "public"."t" SET "a" = NULL, "b" = 'x'::text WHERE "id" = '5'::bigint;""",
        ),
        (
            change("UPDATE", {**ID, "before": value("4")}, column("a", None, None), column("b", value(""), value(""))),
            """UPDATE "public"."t" SET "id" = '4'::bigint WHERE "id" = '5'::bigint;""",
        ),
        (
            change("DELETE", OLD_ID, column("a", value("it's"), None)),
            """INSERT INTO "public"."t" ("id", "a") OVERRIDING SYSTEM VALUE VALUES ('5'::bigint, 'it''s'::text);""",
        ),
    ],
)  # fmt: skip
def test_what_it_says(found: FoundChange, sql: str) -> None:
    assert undo_of(found) == Undo(sql)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (change("TRUNCATE"), "TRUNCATE"),
        (change("DELETE", OLD_ID, column("a", None, None)), "does not have the old value of a."),
        (change("UPDATE", ID, column("a", None, value("new"))), "does not have the old value of a."),
        (change("UPDATE", {**ID, "before": None}, column("a", None, value("1"))), "the old value of id and a."),
        (change("UPDATE", ID, column("a", value("x"), value("x"))), "changed no value"),
        (change("UPDATE", ID, column("a", value("x", cut=True), value("y"))), "a is longer"),
        (change("UPDATE", ID, column("a", value("x"), value("y", cut=True))), "a is longer"),
        (change("DELETE", OLD_ID, column("a", value("x", cut=True), None)), "a is longer"),
        (change("UPDATE", ID, column("a", value(None, masked=True), value(None, masked=True))), "masks a."),
        (change("UPDATE", ID, column("a", None, value(None, masked=True))), "masks a."),
        (change("DELETE", OLD_ID, column("a", value(None, masked=True), None)), "masks a."),
        (change("INSERT", {**NEW_ID, "after": value(None, masked=True)}, column("a", None, value("x"))), "masks id."),
        (change("INSERT", {**NEW_ID, "after": value("5", cut=True)}, column("a", None, value("x"))), "id is longer"),
        (change("INSERT"), "No column identifies"),
        (change("DELETE", *(column(f"c{n}", None, None) for n in range(7))), "c0, c1, c2, c3, c4 and 2 more."),
        (change("DELETE", column("a\n-- b\u202e", None, None)), "of a\\n-- b\\u202e."),
    ],
)  # fmt: skip
def test_what_cannot_be_undone_has_its_reason(found: FoundChange, reason: str) -> None:
    made = undo_of(found)
    assert made.sql is None
    assert made.note is not None and reason in made.note and "\n" not in made.note


def test_the_contract_s_changes() -> None:
    found = FoundChanges.model_validate(example("search")).changes
    assert [undo_of(one) for one in found] == [
        Undo("""DELETE FROM "public"."orders" WHERE "id" = '5'::bigint;"""),
        Undo(None, "The stream masks email."),
        Undo(None, f"The WAL does not have the old value of state, email and note. {WHOLE_ROWS}"),
        Undo(None, "The WAL does not have the rows that a TRUNCATE removes."),
    ]


def test_a_script_is_one_transaction_with_the_newest_first() -> None:
    found = [
        change("INSERT", NEW_ID, column("a", None, value("x")), number=1),
        change("DELETE", OLD_ID, column("a\nDROP TABLE t;", None, None), number=2),
        change("UPDATE", ID, column("a", value("x"), value("y")), number=3),
    ]
    undone = [(one, undo_of(one)) for one in found]
    parts = [script_part(*pair) for pair in undone]
    assert "ended early" in "".join(script_of(parts, 1, is_part=True))
    assert "ended early" not in "".join(script_of(parts, 1))
    lines = "".join(script_of(parts, 1)).splitlines()
    assert [line for line in lines if not line.startswith("--")] == [
        "BEGIN;",
        """UPDATE "public"."t" SET "a" = 'x'::text WHERE "id" = '5'::bigint;""",
        """DELETE FROM "public"."t" WHERE "id" = '5'::bigint;""",
        "COMMIT;",
    ]
    comments = [line for line in lines if line.startswith("--")]
    assert comments[0] == "-- Undoes 2 changes, the newest first." and "1 change cannot" in comments[1]
    assert any("Change 2: DELETE of transaction 7" in line and "NOT undone" in line for line in comments)


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Iterator[psycopg.Connection[Any]]:
    cluster.execute("CREATE DATABASE undone")
    with psycopg.connect(cluster.url("undone").replace("+psycopg", ""), autocommit=True) as connection:
        yield connection


@pytest.fixture(params=["on", "off"])
def either(session: psycopg.Connection[Any], request: pytest.FixtureRequest) -> psycopg.Connection[Any]:
    """A session with either value of standard_conforming_strings."""
    session.execute(f"SET standard_conforming_strings = {request.param}; SET escape_string_warning = off")
    return session


def one(session: psycopg.Connection[Any], sql: str) -> Any:
    # A single statement, whatever its texts hold: the extended protocol takes no second one.
    rows = session.execute(sql.encode(), prepare=True).fetchall()
    assert len(rows) == 1 and len(rows[0]) == 1
    return rows[0][0]


@pytest.mark.parametrize("text", NASTY)
def test_literals_are_their_values(either: psycopg.Connection[Any], text: str) -> None:
    assert one(either, f"SELECT {literal(text)}") == text
    assert one(either, f"SELECT {typed(text, 'character varying(40)')}") == text
    assert not any(ord(character) < 32 or character in "\u202e\u2028\x7f" for character in literal(text))


@pytest.mark.parametrize("name", NAMES)
def test_identifiers_are_their_names(either: psycopg.Connection[Any], name: str) -> None:
    cursor = either.execute(f"SELECT 1 AS {identifier(name)}".encode(), prepare=True)
    assert cursor.description is not None and [found.name for found in cursor.description] == [name]
    assert "\n" not in identifier(name) and "\u202e" not in identifier(name)


@pytest.mark.parametrize(
    ("type_", "cast"),
    [
        ("bigint", True), ("character varying(20)", True), ("numeric(10,2)", True), ("numeric(3,-2)", True),
        ("timestamp(3) without time zone", True), ("interval day to second(3)", True), ("text[]", True),
        ('"char"', True), ('public."My; Type"[]', True), ("character(3)", True), ("bit varying(5)", True),
        ("character", False), ("bit", False), ("bit[]", False), ("???", False), ("int; DROP TABLE t", False),
        ("text'", False), ('"a\n"', False), ("text)", False), ("text -- x", False), ("", False), ('"a"b"', False),
    ],
)  # fmt: skip
def test_only_names_of_types_are_casts(type_: str, cast: bool) -> None:
    assert typed("1", type_) == (f"'1'::{type_}" if cast else "'1'")


TYPES = {
    "smallint": ["-1"], "numeric": ["NaN", "1.50", "-0.000"], "double precision": ["NaN", "-Infinity", "0.1"],
    "boolean": ["t"], "bytea": ["\\x00ff27", ""], "text": NASTY, "character(3)": ["a"],
    "character varying(30)": ["it's"], "bit(3)": ["101"], "bit varying": ["1011"], '"char"': ["c"], "name": ["a'b"],
    "timestamp with time zone": ["infinity", "2026-11-30 10:00:00.123456+00"], "date": ["0044-03-15 BC"],
    "interval": ["1 year 2 mons -3 days 04:05:06.7"], "uuid": ["00000000-0000-0000-0000-000000000001"],
    "json": ['{"a": "it\'s", "b": "\\\\"}'], "jsonb": ['{"a": "line\\nbreak"}'], "xml": ["<a b=\"'\"/>"],
    "text[]": ["{NULL,\"it's\",\"a\\\\b\",\"\",\"line\nbreak\",\"{\"}"], "bit(2)[]": ["{10,01}"],
    "int4range": ["[1,5)"], "integer[]": ["[0:1]={1,2}"], "point": ["(1,2)"], "box": ["(1,1),(0,0)"],
    "inet": ["10.0.0.1/8"], "money": ["$1.00"], "tsvector": ["'a' 'it''s':1"], "mood": ["it's; so\\so"],
    "whole": ["(1,\"a'\"\"b\")"],
    '"Odd; Type"': ["(\"\\\\\")"],
}  # fmt: skip


def make_types(session: psycopg.Connection[Any]) -> None:
    session.execute(
        """DROP TYPE IF EXISTS mood, whole, "Odd; Type" CASCADE;
        CREATE TYPE mood AS ENUM (E'it''s; so\\\\so', 'b'); CREATE TYPE whole AS (a int, b text);
        CREATE TYPE "Odd; Type" AS (a text)"""
    )


def columns_of(session: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    """Of the odd table: names and types."""
    return session.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
        "WHERE relname = %s AND attnum > 0 ORDER BY attnum",
        [ODD_TABLE],
    ).fetchall()


def row_of(session: psycopg.Connection[Any]) -> dict[str, str | None]:
    """The odd table's only row, as texts."""
    names = [name for name, _ in columns_of(session)]
    texts = ", ".join(f"{identifier(name)}::text" for name in names)
    rows = session.execute(f"SELECT {texts} FROM {identifier(ODD_TABLE)}".encode()).fetchall()
    return dict(zip(names, rows[0], strict=True)) if rows else {}


def found_of(
    session: psycopg.Connection[Any], operation: str, before: dict[str, str | None], after: dict[str, str | None],
    keys: tuple[str, ...],
) -> FoundChange:  # fmt: skip
    """As an engine would find it in the odd table."""
    columns = [
        column(
            name,
            value(before[name]) if before else None,
            value(after[name]) if after else None,
            type_,
            key=name in keys,
        )
        for name, type_ in columns_of(session)
    ]
    return change(operation, *columns, table=ODD_TABLE)


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("type_", TYPES)
def test_a_server_has_the_row_again(either: psycopg.Connection[Any], type_: str, keyed: bool) -> None:
    """Each value of each type is inserted, changed to NULL and back, and deleted; each of that is undone."""
    make_types(either)
    table = identifier(ODD_TABLE)
    either.execute(f"DROP TABLE IF EXISTS {table}".encode())
    key, odd = identifier('k"e\ny'), identifier("v'al; \\")
    either.execute(f"CREATE TABLE {table} ({key} text, {odd} {type_}, n int GENERATED ALWAYS AS IDENTITY)".encode())
    keys = ('k"e\ny',) if keyed else ()
    for text in TYPES[type_]:
        either.execute(f"INSERT INTO {table} VALUES ({literal(text)}, {literal(text)})".encode())
        inserted = row_of(either)
        insertion = found_of(either, "INSERT", {}, inserted, keys)
        either.execute(f"UPDATE {table} SET {odd} = NULL".encode())
        nulled = row_of(either)
        made_null = found_of(either, "UPDATE", inserted, nulled, keys)
        either.execute(f"DELETE FROM {table}".encode())
        deletion = found_of(either, "DELETE", nulled, {}, keys)
        for found, wanted in ((deletion, nulled), (made_null, inserted), (insertion, {})):
            undo = undo_of(found)
            assert undo.sql is not None, undo
            assert either.execute(undo.sql.encode(), prepare=True).rowcount == 1, undo.sql
            assert row_of(either) == wanted, undo.sql


def test_of_rows_that_are_alike_one_is_changed(session: psycopg.Connection[Any]) -> None:
    session.execute(
        "DROP TABLE IF EXISTS t; CREATE TABLE t (a text, b json); "
        "INSERT INTO t SELECT 'x', '{}' FROM generate_series(1, 3)"
    )
    undo = undo_of(change("INSERT", column("a", None, value("x")), column("b", None, value("{}"), "json")))
    assert undo.sql is not None and undo.note is not None and "alike" in undo.note
    assert session.execute(undo.sql.encode()).rowcount == 1


@pytest.mark.parametrize("name", ["a", "found", "$undo$"])
def test_a_script_fails_where_a_row_without_a_key_is_another_by_now(
    session: psycopg.Connection[Any], name: str
) -> None:
    session.execute(
        f"DROP TABLE IF EXISTS t; CREATE TABLE t (\"{name}\" text, b json); INSERT INTO t VALUES ('$undo$', '{{}}')"
    )
    found = change("UPDATE", column(name, value("old"), value("$undo$")), column("b", value("{}"), value("{}"), "json"))
    script = "".join(script_of([script_part(found, undo_of(found))], 0))
    session.execute(script.encode())
    assert session.execute("SELECT * FROM t").fetchall() == [("old", {})]
    with pytest.raises(psycopg.errors.RaiseException, match="change 1 is not as the change left it"):
        session.execute(script.encode())
    session.execute("ROLLBACK")


def test_a_script_undoes_a_row_s_life(session: psycopg.Connection[Any]) -> None:
    session.execute(
        "DROP TABLE IF EXISTS t; CREATE TABLE t (id bigint PRIMARY KEY, a text); INSERT INTO t VALUES (6, 'new')"
    )
    at_5, at_6 = value("5"), value("6")
    found = [
        change("DELETE", column("id", at_5, None, "bigint", key=True), column("a", value("old"), None), number=1),
        change("INSERT", column("id", None, at_5, "bigint", key=True), column("a", None, value("mid")), number=2),
        change(
            "UPDATE", column("id", at_5, at_6, "bigint", key=True), column("a", value("mid"), value("new")), number=3
        ),
    ]
    session.execute("".join(script_of([script_part(one, undo_of(one)) for one in found], 0)).encode())
    assert session.execute("SELECT * FROM t").fetchall() == [(5, "old")]


def test_types_without_equality_are_compared_as_texts() -> None:
    assert equals("a", "{}", "json") == """"a"::text = '{}'"""
    assert equals("a", None, "json") == '"a" IS NULL'
    assert sql_text.shown("a\tb\x1b") == "a\\tb\\x1b"
