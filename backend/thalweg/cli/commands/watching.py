"""status, watch, operations."""

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

import httpx
import typer
from rich.live import Live
from rich.table import Table
from rich.text import Text

from thalweg.cli.client import Api, Json, connect, unreachable
from thalweg.cli.errors import own_error, print_error, with_details
from thalweg.cli.output import (
    AsJson,
    ago,
    behind_in_words,
    cell,
    health_of,
    lag_in_words,
    latency_in_words,
    latency_of,
    line,
    number,
    out,
    path_of,
    print_json,
    print_json_line,
    print_table,
    size,
    state_of,
)
from thalweg.kernel.lifecycle import ShownState, StreamPhase
from thalweg.kernel.states import in_words
from thalweg.kernel.words import counted

UNSAMPLED: Json = {
    "lcrs_per_second": None, "transactions_per_second": None,
    "latency": {"p50_ms": None, "p99_ms": None, "last": None, "at_least": False},
}  # fmt: skip
"""Figures of a destination of which no sample tells."""
SAMPLE_FRESH = 15.0
"""Seconds for which the last sample of a stream that runs tells how it is, as for the API's own readers."""
AT_REST = (StreamPhase.STOPPED, StreamPhase.UNKNOWN)
"""Phases in which no samples come."""
CHANGES = ("stream.status", "stream.deleted", "engine", "reset")
"""Events after which the streams' own resources tell something else."""
UNKNOWN_LAG = {"bytes": None, "seconds": None, "age_seconds": None, "seconds_to_full": None}


def status(as_json: AsJson = False) -> None:
    """One line for each stream, and for each of several destinations: state, rate, latency, lag, and how old that
    is. Errors are told below, with their row and cure. Fails when anything is not well: a stream that is stopped or
    behind, an engine that does not answer, Redis."""
    api = connect()
    overview = api.get("/overview")
    overview["streams"] = with_details(api, overview["streams"])
    if as_json:
        print_json(overview)
    else:
        at = datetime.now(UTC)
        width = _path_width(overview["streams"])
        for stream in overview["streams"]:
            _print_stream(stream, at, width)
        if not overview["streams"]:
            out.print("No streams.")
        for sentence in _amiss(overview):
            out.print(sentence)
    if _amiss(overview) or any(stream["health"]["level"] != "ok" for stream in overview["streams"]):
        raise typer.Exit(1)


def _amiss(overview: Json) -> list[str]:
    """Troubles beside those of streams."""
    online, total = overview["engines_online"], overview["engines_total"]
    if online is None:
        warnings = ["Whether the engines answer is unknown: the collector may not run."]
    else:
        silent, do = total - online, "does" if total - online == 1 else "do"
        warnings = [] if silent == 0 else [f"{silent} of {counted(total, 'engine')} {do} not answer."]
    return warnings if overview["live"] else [*warnings, "Redis cannot be reached: rates and latencies are missing."]


def _print_stream(stream: Json, at: datetime, width: int) -> None:
    out.print(_line(stream, at, width))
    several = _several(stream)
    own = [own_error(stream)] if several else [own_error(stream), *(part["error"] for part in stream["destinations"])]
    for error in own:
        if error is not None:
            print_error(error, said=stream["health"]["reason"])
    for destination in several:
        out.print(_destination_line(stream, destination, width))
        if destination["error"] is not None:
            print_error(destination["error"], said=destination["error"]["message"], indent="    ")


def _several(stream: Json) -> list[Json]:
    destinations: list[Json] = stream["destinations"]
    return destinations if len(destinations) > 1 else []


def _path_width(streams: list[Json]) -> int:
    """That of the longest path, with the two blanks before a destination's."""
    paths = [path_of(stream) for stream in streams]
    paths += [f"  {path_of(stream, destination)}" for stream in streams for destination in _several(stream)]
    return max([24, *map(len, paths)])


def _line(stream: Json, at: datetime, width: int) -> Text:
    return line(
        f"{path_of(stream):<{width}} {state_of(stream):<14} {_figures(stream)}  {age_of(stream, at)}  ",
        health_of(stream), f": {stream['health']['reason']}",
    )  # fmt: skip


def _destination_line(stream: Json, destination: Json, width: int) -> Text:
    error = destination["error"]["message"] if destination["error"] else ""
    path = f"  {path_of(stream, destination)}"
    return line(f"{path:<{width}} {state_of(destination):<14} {_figures(destination)}  {error}")


