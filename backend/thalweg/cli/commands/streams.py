"""streams list, show, create, create-from, start, stop, retry, delete, set, parameters, rules; preflight."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from thalweg.cli.captures import print_capture
from thalweg.cli.client import Api, CommandError, Json, connect
from thalweg.cli.commands.databases import show_checks
from thalweg.cli.commands.rules import (
    MaskKeyFile,
    Renames,
    RowRules,
    Transformations,
    list_in,
    mask_key_in,
    row_rules_in,
)
from thalweg.cli.commands.watching import follow_samples
from thalweg.cli.errors import own_error, print_error, print_whole_error
from thalweg.cli.following import TIMEOUT, Timeout, Wait, WaitForEffect, effects_in_words, follow, follow_change
from thalweg.cli.output import (
    CHECKING,
    AsJson,
    Yes,
    ago,
    ago_and_when,
    confirm,
    health_of,
    json_wanted,
    latency_in_words,
    latency_of,
    line,
    number,
    out,
    print_json,
    print_table,
    seconds,
    settings_in_words,
    size,
    state_of,
    styled,
    told_if_long,
)
from thalweg.cli.placement import check_one_engine
from thalweg.cli.rule_counts import print_rule_counts
from thalweg.cli.stream_files import stream_in, with_ids
from thalweg.cli.table_names import table_ref, table_rule
from thalweg.kernel import conflict_detection, conflict_handlers, error_policies, statement_handlers
from thalweg.kernel.capture_kinds import CaptureKind as Kind
from thalweg.kernel.lifecycle import REPLICATES, STARTING
from thalweg.kernel.states import in_words
from thalweg.kernel.words import ended, setting_in_words

app = typer.Typer(no_args_is_help=True, help="Streams: what is replicated from where to where.")
Name = Annotated[str, typer.Argument(help="The stream's name or id.")]
Include = Annotated[
    list[str],
    typer.Option(
        help="schema.table, with * and ? as wildcards; case matters. A name with a dot or a quotation mark is "
        "quoted as in SQL: 'public.\"odd.name\"'. May be repeated."
    ),
]
Exclude = Annotated[list[str] | None, typer.Option(help="Tables to leave out; may be repeated.")]
InsertsOnly = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SCHEMA.TABLE",
        help="Replicate only inserts and truncates of this table, not updates and deletes, so that it needs no key. "
        "May be repeated.",
    ),
]
CaptureEngine = Annotated[
    str | None,
    typer.Option("--engine", help="The engine that captures, if there are several; ideally near the source."),
]
CaptureKind = Annotated[
    Kind | None,
    typer.Option(
        "--capture-kind",
        help="How changes are captured: logical, decoded by the source (the default); or wal, mined by the engine from "
        "the source's WAL.",
    ),
]
Set = Annotated[list[str] | None, typer.Option("--set", help="parameter=value; may be repeated.")]
Accept = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONSENT",
        help="Accept what a check says: its consent as the preflight prints it, or the check's id alone for whatever "
        "it says. May be repeated.",
    ),
]
Database = Annotated[str, typer.Option(help="The database's name or id.")]
To = Annotated[
    list[str],
    typer.Option(
        metavar="DATABASE[@ENGINE]",
        help="A destination's name or id; append @ENGINE if another engine than the capturing one applies. May be "
        "repeated.",
    ),
]


def rules_of(
    include: list[str], exclude: list[str] | None, inserts_only: list[str] | None, row_rules: typer.FileText | None,
    transformations: typer.FileText | None, renames: typer.FileText | None,
) -> Json:  # fmt: skip
    """Members that are not given are left out: an earlier version does not know them."""
    rules: Json = {
        "include": [table_rule(text) for text in include],
        "exclude": [table_rule(text) for text in exclude or []],
    }
    if inserts_only:
        rules["inserts_only"] = [table_ref(text) for text in inserts_only]
    if row_rules:
        rules["row_rules"] = row_rules_in(row_rules)
    if transformations:
        rules["transformations"] = list_in(transformations, "transformations")
    if renames:
        rules["renames"] = list_in(renames, "renames")
    return rules


def parameters_of(api: Api, settings: list[str] | None) -> Json:
    types = {item["name"]: item["type"] for item in api.get("/stream-parameters")["parameters"]}
    return {name: _value(types, name, value) for name, value in (_split(text) for text in settings or [])}


def are_live(api: Api, names: Iterable[str]) -> bool:
    """Whether all these parameters take effect at once."""
    live = {item["name"] for item in api.get("/stream-parameters")["parameters"] if item["live"]}
    return live.issuperset(names)


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise CommandError(f"“{text}” is not parameter=value.", "Write for example parallelism=8.")
    return name, value


CURES = {
    "error_policies": error_policies.CURE,
    "conflict_handlers": conflict_handlers.CURE,
    "conflict_detection": conflict_detection.CURE,
    "statement_handlers": statement_handlers.CURE,
}
"""The cures for values that are lists, by the parameter's type."""


