"""conflicts: the conflict log of a stream's destination."""

from typing import Annotated

import typer

from thalweg.cli.client import CommandError, Json, connect
from thalweg.cli.commands.destinations import MARKS, one_of, value_in_words, whole_stream
from thalweg.cli.commands.streams import Name
from thalweg.cli.output import AsJson, line, out, print_json, print_table, write_file
from thalweg.cli.table_names import table_ref
from thalweg.kernel.conflict_handlers import ExportFormat, LoggedKind


def conflicts(
    name: Name,
    destination: Annotated[str | None, typer.Option(help="The destination, if the stream has several.")] = None,
    kind: Annotated[LoggedKind | None, typer.Option(help="Only entries of this kind.")] = None,
    table: Annotated[
        str | None, typer.Option(metavar="SCHEMA.TABLE", help="Only this table's, by its exact name.")
    ] = None,
    show: Annotated[
        int | None, typer.Option(metavar="ID", help="Show this entry's change beside the destination's row.")
    ] = None,
    export: Annotated[
        ExportFormat | None, typer.Option(help="Write the log with its rows to standard output, as this format.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many are listed.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Continue the list at the cursor that it printed.")] = None,
    as_json: AsJson = False,
) -> None:
    """Single changes that handlers or policies have settled at a stream's destination: counts by table and kind, then
    the newest entries; open one, or export them."""
    if show is not None and export is not None:
        raise CommandError("One thing at a time.", "Give one of --show and --export.")
    api = connect()
    stream = whole_stream(api, name)
    path = f"/streams/{stream['id']}/destinations/{one_of(stream, destination)['id']}/conflicts"
    if show is not None:
        opened = api.get(f"{path}/{show}")
        if as_json:
            print_json(opened)
        else:
            show_conflict(opened)
        return
    which: dict[str, str] = {} if kind is None else {"kind": kind.value}
    if table is not None:
        which |= table_ref(table)
    if export is not None:
        write_file(api.pieces(f"{path}:export", format=export.value, **which))
        return
    listed = api.get(path, limit=limit, cursor=cursor, **which)
    if as_json:
        print_json(listed["conflicts"])
        return
    if cursor is None and not which:
        show_counts(api.get(f"{path}:count")["counts"])
    print_table(
        [">ID", "LOGGED", "COMMIT", ">CHANGE", "TABLE", "OPERATION", "KIND", "ACTION", "MESSAGE"],
        [
            [
                str(item["id"]), item["logged_at"][:19], item["commit_lsn"], str(item["change"]), table_of(item),
                item["operation"], kind_of(item), item["action"], item["message"] or "",
            ]
            for item in listed["conflicts"]
        ],
    )  # fmt: skip
    if listed["next_cursor"]:
        out.print(f"There are more: --cursor {listed['next_cursor']}")


def table_of(item: Json) -> str:
    return f"{item['schema']}.{item['table']}"


def kind_of(item: Json) -> str:
    return f"{item['kind']} {item['sqlstate']}" if item["kind"] == LoggedKind.ERROR else str(item["kind"])


def show_counts(counts: list[Json]) -> None:
    if not counts:
        return
    print_table(
        ["TABLE", "KIND", "ACTION", ">CHANGES", "NEWEST"],
        [[table_of(item), kind_of(item), item["action"], str(item["changes"]), item["newest"][:19]] for item in counts],
    )
    out.print()


def show_conflict(conflict: Json) -> None:
    out.print(line(f"{conflict['operation']} {table_of(conflict)}: {kind_of(conflict)}, {conflict['action']}"))
    where = f"Change {conflict['change']} of transaction {conflict['xid']}, commit LSN {conflict['commit_lsn']}"
    out.print(line(f"{where}: {conflict['message']}"))
    if not conflict["rows_found"]:
        out.print("The destination had no such row.")
    print_table(
        ["COLUMN", "WANTED", "BEFORE", "THEN AT THE DESTINATION"],
        [
            [
                column["name"] + (" (key)" if column["identity"] else ""),
                MARKS[column["wanted_differs"]] + value_in_words(column["wanted"]),
                MARKS[column["before_differs"]] + value_in_words(column["before"]),
                value_in_words(column["now"]),
            ]
            for column in conflict["columns"]
        ],
    )
