"""Errors of streams and destinations as commands print them: with the row that they are about, and the cure."""

from contextlib import suppress

from thalweg.cli.client import Api, CommandError, Json
from thalweg.cli.output import line, out, styled


def print_error(error: Json, said: str, indent: str = "  ") -> None:
    """Prints what `said` has left out: the message, what the engine says about the row, and the cure."""
    message, detail, cure = error["message"], error["detail"], error["cure"]
    if message not in said:
        out.print(f"{indent}{error['title']}: {message}")
    if detail and detail not in said:
        out.print(f"{indent}{detail}")
    if cure and cure not in said:
        out.print(f"{indent}cure: {cure}")


def print_whole_error(name: str, error: Json) -> None:
    """`name` is the one's that has failed."""
    message = f"{error['title']}: {error['message']}"
    out.print(line(styled(name, "bold"), f": {message}"))
    print_error(error, said=message)


def own_error(stream: Json) -> Json | None:
    """The stream's error, unless a destination has it: then it is the destination's."""
    error: Json | None = stream["error"]
    if error is None:
        return None
    others = [destination["error"] for destination in stream["destinations"] if destination["error"]]
    known = [(other["code"], other["message"]) for other in others]
    return None if (error["code"], error["message"]) in known else error


def with_details(api: Api, streams: list[Json]) -> list[Json]:
    """The overview's streams with the details of their errors: the API tells them of a single stream, to operators."""
    return [_with_details(api, stream) if _has_error(stream) else stream for stream in streams]


def _has_error(stream: Json) -> bool:
    return any(part["error"] for part in (stream, *stream["destinations"]))


def _with_details(api: Api, stream: Json) -> Json:
    """The stream stays as it is in the overview where it has gone meanwhile."""
    with suppress(CommandError):
        whole = api.get(f"/streams/{stream['id']}")
        errors = {destination["id"]: destination["error"] for destination in whole["destinations"]}
        destinations = [
            {**destination, "error": errors.get(destination["id"], destination["error"])}
            for destination in stream["destinations"]
        ]
        return {**stream, "error": whole["error"], "destinations": destinations}
    return stream
