"""Samples the waits of a stream's sessions at a database: several reads of pg_stat_activity in about a second.

A user without pg_monitor sees the waits of its own sessions, and of others only that they exist. That is enough for our
own, and for the sessions that block them. Source: monitoring-stats of PostgreSQL's documentation, pg_blocking_pids().
"""

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, field
from time import monotonic

from thalweg.inspection.connection import FEW_ROWS_MAX, Connection, read_all

LOOKS = 10
LOOK_PAUSE_SECONDS = 0.1
CPU = "CPU"

SESSIONS = """
SELECT a.pid, a.application_name AS application, a.state, a.wait_event_type, a.wait_event,
       CASE WHEN a.wait_event_type = 'Lock' THEN pg_blocking_pids(a.pid) ELSE '{}' END AS blockers
  FROM pg_stat_activity a
 WHERE a.application_name = %(name)s OR a.application_name LIKE %(pattern)s
"""
BLOCKERS = """
SELECT a.pid, a.application_name AS application, a.usename::text AS username, a.state,
       extract(epoch FROM now() - a.xact_start)::float8 AS seconds,
       CASE WHEN a.backend_type = 'client backend' THEN left(a.query, 2000) END AS statement
  FROM pg_stat_activity a WHERE a.pid = ANY(%(pids)s)
"""


NOT_SEEN = "<insufficient privilege>"
STATEMENT_SHOWN = 160
VALUES = re.compile(
    r"""--[^\n]*|/\*.*?(?:\*/|$)|'(?:[^'\\]|'')*(?:'|$)|'.*$|\$(\w*)\$.*?(?:\$\1\$|$)"""
    r"""|(?<![\w"$])\.?\d[\w.]*""",
    re.DOTALL,
)
"""Comments, texts and numbers. Behind a text with a backslash nothing is sure: all of the rest counts as one."""


def without_values(statement: str, unseen: str) -> str | None:
    """The beginning of a statement for people who may not read rows. None: there is none, or it may not be seen."""
    if not statement or statement == unseen:
        return None
    text = " ".join(VALUES.sub("…", statement).split())
    return text if len(text) <= STATEMENT_SHOWN else f"{text[: STATEMENT_SHOWN - 1]}…"


@dataclass(frozen=True)
class Blocker:
    """A session that holds a lock which one of ours waits for. `seconds` of its transaction, None: may not be seen."""

    pid: int
    application: str
    username: str | None
    state: str | None
    seconds: float | None
    statement: str | None = None
    """The statement that it executes, or executed last, without values. None: may not be seen."""

    @property
    def called(self) -> str:
        return f"session {self.pid}" + (f" ({self.application})" if self.application else "")

    @property
    def description(self) -> str:
        who = self.called
        who += f" of {self.username}" if self.username else ""
        who += f", {self.state} for {self.seconds:.0f} s" if self.state and self.seconds is not None else ""
        does = "executes" if self.state == "active" else "executed last"
        return who + (f", {does}: {self.statement}" if self.statement else "")


@dataclass
class Waits:
    """Counts of the waits in which working sessions were seen, over all looks. Keys are `type:event`, or CPU."""

    looks: int = 0
    sessions: int = 0
    """Working sessions that were seen, over all looks."""
    events: Counter[str] = field(default_factory=Counter)
    blockers: dict[int, Blocker] = field(default_factory=dict)
    own_blockers: int = 0
    """The number of lock waits that wait for another session of the same stream."""
    round_trip_ms: float | None = None
    """The shortest of one with each look, from here, not from the engine. A busy machine makes some of them longer, but
    none shorter; over a second, one finds it at rest. None: there was no look."""
    recording: Counter[str] = field(default_factory=Counter)
    """The waits of the session that records how far apply is, over all looks. Nobody who applies waits for it, and its
    commits are synchronous: it is counted apart."""

    def share(self, *prefixes: str) -> float:
        """Percent of the looks at working sessions that found one of these waits."""
        if self.sessions == 0:
            return 0.0
        found = sum(count for event, count in self.events.items() if event.startswith(prefixes))
        return 100 * found / self.sessions

    def recording_share(self, *prefixes: str) -> float:
        """Percent of all looks that found the session that records progress in one of these waits."""
        found = sum(count for event, count in self.recording.items() if event.startswith(prefixes))
        return 100 * found / self.looks if self.looks else 0.0

    @property
    def locked_by_others(self) -> float:
        """Percent of the looks at working sessions that found one waiting for a lock of another application."""
        if not self.blockers:
            return 0.0
        found = sum(count for event, count in self.events.items() if event.startswith("Lock:"))
        return 100 * max(0, found - self.own_blockers) / self.sessions

    @property
    def top(self) -> tuple[str, float] | None:
        if not self.events:
            return None
        event, count = self.events.most_common(1)[0]
        return event, 100 * count / self.sessions


def _works(row: dict[str, object]) -> bool:
    """An idle session waits for its client; a walsender is always active."""
    return row["state"] != "idle" and row["wait_event_type"] != "Client"


def _event(row: dict[str, object]) -> str:
    return f"{row['wait_event_type']}:{row['wait_event']}" if row["wait_event_type"] else CPU


async def look_at(
    connection: Connection, name: str, pattern: str, *, walsender: bool = False, recorder: str | None = None
) -> Waits:  # fmt: skip
    """Takes about a second. With `walsender`, waiting for its client counts as work: it is what tells
    its causes. The waits of `recorder` are counted apart."""
    waits = Waits()
    for number in range(LOOKS):
        if number:
            await asyncio.sleep(LOOK_PAUSE_SECONDS)
        trip = await _round_trip_ms(connection)
        waits.round_trip_ms = trip if waits.round_trip_ms is None else min(waits.round_trip_ms, trip)
        rows = await read_all(connection, SESSIONS, {"name": name, "pattern": pattern}, FEW_ROWS_MAX)
        waits.looks += 1
        working = [row for row in rows if walsender or _works(row)]
        waits.recording.update(_event(row) for row in working if row["application"] == recorder)
        others = [row for row in working if row["application"] != recorder]
        await _count(connection, waits, others, {row["pid"] for row in rows})
    return waits


async def _round_trip_ms(connection: Connection) -> float:
    started = monotonic()
    await connection.execute("SELECT")
    return round(1000 * (monotonic() - started), 3)


async def _count(connection: Connection, waits: Waits, rows: list[dict[str, object]], own: set[object]) -> None:
    blocking: set[int] = set()
    for row in rows:
        waits.sessions += 1
        waits.events[_event(row)] += 1
        blockers = row["blockers"]
        if isinstance(blockers, list) and blockers:
            waits.own_blockers += all(pid in own for pid in blockers)
            blocking.update(pid for pid in blockers if pid not in own and pid not in waits.blockers)
    if blocking:
        for found in await read_all(connection, BLOCKERS, {"pids": sorted(blocking)}):
            waits.blockers[found["pid"]] = Blocker(
                found["pid"],
                found["application"] or "",
                found["username"],
                found["state"],
                found["seconds"],
                without_values(found["statement"] or "", NOT_SEEN),
            )
