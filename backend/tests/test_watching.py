"""`thalweg watch`: a line for each destination, in the console's words; and what the API refuses, whole."""

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import httpx
import pytest

from tests.test_last_latency import AT
from tests.test_stalls import HELD, seen
from thalweg.cli import output
from thalweg.cli.client import Api, CommandError, Json, _problem
from thalweg.cli.commands import watching
from thalweg.cli.commands.streams import print_destinations, table_state
from thalweg.cli.commands.watching import SAMPLE_FRESH, Heard, _amiss, _path_width, _sample_lines, _ticker
from thalweg.cli.following import follow
from thalweg.cli.output import (
    Terminal,
    latency_in_words,
    latency_of,
    line,
    path_of,
    print_table,
    styled,
)
from thalweg.kernel.lifecycle import ShownState
from thalweg.live.schemas import Lag, LastLatency, LatencySample

UNKNOWN = {"bytes": None, "seconds": None, "age_seconds": None, "seconds_to_full": None}


def stream() -> Json:
    names = {"a": "Warehouse", "b": "Reports"}
    away = {"state": "PAUSED", "lag": {**UNKNOWN, "bytes": 1 << 20, "age_seconds": 600}}
    destinations = [{"id": name, "database": {"name": shown}, **away} for name, shown in names.items()]
    return {"id": "s", "name": "orders", "state": "REPLICATING", "destinations": destinations}


def sample() -> Json:
    """Of Warehouse alone: nothing is told of Reports, which rests."""
    told = seen(0, HELD, rate=1234.0)
    destination = told.destinations[0].model_copy(
        update={"state": ShownState.STALLED, "lag": Lag(bytes=3 << 20, seconds=None, age_seconds=90)}
    )
    return told.model_copy(update={"destinations": [destination]}).model_dump(mode="json", by_alias=True)


def test_a_line_for_each_destination() -> None:
    (shown,) = _sample_lines(stream(), sample())
    for told in ("orders → Warehouse", "Stalled", "1,234 LCR/s", "behind 90 s", "lag 3.0 MiB"):
        assert told in shown
    terminal = Terminal(width=200, record=True, file=StringIO())
    terminal.print(_ticker({"s": stream()}, {"s": Heard(sample())}))
    first, second = terminal.export_text().splitlines()[1:]
    assert "orders → Warehouse  Stalled" in first
    assert "orders → Reports    Paused" in second
    assert "10 min" in second


def test_an_engine_that_does_not_answer_is_never_replicating() -> None:
    """The ticker says so though no event comes."""

    def row_of(phase: str, age: float) -> str:
        shown = stream()
        for destination in shown["destinations"]:
            destination["phase"] = phase
        terminal = Terminal(width=200, record=True, file=StringIO())
        terminal.print(_ticker({"s": shown}, {"s": Heard(sample(), at=time.monotonic() - age)}))
        return terminal.export_text().splitlines()[1]

    assert "Stalled" in row_of("REPLICATING", SAMPLE_FRESH - 5)
    silent = row_of("REPLICATING", SAMPLE_FRESH + 25)
    assert "Unknown" in silent and "no report for 40 s" in silent
    assert "1,234" not in silent and "MiB" not in silent
    assert "Paused" in row_of("STOPPED", SAMPLE_FRESH + 25), "nothing comes from a stream that was stopped"


