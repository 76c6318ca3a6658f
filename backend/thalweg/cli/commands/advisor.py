"""advisor run, list, show, compare, report, export."""

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.client import Api, CommandError, Json, connect
from thalweg.cli.output import (
    AsJson,
    ago,
    done,
    json_line,
    json_wanted,
    line,
    number,
    out,
    print_json,
    print_table,
    seconds,
    size,
    styled,
    write_file,
)
from thalweg.kernel.words import counted, duration, setting_in_words, statistic_in_words

app = typer.Typer(no_args_is_help=True, help="The performance advisor: where a path is slow, why, and what to change.")
Stream = Annotated[str | None, typer.Option(help="Only the paths of this stream: its name or id.")]
RunId = Annotated[int, typer.Argument(help="The run's number; see `thalweg advisor list`.")]
Window = Annotated[int, typer.Option(min=2, max=3600, help="Analyse this many seconds, up to now.")]
LATEST = "Default: the latest run."
TABLES = ("component", "component_link", "component_stat", "database", "path_bottleneck", "path_stat")
COLOURS = {"critical": "red", "warning": "yellow", "advice": "cyan", "information": "dim"}


class ExportFormat(StrEnum):
    CSV = "csv"
    JSON = "json"
    HTML = "html"


def _take(api: Api, stream: str | None, window: int, name: str | None = None, note: str | None = None) -> Json:
    body: Json = {"window_seconds": window}
    if stream is not None:
        body["stream_id"] = api.find("/streams", "stream", stream)["id"]
    if name is not None:
        body["name"] = name
    if note is not None:
        body["note"] = note
    return api.create("/advisor/runs", body)


def _latest(api: Api) -> int:
    runs = api.get("/advisor/runs", limit=1)["items"]
    if not runs:
        raise CommandError("There is no advisor run yet.", "Take one: thalweg advisor run")
    return int(runs[0]["id"])


