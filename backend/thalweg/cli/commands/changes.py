"""changes: searches the log of a source for changes."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

import typer

from thalweg.cli.client import Api, CommandError, Json, connect
from thalweg.cli.output import AsJson, err, out, print_json, print_table, visible, write_file
from thalweg.cli.table_names import table_ref
from thalweg.kernel.conflict_handlers import ExportFormat
from thalweg.kernel.lifecycle import SearchState
from thalweg.kernel.log_positions import key_part, moment_of
from thalweg.kernel.words import counted, share_in_words, size

PAUSE_SECONDS = 0.5
AT_ONCE = 1000
FOUND_MAX = 10_000
VALUE_CHARACTERS = 40


def changes(
    source: Annotated[str, typer.Argument(help="The database whose log is searched.")],
    table: Annotated[
        str | None, typer.Option(metavar="SCHEMA.TABLE", help="Only this table's, by the name it had then.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=VALUE", help="Only the row with this value; once for each column. With --table."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME|LSN", help="Committed then or later; times are in UTC.")
    ] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="TIME|LSN", help="Committed before.")] = None,
    xid: Annotated[int | None, typer.Option(min=1, help="Only this transaction's.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=FOUND_MAX, help="The number of changes at which it ends.")] = 1000,
    stream: Annotated[
        str | None, typer.Option(help="The stream whose engine searches, if several mine the source.")
    ] = None,
    export: Annotated[
        ExportFormat | None, typer.Option(help="Write the changes to standard output, as this format.")
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Write SQL that undoes the changes to standard output; nothing runs it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Search the log of a source: who changed a row, when, from what to what, in which transaction. It reaches as far
    back as the engine keeps WAL (the stream's parameter wal_keep_mb)."""
    if undo and export is not None:
        raise CommandError("One thing at a time.", "Give one of --undo and --export.")
    wanted = {
        "table": None if table is None else table_ref(table), "key": _key(key or [], table), "xid": xid, "limit": limit,
        **_moment("from", since), **_moment("to", until),
    }  # fmt: skip
    api = connect()
    if stream is not None:
        wanted["stream_id"] = api.find("/streams", "stream", stream)["id"]
    path = f"/sources/{api.find('/databases', 'database', source)['id']}/searches"
    search = api.create(path, {name: value for name, value in wanted.items() if value is not None})
    search_path = f"{path}/{search['id']}"
    search = _followed(api, search_path)
    if undo or export is not None:
        write_file(
            api.pieces(f"{search_path}:undo") if undo else api.pieces(f"{search_path}:export", format=str(export))
        )
        _say_more(search, err.print)
        return
    found = _found(api, search_path, whole=as_json)
    if as_json:
        print_json({**search, "changes": found})
        return
    _show(search, found)


def _key(parts: list[str], table: str | None) -> Json | None:
    pairs = [key_part(part) for part in parts]
    if None in pairs:
        wrong = parts[pairs.index(None)]
        raise CommandError(f"“{wrong}” is not COLUMN=VALUE.", "Write --key id=5, once for each column.")
    if parts and table is None:
        raise CommandError("--key needs a table.", "Name the row's table: --table SCHEMA.TABLE.")
    return dict(pair for pair in pairs if pair is not None) or None


def _moment(name: str, text: str | None) -> Json:
    if text is None:
        return {}
    moment = moment_of(text)
    if moment is None:
        raise CommandError(
            f"--{name}: “{text}” is neither a time nor an LSN.",
            "Write a time in ISO 8601, as 2026-11-30T10:00 (UTC), or an LSN, as 0/1A2B3C4D.",
        )
    if isinstance(moment, datetime):
        return {f"{name}_time": moment.isoformat()}
    return {name: moment}


def _followed(api: Api, search_path: str) -> Json:
    """The search at its end. An interruption of the command ends the search."""
    try:
        with err.status("Searching …") as shown:
            while (search := api.get(search_path, after=FOUND_MAX, limit=1))["state"] == SearchState.RUNNING:
                shown.update(_progress(search))
                time.sleep(PAUSE_SECONDS)
    except KeyboardInterrupt:
        api.delete(search_path)
        raise
    if search["state"] == SearchState.FAILED:
        error = search["error"]
        raise CommandError(f"The search failed. {error['message']}", error["cure"] or "", code=error["code"])
    return {name: value for name, value in search.items() if name not in ("changes", "next_after")}


def _progress(search: Json) -> str:
    total = search["total_bytes"]
    share = share_in_words(search["mined_bytes"] / total) if total else "0 %"
    return f"Searching: {share} of {size(total)}, {counted(search['found'], 'change')} found …"


def _found(api: Api, search_path: str, *, whole: bool) -> list[Json]:
    found: list[Json] = []
    after = 0
    while True:
        page = api.get(search_path, after=after, limit=AT_ONCE, whole=whole)
        found += page["changes"]
        if page["next_after"] is None:
            return found
        after = page["next_after"]


def _show(search: Json, found: list[Json]) -> None:
    if found:
        print_table(
            [">NUMBER", "COMMITTED", ">XID", "OPERATION", "TABLE", "KEY", "CHANGED"],
            [
                [
                    str(change["number"]), change["commit_time"][:19].replace("T", " "), str(change["xid"]),
                    change["operation"], f"{change['schema']}.{change['table']}", _key_of(change), _differing(change),
                ]
                for change in found
            ],
        )  # fmt: skip
    out.print(f"{counted(len(found), 'change')} in the log from {search['from']} to {search['to']}.")
    _say_more(search, out.print, found[-1]["commit_lsn"] if found else None)


def _say_more(search: Json, say: Callable[[str], None], last: str | None = None) -> None:
    if search["truncated"]:
        beginning = f"--from {last}" if last else "--from the commit LSN of the last one"
        say(f"There may be more: the search has reached its limit. Go on with {beginning}.")


def _key_of(change: Json) -> str:
    keys = [column for column in change["columns"] if column["key"]]
    return ", ".join(f"{column['name']}={_value(column['after'] or column['before'])}" for column in keys)


def _differing(change: Json) -> str:
    """Columns besides the key with what is known of them; of an UPDATE those that are another now."""
    parts = []
    for column in change["columns"]:
        before, after = column["before"], column["after"]
        if change["operation"] == "UPDATE":
            if after is not None and before != after:
                parts.append(f"{column['name']}: {_value(before)} → {_value(after)}")
        elif not column["key"] and (value := after or before) is not None:
            parts.append(f"{column['name']}={_value(value)}")
    return ", ".join(parts)


def _value(value: Json | None) -> str:
    if value is None:
        return "?"
    if value["masked"]:
        return "masked"
    if value["text"] is None:
        return "NULL"
    text = visible(value["text"])
    cut = value["cut"] or len(text) > VALUE_CHARACTERS
    return f"{text[:VALUE_CHARACTERS]}…" if cut else text
