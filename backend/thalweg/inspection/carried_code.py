"""Finds the functions that copied definitions call: they run at the destination as the role that applies.

The source's owner writes the definitions: defaults, generated columns, checks, and the expressions of indexes and of
partition keys. Functions are not copied; the definitions call those of the same name at the destination, with arguments
that the source chooses, whenever rows are written.
"""

from collections import defaultdict
from dataclasses import dataclass

from thalweg.inspection.catalogue import Table
from thalweg.inspection.checks import Checklist, listed
from thalweg.inspection.connection import Connection, read_all, read_one

# Every function and operator in an expression's tree, those that pg_depend does not have included: what is built in is
# pinned.
CALLED = """
WITH RECURSIVE chosen AS (
  SELECT root AS oid, tree.relid AS relation FROM unnest(%(oids)s::oid[]) root
   CROSS JOIN pg_partition_tree(root::regclass) tree
  UNION SELECT root, root FROM unnest(%(oids)s::oid[]) root
), types AS (
  SELECT c.oid, a.atttypid AS type FROM chosen c
    JOIN pg_attribute a ON a.attrelid = c.relation AND a.attnum > 0 AND NOT a.attisdropped
  UNION
  SELECT y.oid, next.type FROM types y JOIN pg_type t ON t.oid = y.type
   CROSS JOIN LATERAL (
     SELECT t.typbasetype WHERE t.typtype = 'd' UNION ALL SELECT t.typelem WHERE t.typelem <> 0
     UNION ALL SELECT f.atttypid FROM pg_attribute f
      WHERE f.attrelid = t.typrelid AND f.attnum > 0 AND NOT f.attisdropped
     UNION ALL SELECT r.rngsubtype FROM pg_range r WHERE r.rngtypid = t.oid
     UNION ALL SELECT r.rngtypid FROM pg_range r WHERE to_jsonb(r) ->> 'rngmultitypid' = t.oid::text
   ) next(type)
), expressions AS (
  SELECT c.oid, CASE WHEN a.attgenerated = '' THEN 'default of ' ELSE 'generated column ' END || a.attname AS part,
         d.adbin::text AS tree
    FROM chosen c JOIN pg_attrdef d ON d.adrelid = c.relation
    JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
  UNION ALL SELECT c.oid, 'constraint ' || k.conname, k.conbin::text
    FROM chosen c JOIN pg_constraint k ON k.conrelid = c.relation AND k.conbin IS NOT NULL
  UNION ALL SELECT c.oid, 'index ' || i.indexrelid::regclass::text, concat(i.indexprs::text, i.indpred::text)
    FROM chosen c JOIN pg_index i ON i.indrelid = c.relation
  UNION ALL SELECT c.oid, 'partition key', p.partexprs::text
    FROM chosen c JOIN pg_partitioned_table p ON p.partrelid = c.relation
  UNION ALL SELECT y.oid, 'type ' || y.type::regtype::text, concat(k.conbin::text, t.typdefaultbin::text)
    FROM types y JOIN pg_type t ON t.oid = y.type AND t.typtype = 'd'
    LEFT JOIN pg_constraint k ON k.contypid = t.oid
), called AS (
  SELECT DISTINCT oid, part, found[1] AS kind, found[2]::oid AS object
    FROM expressions, regexp_matches(tree, ':(funcid|opno) (\\d+)', 'g') found
)
SELECT c.oid::bigint AS oid, c.part::text AS part, 'function' AS kind,
       quote_ident(n.nspname) || '.' || quote_ident(p.proname) || '(' || coalesce((
         SELECT string_agg(format_type(a.type, NULL), ', ' ORDER BY a.place)
           FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY a(type, place)), '') || ')' AS name
  FROM called c JOIN pg_proc p ON p.oid = c.object JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE c.kind = 'funcid'
UNION
SELECT c.oid::bigint, c.part::text, 'operator',
       quote_ident(n.nspname) || '.' || o.oprname || '('
       || CASE WHEN o.oprleft = 0 THEN 'NONE' ELSE format_type(o.oprleft, NULL) END || ', '
       || CASE WHEN o.oprright = 0 THEN 'NONE' ELSE format_type(o.oprright, NULL) END || ')'
  FROM called c JOIN pg_operator o ON o.oid = c.object JOIN pg_namespace n ON n.oid = o.oprnamespace
 WHERE c.kind = 'opno'
 ORDER BY 4, 1, 2
"""
# At the destination: those of them that are no functions of PostgreSQL's that merely compute, or that not everybody may
# call. The last list does nothing to anybody. By their text: before PostgreSQL 16 to_regprocedure fails where a type of
# the arguments is missing, which the copy has still to make.
HARMFUL = """
WITH there AS (
  SELECT 'function' AS kind, quote_ident(n.nspname) || '.' || quote_ident(p.proname) || '(' || coalesce((
         SELECT string_agg(format_type(a.type, NULL), ', ' ORDER BY a.place)
           FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY a(type, place)), '') || ')' AS name, p.oid AS function
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
  UNION ALL
  SELECT 'operator', quote_ident(n.nspname) || '.' || o.oprname || '('
       || CASE WHEN o.oprleft = 0 THEN 'NONE' ELSE format_type(o.oprleft, NULL) END || ', '
       || CASE WHEN o.oprright = 0 THEN 'NONE' ELSE format_type(o.oprright, NULL) END || ')', o.oprcode::oid
    FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace
)
SELECT w.kind, w.name
  FROM unnest(%(kinds)s::text[], %(names)s::text[]) w(kind, name)
  LEFT JOIN there USING (kind, name)
  LEFT JOIN pg_proc p ON p.oid = there.function
 WHERE CASE WHEN p.oid IS NULL THEN NOT starts_with(w.name, 'pg_catalog.')
            ELSE p.pronamespace <> 'pg_catalog'::regnamespace OR p.proacl IS NOT NULL OR p.proname ~ '_to_xml'
              OR (p.provolatile = 'v' AND p.proname <> ALL (
       ARRAY['nextval', 'currval', 'lastval', 'random', 'random_normal', 'gen_random_uuid', 'uuidv4', 'uuidv7',
             'clock_timestamp', 'timeofday'])) END
"""
# What code that runs as the role could do beyond the tables of the stream.
POWERS = """
SELECT r.rolname AS name, array_remove(ARRAY[
  CASE WHEN r.rolsuper THEN 'SUPERUSER' END, CASE WHEN r.rolbypassrls THEN 'BYPASSRLS' END,
  CASE WHEN r.rolcreaterole THEN 'CREATEROLE' END, CASE WHEN r.rolcreatedb THEN 'CREATEDB' END,
  CASE WHEN r.rolreplication THEN 'REPLICATION' END], NULL) || ARRAY(
    SELECT p.rolname::text FROM pg_roles p WHERE NOT r.rolsuper AND pg_has_role(r.oid, p.oid, 'MEMBER')
     AND p.oid <> r.oid AND (p.rolsuper OR p.rolname IN ('pg_execute_server_program', 'pg_write_server_files',
       'pg_read_server_files', 'pg_write_all_data', 'pg_read_all_data', 'pg_signal_backend', 'rds_superuser',
       'cloudsqlsuperuser', 'azure_pg_admin')) ORDER BY 1) AS powers
  FROM pg_roles r WHERE r.rolname = current_user
"""
TITLE = "Code that the source's definitions call"