class Clock:
    """The one that `Heard` reads."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def monotonic(self) -> float:
        return self.seconds


def watched(
    monkeypatch: pytest.MonkeyPatch, steps: list[tuple[float, str, str]], streams: list[Json], *, as_json: bool = False
) -> list[str]:
    """Lines of `thalweg watch --plain` while each step's (seconds, event, state of the streams' resource) goes by."""
    clock, terminal = Clock(), Terminal(width=200, record=True, file=StringIO())
    shown = streams

    def events(_: Api) -> Iterator[tuple[str, Json]]:
        nonlocal shown
        for seconds, event, state in steps:
            clock.seconds += seconds
            shown = [{**one, "state": state} for one in streams]
            yield event, {**sample(), "stream_id": "s"} if event == "stream.sample" else {}
        raise KeyboardInterrupt

    monkeypatch.setattr(watching, "time", clock)
    monkeypatch.setattr(watching, "Heard", lambda told: Heard(told, clock.seconds))
    monkeypatch.setattr(watching, "connect", lambda: Api("http://127.0.0.1:1", "token"))
    monkeypatch.setattr(Api, "items", lambda *_: shown)
    monkeypatch.setattr(Api, "events", events)
    monkeypatch.setattr(output, "out", terminal)
    monkeypatch.setattr(watching, "out", terminal)
    with pytest.raises(KeyboardInterrupt):
        watching.follow_samples(None, plain=True, as_json=as_json)
    return terminal.export_text().splitlines()


def running() -> Json:
    shown = {**stream(), "observed_at": None}
    for destination in shown["destinations"]:
        destination["phase"] = "REPLICATING"
    return shown


def test_a_line_says_that_the_reports_of_a_stream_have_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once until it reports again; a keepalive is enough to notice it."""
    on = "REPLICATING"
    steps = [(0, "stream.sample", on), (1, "", on), (SAMPLE_FRESH + 5, "", on), (10, "", on), (1, "stream.sample", on)]
    first, warehouse, reports, last = watched(monkeypatch, steps, [running()])
    assert "1,234 LCR/s" in first and "1,234 LCR/s" in last
    assert "orders → Warehouse" in warehouse and "orders → Reports" in reports
    assert all("Unknown" in told and "no report for 21 s" in told for told in (warehouse, reports))
    steps = [(0, "stream.sample", on), (4, "engine", "UNKNOWN"), (1, "engine", "UNKNOWN")]
    _, warehouse, _ = watched(monkeypatch, steps, [running()])
    assert "no report for 4 s" in warehouse, "the API says it sooner"
    _, told = watched(monkeypatch, steps, [running()], as_json=True)
    document = json.loads(told)
    assert (document["stream_name"], document["state"], document["age_seconds"]) == ("orders", "UNKNOWN", 4)
    (warehouse, _) = watched(monkeypatch, [(0, "hello", "UNKNOWN"), (0, "reset", "UNKNOWN")], [running()])
    assert "Unknown" in warehouse and "never seen" in warehouse
    rests = running()
    for destination in rests["destinations"]:
        destination["phase"] = "STOPPED"
    steps = [(0, "stream.sample", "STOPPED"), (SAMPLE_FRESH + 5, "", "STOPPED")]
    assert len(watched(monkeypatch, steps, [rests])) == 1


def test_no_streams_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, [], []) == ["No streams."]
    assert watched(monkeypatch, [], [], as_json=True) == []
    assert str(_ticker({}, {})) == "No streams."


def test_a_keepalive_is_an_event_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ": ping - 2026-11-30\r\n\r\nevent: engine\r\ndata: {}\r\n\r\n"
    api = Api("http://127.0.0.1:1", "token")
    answers = httpx.MockTransport(lambda _: httpx.Response(200, text=text))
    monkeypatch.setattr(api, "_http", httpx.Client(transport=answers, base_url="http://api"))
    assert list(api.events()) == [("", {}), ("engine", {})]


def test_the_longest_path_sets_the_width_of_all() -> None:
    assert _path_width([]) == 24
    long = {**stream(), "name": "orders of all shops in the north"}
    assert _path_width([stream(), long]) == len(path_of(long))


