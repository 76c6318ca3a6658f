"""rules check, rules test; and the file in which the commands about streams find the rules of tables."""

import json
import math
from typing import Annotated, Never

import typer

from thalweg.cli.client import CommandError, Json, connect
from thalweg.cli.output import AsJson, line, out, print_json, styled
from thalweg.kernel.row_rules import finding_in_words

app = typer.Typer(no_args_is_help=True, help="Rules of tables: which rows are copied, which changes are captured.")
REPLICATED = ("PASSED", "BECOMES INSERT", "BECOMES DELETE")
"""Verdicts of changes that destinations get."""
RowRules = Annotated[
    typer.FileText | None,
    typer.Option(
        metavar="FILE",
        help="A JSON file with the rules of tables, a list like row_rules in the REST API. - reads standard input.",
    ),
]


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no value of JSON")


def _finite(number: str) -> float:
    value = float(number)
    return value if math.isfinite(value) else _refuse(number)


def row_rules_in(file: typer.FileText) -> list[Json]:
    try:
        tables = json.load(file, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise CommandError(
            f"{file.name} is nested too deep.", "Write a list like row_rules in the REST API."
        ) from error
    except ValueError as error:
        raise CommandError(
            f"{file.name} is not JSON: {error}.", "Write a list like row_rules in the REST API."
        ) from error
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise CommandError(f"{file.name} is not a list of tables.", "Write a list like row_rules in the REST API.")
    return tables


@app.command()
def check(
    file: Annotated[
        typer.FileText, typer.Argument(help="A JSON file, a list like row_rules in the REST API. - is standard input.")
    ],
    source: Annotated[str, typer.Option(help="The database's name or id.")],
    engine: Annotated[str | None, typer.Option(help="The engine that captures, if there are several.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check rules of tables at the source, before a stream has them. Fails when one cannot be kept, and warns of one
    that some update might not bring the values for."""
    api = connect()
    row_rules = row_rules_in(file)
    body: Json = {"source_id": api.find("/databases", "database", source)["id"], "row_rules": row_rules}
    if engine is not None:
        body["capture_engine_id"] = api.find("/engines", "engine", engine)["id"]
    result = api.post("/streams:check-rules", body)
    if as_json:
        print_json(result)
    for finding in [] if as_json else result["findings"]:
        _print_finding(finding, row_rules)
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
        str | None, typer.Argument(help="Which of its tables, as schema.table, if it has several.")
    ] = None,
    sample: Annotated[int, typer.Option(help="How many rows of the table to judge, at most 100.")] = 20,
    changes: Annotated[
        typer.FileText | None,
        typer.Option(
            metavar="FILE",
            help="A JSON file with changes to judge, a list like changes in the REST API: operation, old, new.",
        ),
    ] = None,
    engine: Annotated[str | None, typer.Option(help="The engine that captures, if there are several.")] = None,
    as_json: AsJson = False,
) -> None:
    """Try the rules of a table on its rows: what each rule makes of each. Fails when one would stop a stream."""
    api = connect()
    rules = _rules_of(row_rules_in(file), table)
    body: Json = {
        "source_id": api.find("/databases", "database", source)["id"], "rules": rules, "sample": sample,
        "changes": row_rules_in(changes) if changes else [],
    }  # fmt: skip
    if engine is not None:
        body["capture_engine_id"] = api.find("/engines", "engine", engine)["id"]
    result = api.post("/streams:test-rules", body)
    if as_json:
        print_json(result)
    else:
        for finding in result["findings"]:
            _print_finding(finding, [rules])
        _print_changes(result["changes"])
    if _any_certain(result) or any(change["error"] for change in result["changes"]):
        raise typer.Exit(1)


def _rules_of(tables: list[Json], name: str | None) -> Json:
    named = {f"{table.get('schema')}.{table.get('table')}": table for table in tables}
    if name is None and len(named) == 1:
        return tables[0]
    if name not in named:
        raise CommandError(
            "The file has rules for several tables." if name is None else f"The file has no rules for {name}.",
            f"Name one of its tables: {', '.join(named)}.",
        )
    return named[name]


def _print_changes(changes: list[Json]) -> None:
    """One line for each, and one for each rule that is not just false or for other operations."""
    for change in changes:
        row = change["new"] or change["old"] or {}
        values = ", ".join(f"{column}={'NULL' if value is None else value}" for column, value in row.items())
        style = "red" if change["error"] else "green" if change["verdict"] in REPLICATED else "dim"
        out.print(line(styled(change["verdict"].lower(), style), f"  {change['operation']} {values}"))
        told = "; ".join(f"{rule['rule']} {_in_words(rule)}" for rule in change["rules"])
        if told:
            out.print(line("    ", told))
        if change["error"]:
            out.print(line("    ", f"{change['error']['message']} ({change['error']['code']})"))


def _in_words(rule: Json) -> str:
    outcome = str(rule["outcome"]).lower()
    return outcome if rule["before"] is None else f"{rule['before'].lower()} before, {outcome} after"


def _any_certain(result: Json) -> bool:
    return any(finding["certain"] for finding in result["findings"])


def _print_finding(finding: Json, row_rules: list[Json]) -> None:
    out.print(line(styled("✗ ", "red") if finding["certain"] else styled("! ", "yellow"), finding_in_words(finding)))
    if finding["line"] is not None:
        lines = _condition(finding, row_rules).split("\n")
        if finding["line"] <= len(lines):
            out.print(line("    ", lines[finding["line"] - 1].replace("\t", " ")))
            out.print(line("    ", " " * (finding["column"] - 1), styled("^", "red")))
    out.print(f"  cure: {finding['cure']}")


def _condition(finding: Json, row_rules: list[Json]) -> str:
    for table in row_rules:
        if (table["schema"], table["table"]) == (finding["schema"], finding["table"]):
            for rule in [*(table.get("positive") or []), *(table.get("negative") or [])]:
                if rule["name"] == finding["rule"]:
                    return str(rule.get("condition") or "")
    return ""