@dataclass(frozen=True)
class Call:
    table: tuple[str, str]
    part: str
    kind: str
    """function or operator"""
    name: str


async def read_calls(connection: Connection, tables: list[Table]) -> list[Call]:
    """At the source."""
    names = {table.oid: table.name for table in tables}
    rows = await read_all(connection, CALLED, {"oids": list(names)})
    return [Call(names[row["oid"]], row["part"], row["kind"], row["name"]) for row in rows]


async def _harmful(connection: Connection, calls: list[Call]) -> list[Call]:
    """The destination's objects of these names run there, whatever the names mean at the source."""
    named = sorted({(call.kind, call.name) for call in calls})
    asked = {"kinds": [kind for kind, _ in named], "names": [name for _, name in named]}
    found = {(row["kind"], row["name"]) for row in await read_all(connection, HARMFUL, asked)}
    return [call for call in calls if (call.kind, call.name) in found]


async def check_carried_code(checklist: Checklist, connection: Connection, called: list[Call]) -> None:
    """At a destination; `called` are those of tables that the stream would make there."""
    role = await read_one(connection, POWERS)
    calls = await _harmful(connection, called)
    if not calls:
        checklist.ok("carried_code", TITLE, "They call nothing but harmless functions of PostgreSQL itself.")
        return
    by_function: dict[str, list[str]] = defaultdict(list)
    for call in calls:
        by_function[call.name].append(f"{'.'.join(call.table)} ({call.part})")
    user, powers = role["name"], role["powers"]
    told = (
        f"{_many(len(by_function))} of the destination's server would be called by defaults, generated columns, checks "
        f"or indexes that come from the source, with arguments that the source's owner chooses, as {user}"
    )
    cure = (
        "Make these tables at the destination yourself, with the definitions that you want. Or apply as a role that "
        "may write the stream's tables and nothing else."
    )
    if not powers:
        names = "; ".join(f"{function}: {listed(places)}" for function, places in by_function.items())
        checklist.warn("carried_code", TITLE, f"{told}: {names}.", cure)
        return
    checklist.ask(
        "carried_code", TITLE,
        f"{told}, who has {', '.join(powers)}: anyone who may alter the source's tables could do the same here.", cure,
        [f"{function}: {listed(places)}" for function, places in by_function.items()],
    )  # fmt: skip


def _many(functions: int) -> str:
    return "1 function or operator" if functions == 1 else f"{functions} functions and operators"
