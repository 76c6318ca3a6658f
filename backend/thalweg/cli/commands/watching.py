"""status, watch, operations."""

import time
from contextlib import nullcontext
from datetime import datetime
from typing import Annotated

import httpx
import typer
from rich.live import Live
from rich.table import Table

from thalweg.cli.client import Api, Json, connect, unreachable
from thalweg.cli.output import LEVELS, milliseconds, number, out, print_json, print_table, size, stream_state

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def status(as_json: AsJson = False) -> None:
    """One line for each stream: state, LCR/s, latency. Fails when a stream has stopped with an error."""
    overview = connect().get("/overview")
    if as_json:
        print_json(overview)
    else:
        for stream in overview["streams"]:
            out.print(_line(stream))
        if not overview["streams"]:
            out.print("No streams.")
        if not overview["live"]:
            out.print("Redis cannot be reached: rates and latencies are missing.")
    if any(stream["health"]["level"] == "error" for stream in overview["streams"]):
        raise typer.Exit(1)


def _line(stream: Json) -> str:
    latency = stream["latency"]
    return (
        f"{stream['name']:<24} {stream_state(stream):<14} {number(stream['lcrs_per_second']):>9} LCR/s  "
        f"latency p50 {milliseconds(latency['p50_ms'])}, p99 {milliseconds(latency['p99_ms'])}  "
        f"backlog {size(stream['backlog']['bytes'])}  {LEVELS[stream['health']['level']]}: "
        f"{stream['health']['reason']}"
    )


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
    return (
        f"{at} {stream['name']:<24} {sample['phase']:<14} {number(sample['lcrs_per_second']):>9} LCR/s  "
        f"p50 {milliseconds(sample['latency']['p50_ms'])}  backlog {size(sample['backlog']['bytes'])}"
    )


def _ticker(names: dict[str, Json], samples: dict[str, Json]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("STREAM", "STATE", "LCR/s", "TX/s", "P50", "P99", "BACKLOG", "BUSIEST"):
        table.add_column(column, justify="left" if column in ("STREAM", "STATE", "BUSIEST") else "right")
    for stream_id, stream in names.items():
        sample = samples.get(stream_id)
        if sample is None:
            table.add_row(stream["name"], stream_state(stream), "–", "–", "–", "–", "–", "–")
            continue
        table.add_row(
            stream["name"], sample["phase"], number(sample["lcrs_per_second"]),
            number(sample["transactions_per_second"]), milliseconds(sample["latency"]["p50_ms"]),
            milliseconds(sample["latency"]["p99_ms"]), size(sample["backlog"]["bytes"]), _busiest(sample),
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