@app.command()
def run(
    stream: Stream = None,
    window: Window = 30,
    name: Annotated[str | None, typer.Option(help="The name of the run.")] = None,
    note: Annotated[str | None, typer.Option(help="A note to keep with it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Take a run now and show what limits each path. Fails when a path is broken."""
    taken = _take(connect(), stream, window, name, note)
    if as_json:
        print_json(taken)
    else:
        _show(taken)
    if taken["worst"] == "critical" and any(path["verdict"].endswith(("DOWN", "ABORTED")) for path in taken["paths"]):
        raise typer.Exit(1)


@app.command("list")
def list_runs(stream: Stream = None, limit: int = 20, as_json: AsJson = False) -> None:
    """The latest runs."""
    api = connect()
    stream_id = None if stream is None else api.find("/streams", "stream", stream)["id"]
    items = api.get("/advisor/runs", limit=limit, stream_id=stream_id)["items"]
    if as_json:
        print_json(items)
        return
    print_table(
        [">RUN", "TIME", "REASON", "NAME", ">PATHS", "BOTTLENECKS", ">FINDINGS"],
        [
            [
                str(item["id"]), _time(item["at"]), item["reason"], item["name"] or "", str(len(item["paths"])),
                ", ".join(f"{path['path_name']}: {_limit(path)}" for path in item["paths"][:3]),
                str(item["findings"]),
            ]
            for item in items
        ],
    )  # fmt: skip


@app.command()
def show(
    run_id: Annotated[int | None, typer.Argument(metavar="RUN", help=LATEST)] = None, as_json: AsJson = False
) -> None:
    """A run: each path's bottleneck, the findings with their evidence, and their cures."""
    api = connect()
    document = api.get(f"/advisor/runs/{_latest(api) if run_id is None else run_id}")
    if as_json:
        print_json(document)
    else:
        _show(document)


def _time(text: str) -> str:
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _limit(path: Json) -> str:
    if not path["bottleneck_identified"]:
        return str(path["verdict"]).lower()
    stage = path["sub_component_type"] or path["component_type"]
    return f"{stage} ({path['top_event']})" if path["top_event"] else str(stage)


def _show(document: Json) -> None:
    named = f" “{document['name']}”" if document["name"] else ""
    heading = styled(f"Run {document['id']}", "bold")
    out.print(line(heading, f"{named}, {_time(document['at'])}, {counted(document['samples'], 'sample')}"))
    sampled = {row["path_id"]: row["statistic_time"] for row in document["analysis"]["path_statistics"]}
    for path in document["paths"]:
        rates = f"{number(path['messages_per_second'])} LCR/s, {number(path['transactions_per_second'])} TX/s"
        p50, waited = path["latency_p50_seconds"], path.get("latency_at_least_seconds")
        # A lower bound, as in the console and `thalweg status`: nothing arrived though changes waited.
        late = f"p50 {seconds(p50)}" + (f", p99 ≥ {duration(waited)}" if waited is not None else "")
        figures = f"{rates}, latency {late}, lag {size(path['lag_bytes'])}"
        if all(path[name] is None for name in ("messages_per_second", "latency_p50_seconds", "lag_bytes")):
            figures = _without_figures(document["at"], sampled[path["path_id"]])
        out.print(line(styled(path["path_name"], "bold"), f" from {path['source_db']}  {figures}"))
        out.print(f"  {_limit(path)}: {path['explanation']}")
    names = {path["path_id"]: path["path_name"] for path in document["paths"]}
    for finding in document["findings_ranked"]:
        _show_finding(finding, names[finding["path_id"]])
    if not document["findings_ranked"]:
        out.print("No findings.")


def _without_figures(at: str, sampled_at: str) -> str:
    """The server leaves out figures that are not fresh."""
    age = (datetime.fromisoformat(at) - datetime.fromisoformat(sampled_at)).total_seconds()
    return f"no figures: the last sample was {ago(age)} old" if age >= 1 else "no figures"


def _show_finding(finding: Json, path: str) -> None:
    heading = styled(f"{finding['rank']}. {finding['severity']}:", COLOURS[finding["severity"]])
    out.print(line(heading, f" {finding['title']} ", styled(f"({finding['code']})", "dim")))
    out.print(f"   {path}")
    out.print(f"   {finding['explanation']}")
    for item in finding["evidence"]:
        value, threshold = (statistic_in_words(item[name], item["unit"]) for name in ("value", "threshold"))
        limit = "" if item["threshold"] is None else f" (threshold {threshold})"
        out.print(f"   {item['subject']}: {item['statistic']} {value}{limit}")
    if finding["expected_gain"]:
        out.print(f"   gain: {finding['expected_gain']}")
    for cure in finding["cures"]:
        out.print(f"   cure: {cure['text']}")
        for change in cure["parameters"]:
            proposed, current = setting_in_words(change["proposed"]), setting_in_words(change["current"])
            out.print(f"         {change['name']} = {proposed}  (now {current})")
        for statement in (cure["sql"] or "").splitlines():
            out.print(f"         {statement}")


@app.command()
def compare(
    before: RunId, after: RunId, everything: Annotated[bool, typer.Option("--all")] = False, as_json: AsJson = False
) -> None:
    """Two runs side by side: every statistic before, after, and its change. Without --all, those that changed."""
    compared = connect().get("/advisor/comparison", before=before, after=after)
    if as_json:
        print_json(compared)
        return
    for row in compared["bottlenecks"]:
        change = "still" if not row["changed"] else f"was {row['before'] or 'not there'}, now"
        out.print(f"{row['path_name']}: {change} {row['after'] or 'not there'}")
    rows = [row for row in compared["statistics"] if everything or row["change"]]
    print_table(
        ["OF", "STATISTIC", ">BEFORE", ">AFTER", ">CHANGE", ">%", "UNIT"],
        [
            [
                _subject(row), row["statistic_name"], _figure(row["before"]), _figure(row["after"]),
                _figure(row["change"]), _figure(row["change_percent"]), row["statistic_unit"].lower(),
            ]
            for row in rows
        ],
    )  # fmt: skip


def _subject(row: Json) -> str:
    if row["component_id"] is None:
        return str(row["path_name"])
    thread = f" {row['thread']}" if row["thread"] else ""
    part = row["sub_component_type"] or row["component_type"]
    return f"{row['path_name']}: {part}{thread}"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}"


@app.command()
def report(
    run_id: Annotated[int | None, typer.Argument(metavar="RUN", help="Default: take a run now.")] = None,
    file: Annotated[Path | None, typer.Option(help="Append to this file instead of printing.")] = None,
    stream: Stream = None,
    window: Window = 60,
) -> None:
    """All six tables of a run, pipe-delimited, appending: for cron and spreadsheets. As JSON the whole run, on one
    line.

    */5 * * * *  thalweg advisor report --file streams_advisor.txt
    """
    api = connect()
    number_ = _take(api, stream, window)["id"] if run_id is None else run_id
    path = f"/advisor/runs/{number_}"
    content = json_line(api.get(path)) if json_wanted(False) else api.text(f"{path}/report", format="text")
    if file is None:
        write_file([content.encode()])
        return
    try:
        with file.open("a") as target:
            target.write(content)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}.", "Name a file that can be written.") from error


@app.command()
def export(
    run_id: Annotated[int | None, typer.Argument(metavar="RUN", help=LATEST)] = None,
    format_: Annotated[ExportFormat, typer.Option("--format")] = ExportFormat.HTML,
    directory: Annotated[Path, typer.Option(help="Where the files go.")] = Path(),
) -> None:
    """A run as files: one CSV for each of the six tables, JSON, or a self-contained HTML page with charts. Prints the
    files' names."""
    api = connect()
    number_ = _latest(api) if run_id is None else run_id
    path, stem = f"/advisor/runs/{number_}", f"advisor-run-{number_}"
    if format_ is ExportFormat.CSV:
        contents = {f"{stem}-{name}.csv": api.text(f"{path}/report", format="csv", table=name) for name in TABLES}
    elif format_ is ExportFormat.HTML:
        contents = {f"{stem}.html": api.text(f"{path}/report", format="html")}
    else:
        contents = {f"{stem}.json": api.text(path)}
    for name, content in contents.items():
        target = directory / name
        try:
            target.write_bytes(content.encode())
        except OSError as error:
            raise CommandError(f"{target}: {error.strerror}.", "Name a directory that can be written.") from error
    files = [str(directory / name) for name in contents]
    done("\n".join(files), {"run_id": number_, "files": files})