def test_a_collector_of_an_earlier_version_leaves_members_out() -> None:
    told = sample()
    told["destinations"] = [
        {
            "destination_id": "a", "status": "ENABLED", "phase": "REPLICATING", "lcrs_per_second": 1234.0,
            "latency": {"p50_ms": 2.0, "p99_ms": 3.0, "transactions": 1}, "lag": {"bytes": 3 << 20, "seconds": None},
        }
    ]  # fmt: skip
    told["components"] = [{"id": "capture", "type": "CAPTURE", "time_percent": {"idle": 20.0}}]
    (shown,) = _sample_lines(stream(), told)
    for word in ("orders → Warehouse", "Paused", "1,234 LCR/s", "p99 3.0 ms", "behind –", "lag 3.0 MiB"):
        assert word in shown, "the state is the stream's own, which the API tells"
    terminal = Terminal(width=200, record=True, file=StringIO())
    terminal.print(_ticker({"s": stream()}, {"s": Heard(told)}))
    assert "capture 80 %" in terminal.export_text()
    del told["destinations"]
    assert list(_sample_lines(stream(), told)) == []


def of_tables(**states: str) -> list[Json]:
    return [{"schema": "public", "table": name, "state": state} for name, state in states.items()]


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ([("REPLICATING", "REPLICATING")], "Replicating"),
        ([("INSTANTIATING", "COPYING")], "Copying"),
        ([("PAUSED", "COPIED")], "Copied (Paused)"),
        ([("STOPPED", "STOPPED")], "Stopped"),
        ([("REPLICATING", "REPLICATING"), ("REPLICATING", "REPLICATING")], "Replicating"),
        ([("REPLICATING", "REPLICATING"), ("PAUSED", "COPIED")], "Warehouse: Replicating, Reports: Copied (Paused)"),
        ([("ABORTED", "COPIED"), ("CATCHING UP", "REPLICATING")], "Warehouse: Copied (Aborted), Reports: Replicating"),
    ],
)
def test_the_state_of_a_table_at_destinations_that_differ(at: list[tuple[str, str]], words: str) -> None:
    destinations = [
        {"database": {"name": name}, "state": state, "tables": of_tables(items="REPLICATING", orders=own)}
        for name, (state, own) in zip(("Warehouse", "Reports"), at, strict=False)
    ]
    (orders,) = of_tables(orders="COPIED")
    assert table_state(orders, destinations) == words


def late(**latency: Any) -> Json:
    return LatencySample(**{"p50_ms": None, "p99_ms": None, "transactions": 0, **latency}).model_dump(mode="json")


def test_a_latency_reads_as_in_the_console() -> None:
    last = LastLatency(p50_ms=1.5, p99_ms=4, at=AT - timedelta(seconds=12))
    for latency, p99 in (
        (late(p50_ms=2, p99_ms=3, last=last), "3.0 ms"),
        (late(last=last), "4.0 ms 12 s ago"),
        (late(last=last.model_copy(update={"at": AT - timedelta(seconds=4)})), "4.0 ms"),
        (late(p99_ms=240_000, at_least=True), "≥ 4 min"),
        (late(), "–"),
    ):
        assert latency_of(latency, "p99_ms", AT) == p99
    assert latency_in_words(late(last=last), AT) == "p50 1.5 ms, p99 4.0 ms 12 s ago"
    assert latency_in_words(late(p99_ms=1500, at_least=True), AT) == "p50 –, p99 ≥ 1.5 s"


def test_a_dead_destination_is_at_least_as_late_as_what_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told = sample()
    told["destinations"][0]["latency"] = late(p99_ms=240_000, at_least=True)
    (shown,) = _sample_lines(stream(), told)
    assert "p99 ≥ 4 min" in shown
    terminal = Terminal(width=200, record=True, file=StringIO())
    terminal.print(_ticker({"s": stream()}, {"s": Heard(told)}))
    monkeypatch.setattr(output, "out", terminal)
    destination = {
        **told["destinations"][0], "database": {"name": "Warehouse"}, "engine": {"name": "alpha"}, "error": None,
        "backlog": None,
    }  # fmt: skip
    print_destinations({**stream(), "destinations": [destination]})
    assert [row.count("≥ 4 min") for row in terminal.export_text().splitlines()] == [0, 1, 0, 0, 1]


