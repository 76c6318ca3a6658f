"""engines list, enrol, token, address, drop-stream, remove."""

from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.client import Json, connect
from thalweg.cli.output import AsJson, done, out, print_json, print_table
from thalweg.kernel.states import in_words

app = typer.Typer(no_args_is_help=True, help="Engines: the processes that capture and apply, one on each host.")
Name = Annotated[str, typer.Argument(help="The engine's name or id.")]


@app.command("list")
def list_engines(as_json: AsJson = False) -> None:
    """All enrolled engines."""
    items = list(connect().items("/engines"))
    if as_json:
        print_json(items)
        return
    print_table(
        ["NAME", "ADDRESS", "STATE", "VERSION", "HOST", "LAST SEEN", "MESSAGE"],
        [
            [
                item["name"], item["url"], in_words(item["state"]), item["version"] or "–", item["hostname"] or "–",
                (item["last_seen_at"] or "–")[:19], _message(item),
            ]
            for item in items
        ],
    )  # fmt: skip


def _message(engine: Json) -> str:
    """Also what to do about streams that the store does not know."""
    sentences = [engine["message"]] if engine["message"] else []
    if streams := engine["unknown_streams"]:
        named = ", ".join(
            f"{stream['id']}{' (being dropped)' if stream['being_dropped'] else ''}" for stream in streams
        )
        sentences.append(f"It runs streams that the store does not know: {named}.")
        sentences.append("End one with 'thalweg engines drop-stream'.")
    return " ".join(sentences)


@app.command()
def token() -> None:
    """Create a token with which one engine can enrol itself, once."""
    made = connect().create("/engines/enrolments", {})
    done(f"{made['token']}", made)
    if out.is_terminal:
        out.print(f"It works once, until {made['expires_at'][:19]}.", style="dim")


@app.command()
def enrol(
    name: Annotated[str, typer.Argument(help="Its name.")],
    url: Annotated[str, typer.Option(help="The address of its control API.")],
    token_file: Annotated[
        Path, typer.Option(help="File with its control token (its --token-file).", exists=True, dir_okay=False)
    ],
) -> None:
    """Enrol a running engine, so that it can be given streams."""
    api = connect()
    once = api.create("/engines/enrolments", {})["token"]
    body = {"token": once, "name": name, "url": url.rstrip("/"), "control_token": token_file.read_text().strip()}
    made = api.post("/engines/enrol", body)
    done(f"Enrolled {made['name']} as {made['id']}.", made)


@app.command()
def address(
    name: Name,
    reached_at: Annotated[
        str | None,
        typer.Argument(metavar="HOST:PORT", help="The address where other engines reach it. None: where it listens."),
    ] = None,
) -> None:
    """Set the address at which other engines reach this one, if it is behind NAT or listens on all addresses."""
    api = connect()
    engine = api.find("/engines", "engine", name)
    changed = api.patch(f"/engines/{engine['id']}", {"propagation_address": reached_at}, "*")
    done(f"Engines send to {changed['name']} at {reached_at or 'the address where it listens'}.", changed)


@app.command("drop-stream")
def drop_stream(
    name: Name,
    stream_id: Annotated[str, typer.Argument(help="A stream that the engine runs and the store does not know.")],
) -> None:
    """Have an engine drop a stream that the store does not know, because the store was restored from an older
    backup."""
    api = connect()
    engine = api.find("/engines", "engine", name)
    changed = api.post(f"/engines/{engine['id']}:drop-stream", {"stream_id": stream_id})
    done(f"{changed['name']} drops {stream_id}.", changed)


@app.command()
def remove(name: Name) -> None:
    """Remove an engine that runs no stream. Its process is not ended."""
    api = connect()
    engine = api.find("/engines", "engine", name)
    api.delete(f"/engines/{engine['id']}")
    done(f"Removed {engine['name']}.", engine)
