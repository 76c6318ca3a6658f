"""Output of the command line: tables for people, JSON with --output json for scripts."""

import json
import os
import re
import sys
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.errors import MarkupError
from rich.table import Table
from rich.text import Text

PIPE_COLUMNS = 10_000
"""A pipe has no width: what is read by a program is never cut."""


class Terminal(Console):
    """Most of what is written comes from databases and from other people: none of it may steer the terminal, and of
    markup only the styles that are ours count."""

    def render_str(self, text: str, **options: Any) -> Text:
        visible = "".join(one for one in text if one in "\n\t" or unicodedata.category(one) not in ("Cc", "Cf"))
        if options.get("markup") is False:
            return super().render_str(visible, **options)
        try:
            return super().render_str(NOT_OURS.sub(r"\\[", visible), **options)
        except MarkupError:
            return super().render_str(visible, **{**options, "markup": False})


NOT_OURS = re.compile(r"\[(?!(?:/|bold|dim|green|yellow|red|bold red)\])")
out = Terminal(highlight=False, soft_wrap=not os.isatty(1), width=None if os.isatty(1) else PIPE_COLUMNS)
err = Terminal(stderr=True, highlight=False, soft_wrap=True)

LEVELS = {
    "ok": "[green]ok[/]", "stopped": "[yellow]stopped[/]", "warning": "[yellow]warning[/]", "error": "[red]error[/]",
    "unknown": "[dim]unknown[/]",
}  # fmt: skip
SIGNS = {"ok": "[green]✓[/]", "warning": "[yellow]![/]", "consent": "[yellow]?[/]", "failed": "[red]✗[/]"}


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


@dataclass
class Choice:
    """The choice of `--output` for this process. Set before the command runs."""

    format: Format = Format.TABLE


choice = Choice()


def json_wanted(value: bool) -> bool:
    return value or choice.format is Format.JSON


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, as --output json.", callback=json_wanted)]


def done(told: str, document: Any) -> None:
    """Prints the result of a command: a line for people, or the resource that it created or changed."""
    if json_wanted(False):
        print_json(document)
    else:
        out.print(told)


def confirm(question: str, yes: bool) -> None:
    """Asks on a terminal, and ends the command where the answer is no. A script has meant what it says."""
    if not yes and sys.stdin.isatty():
        typer.confirm(question, abort=True)


def print_json(document: Any) -> None:
    out.print_json(json.dumps(document), highlight=False)


def print_table(columns: list[str], rows: list[list[str]]) -> None:
    """Columns that begin with `>` are numbers: right-aligned."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left")
    for row in rows:
        table.add_row(*row)
    out.print(table)


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def milliseconds(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.1f} ms" if value < 1000 else f"{value / 1000:,.1f} s"


def latency_in_words(latency: dict[str, Any], at: datetime) -> str:
    """The latency; for an idle stream the last heartbeat's, with its age."""
    last = latency["last"]
    known, told = latency, ""
    if latency["p50_ms"] is None and last is not None:
        known, told = last, f" {ago((at - datetime.fromisoformat(last['at'])).total_seconds())} ago"
    return f"p50 {milliseconds(known['p50_ms'])}, p99 {milliseconds(known['p99_ms'])}{told}"


def size(value: float | None) -> str:
    if value is None:
        return "–"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1024
    return f"{value:,.1f} TiB"


def seconds(value: float | None) -> str:
    return milliseconds(None if value is None else value * 1000)


def ago(value: float) -> str:
    """An age in its largest unit: 4 s, 12 min, 3 h, 9 d."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if value >= 2 * length:
            return f"{value / length:.0f} {unit}"
    return f"{max(0.0, value):.0f} s"


def backlog_in_words(backlog: dict[str, Any]) -> str:
    """Its size, its age where it has one, and when it is full."""
    text = size(backlog["bytes"])
    if backlog["bytes"] and backlog["age_seconds"] is not None and backlog["age_seconds"] >= 1:
        text += f" since {ago(backlog['age_seconds'])}"
    if backlog["seconds_to_full"] is not None:
        text += f", full in {ago(backlog['seconds_to_full'])}"
    return text


def path_of(stream: dict[str, Any], destination: dict[str, Any] | None = None) -> str:
    """“stream → destination”; a stream with several destinations by their number."""
    destinations = stream["destinations"]
    if destination is None and len(destinations) != 1:
        return f"{stream['name']} → {len(destinations)} destinations"
    return f"{stream['name']} → {(destination or destinations[0])['database']['name']}"


def stream_state(stream: dict[str, Any]) -> str:
    """The phase of what runs, else the status."""
    return str(stream["phase"] if stream["status"] == "ENABLED" else stream["status"])
