"""Reads tables, their columns and privileges from a database's catalogue."""

from dataclasses import dataclass, field
from typing import Any

from thalweg.inspection.connection import Connection, read_all
from thalweg.inspection.schemas import ReplicaIdentity, SourceTable, TableKind

TABLES_MAX = 100_000

TABLES = """
SELECT n.nspname AS schema, c.relname AS "table", c.oid::bigint AS oid, c.relkind::text AS relkind,
       c.relpersistence::text AS persistence, c.relispartition AS is_partition, c.relreplident::text AS identity,
       c.relrowsecurity AS row_security, c.relforcerowsecurity AS force_row_security,
       pg_get_userbyid(c.relowner) AS owner, pg_has_role(c.relowner, 'USAGE') AS owned,
       has_schema_privilege(n.oid, 'USAGE') AS may_use_schema,
       has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS may_select,
       pg_partition_root(c.oid)::oid::bigint AS root,
       has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE')
         AND has_table_privilege(c.oid, 'DELETE') AND has_table_privilege(c.oid, 'TRUNCATE') AS may_write,
       size.rows, size.bytes,
       coalesce(keys.primary_key, '{}') AS primary_key, coalesce(keys.identity_index, '{}') AS identity_index,
       coalesce(keys.has_unique, false) AS has_unique, coalesce(keys.refuses_rows, false) AS refuses_rows,
       keys.candidate
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 CROSS JOIN LATERAL (
       SELECT CASE WHEN bool_or(leaf.reltuples >= 0) THEN sum(greatest(leaf.reltuples, 0))::bigint END AS rows,
              coalesce(sum(pg_total_relation_size(leaf.oid)), 0)::bigint AS bytes
         FROM (SELECT c.oid AS relid WHERE c.relkind <> 'p'
                UNION ALL
               SELECT relid FROM pg_partition_tree(CASE WHEN c.relkind = 'p' THEN c.oid END)) part
         JOIN pg_class leaf ON leaf.oid = part.relid AND leaf.relkind <> 'p'
 ) size
  LEFT JOIN LATERAL (
       SELECT max(CASE WHEN i.indisprimary AND i.indimmediate THEN k.columns END) AS primary_key,
              max(CASE WHEN i.indisreplident THEN k.columns END) AS identity_index,
              min(CASE WHEN i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indimmediate
                        AND k.not_null THEN index.relname END) AS candidate,
              bool_or(i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indimmediate) AS has_unique,
              bool_or(i.indisunique OR i.indisexclusion) AS refuses_rows
         FROM pg_index i JOIN pg_class index ON index.oid = i.indexrelid
        CROSS JOIN LATERAL (
              SELECT array_agg(a.attname::text ORDER BY place) AS columns, bool_and(a.attnotnull) AS not_null
                FROM unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY AS key(number, place)
                JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = key.number
        ) k
        WHERE i.indrelid = c.oid AND i.indisvalid
 ) keys ON true
 WHERE c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't'
   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast', 'thalweg')
   AND n.nspname NOT LIKE 'pg\\_temp\\_%%' AND n.nspname NOT LIKE 'pg\\_toast\\_temp\\_%%'
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                      AND d.deptype = 'e')
 ORDER BY n.nspname, c.relname
 LIMIT %(limit)s
"""

COLUMNS = """
SELECT c.oid::bigint AS oid, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
       a.attnotnull AS not_null, a.attgenerated <> '' AS generated, a.attidentity <> '' AS is_identity,
       a.atthasdef OR a.attidentity <> '' AS has_default
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
 WHERE c.oid = ANY(%(oids)s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY c.oid, a.attnum
"""

NAMED = """
SELECT c.oid::bigint AS oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = %(schema)s AND c.relname = %(table)s AND c.relkind IN ('r', 'p', 'f')
"""


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    not_null: bool
    generated: bool
    is_identity: bool
    has_default: bool


