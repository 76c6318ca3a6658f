import { Group, Text } from "@mantine/core";
import type { TableProgress } from "@/api/types";
import { copiedShare } from "@/lib/copied";
import { asText, bytes, doneOf, duration, formatCount, percent, rate } from "@/lib/format";
import { metrics } from "@/lib/metrics";
import { type Column, DataTable } from "@/ui/data-table";
import { Meter } from "@/ui/meter";
import { Quantity } from "@/ui/quantity";
import { StateBadge } from "@/ui/tone";

/** Running copies come first, then waiting ones, then finished ones. */
const ORDER: TableProgress["state"][] = ["COPYING", "INDEXING", "WAITING", "COPIED", "REPLICATING"];

const name = (table: TableProgress) => `${table.schema}.${table.table}`;

const columns: Column<TableProgress>[] = [
  { key: "table", header: "Table", cell: name, sortBy: name },
  {
    key: "state",
    header: "State",
    cell: (table) => <StateBadge state={table.state} compact />,
    sortBy: (table) => ORDER.indexOf(table.state),
  },
  {
    key: "progress",
    header: "Progress",
    definition:
      "Rows copied of the rows that the source's statistics expect; an estimate until the table is done.",
    width: "22%",
    sortBy: (table) => copiedShare(table),
    cell: (table) => <Progress table={table} />,
  },
  {
    key: "rows",
    header: "Rows",
    definition: "Rows copied so far.",
    align: "right",
    sortBy: (table) => table.rows_copied,
    cell: (table) => formatCount(table.rows_copied),
  },
  {
    key: "bytes",
    header: "Bytes",
    definition: "Bytes copied so far, as they came over the wire.",
    align: "right",
    sortBy: (table) => table.bytes_copied,
    cell: (table) => <Quantity quantity={bytes(table.bytes_copied)} />,
  },
  {
    key: "rate",
    header: "Rate",
    definition: metrics.copyRate.definition,
    align: "right",
    sortBy: (table) => table.rows_per_second,
    cell: (table) => <Quantity quantity={rate(table.rows_per_second, "rows")} />,
  },
  {
    key: "ranges",
    header: "Ranges",
    definition: "Ranges of the table that are copied and resumed independently: how many are done, of all.",
    align: "right",
    sortBy: (table) => table.ranges_copied,
    cell: (table) => doneOf(table.ranges_copied, table.ranges_total),
  },
  {
    key: "indexes",
    header: "Indexes",
    definition: metrics.indexesBuilt.definition,
    align: "right",
    sortBy: (table) => table.indexes_built,
    cell: (table) => doneOf(table.indexes_built, table.indexes_total),
  },
  {
    key: "left",
    header: "Rows in",
    definition: metrics.timeLeft.definition,
    align: "right",
    sortBy: (table) => table.seconds_left,
    cell: (table) => <Quantity quantity={duration(table.seconds_left)} />,
  },
];

/** The tables of one copy with what is known of each. */
export function CopyTables({ tables }: { tables: TableProgress[] }) {
  return (
    <DataTable
      label="Initial copy by table"
      columns={columns}
      rows={tables}
      rowKey={name}
      initialSort={{ key: "state", descending: false }}
      maxHeight={360}
    />
  );
}

function Progress({ table }: { table: TableProgress }) {
  const indexing = table.state === "INDEXING";
  const share = indexing ? table.indexes_built / table.indexes_total : copiedShare(table);
  const text = indexing ? `indexes ${table.indexes_built} of ${table.indexes_total}` : asText(percent(share));
  return (
    <Group gap={8} wrap="nowrap">
      <Meter
        role="progressbar"
        label={`Copy of ${name(table)}`}
        share={share}
        text={text}
        tone={share === 1 && !indexing ? "good" : "busy"}
      />
      <Text size="xs" miw={40} ta="right" className="numeric">
        {text}
      </Text>
    </Group>
  );
}
