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
    16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29, 114, 142, 600, 601, 602, 603, 604, 628, 650, 700, 701, 718,
    774, 790, 829, 869, 1042, 1043, 1082, 1083, 1114, 1184, 1186, 1266, 1560, 1562, 1700, 1790, 2202, 2203, 2204,
    2205, 2206, 2950, 2970, 3220, 3614, 3615, 3734, 3769, 3802, 4072, 4089, 4096, 4191, 5038, 5069,
)  # fmt: skip
"""Built-in types by their numbers (engine/src/mining/known_types.cc); what is made of known types comes beside them."""
EXTENSION_TYPES = ("citext.citext", "cube.cube", "hstore.hstore", "ltree.ltree")
"""An extension's name, and its type's in the same schema."""
BLOCK_BYTES = "8192"
LOGICAL = "Or choose logical decoding for the stream."

SERVER = """
SELECT current_setting('server_version_num')::int / 10000 AS major, current_setting('server_version') AS version,
       current_setting('full_page_writes') AS full_page_writes,
       (SELECT full_page_writes FROM pg_control_checkpoint()) AS checkpoint_has_pages,
       current_setting('server_encoding') AS encoding, current_setting('block_size') AS block_bytes
"""
OTHER_METHODS = """
SELECT c.oid::bigint AS oid FROM pg_class c JOIN pg_am a ON a.oid = c.relam
 WHERE c.oid = ANY(%(oids)s::oid[]) AND a.amname <> 'heap'
"""
# Types that are made of others are read by these: domains, arrays, ranges, multiranges, composites.
OTHER_TYPES = """
WITH RECURSIVE known AS (
  SELECT t.oid, t.typtype, t.typrelid, t.typbasetype, t.typelem,
         t.typtype = 'b' AND t.oid <> ALL(%(known)s::oid[]) AND t.typlen = -1 AND t.typelem <> 0
         AND (t.oid IN (22, 30) OR EXISTS (SELECT FROM pg_type e WHERE e.oid = t.typelem AND e.typarray = t.oid))
         AS is_array,
         t.oid = ANY(%(known)s::oid[])
         OR EXISTS (SELECT FROM pg_extension x WHERE x.extnamespace = t.typnamespace
                       AND x.extname || '.' || t.typname = ANY(%(of_extensions)s::text[])) AS is_known
    FROM pg_type t
), part AS (
  SELECT a.attrelid AS relation, a.attnum AS number, a.attname AS name, a.atttypid AS type
    FROM pg_attribute a
   WHERE a.attrelid = ANY(%(oids)s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
  UNION
  SELECT p.relation, p.number, p.name, made.of
    FROM part p JOIN known t ON t.oid = p.type
   CROSS JOIN LATERAL (
     SELECT t.typbasetype AS of WHERE t.typtype = 'd'
     UNION ALL SELECT t.typelem WHERE t.is_array
     UNION ALL SELECT r.rngsubtype FROM pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
     UNION ALL SELECT a.atttypid FROM pg_attribute a
                WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
   ) AS made
)
SELECT n.nspname AS schema, c.relname AS "table", p.name, format_type(t.oid, NULL) AS type
  FROM part p JOIN known t ON t.oid = p.type
  JOIN pg_class c ON c.oid = p.relation JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE t.typtype NOT IN ('d', 'e', 'c', 'r', 'm') AND NOT t.is_known AND NOT t.is_array
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
    if server["full_page_writes"] == "on" and server["checkpoint_has_pages"]:
        checklist.ok("full_page_writes", title, "full_page_writes is on.")
    elif server["full_page_writes"] == "on":
        checklist.fail(
            "full_page_writes", title, "full_page_writes is on, and was off at the last checkpoint, where the stream's "
            "WAL would begin.", "Run CHECKPOINT at the source.", "CHECKPOINT;",
        )  # fmt: skip
    else:
        checklist.fail(
            "full_page_writes", title, "full_page_writes is off: the WAL does not have all that is changed.",
            f"Turn it on and reload the server. {LOGICAL}",
            "ALTER SYSTEM SET full_page_writes = on;\nSELECT pg_reload_conf();\nCHECKPOINT;",
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
    known = {"known": list(TYPES), "of_extensions": list(EXTENSION_TYPES)}
    columns = await read_all(connection, OTHER_TYPES, {"oids": oids, **known})
    checklist.tables(
        "mined_types", "Types that can be mined",
        [f"{row['schema']}.{row['table']}.{row['name']} ({row['type']})" for row in columns],
        "log mining does not read values of these types.",
        f"Leave these tables out with an exclude pattern. {LOGICAL}", [], "All types of the columns are known.",
    )  # fmt: skip
