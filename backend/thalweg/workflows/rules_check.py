"""For whoever writes row rules: whether they fit the source, the places in the conditions that do not, and what
they make of rows."""

from collections.abc import Iterable
from typing import Any

from thalweg.db.audit import record
from thalweg.db.models import EngineRow, StreamRow
from thalweg.engine_client import rule_documents
from thalweg.engine_client.access import client_of, problem_of
from thalweg.engine_client.client import EngineFailure
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.features.streams.rule_schemas import (
    JudgedChange,
    RulesCheck,
    RulesCheckRequest,
    RulesTest,
    RulesTestRequest,
)
from thalweg.features.streams.schemas import Json
from thalweg.features.streams.service import existing_stream
from thalweg.inspection.catalogue import read_columns_of
from thalweg.inspection.connection import connected
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.target import Target, target_of
from thalweg.kernel.context import Context
from thalweg.kernel.lifecycle import DesiredStatus
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.problems import Problem
from thalweg.kernel.renames import is_reserved
from thalweg.kernel.row_rules import OnError, in_words
from thalweg.kernel.rules import TableRules
from thalweg.kernel.rules_by_table import RulesByTable
from thalweg.kernel.words import ended
from thalweg.workflows.row_rules import ask, cure_of_age, rule_problems, with_rules, without_tables
from thalweg.workflows.stream_placement import capturing_engine, wrong
from thalweg.workflows.stream_preparation import database_of, tables_at

CLEAR = {"TRUE", "FALSE", "NULL", "OTHER OPERATION", None}
"""Outcomes that no policy replaces."""
COUNTS_AS = {OnError.AS_TRUE: "TRUE", OnError.AS_FALSE: "FALSE"}


def _check_of_users(named: Iterable[tuple[tuple[str, str], str]]) -> None:
    """Names with the pointers that lead to them. Raises invalid_request: no stream has the tables of PostgreSQL and of
    Thalweg, and some hold secrets."""
    for name, pointer in named:
        if is_reserved(name[0]):
            why = f"{in_words(name)} is a table of PostgreSQL or of Thalweg: no stream can have it."
            raise _invalid(pointer, why, "Name a table of your own.")


async def check_rules(context: Context, body: RulesCheckRequest) -> RulesCheck:
    source = target_of(await database_of(context, "/source_id", body.source_id), context.resources)
    _check_of_users(
        ((schema, table), f"/row_rules/{at}/schema")
        for at, (schema, table) in enumerate(rules.key for rules in body.row_rules)
        if schema is not None and table is not None
    )
    engine = await capturing_engine(context, body.capture_engine_id)
    await context.release()
    tables = await _tables(context, source, body)
    alone = without_tables(body.row_rules, tables)
    if alone:
        why = f"No table is named for the rules of {in_words(body.row_rules[alone[0]].key)}."
        raise _invalid(f"/row_rules/{alone[0]}", why, "Name the stream's tables by `include`, as for the stream.")
    ruled = [table for table in with_rules(tables, body.row_rules) if "rules" in table]
    try:
        problems = await ask(context, engine, source, ruled)
    except EngineFailure as failure:
        raise _problem(engine, failure) from failure
    by_table = RulesByTable(body.row_rules)
    return RulesCheck(problems=rule_problems(problems, by_table, ruled))


async def _tables(context: Context, source: Target, body: RulesCheckRequest) -> list[Json]:
    """Those that the rules name, and those that `include` matches."""
    given_up = {(table.schema_name, table.table) for table in body.inserts_only}
    keys = [rules.key for rules in body.row_rules]
    names = [(schema, table) for schema, table in keys if schema is not None and table is not None]
    if body.include:
        names += await tables_at(context, source, TableRules(include=body.include, exclude=body.exclude))
    return [
        {"schema": schema, "table": table, **({"inserts_only": True} if (schema, table) in given_up else {})}
        for schema, table in dict.fromkeys(names)
    ]


def _invalid(pointer: str, message: str, cure: str) -> Problem:
    error = FieldProblem(pointer=pointer, code="invalid", message=message, cure=cure)
    return Problem("invalid_request", message, cure, errors=[error])