@dataclass(frozen=True)
class Table:
    """A table as the catalogue has it; `facts` are the columns of TABLES. `leaves`: its partitions that hold rows."""

    facts: dict[str, Any]
    leaves: list["Table"] = field(default_factory=list)

    @property
    def name(self) -> tuple[str, str]:
        return self.facts["schema"], self.facts["table"]

    @property
    def shown(self) -> str:
        return ".".join(self.name)

    @property
    def oid(self) -> int:
        return int(self.facts["oid"])

    @property
    def is_partition(self) -> bool:
        return bool(self.facts["is_partition"])

    @property
    def kind(self) -> TableKind:
        if self.facts["relkind"] == "f":
            return TableKind.FOREIGN
        if self.facts["persistence"] == "u":
            return TableKind.UNLOGGED
        if self.is_partition:
            return TableKind.PARTITION
        return TableKind.PARTITIONED if self.facts["relkind"] == "p" else TableKind.TABLE

    @property
    def identity(self) -> ReplicaIdentity:
        names = {"d": "default", "f": "full", "i": "index", "n": "nothing"}
        return ReplicaIdentity(names[self.facts["identity"]])

    @property
    def key_columns(self) -> list[str]:
        return list(self.facts["primary_key"] or self.facts["identity_index"])

    @property
    def unidentified(self) -> list["Table"]:
        """The tables whose rows cannot be told apart: itself, or those of its partitions that hold rows."""
        if self.facts["relkind"] == "p":
            return [leaf for leaf in self.leaves if not leaf.is_identified]
        return [] if self.is_identified else [self]

    @property
    def is_identified(self) -> bool:
        """Its updates and deletes can be told apart at the destination. Of a table that holds rows itself."""
        if self.identity is ReplicaIdentity.DEFAULT:
            return bool(self.facts["primary_key"])
        return self.identity is ReplicaIdentity.FULL or bool(self.facts["identity_index"])

    def unsupported(self, inserts_only: bool = False) -> list[str]:
        """Why it cannot be replicated. `inserts_only`: its updates and deletes are given up."""
        reasons = {
            TableKind.FOREIGN: "It is a foreign table: its changes are not in this server's WAL.",
            TableKind.UNLOGGED: "It is unlogged: its changes are not in the WAL.",
            TableKind.PARTITION: "It is a partition: it is replicated through its partitioned table.",
        }
        found = [reasons[self.kind]] if self.kind in reasons else []
        if inserts_only:
            return found
        if self.kind is TableKind.TABLE and self.unidentified:
            found.append("It has neither a primary key nor a replica identity.")
        elif self.kind is TableKind.PARTITIONED and self.unidentified:
            names = ", ".join(leaf.shown for leaf in self.unidentified)
            found.append(f"Partitions without a primary key and a replica identity: {names}.")
        return found

    def warnings(self) -> list[str]:
        found = []
        if self.is_identified and self.identity is ReplicaIdentity.FULL and not self.facts["primary_key"]:
            found.append("It has no primary key: each update or delete must find its row by all columns.")
        if self.facts["row_security"]:
            found.append("It has row-level security.")
        return found

    def resource(self, inserts_only: bool = False) -> SourceTable:
        unsupported = self.unsupported(inserts_only)
        return SourceTable(
            schema_name=self.facts["schema"], table=self.facts["table"], kind=self.kind,
            rows_estimated=self.facts["rows"], bytes=self.facts["bytes"], key_columns=self.key_columns,
            replica_identity=self.identity, identified=not self.unidentified, inserts_only=inserts_only,
            replicable=not unsupported, unsupported=unsupported,
            warnings=self.warnings(),
        )  # fmt: skip


async def read_tables(connection: Connection) -> list[Table]:
    """All tables of users, partitions too; ordered by schema and name."""
    tables = [Table(dict(row)) for row in await read_all(connection, TABLES, {"limit": TABLES_MAX})]
    by_oid = {table.oid: table for table in tables}
    for table in tables:
        root = by_oid.get(table.facts["root"])
        if table.is_partition and table.facts["relkind"] != "p" and root is not None:
            root.leaves.append(table)
    return tables


async def read_columns(connection: Connection, tables: list[Table]) -> dict[tuple[str, str], list[Column]]:
    names = {table.oid: table.name for table in tables}
    columns: dict[tuple[str, str], list[Column]] = {table.name: [] for table in tables}
    for row in await read_all(connection, COLUMNS, {"oids": list(names)}):
        facts = dict(row)
        columns[names[facts.pop("oid")]].append(Column(**facts))
    return columns


async def read_columns_of(connection: Connection, schema: str, table: str) -> list[Column] | None:
    """In their order. None: there is no such table."""
    named = await read_all(connection, NAMED, {"schema": schema, "table": table})
    if not named:
        return None
    rows = [dict(row) for row in await read_all(connection, COLUMNS, {"oids": [row["oid"] for row in named]})]
    return [Column(**{name: value for name, value in row.items() if name != "oid"}) for row in rows]