def _value(types: dict[str, str], name: str, value: str) -> bool | int | str | list[Any]:
    if (cure := CURES.get(types.get(name, ""))) is not None:
        try:
            read: list[Any] = json.loads(value)
        except ValueError as error:
            raise CommandError(f"The value of {name} is not valid JSON: {ended(str(error))}", cure) from error
        return read
    if types.get(name) == "boolean" and value.lower() in ("true", "on", "false", "off"):
        return value.lower() in ("true", "on")
    if types.get(name) == "integer" and value.lstrip("-").isdigit():
        return int(value)
    return value


@app.command("list")
def list_streams(as_json: AsJson = False) -> None:
    """All streams. Fails when one is not healthy, like `thalweg status`."""
    items = list(connect().items("/streams"))
    if as_json:
        print_json(items)
    else:
        print_table(
            ["NAME", "FROM", "TO", "STATE", "HEALTH", "REASON"],
            [
                [
                    item["name"], item["source"]["name"], names_of(item), state_of(item), health_of(item),
                    item["health"]["reason"],
                ]
                for item in items
            ],
        )  # fmt: skip
    if any(item["health"]["level"] != "ok" for item in items):
        raise typer.Exit(1)


@app.command()
def watch(
    name: Annotated[str | None, typer.Argument(help="Only this stream: its name or id.")] = None,
    count: Annotated[int | None, typer.Option(min=1, help="End after this many samples.")] = None,
    as_json: AsJson = False,
) -> None:
    """A live line for each destination: state, rate, how far behind, lag. Ctrl-C ends it. As JSON a document for each
    sample, on a line of its own."""
    follow_samples(name, count=count, as_json=as_json)


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """One stream with its tables."""
    api = connect()
    stream = api.get(f"/streams/{api.find('/streams', 'stream', name)['id']}")
    if as_json:
        print_json(stream)
        return
    out.print(line(styled(stream["name"], "bold"), f" ({stream['id']})  {state_of(stream)}"))
    out.print(line("  ", health_of(stream), f": {stream['health']['reason']}"))
    if (error := own_error(stream)) is not None:
        print_error(error, said=stream["health"]["reason"])
    out.print(f"  {stream['source']['address']} → {_addresses(stream)} by {_engines(stream)}")
    print_capture(stream)
    latency, lag = stream["latency"], stream["lag"]
    out.print(
        f"  {number(stream['lcrs_per_second'])} LCR/s, {number(stream['transactions_per_second'])} transactions/s"
    )
    out.print(f"  latency {latency_in_words(latency, datetime.now(UTC))}")
    out.print(f"  lag {size(lag['bytes'])}, {seconds(lag['seconds'])}")
    print_destinations(stream)
    for words in effects_in_words(stream["destinations"]):
        out.print(line(words), style="dim")
    print_table(
        ["TABLE", "REPLICATED", "STATE", ">INSERTS", ">UPDATES", ">DELETES", ">TRUNCATES", ">LAST CHANGE"],
        [
            [
                named(table), replicated(table), table_state(table, stream["destinations"]),
                *(number(table[kind]) for kind in ("inserts", "updates", "deletes", "truncates")), last_change(table),
            ]
            for table in stream["tables"]
        ],
    )  # fmt: skip
    out.print(counted(stream["destinations"]), style="dim")
    if stream["rule_counts"]:
        print_rule_counts(stream["rule_counts"])
    for destination in stream["destinations"]:
        if destination["rule_counts"]:
            print_rule_counts(destination["rule_counts"], destination["database"]["name"])


