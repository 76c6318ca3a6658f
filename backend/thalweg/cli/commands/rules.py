"""rules check, rules test; and the file in which the commands about streams find the row rules."""

import json
import math
from pathlib import Path
from typing import Annotated, Never

import typer

from thalweg.cli.client import CommandError, Json, connect
from thalweg.cli.output import AsJson, line, out, print_json, styled
from thalweg.cli.passwords import given_secret
from thalweg.cli.placement import check_one_engine
from thalweg.cli.table_names import table_ref, table_rule
from thalweg.kernel.row_rules import RuleScope, keys_of, problem_in_words
from thalweg.kernel.words import ended

app = typer.Typer(no_args_is_help=True, help="Row rules: which rows are copied, which changes are captured.")
REPLICATED = ("PASSED", "BECOMES INSERT", "BECOMES DELETE")
"""Verdicts of changes that destinations get."""
EXCERPT = 50
"""Characters before and behind a place."""
RowRules = Annotated[
    typer.FileText | None,
    typer.Option(
        metavar="FILE",
        help="A JSON file with row rules, of schemas and global ones: a list like row_rules in the REST API. - "
        "reads standard input.",
    ),
]


Transformations = Annotated[
    typer.FileText | None,
    typer.Option(
        metavar="FILE",
        help="A JSON file with the transformations of tables: a list like transformations in the REST API. - reads "
        "standard input.",
    ),
]


Renames = Annotated[
    typer.FileText | None,
    typer.Option(
        metavar="FILE",
        help="A JSON file with the names that tables and schemas have at the destinations: a list like renames in the "
        "REST API. - reads standard input.",
    ),
]


MaskKeyFile = Annotated[
    Path | None,
    typer.Option(
        exists=True, dir_okay=False, readable=True,
        help="Read the key of the masks `hash` and `digits` from the first line of a file: in streams with the same "
        "key equal values become equal ones. Without it: a key that is made once, and stays.",
    ),
]  # fmt: skip


def mask_key_in(file: Path | None) -> Json:
    key = given_secret(None, file, "--mask-key")
    return {} if key is None else {"mask_key": key}


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no value of JSON")


def _finite(number: str) -> float:
    value = float(number)
    return value if math.isfinite(value) else _refuse(number)


def row_rules_in(file: typer.FileText) -> list[Json]:
    return list_in(file, "row_rules")


