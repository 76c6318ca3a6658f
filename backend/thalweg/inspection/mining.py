"""Checks of a source whose WAL the engine mines: what its server, database and tables must be like for that.

The engine refuses the same when the stream starts (engine/src/capture/wal/mined_tables.cc, engine/src/mining).
"""

from typing import Any

from thalweg.inspection.catalogue import Table
from thalweg.inspection.checks import Checklist
from thalweg.inspection.connection import Connection, read_all, read_row

MAJORS = range(14, 20)
"""PostgreSQL's versions whose WAL is known (engine/src/wal/wal_format.cc)."""
TYPES = (
    16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29, 114, 600, 601, 603, 628, 700, 701, 718, 774, 790, 829, 1042,
    1043, 1082, 1083, 1114, 1184, 1186, 1266, 1560, 1562, 1700, 2950, 3220, 5069,
)  # fmt: skip
"""Built-in types by their numbers (engine/src/mining/send_form.cc); enums, domains and arrays come beside them."""
BLOCK_BYTES = "8192"
LOGICAL = "Or choose logical decoding for the stream."

SERVER = """
SELECT current_setting('server_version_num')::int / 10000 AS major, current_setting('server_version') AS version,
       current_setting('full_page_writes') AS full_page_writes, current_setting('server_encoding') AS encoding,
       current_setting('block_size') AS block_bytes
"""
OTHER_METHODS = """
SELECT c.oid::bigint AS oid FROM pg_class c JOIN pg_am a ON a.oid = c.relam
 WHERE c.oid = ANY(%(oids)s::oid[]) AND a.amname <> 'heap'
"""
# Arrays are read by their elements, domains by their base types.
OTHER_TYPES = """
WITH RECURSIVE part AS (
  SELECT a.attrelid AS relation, a.attnum AS number, a.attname AS name, a.atttypid AS type
    FROM pg_attribute a
   WHERE a.attrelid = ANY(%(oids)s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
  UNION ALL
  SELECT p.relation, p.number, p.name, CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.typelem END
    FROM part p JOIN pg_type t ON t.oid = p.type
   WHERE t.typtype = 'd' OR (t.typtype <> 'e' AND t.oid <> ALL(%(known)s::oid[]) AND t.typlen = -1
                             AND t.typelem <> 0 AND t.typcategory = 'A')
)
SELECT n.nspname AS schema, c.relname AS "table", p.name, format_type(t.oid, NULL) AS type
  FROM part p JOIN pg_type t ON t.oid = p.type
  JOIN pg_class c ON c.oid = p.relation JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE t.typtype NOT IN ('d', 'e') AND t.oid <> ALL(%(known)s::oid[])
   AND NOT (t.typlen = -1 AND t.typelem <> 0 AND t.typcategory = 'A')
 ORDER BY 1, 2, p.number
"""


async def check_mining(
    checklist: Checklist, connection: Connection, tables: list[Table], *, reads_standby: bool
) -> None:
    """`tables` are those chosen."""
    server = await read_row(connection, SERVER)
    _check_server(checklist, server, reads_standby)
    await _check_tables(checklist, connection, tables)


def _check_server(checklist: Checklist, server: dict[str, Any], reads_standby: bool) -> None:
    if reads_standby:
        checklist.fail(
            "mining_primary", "Log mining at the primary", "The source is read at a standby; log mining reads the "
            "primary's WAL only.", f"Read the database from its primary. {LOGICAL}",
        )  # fmt: skip
    else:
        checklist.ok("mining_primary", "Log mining at the primary", "The primary's WAL is read.")
    title = "Version of the WAL"
    if server["major"] in MAJORS:
        checklist.ok("mining_version", title, f"Log mining knows the WAL of PostgreSQL {server['major']}.")
    else:
        checklist.fail(
            "mining_version", title, f"Log mining does not know the WAL of PostgreSQL {server['version']}.",
            "Choose logical decoding for the stream.",
        )  # fmt: skip
    title = "Whole pages in the WAL"
    if server["full_page_writes"] == "on":
        checklist.ok("full_page_writes", title, "full_page_writes is on.")
    else:
        checklist.fail(
            "full_page_writes", title, "full_page_writes is off: the WAL does not have all that is changed.",
            f"Turn it on and reload the server. {LOGICAL}",
            "ALTER SYSTEM SET full_page_writes = on;\nSELECT pg_reload_conf();",
        )  # fmt: skip
    title = "Encoding of the database"
    if server["encoding"] == "UTF8":
        checklist.ok("mining_encoding", title, "UTF8.")
    else:
        checklist.fail(
            "mining_encoding", title, f"The database's encoding is {server['encoding']}; log mining reads UTF8 only.",
            "Choose logical decoding for the stream.",
        )  # fmt: skip
    title = "Size of blocks"
    if server["block_bytes"] == BLOCK_BYTES:
        checklist.ok("mining_blocks", title, f"{BLOCK_BYTES} bytes.")
    else:
        checklist.fail(
            "mining_blocks", title,
            f"The server's blocks have {server['block_bytes']} bytes; log mining reads those of {BLOCK_BYTES}.",
            "Choose logical decoding for the stream.",
        )  # fmt: skip


async def _check_tables(checklist: Checklist, connection: Connection, tables: list[Table]) -> None:
    oids = [table.oid for table in tables]
    methods = await read_all(connection, OTHER_METHODS, {"oids": oids})
    others = {row["oid"] for row in methods}
    checklist.tables(
        "mined_tables", "Tables that can be mined",
        [table.shown for table in tables if table.facts["relkind"] == "p" or table.oid in others],
        "log mining reads neither partitioned tables nor those of another access method than heap.",
        f"Leave them out with an exclude pattern. {LOGICAL}", [], "None is partitioned; all are heaps.",
    )  # fmt: skip
    columns = await read_all(connection, OTHER_TYPES, {"oids": oids, "known": list(TYPES)})
    checklist.tables(
        "mined_types", "Types that can be mined",
        [f"{row['schema']}.{row['table']}.{row['name']} ({row['type']})" for row in columns],
        "log mining does not read values of these types.",
        f"Leave these tables out with an exclude pattern. {LOGICAL}", [], "All types of the columns are known.",
    )  # fmt: skip