def named(table: Json) -> str:
    """With its name at the destinations, where it has another one there."""
    name, there = (f"{named['schema']}.{named['table']}" for named in (table, table.get("destination_name") or table))
    return name if name == there else f"{name} → {there}"


def replicated(table: Json) -> str:
    replicates = "inserts only" if table["inserts_only"] else "all changes"
    return f"{replicates}, by rules" if table["filtered"] else replicates


def last_change(table: Json) -> str:
    """When the newest of the counted changes reached the destination: only that tells of a table that is truncated."""
    known = table["last_change"]
    if known is None:
        return "–"
    at = datetime.fromisoformat(known["at_destination"])
    return f"{ago((datetime.now(UTC) - at).total_seconds())} ago"


def table_state(table: Json, destinations: list[Json]) -> str:
    """In words; where destinations differ, of each by its name."""
    words = {destination["database"]["name"]: _state_at(table, destination) for destination in destinations}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return ", ".join(f"{name}: {word}" for name, word in words.items())


def _state_at(table: Json, destination: Json) -> str:
    """With the destination's own state unless that is well: what has been copied there is not up to date then."""
    own = next(
        known
        for known in destination["tables"]
        if (known["schema"], known["table"]) == (table["schema"], table["table"])
    )
    word, around = in_words(own["state"]), state_of(destination)
    return word if destination["state"] in (*REPLICATES, *STARTING) or around == word else f"{word} ({around})"


def counted(destinations: list[Json]) -> str:
    """Since when the tables' counts run; of several destinations, since the earliest."""
    known = [destination["counted_since"] for destination in destinations if destination["counted_since"]]
    if not known:
        return "Changes count from apply's next start."
    return f"Changes count since apply started, {ago_and_when(min(known))}."


def names_of(stream: Json) -> str:
    return ", ".join(destination["database"]["name"] for destination in stream["destinations"])


def _addresses(stream: Json) -> str:
    return ", ".join(destination["database"]["address"] for destination in stream["destinations"])


def _engines(stream: Json) -> str:
    captures = stream["capture_engine"]["name"]
    others = {destination["engine"]["name"] for destination in stream["destinations"]} - {captures}
    if not others:
        return str(captures)
    return f"{captures} (captures, sends) and {', '.join(sorted(others))} (receives, applies)"


def print_destinations(stream: Json) -> None:
    """A table, and below it the errors: they are sentences, for which a column has no room."""
    at = datetime.now(UTC)
    print_table(
        ["DESTINATION", "ENGINE", "STATE", ">LCR/S", ">P99", ">LAG", ">ON DISK", ">LIMIT", ">PARKED", ">OLDEST"],
        [
            [
                destination["database"]["name"], destination["engine"]["name"], state_of(destination),
                number(destination["lcrs_per_second"]), latency_of(destination["latency"], "p99_ms", at),
                size(destination["lag"]["bytes"]),
                size(destination["backlog"]["bytes"]) if destination["backlog"] else "–",
                size(destination["backlog"]["limit_bytes"]) if destination["backlog"] else "–",
                number(destination["error_queue_transactions"]), _oldest_parked(destination, at),
            ]
            for destination in stream["destinations"]
        ],
    )  # fmt: skip
    for destination in stream["destinations"]:
        if destination["error"]:
            print_whole_error(destination["database"]["name"], destination["error"])


def _oldest_parked(destination: Json, at: datetime) -> str:
    """For how long the oldest transaction in its error queue is parked."""
    parked_at = destination["error_queue_oldest_at"]
    return "–" if parked_at is None else ago((at - datetime.fromisoformat(parked_at)).total_seconds())


def destination_of(api: Api, text: str) -> Json:
    """“warehouse”, or “warehouse@bravo” for one that the engine bravo applies."""
    name, at, engine = text.rpartition("@")
    if not at:
        return {"database_id": api.find("/databases", "database", text)["id"]}
    return {
        "database_id": api.find("/databases", "database", name)["id"],
        "engine_id": api.find("/engines", "engine", engine)["id"],
    }


