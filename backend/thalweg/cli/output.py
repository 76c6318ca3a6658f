"""How the command line writes: tables for people, JSON with --json for scripts."""

import json
import os
from typing import Any

from rich.console import Console
from rich.table import Table

out = Console(highlight=False, soft_wrap=not os.isatty(1))
err = Console(stderr=True, highlight=False, soft_wrap=True)

LEVELS = {"ok": "[green]ok[/]", "warning": "[yellow]warning[/]", "error": "[red]error[/]", "unknown": "[dim]unknown[/]"}
SIGNS = {"ok": "[green]✓[/]", "warning": "[yellow]![/]", "failed": "[red]✗[/]"}


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


def stream_state(stream: dict[str, Any]) -> str:
    """The phase of what runs, else the status."""
    return str(stream["phase"] if stream["status"] == "ENABLED" else stream["status"])
