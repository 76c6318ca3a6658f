"""Output of the command line: tables for people, JSON with --output json for scripts."""

import codecs
import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from threading import Timer
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from thalweg.kernel.models import CheckStatus
from thalweg.kernel.states import health_in_words, in_words
from thalweg.kernel.time_to_full import FillingLimit
from thalweg.kernel.words import duration, setting_in_words

PIPE_COLUMNS = 10_000
"""A pipe has no width: what is read by a program is never cut."""
LONG_SECONDS = 2.0
CHECKING = "Checking the databases …"
RECENT_SECONDS = 5
"""A latency of so short a while ago is one of now."""


class Terminal(Console):
    """Most of what is written comes from databases and from other people: none of it may steer the terminal, and none
    of it is markup. Our own styles come as Text: see styled and line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text, but="\n\t"), **options)


def visible(text: str, but: str = "") -> str:
    """Control and format characters as escapes, except those in `but`."""
    return "".join(
        character
        if character in but or unicodedata.category(character) not in ("Cc", "Cf")
        else character.encode("unicode_escape").decode()
        for character in text
    )


def styled(text: str, style: str) -> Text:
    return Text(visible(text), style)


def line(*parts: str | Text) -> Text:
    """One line of parts, of which some are styled."""
    return Text.assemble(*(visible(part) if isinstance(part, str) else part for part in parts))


def cell(content: str | Text) -> Text:
    """A row stays one row, whatever is in its cells."""
    return line(content)


out = Terminal(soft_wrap=not os.isatty(1), width=None if os.isatty(1) else PIPE_COLUMNS)
err = Terminal(stderr=True, soft_wrap=True)

COLOURS = {"ok": "green", "stopped": "yellow", "warning": "yellow", "error": "red", "unknown": "dim"}
SIGNS = {
    CheckStatus.OK: styled("✓", "green"), CheckStatus.WARNING: styled("!", "yellow"),
    CheckStatus.CONSENT: styled("?", "yellow"), CheckStatus.FAILED: styled("✗", "red"),
}  # fmt: skip


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


def output_first(arguments: list[str]) -> list[str]:
    """`--output FORMAT` may stand behind the command, where people write it; it is an option of the program."""
    for at, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument == "--output":
            return [*arguments[at : at + 2], *arguments[:at], *arguments[at + 2 :]]
        if argument.startswith("--output="):
            return [argument, *arguments[:at], *arguments[at + 1 :]]
    return arguments


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, as --output json.", callback=json_wanted)]


def done(message: str, document: Any) -> None:
    """Prints the result of a command: a line for people, or the resource that it created or changed."""
    if json_wanted(False):
        print_json(document)
    else:
        out.print(message)


@contextmanager
def told_if_long(what: str) -> Iterator[None]:
    """Says on standard error what goes on, once that takes long."""
    timer = Timer(LONG_SECONDS, lambda: err.print(what, style="dim"))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def ask(question: str, **options: Any) -> str:
    """Asks on standard error: standard output has the result alone."""
    return str(typer.prompt(question, err=True, **options))


def confirm(question: str, yes: bool) -> None:
    """Asks on a terminal, and ends the command where the answer is no. A script has meant what it says."""
    if not yes and sys.stdin.isatty():
        typer.confirm(question, abort=True, err=True)


def print_json(document: Any) -> None:
    out.print_json(json.dumps(document), highlight=False)


def json_line(document: Any) -> str:
    """A document on a line of its own."""
    return f"{json.dumps(document)}\n"


def print_version(program: str, version: str, output: str | None) -> None:
    """`output` is as it was given: what a program chooses is not set yet when it is asked for its version."""
    if output == Format.JSON:
        print_json({"program": program, "version": version})
    else:
        out.print(f"{program} {version}")


def print_json_line(document: Any) -> None:
    """One of several documents."""
    out.print(json_line(document), soft_wrap=True, end="")


def write_file(pieces: Iterable[bytes]) -> None:
    """A file or a pipe gets the bytes as they came: `typer.echo` would take sequences out of them that steer terminals.
    A terminal gets these visibly."""
    if sys.stdout.isatty():
        for text in codecs.iterdecode(iter(pieces), "utf-8", "replace"):
            out.print(text.replace("\r\n", "\n"), soft_wrap=True, end="")
        return
    sys.stdout.flush()
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def print_table(columns: list[str], rows: Sequence[Sequence[str | Text]]) -> None:
    """Columns that begin with `>` are numbers: right-aligned."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left")
    for row in rows:
        table.add_row(*map(cell, row))
    out.print(table)


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def milliseconds(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.1f} ms" if value < 1000 else f"{value / 1000:,.1f} s"


