"""Behind whom a stream waits at a server while it starts, or is deleted, and how to end that, in words."""

from datetime import datetime
from typing import Any

from thalweg.kernel.words import duration, listed


def waits_in_words(observed: dict[str, Any] | None, at: datetime) -> list[str]:
    """`observed` is the contract's document of a stream's status. A sentence for each wait."""
    return [
        f"It waits{_lasting(wait['since'], at)} at the {wait['side']} {wait['database']} behind "
        f"{listed([_named(by, at) for by in wait['blockers']])}: {wait['statement']}{_cure(wait)}"
        for wait in (observed or {}).get("waits", [])
    ]


def _lasting(since: str | datetime | None, at: datetime) -> str:
    began = datetime.fromisoformat(since) if isinstance(since, str) else since
    return "" if began is None else f" for {duration(max(0, round((at - began).total_seconds())))}"


def _named(blocker: dict[str, Any], at: datetime) -> str:
    if blocker["pid"] == 0:
        return "a prepared transaction"
    who = " of ".join(name for name in (blocker["application_name"], blocker["user"]) if name)
    does = blocker["state"] + _lasting(blocker["since"], at) if blocker["state"] else ""
    more = ", ".join(part for part in (who, does) if part)
    return f"server process {blocker['pid']}" + (f" ({more})" if more else "")


def _cure(wait: dict[str, Any]) -> str:
    pids = [blocker["pid"] for blocker in wait["blockers"] if blocker["pid"] != 0]
    ends = [f"SELECT {', '.join(f'pg_terminate_backend({pid})' for pid in pids)}"] if pids else []
    if len(pids) < len(wait["blockers"]):
        ends.append("ROLLBACK PREPARED of the transaction that pg_prepared_xacts shows")
    return f". To end that, run in {wait['database']}: {listed(ends)}." if ends else ""
