"""streams tables list, copy, accept, follow, remove: what has become of a stream's tables, and its cure."""

from typing import Annotated

import typer

from thalweg.cli.client import Api, Json, connect
from thalweg.cli.commands.destinations import one_of, whole_stream
from thalweg.cli.commands.streams import Name, counted, named, replicated, table_state
from thalweg.cli.following import TIMEOUT, Timeout, Wait
from thalweg.cli.following import follow as follow_operation
from thalweg.cli.output import AsJson, Yes, confirm, done, line, number, out, print_json, print_table
from thalweg.cli.table_names import table_ref
from thalweg.kernel.states import in_words

app = typer.Typer(no_args_is_help=True, help="The tables of a stream, and the cures of their troubles.")
Table = Annotated[str, typer.Argument(metavar="SCHEMA.TABLE", help="The table as the stream names it.")]
Destination = Annotated[str | None, typer.Option(help="The destination, if the stream has several.")]


@app.command("list")
def list_tables(name: Name, destination: Destination = None, as_json: AsJson = False) -> None:
    """Each table's state, what has become of it at the source, and the cure."""
    stream = whole_stream(connect(), name)
    shown = stream["destinations"] if destination is None else [one_of(stream, destination)]
    tables = stream["tables"] if destination is None else shown[0]["tables"]
    if as_json:
        print_json(tables)
        return
    print_table(
        ["TABLE", "REPLICATED", "STATE", "TROUBLE", ">INSERTS", ">UPDATES", ">DELETES"],
        [
            [
                named(table), replicated(table), table_state(table, shown),
                in_words(table["trouble"]["kind"]) if table["trouble"] else "–", number(table["inserts"]),
                number(table["updates"]), number(table["deletes"]),
            ]
            for table in tables
        ],
    )  # fmt: skip
    out.print(counted(shown), style="dim")
    for table in tables:
        if trouble := table["trouble"]:
            out.print(line(f"{table['schema']}.{table['table']}: {trouble['reason']}"))
            # None of ours cures it: its cure is SQL for the source.
            ours = f" ({', '.join(trouble['resolutions'])})" if trouble["resolutions"] else ""
            out.print(line(f"  cure{ours}: {trouble['cure']}"))
            for statement in (trouble["sql"] or "").splitlines():
                out.print(line(f"    {statement}"))


@app.command()
def copy(
    name: Name,
    table: Table,
    destination: Destination = None,
    reason: Annotated[str | None, typer.Option(help="Why; the audit log keeps it.")] = None,
    yes: Yes = False,
    wait: Wait = False,
    timeout: Timeout = TIMEOUT,
) -> None:
    """Delete a table's rows at the destination and copy the source's again. Asks for confirmation on a terminal.

    Transactions of the error queue that changed nothing but copied tables are discarded: the copy has what came of
    them.
    """
    what = (
        f"Delete the rows of {table} at the destination, copy them again, and discard what the error queue has of it?"
    )
    confirm(what, yes)
    api = connect()
    accepted = _resolve(api, name, table, "copy", destination, reason)
    follow_operation(api, accepted, wait, f"Copying {table} again", timeout)


@app.command()
def accept(name: Name, table: Table, destination: Destination = None) -> None:
    """Accept a table's changed partitions as they are: the destination's rows have been repaired, or are correct."""
    _resolve(connect(), name, table, "accept", destination)
    done(f"The partitions of {table} are accepted.", {"table": table, "done": "accept"})


def _resolve(api: Api, name: str, table: str, how: str, destination: str | None, reason: str | None = None) -> Json:
    stream = whole_stream(api, name)
    found = one_of(stream, destination)
    body: Json = {**table_ref(table), **({} if reason is None else {"reason": reason})}
    return api.post(f"/streams/{stream['id']}/destinations/{found['id']}/tables:{how}", body)


@app.command()
def follow(name: Name, table: Table) -> None:
    """Follow a table's rename at the source, in the stream's rules and in the destinations' tables."""
    api = connect()
    stream = whole_stream(api, name)
    changed = api.post(f"/streams/{stream['id']}/tables:follow", table_ref(table))
    done(f"{stream['name']} follows the rename of {table}.", changed)


@app.command()
def remove(name: Name, table: Table) -> None:
    """Remove from the stream a table that was dropped at the source. The destinations' tables stay."""
    api = connect()
    stream = whole_stream(api, name)
    changed = api.post(f"/streams/{stream['id']}/tables:remove", table_ref(table))
    done(f"{table} is taken out of {stream['name']}.", changed)
