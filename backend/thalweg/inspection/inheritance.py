"""Tables that inherit from others (INHERITS, not partitions): each is replicated as a table by itself."""

from thalweg.inspection.catalogue import Table
from thalweg.inspection.checks import Checklist
from thalweg.inspection.connection import Connection, read_all

INHERITANCE = """
SELECT h.inhparent::regclass::text AS parent, h.inhrelid::regclass::text AS child
  FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid AND c.relkind IN ('r', 'f') AND NOT c.relispartition
 WHERE h.inhparent = ANY(%(oids)s::oid[]) OR h.inhrelid = ANY(%(oids)s::oid[])
 ORDER BY 1, 2
"""


async def check_inheritance(checklist: Checklist, connection: Connection, tables: list[Table]) -> None:
    title = "Inheritance"
    rows = await read_all(connection, INHERITANCE, {"oids": [table.oid for table in tables]})
    if not rows:
        checklist.ok("inheritance", title, "No table inherits from another.")
        return
    checklist.ask(
        "inheritance", title,
        "Tables that inherit from others become independent tables: at the destination, a query of the parent does "
        "not show the rows of its children.",
        "Create the tables at the destination before the stream, with INHERITS; or turn the hierarchy into partitions.",
        [f"{row['child']} inherits from {row['parent']}" for row in rows],
    )  # fmt: skip
