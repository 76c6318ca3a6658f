import { Group, Stack, Text, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import type { StreamTable } from "@/api/types";
import { formatCount } from "@/lib/format";
import { type Column, DataTable } from "@/ui/data-table";
import { StateBadge } from "@/ui/tone";

const name = (table: StreamTable) => `${table.schema}.${table.table}`;

function countColumn(
  key: "inserts" | "updates" | "deletes" | "truncates",
  definition: string,
): Column<StreamTable> {
  return {
    key,
    header: key.charAt(0).toUpperCase() + key.slice(1),
    definition,
    align: "right",
    sortBy: (table) => table[key],
    cell: (table) => formatCount(table[key]),
  };
}

const columns: Column<StreamTable>[] = [
  { key: "table", header: "Table", cell: name, sortBy: name },
  {
    key: "state",
    header: "State",
    cell: (table) => <StateBadge state={table.state} compact />,
    sortBy: (table) => table.state,
  },
  countColumn("inserts", "Rows inserted at the destination by this stream, without the initial copy."),
  countColumn("updates", "Rows updated at the destination by this stream."),
  countColumn("deletes", "Rows deleted at the destination by this stream."),
  countColumn("truncates", "How often the table was truncated by this stream."),
];

interface StreamTablesProps {
  tables: StreamTable[];
  filter: string;
  onFilter: (filter: string) => void;
}

export function StreamTables({ tables, filter, onFilter }: StreamTablesProps) {
  const wanted = filter.trim().toLowerCase();
  const rows = wanted ? tables.filter((table) => name(table).toLowerCase().includes(wanted)) : tables;
  return (
    <Stack gap={4}>
      <Group px={14} pt={6} justify="space-between">
        <TextInput
          aria-label="Filter tables"
          placeholder="Filter tables"
          leftSection={<IconSearch size={14} aria-hidden />}
          value={filter}
          onChange={(event) => onFilter(event.currentTarget.value)}
          w={280}
        />
        <Text size="xs" c="dimmed">
          {rows.length} of {tables.length} tables. Counts since the stream's engine started it.
        </Text>
      </Group>
      <DataTable
        label="Tables"
        columns={columns}
        rows={rows}
        rowKey={name}
        initialSort={{ key: "table", descending: false }}
        empty={
          tables.length === 0 ? "The engine has not reported its tables yet." : "No table fits the filter."
        }
        maxHeight={640}
      />
    </Stack>
  );
}