async def test_rules(context: Context, body: RulesTestRequest) -> RulesTest:
    row = await database_of(context, "/source_id", body.source_id)
    source, name = target_of(row, context.resources), row.name
    stream = await _tapped(context, body)
    engine = await capturing_engine(context, stream.capture_engine_id if stream else body.capture_engine_id)
    resources, by_table = context.resources, RulesByTable(body.row_rules)
    key = (body.table.schema_name, body.table.table)
    _check_of_users([(key, "/table/schema")])
    if not by_table.concerns(*key):
        raise _invalid("/row_rules", f"None of the rules concerns {in_words(key)}.", "Name a table that they concern.")
    table: Json = {"schema": key[0], "table": key[1], "rules": by_table.for_engine(*key)}
    client = client_of(engine, resources.http, resources.secrets, resources.settings.engine_timeout)
    await context.release()
    try:
        tried = await client.test_rules(
            source.for_engine(), name, resources.settings.database_networks.text, table, body.sample,
            [change.for_engine() for change in body.changes], _recent(body),
        )  # fmt: skip
    except EngineFailure as failure:
        raise (_tap_problem(engine, stream, failure) if stream else None) or _problem(engine, failure) from failure
    if rows := len(tried.changes) - len(body.changes):
        # Committed before the answer leaves, as for parked transactions.
        facts: Json = {"schema": key[0], "table": key[1], "rows": rows}
        if stream is not None:
            facts["stream"] = stream.name
        record(context, "streams_test_rules", ("database", body.source_id, name), after=facts)
        await context.release()
    order = await _columns(context, source, key) if tried.changes else []
    return RulesTest(
        problems=rule_problems(tried.problems, by_table, [table]),
        changes=[
            _judged(change, change.origin or _origin(at, body), by_table, key, order)
            for at, change in enumerate(tried.changes)
        ],
        recent_end=tried.recent_end,
    )


def _origin(at: int, body: RulesTestRequest) -> str:
    """Engines of earlier versions, which do not say it, judge no changes of streams."""
    return "REQUEST" if at < len(body.changes) else "TABLE"


def _recent(body: RulesTestRequest) -> dict[str, Any] | None:
    if body.recent is None:
        return None
    return {"stream": body.recent.stream_id, "limit": body.recent.limit, "wait_ms": body.recent.wait_ms}


async def _tapped(context: Context, body: RulesTestRequest) -> StreamRow | None:
    """The stream whose changes are wanted. Raises invalid_request where it cannot have them."""
    if body.recent is None:
        return None
    stream = await existing_stream(context, body.recent.stream_id)
    if stream.source_id != body.source_id:
        why = f"{stream.name} reads another database."
        raise wrong("/recent/stream_id", "other_source", why, "Name a stream from this source.")
    if body.capture_engine_id not in (None, stream.capture_engine_id):
        why = f"Another engine captures {stream.name}."
        raise wrong("/capture_engine_id", "other_engine", why, "Leave the engine out: the stream's own judges.")
    if stream.desired_status != DesiredStatus.ENABLED:
        raise Problem(
            "conflict", f"{stream.name} is stopped: it captures no changes.",
            "Start the stream, or try the rules on rows of the table.",
        )  # fmt: skip
    return stream


def _tap_problem(engine: EngineRow, stream: StreamRow, failure: EngineFailure) -> Problem | None:
    if failure.code == ErrorCode.CHANGES_NOT_CAPTURED:
        return Problem("conflict", f"No changes of {stream.name}: {ended(failure.message)}", failure.cure)
    if failure.code == ErrorCode.UNKNOWN_STREAM:
        return Problem(
            "conflict", f"{engine.name} has not taken {stream.name} up yet.", "Try again once the stream runs."
        )
    if failure.code == ErrorCode.INVALID_REQUEST and failure.message.startswith("/recent: is not a known field"):
        return Problem(
            "engine_refused", f"{engine.name} shows no changes of streams.",
            "Upgrade the engine to the version of the control plane, or try the rules on rows of the table.",
        )  # fmt: skip
    return None


async def _columns(context: Context, source: Target, key: tuple[str, str]) -> list[str]:
    """In the table's order: people look for values where the table has them. Engines sort them by name."""
    try:
        async with connected(source, context.resources.settings.database_connect_timeout) as connection:
            columns = await read_columns_of(connection, *key)
    except ConnectionFailure as failure:
        raise Problem(failure.code, failure.message, failure.cure, failure.sql) from failure
    return [column.name for column in columns or []]


def _in_order(row: dict[str, str | None] | None, order: list[str]) -> dict[str, str | None] | None:
    return row and {name: row[name] for name in dict.fromkeys([*order, *row]) if name in row}


def _judged(
    change: rule_documents.JudgedChange, origin: str, by_table: RulesByTable, key: tuple[str, str], order: list[str]
) -> JudgedChange:
    document = change.model_dump() | {"origin": origin}
    document |= {"old": _in_order(change.old, order), "new": _in_order(change.new, order)}
    if change.error is not None:
        document["error"]["sqlstate"] = change.error.sqlstate or None
    for rule in document["rules"]:
        _, rule["scope"] = by_table.place_of(*key, rule["rule"])
        is_unclear = not CLEAR.issuperset((rule["outcome"], rule["before"]))
        rule["counts_as"] = COUNTS_AS.get(by_table.policy_of(*key, rule["rule"])) if is_unclear else None
    return JudgedChange.model_validate(document)


def _problem(engine: EngineRow, failure: EngineFailure) -> Problem:
    if cure := cure_of_age(failure):
        return Problem("engine_refused", f"{engine.name} could not check the rules.", cure)
    return problem_of(failure)
