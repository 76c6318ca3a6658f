"""Tables with intervals. From PostgreSQL 17 on an interval may be infinite; an older server takes its bytes for 178
million years, without a word."""

from thalweg.inspection.catalogue import Table
from thalweg.inspection.checks import Checklist, listed
from thalweg.inspection.connection import Connection, read_all
from thalweg.inspection.used_types import uses_of_types

INFINITE_FROM = 170_000
INTERVALS = f"""
{uses_of_types("AND a.attgenerated = ''")}
SELECT DISTINCT oid::bigint AS oid FROM uses WHERE type = 'interval'::regtype ORDER BY 1
"""  # noqa: S608  # constants


async def read_infinite_intervals(connection: Connection, tables: list[Table]) -> list[str]:
    """The names of the tables whose intervals may be infinite, at the source."""
    if connection.info.server_version < INFINITE_FROM:
        return []
    names = {table.oid: ".".join(table.name) for table in tables}
    return [names[row["oid"]] for row in await read_all(connection, INTERVALS, {"oids": list(names)})]


def check_intervals(checklist: Checklist, tables: list[str], version: int) -> None:
    """`version` is the destination's."""
    title = "Infinite intervals"
    if version >= INFINITE_FROM or not tables:
        checklist.ok("intervals", title, "The destination can hold every interval of the source.")
        return
    checklist.ask(
        "intervals", title,
        f"Intervals of the source may be infinite, and PostgreSQL {version // 10_000} of the destination has no such "
        f"value: 'infinity' would arrive as 178956970 years there. Tables with intervals: {listed(tables)}.",
        "Upgrade the destination to PostgreSQL 17 or later, or let the source refuse infinite intervals: "
        "ALTER TABLE ... ADD CHECK (isfinite(column)).",
        [],
    )  # fmt: skip