def test_a_refusal_is_shown_with_title_detail_and_cure() -> None:
    problem = {
        "title": "The state does not allow that", "detail": "orders runs.", "code": "invalid_transition",
        "cure": "Stop it first.", "sql": "SELECT 1", "errors": [],
    }  # fmt: skip
    error = _problem(httpx.Response(409, json=problem))
    assert (error.message, error.cure) == ("The state does not allow that. orders runs.", "Stop it first.")
    assert error.details == ("SELECT 1",)
    bare = _problem(httpx.Response(503, json={"title": "Away", "detail": "No store.", "code": "unavailable"}))
    assert (bare.message, bare.cure) == ("Away. No store.", "")


def test_a_refusal_says_each_message_once() -> None:
    problem: Json = {"title": "Not valid", "code": "invalid_request", "cure": "Correct it.", "sql": None}
    one = {"pointer": "/uri", "message": "No URI.", "cure": "Correct it."}
    alone = _problem(httpx.Response(422, json={**problem, "detail": "No URI.", "errors": [one]}))
    assert (alone.message, alone.details) == ("Not valid. No URI.", ())
    other = {"pointer": "/port", "message": "No URI.", "cure": "Give a port."}
    detail = "Not valid: /uri, 1 more. No URI."
    several = _problem(httpx.Response(422, json={**problem, "detail": detail, "errors": [one, other]}))
    assert several.details == ("/port No URI.", "  cure: Give a port.")


def test_what_a_database_says_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(width=200, record=True, file=StringIO())
    monkeypatch.setattr(output, "out", terminal)
    print_table(["TABLE", "KIND"], [["[bold]x[/bold] :smile:", "[/]"], ["a\nforged  table", styled("[red]", "red")]])
    terminal.print("[green]Ready.[/]\x1b[2J")
    terminal.print(line("[dim]b\nc[/]", styled("3. advice:", "cyan"), " \u202eevil"))
    assert [row.rstrip() for row in terminal.export_text().splitlines()] == [
        "TABLE                   KIND",
        "[bold]x[/bold] :smile:  [/]",
        "a\\nforged  table        [red]",
        "[green]Ready.[/]\\x1b[2J",
        "[dim]b\\nc[/]3. advice: \\u202eevil",
    ]


def test_nobody_says_whether_engines_answer() -> None:
    assert "unknown" in _amiss({"engines_online": None, "engines_total": 1, "live": True})[0]
    assert _amiss({"engines_online": 1, "engines_total": 1, "live": True}) == []


def test_waiting_for_what_is_lost_names_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = {"id": "o1", "state": "running", "waiting_for": "Database reports."}
    monkeypatch.setattr(Api, "get", lambda *_, **__: waits)
    api = Api.__new__(Api)
    with pytest.raises(CommandError) as refused:
        follow(api, {"operation_id": "o1"}, True, "Dropping reports", 0.0, "If it is lost for good: --force.")
    assert refused.value.cure.endswith("Wait longer with --timeout. If it is lost for good: --force.")


def test_what_has_failed_is_told_with_the_server_s_own_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cure says to read it."""
    error = {
        "code": "database_error", "title": "The database reported an error",
        "message": "public.t: a value does not fit.", "cure": "Read the database's message.",
        "detail": "invalid byte sequence\nCONTEXT: COPY t, line 1",
    }  # fmt: skip
    api = Api("http://127.0.0.1:1", "token")
    monkeypatch.setattr(api, "get", lambda _: {"id": "o", "state": "failed", "error": error})
    with pytest.raises(CommandError) as failed:
        follow(api, {"operation_id": "o", "state": "pending"}, True, "creating s")
    assert failed.value.message.endswith("The database reported an error. public.t: a value does not fit.")
    assert failed.value.details == ("invalid byte sequence", "CONTEXT: COPY t, line 1")
    monkeypatch.setattr(api, "get", lambda _: {"id": "o", "state": "failed", "error": {**error, "detail": None}})
    with pytest.raises(CommandError) as failed:
        follow(api, {"operation_id": "o", "state": "pending"}, True, "creating s")
    assert failed.value.details == ()
