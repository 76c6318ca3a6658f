"""Comments and privileges of the schemas and types that the initial copy makes for its tables: it carries neither."""

from dataclasses import dataclass

from thalweg.inspection.catalogue import Table
from thalweg.inspection.connection import Connection, read_all
from thalweg.inspection.left_out import LeftOut
from thalweg.inspection.used_types import uses_of_types

# The schema public is there already, and types of extensions come with these.
LEFT_OUT = f"""
{uses_of_types()}, types AS (
  SELECT u.oid, t.oid AS type, t.typname, t.typacl, t.typnamespace, t.typrelid FROM uses u
    JOIN pg_type t ON t.oid = u.type LEFT JOIN pg_class c ON c.oid = t.typrelid
   WHERE (t.typtype IN ('e', 'd', 'r') OR c.relkind = 'c')
     AND NOT EXISTS (SELECT FROM pg_depend d
                      WHERE d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e')
), schemas AS (
  SELECT oid, typnamespace AS schema FROM types
  UNION SELECT chosen.oid, c.relnamespace FROM chosen JOIN pg_class c ON c.oid = chosen.relation
)
SELECT DISTINCT found.oid::bigint AS oid, found.kind, n.nspname AS schema, found.type FROM (
  SELECT t.oid, 'comments on types' AS kind, t.typnamespace AS schema, t.typname AS type FROM types t
   WHERE EXISTS (SELECT FROM pg_description d WHERE (d.classoid, d.objoid) IN (
           ('pg_type'::regclass, t.type), ('pg_class'::regclass, t.typrelid)))
      OR EXISTS (SELECT FROM pg_constraint k
                   JOIN pg_description d ON d.classoid = 'pg_constraint'::regclass AND d.objoid = k.oid
                  WHERE k.contypid = t.type)
  UNION ALL SELECT t.oid, 'privileges on types', t.typnamespace, t.typname FROM types t WHERE t.typacl IS NOT NULL
  UNION ALL SELECT s.oid, 'comments on schemas', s.schema, NULL FROM schemas s
    JOIN pg_description d ON d.classoid = 'pg_namespace'::regclass AND d.objoid = s.schema
  UNION ALL SELECT s.oid, 'privileges on schemas', s.schema, NULL FROM schemas s
    JOIN pg_namespace own ON own.oid = s.schema WHERE own.nspacl IS NOT NULL
) found JOIN pg_namespace n ON n.oid = found.schema
 WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND (found.type IS NOT NULL OR n.nspname <> 'public')
 ORDER BY 2, 1, 3, 4
"""  # noqa: S608  # constants
PRESENT = """
SELECT n.nspname AS schema, t.typname AS type FROM pg_namespace n
  JOIN pg_type t ON t.typnamespace = n.oid AND t.typname = ANY(%(types)s) WHERE n.nspname = ANY(%(schemas)s)
UNION ALL SELECT nspname, NULL FROM pg_namespace WHERE nspname = ANY(%(schemas)s)
"""


@dataclass(frozen=True)
class LeftOutOfMade:
    """A part of a schema, or of a type in it, that the copy of a table makes without that part."""

    schema: str
    type: str | None
    part: LeftOut


async def read_left_out_of_made(connection: Connection, tables: list[Table]) -> list[LeftOutOfMade]:
    names = {table.oid: table.name for table in tables}
    return [
        LeftOutOfMade(row["schema"], row["type"], LeftOut(names[row["oid"]], row["kind"], _name(row)))
        for row in await read_all(connection, LEFT_OUT, {"oids": list(names)})
    ]


def _name(row: dict[str, str | None]) -> str:
    return ".".join(part for part in (row["schema"], row["type"]) if part)


async def those_to_be_made(connection: Connection, found: list[LeftOutOfMade]) -> list[LeftOut]:
    """At this destination: what is there already stays as it is."""
    if not found:
        return []
    asked = {"schemas": [left.schema for left in found], "types": [left.type for left in found if left.type]}
    there = {(row["schema"], row["type"]) for row in await read_all(connection, PRESENT, asked)}
    return [left.part for left in found if (left.schema, left.type) not in there]