def _captured_by(api: Api, engine: str | None, kind: Kind | None, destinations: list[Json]) -> Json:
    """Members that are not given are left out: an earlier version does not know them all."""
    check_one_engine(api, engine, [each.get("engine_id") for each in destinations])
    by = {} if engine is None else {"capture_engine_id": api.find("/engines", "engine", engine)["id"]}
    return by if kind is None else {**by, "capture_kind": kind.value}


def preflight(
    source: Database,
    to: To,
    include: Include,
    exclude: Exclude = None,
    inserts_only: InsertsOnly = None,
    row_rules: RowRules = None,
    transformations: Transformations = None,
    renames: Renames = None,
    settings: Set = None,
    engine: CaptureEngine = None,
    capture_kind: CaptureKind = None,
    accept: Accept = None,
) -> None:
    """Check the databases for a stream that does not exist yet. Creates nothing."""
    api = connect()
    destinations = [destination_of(api, name) for name in to]
    body = {
        "source_id": api.find("/databases", "database", source)["id"],
        "destinations": destinations,
        "rules": rules_of(include, exclude, inserts_only, row_rules, transformations, renames),
        "parameters": parameters_of(api, settings),
        "accept": accept or [],
        **_captured_by(api, engine, capture_kind, destinations),
    }
    with told_if_long(CHECKING):
        result = api.post("/preflights", body)
    if json_wanted(False):
        print_json(result)
        raise typer.Exit(0 if result["ready"] else 1)
    show_checks(result, {database["id"]: database["name"] for database in api.items("/databases")})
    out.print("Ready.")


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Its name.")],
    source: Database,
    to: To,
    include: Include,
    exclude: Exclude = None,
    inserts_only: InsertsOnly = None,
    row_rules: RowRules = None,
    transformations: Transformations = None,
    renames: Renames = None,
    mask_key_file: MaskKeyFile = None,
    settings: Set = None,
    engine: CaptureEngine = None,
    capture_kind: CaptureKind = None,
    accept: Accept = None,
    start: Annotated[bool, typer.Option(help="Start it.")] = True,
    wait: Wait = False,
    timeout: Timeout = TIMEOUT,
) -> None:
    """Create a stream, after checking its databases. Several destinations share one capture and one queue."""
    api = connect()
    destinations = [destination_of(api, name) for name in to]
    body: Json = {
        "name": name,
        "source_id": api.find("/databases", "database", source)["id"],
        "destinations": destinations,
        "rules": rules_of(include, exclude, inserts_only, row_rules, transformations, renames),
        "parameters": parameters_of(api, settings),
        "accept": accept or [],
        "start": start,
        **mask_key_in(mask_key_file),
        **_captured_by(api, engine, capture_kind, destinations),
    }
    with told_if_long(CHECKING):
        accepted = api.create("/streams", body)
    follow(api, accepted, wait, f"Creating {name}", timeout)


@app.command("create-from")
def create_from(
    file: Annotated[
        typer.FileText,
        typer.Argument(
            help="A YAML or JSON file with the body of the request: what the review step of the console's wizard shows "
            "as YAML. - is standard input."
        ),
    ],
    wait: Wait = False,
    timeout: Timeout = TIMEOUT,
) -> None:
    """Create a stream as a file describes it. Databases and engines may have their names instead of ids: source,
    capture_engine, and database and engine of a destination."""
    api = connect()
    body = with_ids(api, stream_in(file))
    with told_if_long(CHECKING):
        accepted = api.create("/streams", body)
    follow(api, accepted, wait, f"Creating {body['name']}", timeout)


def _act(name: str, action: str, what: str, wait: bool, timeout: float) -> None:
    api = connect()
    stream = api.find("/streams", "stream", name)
    follow(api, api.post(f"/streams/{stream['id']}:{action}"), wait, f"{what} {stream['name']}", timeout)


@app.command()
def start(name: Name, wait: Wait = False, timeout: Timeout = TIMEOUT) -> None:
    """Start a stopped stream."""
    _act(name, "start", "Starting", wait, timeout)


@app.command()
def stop(name: Name, yes: Yes = False, wait: Wait = False, timeout: Timeout = TIMEOUT) -> None:
    """Drain a stream and stop it. The source keeps its WAL from then on. Asks for confirmation on a terminal."""
    confirm(f"Stop {name}? Nothing arrives until it is started again, and the source keeps its WAL", yes)
    _act(name, "stop", "Stopping", wait, timeout)


