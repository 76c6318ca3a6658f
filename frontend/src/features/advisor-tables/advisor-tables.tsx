import { Group, Tabs, Text, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useMemo, useState } from "react";
import type { AdvisorAnalysis } from "@/api/types";
import { type Column, DataTable } from "@/ui/data-table";
import { type AdvisorTable, advisorTables, matching } from "./tables";

/** The run as Streams' own tables would show it. */
export function AdvisorTables({ analysis }: { analysis: AdvisorAnalysis }) {
  const tables = useMemo(() => advisorTables(analysis), [analysis]);
  const [filter, setFilter] = useState("");
  return (
    <Tabs defaultValue="PATH_BOTTLENECK" styles={{ tab: { paddingInline: 9, fontSize: 12 } }}>
      <Group justify="space-between" px={14} wrap="nowrap" align="flex-end">
        <Tabs.List style={{ flexWrap: "nowrap" }}>
          {tables.map((table) => (
            <Tabs.Tab key={table.name} value={table.name}>
              {table.name} ({table.rows.length})
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <TextInput
          aria-label="Filter the table's rows"
          placeholder="Filter rows"
          leftSection={<IconSearch size={14} aria-hidden />}
          value={filter}
          onChange={(event) => setFilter(event.currentTarget.value)}
          w={150}
          mb={4}
        />
      </Group>
      {tables.map((table) => (
        <Tabs.Panel key={table.name} value={table.name} pt={6}>
          <Text size="xs" c="dimmed" px={14} pb={4}>
            {table.meaning}
          </Text>
          <DataTable
            label={table.name}
            columns={columns(table)}
            rows={matching(table.rows, filter).map((row, index) => ({ ...row, key: String(index) }))}
            rowKey={(row) => row.key ?? ""}
            empty={filter ? "No row contains this text." : table.empty}
            maxHeight={420}
          />
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

function columns(table: AdvisorTable): Column<Record<string, string>>[] {
  return table.columns.map(({ key, right }) => ({
    key,
    header: key.toUpperCase(),
    align: right ? "right" : "left",
    sortBy: (row) => (right && row[key] !== "–" ? Number(row[key]) : row[key] === "–" ? null : row[key]),
    cell: (row) => row[key],
  }));
}