def list_in(file: typer.FileText, member: str) -> list[Json]:
    """`member`: of the rules in the REST API, whose form it has."""
    cure = f"Write a list like {member} in the REST API."
    try:
        tables = json.load(file, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise CommandError(f"{file.name} is nested too deep.", cure) from error
    except ValueError as error:
        raise CommandError(f"{file.name} is not JSON: {ended(str(error))}", cure) from error
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise CommandError(f"{file.name} is not a list of tables.", cure)
    return tables


@app.command()
def check(
    file: Annotated[
        typer.FileText, typer.Argument(help="A JSON file, a list like row_rules in the REST API. - is standard input.")
    ],
    source: Annotated[str, typer.Option(help="The database's name or id.")],
    include: Annotated[
        list[str] | None,
        typer.Option(
            help="schema.table, with * and ? as wildcards, quoted as in SQL where needed: the stream's tables, for "
            "rules of a schema and global ones. May be repeated."
        ),
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Tables to leave out; may be repeated.")] = None,
    engine: Annotated[str | None, typer.Option(help="The engine that captures, if there are several.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check row rules at the source, before a stream has them. Fails when one cannot be kept, and warns of one
    that some update might not bring the values for."""
    api = connect()
    row_rules = row_rules_in(file)
    body: Json = {"source_id": api.find("/databases", "database", source)["id"], "row_rules": row_rules}
    body |= {"include": [table_rule(text) for text in include or []]}
    body |= {"exclude": [table_rule(text) for text in exclude or []]}
    check_one_engine(api, engine)
    if engine is not None:
        body["capture_engine_id"] = api.find("/engines", "engine", engine)["id"]
    result = api.post("/streams:check-rules", body)
    if as_json:
        print_json(result)
    for problem in [] if as_json else result["problems"]:
        _print_problem(problem, row_rules)
    if _any_certain(result):
        raise typer.Exit(1)
    if not as_json:
        out.print("All rules can be kept.")


@app.command()
def test(
    file: Annotated[
        typer.FileText, typer.Argument(help="A JSON file, a list like row_rules in the REST API. - is standard input.")
    ],
    source: Annotated[str, typer.Option(help="The database's name or id.")],
    table: Annotated[
        str | None,
        typer.Argument(help="The table to try them on, as schema.table. Left out: the only one that the file names."),
    ] = None,
    sample: Annotated[int, typer.Option(help="How many rows of the table to judge, at most 100.")] = 20,
    changes: Annotated[
        typer.FileText | None,
        typer.Option(
            metavar="FILE",
            help="A JSON file with changes to judge, a list like changes in the REST API: operation, old, new.",
        ),
    ] = None,
    recent: Annotated[
        str | None,
        typer.Option(
            metavar="STREAM",
            help="The name or id of a running stream: judge the next changes of the table that it captures, too.",
        ),
    ] = None,
    recent_limit: Annotated[int, typer.Option(help="How many of these changes to judge, at most 100.")] = 20,
    engine: Annotated[str | None, typer.Option(help="The engine that captures, if there are several.")] = None,
    as_json: AsJson = False,
) -> None:
    """Try the rules of a table on its rows: what each rule makes of each. Fails when one would stop a stream. With
    --recent it waits up to five seconds for changes."""
    api = connect()
    row_rules = row_rules_in(file)
    body: Json = {
        "source_id": api.find("/databases", "database", source)["id"], "table": _tried_table(row_rules, table),
        "row_rules": row_rules, "sample": sample, "changes": row_rules_in(changes) if changes else [],
    }  # fmt: skip
    if recent is None:
        check_one_engine(api, engine)
    if engine is not None:
        body["capture_engine_id"] = api.find("/engines", "engine", engine)["id"]
    if recent is not None:
        stream = api.find("/streams", "stream", recent)
        body["recent"] = {"stream_id": stream["id"], "limit": recent_limit}
    result = api.post("/streams:test-rules", body)
    if as_json:
        print_json(result)
    else:
        for problem in result["problems"]:
            _print_problem(problem, row_rules)
        _print_changes(result["changes"])
        _print_end(result["recent_end"], result["changes"])
    if _any_certain(result) or any(change["error"] for change in result["changes"]):
        raise typer.Exit(1)


def _tried_table(row_rules: list[Json], name: str | None) -> Json:
    keys = [(rules.get("schema"), rules.get("table")) for rules in row_rules]
    named = [(schema, table) for schema, table in keys if schema and table]
    if name is None and len(named) != 1:
        names = ", ".join(f"{schema}.{table}" for schema, table in named)
        cure = f"Name one of its tables: {names}." if named else "Name a table of the source."
        raise CommandError(f"The file names {len(named) or 'no'} tables.", cure)
    tried = table_ref(name) if name else {"schema": named[0][0], "table": named[0][1]}
    if not set(keys_of(tried["schema"], tried["table"])).intersection(keys):
        raise CommandError(f"The file has no rules for {name}.", "Name a table that its rules concern.")
    return tried


def _print_changes(changes: list[Json]) -> None:
    """One line for each, and one for each rule that is not just false or for other operations."""
    for change in changes:
        row = change["new"] or change["old"] or {}
        shown = [f"{column}={'NULL' if value is None else value}" for column, value in row.items()]
        shown += [f"{column} hidden" for column in change["hidden"]]
        not_sent = change["new_not_sent"] if change["new"] else change["old_not_sent"]
        shown += [f"{column} not sent" for column in not_sent if column not in change["hidden"]]
        shown += [f"{fact} {change[fact]}" for fact in ("tag", "commit_time") if change[fact] is not None]
        values = ", ".join(shown)
        style = "red" if change["error"] else "green" if change["verdict"] in REPLICATED else "dim"
        out.print(line(styled(change["verdict"].lower(), style), f"  {change['operation']} {values}"))
        described = "; ".join(f"{_called(rule)} {_in_words(rule)}" for rule in change["rules"])
        if described:
            out.print(line("    ", described))
        if change["error"]:
            out.print(line("    ", f"{change['error']['message']} ({change['error']['code']})"))


def _print_end(end: str | None, changes: list[Json]) -> None:
    """Why there are no changes of the stream, or fewer than asked for."""
    came = sum(change["origin"] == "STREAM" for change in changes)
    if end == "TIME":
        text = f"{came} changes of the stream came in time." if came else "No change of the table came in time."
        out.print(line(styled(text, "dim")))
    elif end == "SIZE":
        out.print(line(styled("The next change of the stream was too large to show.", "dim")))


def _called(rule: Json) -> str:
    return str(rule["rule"]) if rule["scope"] == RuleScope.TABLE else f"{rule['rule']} ({rule['scope']})"


def _in_words(rule: Json) -> str:
    after, before = (_outcome(rule, name) for name in ("outcome", "before"))
    return after if rule["before"] is None else f"{before} before, {after} after"


def _outcome(rule: Json, member: str) -> str:
    """Those that the rule's policy decides say so."""
    outcome = str(rule[member])
    counted = {"TRUE": "true", "FALSE": "not true"}.get(rule.get("counts_as") or "")
    is_clear = outcome in ("TRUE", "FALSE", "NULL", "OTHER OPERATION")
    return f"{outcome.lower()}, counted as {counted}" if counted and not is_clear else outcome.lower()


def _any_certain(result: Json) -> bool:
    return any(problem["certain"] for problem in result["problems"])


def _print_problem(problem: Json, row_rules: list[Json]) -> None:
    out.print(line(styled("✗ ", "red") if problem["certain"] else styled("! ", "yellow"), problem_in_words(problem)))
    if problem["line"] is not None:
        lines = _condition(problem, row_rules).split("\n")
        if problem["line"] <= len(lines):
            shown, before = excerpt(lines[problem["line"] - 1].replace("\t", " "), problem["column"] - 1)
            out.print(line("    ", shown))
            out.print(line("    ", " " * before, styled("^", "red")))
    out.print(f"  cure: {problem['cure']}")


def excerpt(text: str, place: int) -> tuple[str, int]:
    """The text around a place of a line, and the number of characters before it: a condition may be long."""
    begin, end = max(0, place - EXCERPT), place + EXCERPT
    before = "… " if begin > 0 else ""
    return before + text[begin:end] + (" …" if end < len(text) else ""), len(before) + place - begin


def _condition(problem: Json, row_rules: list[Json]) -> str:
    keys = keys_of(problem["schema"], problem["table"])
    for rules in row_rules:
        if (rules.get("schema"), rules.get("table")) in keys:
            for rule in [*(rules.get("positive") or []), *(rules.get("negative") or [])]:
                if rule["name"] == problem["rule"]:
                    return str(rule.get("condition") or "")
    return ""