@app.command()
def retry(name: Name, wait: Wait = False, timeout: Timeout = TIMEOUT) -> None:
    """Clear the error of an aborted stream and start it again."""
    _act(name, "retry", "Retrying", wait, timeout)


@app.command()
def delete(
    name: Name,
    force: Annotated[
        bool,
        typer.Option(
            help="Give up on what cannot be reached: a database, or an engine that is lost for good. "
            "The operation says what is left behind."
        ),
    ] = False,
    yes: Yes = False,
    wait: Wait = False,
    timeout: Timeout = TIMEOUT,
) -> None:
    """Delete a stream and what it created in both databases. The destination's tables and rows stay.

    Asks for confirmation on a terminal. Again while it is at work: the same operation.
    """
    api = connect()
    stream = api.find("/streams", "stream", name)
    confirm(f"Delete {stream['name']}, its slot and its bookkeeping in the databases?", yes)
    lost = "" if force else "If a database or an engine is lost for good, delete it with --force."
    accepted = api.delete(f"/streams/{stream['id']}", force=force)
    follow(api, accepted, wait, f"Deleting {stream['name']}", timeout, lost)


@app.command("set")
def set_parameters(
    name: Name,
    settings: Annotated[list[str], typer.Argument(help="parameter=value ...")],
    wait: WaitForEffect = False,
    timeout: Timeout = TIMEOUT,
) -> None:
    """Change parameters of a stream. `thalweg streams parameters` lists them."""
    api = connect()
    stream = api.find("/streams", "stream", name)
    values = parameters_of(api, settings)
    changed = api.patch(f"/streams/{stream['id']}", {"parameters": values}, stream["etag"])
    follow_change(api, changed, wait, settings_in_words(changed["parameters"]), timeout, live=are_live(api, values))


@app.command("parameters")
def list_parameters(as_json: AsJson = False) -> None:
    """The parameters that streams have, with their defaults and ranges."""
    known = connect().get("/stream-parameters")["parameters"]
    if as_json:
        print_json(known)
        return
    print_table(
        ["NAME", ">DEFAULT", "UNIT", "VALUES", "MEANING"],
        [
            [
                item["name"], setting_in_words(item["default"]), item["unit"] or "–", values_of(item),
                item["description"],
            ]
            for item in known
        ],
    )  # fmt: skip


def values_of(parameter: Json) -> str:
    if parameter["type"] == "integer":
        return f"{parameter['minimum']} to {parameter['maximum']}"
    if parameter["type"] in CURES:
        return f"a list of {'policies' if parameter['type'] == 'error_policies' else 'handlers'}, as JSON"
    if parameter["type"] == "text":
        return f"a text of at most {parameter['maximum']} characters"
    return ", ".join(parameter["values"] or ["true", "false"])


@app.command("rules")
def set_rules(
    name: Name,
    include: Include,
    exclude: Exclude = None,
    inserts_only: InsertsOnly = None,
    row_rules: RowRules = None,
    transformations: Transformations = None,
    renames: Renames = None,
    mask_key_file: MaskKeyFile = None,
    accept: Accept = None,
    wait: WaitForEffect = False,
    timeout: Timeout = TIMEOUT,
) -> None:
    """Choose a stream's tables again. Added tables are copied; removed ones stay at the destination.

    The same rules again take in tables that were created since. Checked as at the creation. A table that no
    --inserts-only names any more is replicated whole again, once it is copied again. The row rules become those
    of --row-rules; if other rows of a table pass then, it asks for --accept row_rules_changed. Transformations become
    those of --transformations; if they are others than before, it asks for --accept transformations_changed. Tables
    whose names at the destinations change with --renames are renamed there: it asks for --accept renames_changed.
    """
    api = connect()
    stream = api.find("/streams", "stream", name)
    rules = rules_of(include, exclude, inserts_only, row_rules, transformations, renames)
    body = {"rules": rules, "accept": accept or [], **mask_key_in(mask_key_file)}
    with told_if_long(CHECKING):
        changed = api.patch(f"/streams/{stream['id']}", body, stream["etag"])
    follow_change(api, changed, wait, f"The tables of {stream['name']} are chosen again.", timeout)
