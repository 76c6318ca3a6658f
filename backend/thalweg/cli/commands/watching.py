"""status, watch, operations."""

import time
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Annotated

import httpx
import typer
from rich.live import Live
from rich.table import Table

from thalweg.cli.client import Api, Json, connect, unreachable
from thalweg.cli.output import (
    LEVELS,
    AsJson,
    ago,
    backlog_in_words,
    latency_in_words,
    milliseconds,
    number,
    out,
    path_of,
    print_json,
    print_table,
    stream_state,
)


def status(as_json: AsJson = False) -> None:
    """One line for each stream, and for each of several destinations: state, rate, latency, backlog, and how old that
    is. Fails when anything is not well: a stream that is stopped or behind, an engine that does not answer, Redis."""
    overview = connect().get("/overview")
    if as_json:
        print_json(overview)
    else:
        at = datetime.now(UTC)
        for stream in overview["streams"]:
            out.print(_line(stream, at), markup=True)
            for one in stream["destinations"] if len(stream["destinations"]) > 1 else []:
                out.print(_destination_line(stream, one))
        if not overview["streams"]:
            out.print("No streams.")
        for sentence in _amiss(overview):
            out.print(sentence)
    if _amiss(overview) or any(stream["health"]["level"] != "ok" for stream in overview["streams"]):
        raise typer.Exit(1)


def _amiss(overview: Json) -> list[str]:
    """Troubles beside those of streams."""
    silent = overview["engines_total"] - overview["engines_online"]
    told = [] if not silent else [f"{silent} of {overview['engines_total']} engines do not answer."]
    return told if overview["live"] else [*told, "Redis cannot be reached: rates and latencies are missing."]


def _line(stream: Json, at: datetime) -> str:
    health = stream["health"]
    return (
        f"{path_of(stream):<24} {stream_state(stream):<14} {_figures(stream)}  {age_of(stream, at)}  "
        f"{LEVELS[health['level']]}: {health['reason']}"
    )


def _destination_line(stream: Json, one: Json) -> str:
    told = one["error"]["message"] if one["error"] else ""
    return f"  {path_of(stream, one):<22} {stream_state(one):<14} {_figures(one)}  {told}"


def _figures(shown: Json) -> str:
    latency, backlog = shown["latency"], shown["backlog"]
    return (
        f"{number(shown['lcrs_per_second']):>9} LCR/s  "
        f"latency {latency_in_words(latency, datetime.now(UTC))}  "
        f"backlog {backlog_in_words(backlog)}"
    )


def age_of(stream: Json, at: datetime) -> str:
    """The age of the engine's last report."""
    told = stream["observed_at"]
    return "never seen" if told is None else f"{ago((at - datetime.fromisoformat(told)).total_seconds())} ago"


def watch(
    plain: Annotated[bool, typer.Option(help="A line for each sample, without redrawing.")] = False,
    count: Annotated[int | None, typer.Option(help="End after so many samples.")] = None,
) -> None:
    """A live ticker of all streams, fed by server-sent events. Ctrl-C ends it."""
    api = connect()
    names = _names(api)
    samples: dict[str, Json] = {}
    seen = 0
    live = Live(_ticker(names, samples), console=out, auto_refresh=False)
    with nullcontext() if plain else live:
        while True:
            try:
                for name, data in api.events():
                    if name in ("stream.status", "stream.deleted", "reset"):
                        names = _names(api)
                        samples = {key: value for key, value in samples.items() if key in names}
                    if name != "stream.sample":
                        continue
                    samples[data["stream_id"]] = data
                    seen += 1
                    if plain:
                        out.print(_sample_line(names, data))
                    else:
                        live.update(_ticker(names, samples), refresh=True)
                    if count is not None and seen >= count:
                        return
            except httpx.TransportError as error:
                if count is not None:
                    raise unreachable(api.url, error) from error
                time.sleep(1)


def _names(api: Api) -> dict[str, Json]:
    return {stream["id"]: stream for stream in api.items("/streams")}


def _sample_line(names: dict[str, Json], sample: Json) -> str:
    stream = names.get(sample["stream_id"], {"name": sample["stream_id"]})
    at = datetime.fromisoformat(sample["at"]).astimezone().strftime("%H:%M:%S")
    name = path_of(stream) if "destinations" in stream else stream["name"]
    return (
        f"{at} {name:<24} {sample['phase']:<14} {number(sample['lcrs_per_second']):>9} LCR/s  "
        f"p50 {milliseconds(sample['latency']['p50_ms'])}  backlog {backlog_in_words(sample['backlog'])}"
    )


def _ticker(names: dict[str, Json], samples: dict[str, Json]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("STREAM", "STATE", "LCR/s", "TX/s", "P50", "P99", "BACKLOG", "BUSIEST"):
        table.add_column(column, justify="left" if column in ("STREAM", "STATE", "BUSIEST") else "right")
    for stream_id, stream in names.items():
        sample = samples.get(stream_id)
        if sample is None:
            table.add_row(path_of(stream), stream_state(stream), "–", "–", "–", "–", "–", "–")
            continue
        table.add_row(
            path_of(stream), sample["phase"], number(sample["lcrs_per_second"]),
            number(sample["transactions_per_second"]), milliseconds(sample["latency"]["p50_ms"]),
            milliseconds(sample["latency"]["p99_ms"]), backlog_in_words(sample["backlog"]), _busiest(sample),
        )  # fmt: skip
    return table


def _busiest(sample: Json) -> str:
    """The thread with the least idle time."""
    timed = [part for part in sample["components"] if part["time_percent"]]
    if not timed:
        return "–"
    least = min(timed, key=lambda part: part["time_percent"]["idle"])
    return f"{least['id']} {100 - least['time_percent']['idle']:.0f} %"


def operations(as_json: AsJson = False, limit: int = 20) -> None:
    """The latest long work with its progress."""
    items = connect().get("/operations", limit=limit)["items"]
    if as_json:
        print_json(items)
        return
    print_table(
        ["ID", "KIND", "TARGET", "STATE", "PROGRESS", "STARTED", "ERROR"],
        [
            [
                item["id"], item["kind"], item["target"]["name"], item["state"],
                f"{number(item['progress']['done'])} of {number(item['progress']['total'])} {item['progress']['unit']}",
                (item["started_at"] or "–")[:19], item["error"]["message"] if item["error"] else "",
            ]
            for item in items
        ],
    )  # fmt: skip
