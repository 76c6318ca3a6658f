import { Checkbox, Group, Stack, Text, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import type { SourceTable } from "@/api/types";
import { bytes, counted, rows } from "@/lib/format";
import { rowIdentity } from "@/lib/row-identity";
import { type Column, DataTable } from "@/ui/data-table";
import { Quantity } from "@/ui/quantity";
import { ToneIcon } from "@/ui/tone";

/** More rows than this are not drawn; the filter finds the others. */
const ROWS_MAX = 300;

const name = (table: SourceTable) => `${table.schema}.${table.table}`;

/** Something isHindered in the way of replicating it. A partition needs nothing: its partitioned table is replicated. */
const isHindered = (table: SourceTable) => !table.replicable && table.kind !== "partition";

const factColumns: Column<SourceTable>[] = [
  {
    key: "table",
    header: "Table",
    sortBy: name,
    cell: (table) => (
      <Text size="sm" component="span">
        <Text span c="dimmed" size="sm">
          {table.schema}.
        </Text>
        {table.table}
        {table.kind !== "table" && (
          <Text span c="dimmed" size="xs">
            {` ${table.kind}`}
          </Text>
        )}
      </Text>
    ),
  },
  {
    key: "rows",
    header: "Rows",
    definition: "Estimated from the source's statistics; unknown if the table was never analysed.",
    align: "right",
    sortBy: (table) => table.rows_estimated,
    cell: (table) => <Quantity quantity={rows(table.rows_estimated)} />,
  },
  {
    key: "size",
    header: "Size",
    definition: "Table, TOAST and indexes.",
    align: "right",
    sortBy: (table) => table.bytes,
    cell: (table) => <Quantity quantity={bytes(table.bytes)} />,
  },
  {
    key: "key",
    header: "Key",
    definition:
      "How a row is found at the destination: the primary key's columns, else the replica identity's; all columns with REPLICA IDENTITY FULL. Inserts only: not at all, since updates and deletes are given up.",
    cell: (table) => <Key table={table} />,
  },
  {
    key: "problems",
    header: "Problems",
    width: "34%",
    sortBy: (table) => (isHindered(table) ? 0 : table.warnings.length > 0 ? 1 : 2),
    cell: (table) => <Problems table={table} />,
  },
];

interface SourceTablesProps {
  tables: SourceTable[];
  /** When given, each row has a check box. */
  selection?: { isSelected: (table: SourceTable) => boolean; onToggle: (table: SourceTable) => void };
  maxHeight?: number;
}

/** The tables of a database with what matters for replicating them. */
export function SourceTables({ tables, selection, maxHeight = 420 }: SourceTablesProps) {
  const [filter, setFilter] = useState("");
  const wanted = filter.trim().toLowerCase();
  const found = wanted ? tables.filter((table) => name(table).toLowerCase().includes(wanted)) : tables;
  const columns: Column<SourceTable>[] = selection
    ? [
        {
          key: "selected",
          header: "Replicate",
          sortBy: (table) => (selection.isSelected(table) ? 0 : 1),
          cell: (table) => (
            <Checkbox
              size="sm"
              styles={{ input: { width: 24, height: 24 }, inner: { width: 24, height: 24 } }}
              aria-label={`Replicate ${name(table)}`}
              checked={selection.isSelected(table)}
              onChange={() => selection.onToggle(table)}
            />
          ),
          width: 90,
        },
        ...factColumns,
      ]
    : factColumns;
  return (
    <Stack gap={4}>
      <Group px={14} pt={6} justify="space-between">
        <TextInput
          aria-label="Filter tables"
          placeholder="Filter tables"
          leftSection={<IconSearch size={14} aria-hidden />}
          value={filter}
          onChange={(event) => setFilter(event.currentTarget.value)}
          w={260}
        />
        <Text size="xs" c="dimmed">
          {found.length > ROWS_MAX
            ? `The first ${ROWS_MAX} of ${found.length} tables: narrow the filter to see others.`
            : `${found.length} of ${counted(tables.length, "table")}`}
        </Text>
      </Group>
      <DataTable
        label="Tables of the database"
        columns={columns}
        rows={found.slice(0, ROWS_MAX)}
        rowKey={name}
        empty={tables.length === 0 ? "The database has no tables." : "No table matches the filter."}
        maxHeight={maxHeight}
      />
    </Stack>
  );
}

function Key({ table }: { table: SourceTable }) {
  const identity = table.inserts_only ? "inserts only" : rowIdentity(table);
  if (identity) return <span>{identity}</span>;
  return (
    <Group gap={5} wrap="nowrap">
      <ToneIcon tone="warning" size={14} />
      <span>none</span>
    </Group>
  );
}

function Problems({ table }: { table: SourceTable }) {
  const lines = [
    ...table.unsupported.map((text) => ({
      text,
      tone: isHindered(table) ? ("bad" as const) : ("quiet" as const),
    })),
    ...table.warnings.map((text) => ({ text, tone: "warning" as const })),
  ];
  if (lines.length === 0)
    return (
      <Text span c="dimmed" size="sm">
        none
      </Text>
    );
  return (
    <Stack gap={2}>
      {lines.map(({ text, tone }) => (
        <Group key={text} gap={5} wrap="nowrap" align="flex-start">
          <ToneIcon tone={tone} size={14} />
          <Text size="xs" maw={340}>
            {text}
          </Text>
        </Group>
      ))}
    </Stack>
  );
}
