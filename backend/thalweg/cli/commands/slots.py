"""slots list, drop."""

from typing import Annotated

import typer
from rich.text import Text

from thalweg.cli.client import CommandError, Json, connect
from thalweg.cli.output import AsJson, Yes, ago, confirm, done, number, out, print_json, print_table, size, styled

app = typer.Typer(no_args_is_help=True, help="Replication slots of the servers of registered databases.")


@app.command("list")
def list_slots(as_json: AsJson = False) -> None:
    """All slots, of any owner, with the WAL that they keep and how long they are safe."""
    servers = connect().get("/slots")["servers"]
    if as_json:
        print_json(servers)
        return
    print_table(
        ["SERVER", "SLOT", "OWNER", "PLUGIN", "DATABASE", ">READER", ">KEPT", "WAL", ">ROOM", ">XMIN AGE", "FORECAST"],
        [
            [
                server["address"], slot["name"], _owner(slot), slot["plugin"] or slot["slot_type"],
                slot["database"] or "–", str(slot["active_pid"] or "–"), size(slot["retained_bytes"]), _wal(slot),
                size(slot["safe_bytes"]), number(_oldest(slot)), _forecast(slot),
            ]
            for server in servers
            for slot in server["slots"]
        ],
    )  # fmt: skip
    for server in servers:
        if server["failure"] is not None:
            out.print(f"{server['address']} did not answer: {server['failure']}")
        elif server["read_at"] is None:
            out.print(f"{server['address']} has not been read yet.")
    orphans = sum(slot["owner"] == "orphan" for server in servers for slot in server["slots"])
    if orphans:
        out.print(
            f"No stream here owns {orphans} of them. If no other Thalweg installation does: thalweg slots drop SLOT"
        )
    if any(slot["owner"] == "unknown_stream" for server in servers for slot in server["slots"]):
        out.print(
            "An engine has streams that the control plane does not know. Drop those that are not wanted, with their "
            "slots: thalweg engines drop-stream ENGINE STREAM"
        )


def _owner(slot: Json) -> str | Text:
    if slot["stream"] is not None:
        return str(slot["stream"]["name"])
    if slot["owner"] == "unknown_stream":
        return styled(f"unknown stream of engine {slot['engine']['name']}", "yellow")
    return styled("orphan", "yellow") if slot["owner"] == "orphan" else "–"


def _wal(slot: Json) -> str:
    reason = f": {slot['invalidation_reason']}" if slot["invalidation_reason"] else ""
    return f"{slot['wal_status'] or '–'}{reason}"


def _oldest(slot: Json) -> int | None:
    return max((age for age in (slot["xmin_age"], slot["catalog_xmin_age"]) if age is not None), default=None)


def _forecast(slot: Json) -> str:
    seconds, idle = slot["seconds_to_full"], slot["seconds_to_idle_timeout"]
    if idle is not None and (seconds is None or idle < seconds):
        return f"lost in {ago(idle)} unless it is read (idle_replication_slot_timeout)"
    return str(slot["why_no_forecast"]) if seconds is None else f"lost in {ago(seconds)}"


@app.command()
def drop(
    slot: Annotated[str, typer.Argument(help="The slot's name.")],
    database: Annotated[
        str | None, typer.Option(help="A registered database of its server, where several servers have such a slot.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Drop a slot with the name of a stream's slot that belongs to no stream. Asks for confirmation on a terminal.

    A stream's slot goes with its stream; a slot of another Thalweg's stream is lost to that one for good.
    """
    api = connect()
    servers = [
        server for server in api.get("/slots")["servers"] if slot in (known["name"] for known in server["slots"])
    ]
    if database is not None:
        database_id = api.find("/databases", "database", database)["id"]
    elif len(servers) == 1:
        database_id = servers[0]["databases"][0]["id"]
    else:
        where = ", ".join(server["address"] for server in servers) or "no server that is known here"
        raise CommandError(f"{slot} is at {where}.", "Name the server by one of its databases: --database NAME.")
    confirm(f"Drop {slot}? Its reader can never continue", yes)
    api.delete(f"/databases/{database_id}/slots/{slot}")
    done(f"Dropped {slot}.", {"slot": slot, "database_id": database_id})
