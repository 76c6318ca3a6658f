"""A database that stays out of reach: which one, since when, and the cure. That of a connection which has just broken,
to wait, does not help then."""

from datetime import UTC, datetime, timedelta
from typing import Any

from thalweg.engine_client.error_codes import ErrorCode
from thalweg.kernel.words import ended, listed

LASTS_FROM = timedelta(seconds=10)
LOST = (ErrorCode.CONNECTION_LOST, ErrorCode.DATABASE_UNREACHABLE)
CURE = "Start the server, or check the database's host, port and firewall: the engine keeps trying."


def follow_failures(document: dict[str, Any], before: dict[str, Any], at: datetime) -> None:
    """Writes into the contract's document, for the stream and each destination, since when it cannot reach a database:
    an engine tells the time of its last try."""
    earlier = {part["id"]: part for part in before.get("destinations", [])}
    parts = [(document, before), *((part, earlier.get(part["id"], {})) for part in document.get("destinations", []))]
    for part, was in parts:
        if _is_lost(part.get("error")):
            part["out_of_reach_since"] = was.get("out_of_reach_since") or at.isoformat()


def since_when(part: dict[str, Any], at: datetime) -> datetime | None:
    """`part` is the document, or a destination of it. None: it is in reach, or was a moment ago."""
    since = part.get("out_of_reach_since")
    if since is None or not _is_lost(part.get("error")):
        return None
    began = datetime.fromisoformat(since)
    return began if at - began >= LASTS_FROM else None


def with_cure(part: dict[str, Any], at: datetime) -> dict[str, Any] | None:
    """The part's error, whose cure is to do something once it lasts."""
    error: dict[str, Any] | None = part.get("error")
    lasts = error is not None and error.get("code") == ErrorCode.CONNECTION_LOST and since_when(part, at) is not None
    return {**error, "cure": CURE} if error is not None and lasts else error


def out_of_reach_in_words(names: list[str], parts: list[dict[str, Any]], at: datetime) -> str | None:
    """One sentence and the cure for parts with the same kind of error, each with the name of its database. None: one of
    them has not lasted."""
    since = [began for part in parts if (began := since_when(part, at)) is not None]
    if not names or len(since) < len(parts):
        return None
    have = "has" if len(names) == 1 else "have"
    time = f"{min(since).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    cure = (with_cure(parts[0], at) or {}).get("cure", "")
    message = ended(parts[0]["error"]["message"])
    return f"{listed(names)} {have} been out of reach since {time}: {message} {cure}".rstrip()


def _is_lost(error: dict[str, Any] | None) -> bool:
    return error is not None and error.get("code") in LOST
