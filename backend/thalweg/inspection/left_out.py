"""Lists everything that the initial copy does not carry to tables that it creates, by kind, so that users can accept
it."""

from collections import defaultdict
from dataclasses import dataclass

from thalweg.inspection.catalogue import Table
from thalweg.inspection.checks import Checklist, listed
from thalweg.inspection.connection import Connection, read_all

# `relation` is the chosen table, `name` the thing of it that is left out, where a table has several.
LEFT_OUT = """
WITH chosen AS (
  SELECT root AS oid, tree.relid AS relation FROM unnest(%(oids)s::oid[]) root
   CROSS JOIN pg_partition_tree(root::regclass) tree
  UNION SELECT root, root FROM unnest(%(oids)s::oid[]) root
), relations AS (
  SELECT chosen.oid, c.oid AS relation, c.relname, c.relkind, c.reltablespace, c.reloptions, c.relacl, c.relowner,
         c.relrowsecurity, c.relforcerowsecurity, c.relam, c.reloftype, c.relispartition, c.reltoastrelid
    FROM chosen JOIN pg_class c ON c.oid = chosen.relation
), indexes AS (
  SELECT r.oid, i.indexrelid AS relation, c.relname, c.reltablespace, i.indisvalid, i.indisclustered
    FROM relations r JOIN pg_index i ON i.indrelid = r.relation JOIN pg_class c ON c.oid = i.indexrelid
), parts AS (
  SELECT oid, relation, relname FROM relations UNION ALL SELECT oid, relation, relname FROM indexes
), sequences AS (
  SELECT r.oid, s.oid AS relation, s.relname, s.relacl, s.relowner FROM relations r
    JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = r.relation AND d.deptype IN ('a', 'i')
     AND d.classid = 'pg_class'::regclass
    JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
  UNION SELECT r.oid, s.oid, s.relname, s.relacl, s.relowner FROM relations r
    JOIN pg_attrdef a ON a.adrelid = r.relation
    JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = a.oid
     AND d.refclassid = 'pg_class'::regclass
    JOIN pg_class s ON s.oid = d.refobjid AND s.relkind = 'S'
), columns AS (
  SELECT r.oid, r.relispartition, a.* FROM relations r
    JOIN pg_attribute a ON a.attrelid = r.relation AND a.attnum > 0 AND NOT a.attisdropped
)
SELECT DISTINCT found.oid::bigint AS oid, found.kind, found.name FROM (
  SELECT p.oid, 'comments' AS kind, NULL::text AS name FROM (
      SELECT oid, relation FROM parts UNION ALL SELECT oid, relation FROM sequences) p
    JOIN pg_description d ON d.classoid = 'pg_class'::regclass AND d.objoid = p.relation
  UNION ALL SELECT r.oid, 'comments', NULL FROM relations r JOIN pg_constraint k ON k.conrelid = r.relation
    JOIN pg_description d ON d.classoid = 'pg_constraint'::regclass AND d.objoid = k.oid
  UNION ALL SELECT r.oid, 'grants', CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(g.grantee) END
    FROM relations r
    CROSS JOIN aclexplode(r.relacl) g WHERE g.grantee <> r.relowner
  UNION ALL SELECT c.oid, 'grants on columns', c.attname FROM columns c WHERE c.attacl IS NOT NULL
  UNION ALL SELECT r.oid, 'row-level security', p.polname FROM relations r
    LEFT JOIN pg_policy p ON p.polrelid = r.relation
   WHERE r.relrowsecurity OR r.relforcerowsecurity OR p.oid IS NOT NULL
  UNION ALL SELECT r.oid, 'triggers', t.tgname FROM relations r
    JOIN pg_trigger t ON t.tgrelid = r.relation AND NOT t.tgisinternal
  UNION ALL SELECT r.oid, 'rules', w.rulename FROM relations r JOIN pg_rewrite w ON w.ev_class = r.relation
  UNION ALL SELECT oid, 'values of sequences', relname FROM sequences
  UNION ALL SELECT s.oid, 'grants on sequences', s.relname FROM sequences s
   WHERE EXISTS (SELECT FROM aclexplode(s.relacl) g WHERE g.grantee <> s.relowner)
  UNION ALL SELECT r.oid, 'extended statistics', e.stxname FROM relations r
    JOIN pg_statistic_ext e ON e.stxrelid = r.relation
  UNION ALL SELECT c.oid, 'statistics targets', c.attname FROM columns c
   WHERE coalesce(c.attstattarget, -1) >= 0
      OR EXISTS (SELECT FROM unnest(c.attoptions) option WHERE option LIKE 'n\\_distinct%%')
  UNION ALL SELECT i.oid, 'statistics targets', i.relname FROM indexes i
    JOIN pg_attribute a ON a.attrelid = i.relation AND coalesce(a.attstattarget, -1) >= 0
  UNION ALL SELECT r.oid, 'storage parameters', NULL FROM relations r
   WHERE r.reloptions IS NOT NULL
      OR EXISTS (SELECT FROM pg_class t WHERE t.oid = r.reltoastrelid AND t.reloptions IS NOT NULL)
  UNION ALL SELECT c.oid, 'storage and compression of columns', c.attname FROM columns c
    JOIN pg_type t ON t.oid = c.atttypid WHERE c.attstorage <> t.typstorage OR c.attcompression <> ''
  UNION ALL SELECT r.oid, 'tablespaces', s.spcname FROM (
      SELECT oid, reltablespace FROM relations UNION ALL SELECT oid, reltablespace FROM indexes) r
    JOIN pg_tablespace s ON s.oid = r.reltablespace
  UNION ALL SELECT r.oid, 'access methods', m.amname FROM relations r
    JOIN pg_am m ON m.oid = r.relam AND m.amname <> 'heap' WHERE r.relkind = 'r'
  UNION ALL SELECT i.oid, 'invalid indexes', i.relname FROM indexes i WHERE NOT i.indisvalid
  UNION ALL SELECT i.oid, 'clustering', i.relname FROM indexes i WHERE i.indisclustered
  UNION ALL SELECT r.oid, 'names and NO INHERIT of NOT NULL', k.conname FROM relations r
    JOIN pg_constraint k ON k.conrelid = r.relation AND k.contype = 'n' AND k.conislocal
   WHERE k.connoinherit OR k.conname !~ '_not_null[0-9]*$'
  UNION ALL SELECT r.oid, 'NOT NULL that is not validated', k.conname FROM relations r
    JOIN pg_constraint k ON k.conrelid = r.relation AND k.contype = 'n' AND NOT k.convalidated
  UNION ALL SELECT r.oid, 'the type that the table is of', NULL FROM relations r WHERE r.reloftype <> 0
  UNION ALL SELECT r.oid, 'security labels', NULL FROM relations r
    JOIN pg_seclabel l ON l.classoid = 'pg_class'::regclass AND l.objoid = r.relation
  UNION ALL SELECT c.oid, 'defaults of partitions', r.relname FROM columns c
    JOIN pg_attrdef d ON d.adrelid = c.attrelid AND d.adnum = c.attnum
    JOIN pg_class r ON r.oid = c.attrelid JOIN pg_inherits h ON h.inhrelid = c.attrelid
    LEFT JOIN pg_attribute pa ON pa.attrelid = h.inhparent AND pa.attname = c.attname
    LEFT JOIN pg_attrdef pd ON pd.adrelid = pa.attrelid AND pd.adnum = pa.attnum
   WHERE c.relispartition AND c.attgenerated = ''
     AND pg_get_expr(d.adbin, d.adrelid) IS DISTINCT FROM pg_get_expr(pd.adbin, pd.adrelid)
) found ORDER BY 2, 1, 3
"""


