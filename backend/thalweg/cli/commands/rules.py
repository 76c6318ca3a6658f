"""rules check; and the file in which the commands about streams find the rules of tables."""

import json
from typing import Annotated

import typer

from thalweg.cli.client import CommandError, Json, connect
from thalweg.cli.output import AsJson, line, out, print_json, styled
from thalweg.kernel.row_rules import finding_in_words

app = typer.Typer(no_args_is_help=True, help="Rules of tables: which rows are copied, which changes are captured.")
RowRules = Annotated[
    typer.FileText | None,
    typer.Option(
        metavar="FILE",
        help="A JSON file with the rules of tables, a list like row_rules in the REST API. - reads standard input.",
    ),
]


def row_rules_in(file: typer.FileText) -> list[Json]:
    try:
        tables = json.load(file)
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
    """Check rules of tables at the source, before a stream has them. Fails when one cannot be kept."""
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
    if result["findings"]:
        raise typer.Exit(1)
    if not as_json:
        out.print("All rules can be kept.")


def _print_finding(finding: Json, row_rules: list[Json]) -> None:
    out.print(line(styled("✗ ", "red"), finding_in_words(finding)))
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