def _figures(shown: Json) -> str:
    latency, lag = shown["latency"], shown["lag"]
    return (
        f"{number(shown['lcrs_per_second']):>9} LCR/s  "
        f"latency {latency_in_words(latency, datetime.now(UTC))}  "
        f"lag {lag_in_words(lag)}"
    )


def age_of(stream: Json, at: datetime) -> str:
    """The age of the engine's last report."""
    observed_at = stream["observed_at"]
    return (
        "never seen"
        if observed_at is None
        else f"{ago((at - datetime.fromisoformat(observed_at)).total_seconds())} ago"
    )


def watch(
    plain: Annotated[bool, typer.Option(help="A line for each sample and destination, without redrawing.")] = False,
    count: Annotated[int | None, typer.Option(help="End after this many samples.")] = None,
    stream: Annotated[str | None, typer.Option(help="Only this stream: its name or id.")] = None,
    as_json: AsJson = False,
) -> None:
    """A live ticker of all streams, a line for each destination, fed by server-sent events. Ctrl-C ends it. As JSON a
    document for each sample, on a line of its own; and one with the state UNKNOWN when the reports of a stream stop."""
    follow_samples(stream, plain=plain, count=count, as_json=as_json)


def follow_samples(name: str | None, *, plain: bool = False, count: int | None = None, as_json: bool = False) -> None:
    """Follows the stream with that name or id, or all streams for None. Always plain in a pipe."""
    api = connect()
    plain = plain or as_json or not out.is_terminal
    only = None if name is None else api.find("/streams", "stream", name)["id"]
    streams = _streams(api, only)
    samples: dict[str, Heard] = {}
    silent_streams: set[str] = set()
    seen = 0
    if plain and not as_json and not streams:
        out.print("No streams.")
    live = Live(console=out, refresh_per_second=1, get_renderable=lambda: _ticker(streams, samples))
    with nullcontext() if plain else live:
        while True:
            try:
                for event, data in api.events():
                    if event in CHANGES:
                        streams = _streams(api, only)
                        samples = {key: value for key, value in samples.items() if key in streams}
                    if plain:
                        _tell_silent(streams, samples, silent_streams, as_json=as_json)
                    if event != "stream.sample" or data["stream_id"] not in streams:
                        continue
                    samples[data["stream_id"]] = Heard(data)
                    silent_streams.discard(data["stream_id"])
                    seen += 1
                    if as_json:
                        print_json_line({"stream_name": streams[data["stream_id"]]["name"], **data})
                    elif plain:
                        for text in _sample_lines(streams[data["stream_id"]], data):
                            out.print(line(text))
                    else:
                        live.refresh()
                    if count is not None and seen >= count:
                        return
            except httpx.TransportError as error:
                if count is not None:
                    raise unreachable(api.url, error) from error
                if plain:
                    _tell_silent(streams, samples, silent_streams, as_json=as_json)
                time.sleep(1)


def _streams(api: Api, only: str | None) -> dict[str, Json]:
    return {stream["id"]: stream for stream in api.items("/streams") if only in (None, stream["id"])}


def _destinations_sampled(stream: Json, sample: Json | None) -> Iterator[tuple[Json, Json | None]]:
    """Each destination, and as the sample has it; None where that tells nothing of it. A collector of another
    version may leave members out: what the stream's own resource has stands in for them."""
    samples = {destination["destination_id"]: destination for destination in (sample or {}).get("destinations", [])}
    for destination in stream["destinations"]:
        sampled = samples.get(destination["id"])
        yield destination, None if sampled is None else _whole(sampled, {**destination, **UNSAMPLED})


def _whole(sampled: Json, known: Json) -> Json:
    """Null counts as left out only of the state: a figure that is null is not known."""
    return {
        **known, **sampled, "state": sampled.get("state") or known["state"],
        "latency": {**UNSAMPLED["latency"], **sampled.get("latency", {})},
        "lag": {**UNKNOWN_LAG, **sampled.get("lag", {})},
    }  # fmt: skip


def _sample_lines(stream: Json, sample: Json) -> Iterator[str]:
    taken = datetime.fromisoformat(sample["at"])
    at = taken.astimezone().strftime("%H:%M:%S")
    for destination, sampled in _destinations_sampled(stream, sample):
        if sampled is not None:
            yield (
                f"{at} {path_of(stream, destination):<24} {state_of(sampled):<14} "
                f"{number(sampled['lcrs_per_second']):>9} LCR/s  {latency_in_words(sampled['latency'], taken)}  "
                f"behind {behind_in_words(sampled['lag'])}  lag {size(sampled['lag']['bytes'])}"
            )