def latency_of(latency: dict[str, Any], of: str, at: datetime) -> str:
    """The latency as the console shows it (latency-shown.ts): the interval's; if nothing came, the one before with its
    age; with ≥ if nothing comes though changes wait. `of` is p50_ms or p99_ms."""
    figure, age = _latency(latency, of, at)
    return figure + age


def latency_in_words(latency: dict[str, Any], at: datetime) -> str:
    (p50, _), (p99, age) = (_latency(latency, of, at) for of in ("p50_ms", "p99_ms"))
    return f"p50 {p50}, p99 {p99}{age}"


def _latency(latency: dict[str, Any], of: str, at: datetime) -> tuple[str, str]:
    """The figure, and its age where it is not of now."""
    known, last = latency[of], latency["last"]
    if known is not None and latency["at_least"]:
        return f"≥ {duration(known / 1000)}", ""
    if known is not None or last is None:
        return milliseconds(known), ""
    age = (at - datetime.fromisoformat(last["at"])).total_seconds()
    return milliseconds(last[of]), "" if age < RECENT_SECONDS else f" {ago(age)} ago"


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


def ago_and_when(time: str) -> str:
    at = datetime.fromisoformat(time)
    old = ago((datetime.now(UTC) - at).total_seconds())
    return f"{old} ago ({at:%Y-%m-%d %H:%M:%S} UTC)"


def lag_in_words(lag: dict[str, Any]) -> str:
    """Its size, its age where it has one, and when it is full."""
    text = size(lag["bytes"])
    if lag["bytes"] and lag["age_seconds"] is not None and lag["age_seconds"] >= 1:
        text += f" for {ago(lag['age_seconds'])}"
    limit = lag.get("reached_limit")
    if lag["seconds_to_full"] is not None and (lag["bytes"] or limit == FillingLimit.STAGING):
        text += f", full in {ago(lag['seconds_to_full'])}" + (f" ({limit})" if limit else "")
    return text


def path_of(stream: dict[str, Any], destination: dict[str, Any] | None = None) -> str:
    """“stream → destination”; a stream with several destinations by their number."""
    destinations = stream["destinations"]
    if destination is None and len(destinations) != 1:
        return f"{stream['name']} → {len(destinations)} destinations"
    return f"{stream['name']} → {(destination or destinations[0])['database']['name']}"


def behind_in_words(lag: dict[str, Any]) -> str:
    """How far behind its source, in time."""
    if lag["bytes"] == 0:
        return "0 s"
    return "–" if lag["age_seconds"] is None else ago(lag["age_seconds"])


def settings_in_words(parameters: dict[str, Any]) -> str:
    """A line for each, as the command takes them."""
    return "\n".join(f"{name} = {setting_in_words(value)}" for name, value in parameters.items())


def state_of(shown: dict[str, Any]) -> str:
    """The state of a stream or destination in the console's words."""
    return in_words(shown["state"])


def health_of(stream: dict[str, Any]) -> Text:
    """In the console's words, with their colour."""
    level = stream["health"]["level"]
    return styled(health_in_words(level, stream["status"], stream["state"]), COLOURS.get(level, "dim"))
