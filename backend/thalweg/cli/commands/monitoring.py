"""`thalweg mon`: the counterpart of strmmon, one line for each sample and path, segments as the data flows."""

import time
from datetime import datetime
from typing import Annotated

import typer
from rich.text import Text

from thalweg.cli.client import Json, connect
from thalweg.cli.output import AsJson, line, out, print_json_line, styled
from thalweg.kernel.words import figure

LEGEND = """\
C name captured/s bytes/s latency | Q enqueued/s in-queue | PS sent/s bytes/s latency | PR received/s |
A applied/s transactions/s latency, with AR reader (spilled/s), AC coordinator, AS(n) n appliers.
<x%I x%F x%event>: idle, flow control, biggest event, per thread. <F> held back, <B> the bottleneck, -> the next engine
"""
STAGES = {
    "CAPTURE": "C", "QUEUE": "Q", "PROPAGATION SENDER": "PS", "PROPAGATION RECEIVER": "PR", "APPLY READER": "AR",
    "APPLY COORDINATOR": "AC", "APPLY SERVER": "AS",
}  # fmt: skip
FIELDS = {
    "CAPTURE": ("CAPTURE RATE", "BANDWIDTH", "LATENCY"),
    "QUEUE": ("ENQUEUE RATE", "CURRENT QUEUE SIZE"),
    "PROPAGATION SENDER": ("SEND RATE", "BANDWIDTH", "LATENCY"),
    "PROPAGATION RECEIVER": ("RECEIVE RATE",),
    "APPLY": ("MESSAGE APPLY RATE", "TRANSACTION APPLY RATE", "LATENCY"),
}
FLOW_CONTROL_PERCENT = 50


def monitor(
    stream: Annotated[str | None, typer.Option(help="Only this stream: its name or id.")] = None,
    interval: Annotated[float, typer.Option(min=1, max=3600, help="Seconds between two lines.")] = 2,
    count: Annotated[int | None, typer.Option(min=1, help="End after this many samples.")] = None,
    long: Annotated[bool, typer.Option("--long", help="Apply's reader and coordinator, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """One line for each sample and path, like Streams' strmmon. In colour on a terminal, plain in a pipe. As JSON the
    whole analysis of each sample, on a line of its own."""
    api = connect()
    stream_id = None if stream is None else api.find("/streams", "stream", stream)["id"]
    if out.is_terminal and not as_json:
        out.print(LEGEND, style="dim")
    taken = 0
    while True:
        document = api.get("/advisor/analysis", stream_id=stream_id, window_seconds=max(3, round(interval) + 1))
        if as_json:
            print_json_line(document)
        else:
            _print_lines(document, long)
        taken += 1
        if count is not None and taken >= count:
            return
        time.sleep(interval)


def _print_lines(document: Json, long: bool) -> None:
    analysis = document["analysis"]
    at = datetime.fromisoformat(document["at"]).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    for path in analysis["paths"]:
        out.print(line(f"{at} ", line_of(analysis, path, long)), soft_wrap=True)
    if not document["live"]:
        out.print(f"{at} no samples: Redis cannot be reached")


def line_of(analysis: Json, path: Json, long: bool) -> Text:
    rows: dict[tuple[str, str | None], dict[str, float | None]] = {}
    for row in analysis["component_statistics"]:
        if row["thread"] is None:
            values = rows.setdefault((row["component_id"], row["sub_component_type"]), {})
            values[row["statistic_name"]] = row["statistic_value"]
    parts = {part["component_id"]: part for part in analysis["components"]}
    limit = next(row for row in analysis["path_bottlenecks"] if row["path_id"] == path["path_id"])
    segments: list[Text] = []
    engine = None
    for component_id in path["component_ids"]:
        part = parts[component_id]
        if engine is not None and part["engine"] != engine:
            segments.append(line(f"{engine}->"))
        engine = part["engine"]
        segments.append(_segment(part, rows, limit, long))
    verdict = "" if limit["bottleneck_identified"] else f" | {limit['verdict']}"
    return line(f"{path['path_name']} | ", Text(" | ").join(segments), verdict)


def _segment(part: Json, rows: dict[tuple[str, str | None], dict[str, float | None]], limit: Json, long: bool) -> Text:
    own = rows.get((part["component_id"], None), {})
    kind = part["component_type"]
    figures = [_figure(own.get(name), "sec" if name == "LATENCY" else "") for name in FIELDS[kind]]
    title = "A" if kind == "APPLY" else STAGES[kind]
    name = f" {part['component_name']}" if kind == "CAPTURE" else ""
    text = line(styled(title, "bold"), f"{name} {' '.join(figures)}")
    if kind != "APPLY":
        return line(text, _shares(own), _marks(part, None, own, limit))
    for stage, values in rows.items():
        if stage[0] != part["component_id"] or stage[1] is None:
            continue
        limits = limit["component_id"] == stage[0] and limit["sub_component_type"] == stage[1]
        spilled = f" {_figure(values.get('SPILL RATE'))}" if stage[1] == "APPLY READER" else ""
        if long or stage[1] == "APPLY SERVER" or limits or values.get("SPILL RATE"):
            threads = f"({_figure(values.get('PARALLELISM'))})" if stage[1] == "APPLY SERVER" else ""
            shown = f" {STAGES[stage[1]]}{threads}{spilled}{_shares(values)}"
            text = line(text, shown, _marks(part, stage[1], values, limit))
    return text


def _shares(values: dict[str, float | None]) -> str:
    idle, held = values.get("IDLE"), values.get("FLOW CONTROL")
    if idle is None or held is None:
        return "" if "IDLE" not in values else " <–%I –%F>"
    events = [
        (share or 0.0, name.removeprefix("EVENT: ")) for name, share in values.items() if name.startswith("EVENT")
    ]
    top = max(events, default=None)
    event = f" {top[0]:.0f}%{top[1]}" if top else ""
    return f" <{idle:.0f}%I {held:.0f}%F{event}>"


def _marks(part: Json, sub_component: str | None, values: dict[str, float | None], limit: Json) -> Text:
    marks = Text()
    if (values.get("FLOW CONTROL") or 0) > FLOW_CONTROL_PERCENT:
        marks = line(marks, " ", styled("<F>", "yellow"))
    if limit["component_id"] == part["component_id"] and limit["sub_component_type"] == sub_component:
        marks = line(marks, " ", styled("<B>", "bold red"))
    return marks


def _figure(value: float | None, unit: str = "") -> str:
    """Short, as strmmon's: 4K, 1.2M."""
    if value is None:
        return "–"
    if unit == "sec":
        return f"{figure(value)}sec"
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "K")):
        if value >= limit:
            return f"{figure(value / {'G': 1e9, 'M': 1e6, 'K': 1e3}[letter])}{letter}"
    return f"{value:.0f}"