@dataclass(frozen=True)
class LeftOut:
    table: tuple[str, str]
    kind: str
    name: str | None

    @property
    def shown(self) -> str:
        return ".".join(self.table) + (f" ({self.name})" if self.name else "")


async def read_left_out(connection: Connection, tables: list[Table]) -> list[LeftOut]:
    names = {table.oid: table.name for table in tables}
    rows = await read_all(connection, LEFT_OUT, {"oids": list(names)})
    return [LeftOut(names[row["oid"]], row["kind"], row["name"]) for row in rows]


def check_left_out(checklist: Checklist, found: list[LeftOut]) -> None:
    """`found`: of the tables that the stream would make."""
    title = "What the copy leaves out"
    by_kind: dict[str, list[str]] = defaultdict(list)
    for left in found:
        by_kind[left.kind].append(left.shown)
    if not by_kind:
        checklist.ok("left_out", title, "The destination's new tables will have all that the source's have.")
        return
    checklist.ask(
        "left_out", title,
        f"The source's tables have {_enumerated(list(by_kind))}, which the destination's new tables will not have.",
        "Create these objects at the destination yourself once the tables exist (pg_dump --schema-only shows them), "
        "or create the tables there before the stream. Before applications write to the destination, set its "
        "sequences with setval().",
        [f"{kind}: {listed(names)}" for kind, names in by_kind.items()],
    )  # fmt: skip


def _enumerated(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
