"""Types that tables and their partitions use, as SQL."""


def uses_of_types(columns: str = "") -> str:
    """Two CTEs over the tables of %(oids)s: `chosen` (oid, relation) with their partitions, and `uses` (oid, type) of
    their columns' types, those inside arrays, domains, composites, ranges and multiranges, too. `columns`: a further
    condition on pg_attribute `a`, with its AND; never text of users."""
    return f"""WITH RECURSIVE chosen AS (
  SELECT root AS oid, tree.relid AS relation FROM unnest(%(oids)s::oid[]) root
   CROSS JOIN pg_partition_tree(root::regclass) tree
  UNION SELECT root, root FROM unnest(%(oids)s::oid[]) root
), uses AS (
  SELECT chosen.oid, a.atttypid AS type FROM chosen
    JOIN pg_attribute a ON a.attrelid = chosen.relation AND a.attnum > 0 AND NOT a.attisdropped {columns}
  UNION SELECT u.oid, part.type FROM uses u JOIN pg_type t ON t.oid = u.type CROSS JOIN LATERAL (
      SELECT t.typelem WHERE t.typelem <> 0
      UNION ALL SELECT t.typbasetype WHERE t.typbasetype <> 0
      UNION ALL SELECT a.atttypid FROM pg_attribute a
                 WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
      UNION ALL SELECT unnest(ARRAY[r.rngtypid, r.rngsubtype]) FROM pg_range r
                 WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
    ) part(type)
)"""  # noqa: S608  # constants