@dataclass(frozen=True)
class Heard:
    """A sample, and when it came by this program's clock: the server's may differ."""

    sample: Json
    at: float = field(default_factory=time.monotonic)

    def seconds_ago(self) -> float:
        return time.monotonic() - self.at

    @property
    def is_stale(self) -> bool:
        return self.seconds_ago() > SAMPLE_FRESH


def _tell_silent(
    streams: dict[str, Json], samples: dict[str, Heard], silent_streams: set[str], *, as_json: bool
) -> None:
    """One line for each destination of a stream whose reports have stopped: unlike the ticker's, printed lines stay.
    `silent_streams`: those that have their lines already."""
    at = datetime.now(UTC)
    for stream_id, stream in streams.items():
        heard = samples.get(stream_id)
        if stream_id in silent_streams or not _is_silent(stream, heard):
            continue
        silent_streams.add(stream_id)
        age = _seconds_silent(stream, heard, at)
        if as_json:
            names = {"stream_name": stream["name"], "stream_id": stream_id}
            print_json_line({**names, "at": at.isoformat(), "state": ShownState.UNKNOWN, "age_seconds": age})
            continue
        last = "never seen" if age is None else f"no report for {ago(age)}"
        for destination in stream["destinations"]:
            state = state_of({**destination, "state": ShownState.UNKNOWN})
            out.print(line(f"{at.astimezone():%H:%M:%S} {path_of(stream, destination):<24} {state:<14} {last}"))


def _is_silent(stream: Json, heard: Heard | None) -> bool:
    if stream["state"] == ShownState.UNKNOWN:
        return True
    runs = any(destination["phase"] not in AT_REST for destination in stream["destinations"])
    return runs and heard is not None and heard.is_stale


def _seconds_silent(stream: Json, heard: Heard | None, at: datetime) -> float | None:
    """None: nothing was ever heard of it."""
    if heard is not None:
        return round(heard.seconds_ago(), 1)
    observed_at = stream["observed_at"]
    if observed_at is None:
        return None
    return round(max(0.0, (at - datetime.fromisoformat(observed_at)).total_seconds()), 1)


def _ticker(streams: dict[str, Json], samples: dict[str, Heard]) -> Table | Text:
    if not streams:
        return Text("No streams.")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("STREAM", "STATE", "LCR/s", "TX/s", "P50", "P99", "BEHIND", "LAG", "BUSIEST"):
        table.add_column(column, justify="left" if column in ("STREAM", "STATE", "BUSIEST") else "right")
    at = datetime.now(UTC)
    for stream_id, stream in streams.items():
        heard = samples.get(stream_id)
        silent = heard is not None and heard.is_stale
        sample = None if heard is None or silent else heard.sample
        for destination, sampled in _destinations_sampled(stream, sample):
            shown = sampled or {**destination, **UNSAMPLED}
            ends_with = _busiest(sample, destination["id"]) if sample is not None else "–"
            if heard is not None and silent and destination["phase"] not in AT_REST:
                shown = {**shown, "state": ShownState.UNKNOWN, "lag": UNKNOWN_LAG}
                ends_with = f"no report for {ago(heard.seconds_ago())}"
            table.add_row(
                cell(path_of(stream, destination)), state_of(shown), number(shown["lcrs_per_second"]),
                number(shown["transactions_per_second"]), latency_of(shown["latency"], "p50_ms", at),
                latency_of(shown["latency"], "p99_ms", at), behind_in_words(shown["lag"]), size(shown["lag"]["bytes"]),
                cell(ends_with),
            )  # fmt: skip
    return table


def _busiest(sample: Json, destination_id: str) -> str:
    """The thread with the least idle time, of those on the way to the destination."""
    own = [part for part in sample["components"] if part.get("destination_id") in (None, destination_id)]
    timed = [part for part in own if part.get("time_percent")]
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
                item["id"], item["kind"], _target(item["target"]), in_words(item["state"]),
                f"{number(item['progress']['done'])} of {number(item['progress']['total'])} {item['progress']['unit']}",
                (item["started_at"] or "–")[:19], item["error"]["message"] if item["error"] else "",
            ]
            for item in items
        ],
    )  # fmt: skip


def _target(target: Json) -> str:
    return f"{target['name']} → {target['destination']}" if target["destination"] else str(target["name"])
