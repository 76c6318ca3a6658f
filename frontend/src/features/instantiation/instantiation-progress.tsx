import { Box, Group, Stack, Text } from "@mantine/core";
import type { Instantiation, TableProgress } from "@/api/types";
import { asText, byteRate, bytes, compactCount, duration, formatTime, percent, rate } from "@/lib/format";
import { metrics } from "@/lib/metrics";
import { type Column, DataTable } from "@/ui/data-table";
import { Meter } from "@/ui/meter";
import { Metric, Quantity } from "@/ui/quantity";
import { StateBadge } from "@/ui/tone";
import { copiedShare } from "./share";

const name = (table: TableProgress) => `${table.schema}.${table.table}`;

const columns: Column<TableProgress>[] = [
  { key: "table", header: "Table", cell: name, sortBy: name },
  {
    key: "state",
    header: "State",
    cell: (table) => <StateBadge state={table.state} compact />,
    sortBy: (table) => table.state,
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
    cell: (table) => <Quantity quantity={compactCount(table.rows_copied, "rows")} />,
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
    definition: "Parts of the table that are copied and resumed independently: done of all.",
    align: "right",
    sortBy: (table) => table.ranges_copied,
    cell: (table) => `${table.ranges_copied ?? "–"} / ${table.ranges_total ?? "–"}`,
  },
  {
    key: "left",
    header: "Time left",
    definition: metrics.timeLeft.definition,
    align: "right",
    sortBy: (table) => table.seconds_left,
    cell: (table) => <Quantity quantity={duration(table.seconds_left)} />,
  },
];

export function InstantiationProgress({ instantiation }: { instantiation: Instantiation }) {
  const share = copiedShare(instantiation);
  const finished = instantiation.finished_at !== null;
  const text = finished
    ? "all rows copied"
    : `${asText(percent(share))} of about ${asText(compactCount(instantiation.rows_estimated, "rows"))}`;
  return (
    <Stack gap="sm">
      <Box px={14}>
        <Group justify="space-between" mb={6} gap="xl">
          <Text size="sm" fw={550} className="numeric">
            {finished ? `Finished ${formatTime(instantiation.finished_at)}` : text}
          </Text>
          <Group gap="xl">
            <Metric metric="rowsCopied" quantity={compactCount(instantiation.rows_copied, "rows")} />
            <Metric metric="bytesCopied" quantity={bytes(instantiation.bytes_copied)} />
            <Metric metric="copyRate" quantity={rate(instantiation.rows_per_second, "rows")} />
            <Metric metric="copyRate" label="Bytes" quantity={byteRate(instantiation.bytes_per_second)} />
            {!finished && <Metric metric="timeLeft" quantity={duration(instantiation.seconds_left)} />}
          </Group>
        </Group>
        <Meter
          role="progressbar"
          label="Initial copy of all tables"
          share={finished ? 1 : share}
          text={text}
          tone={finished ? "good" : "busy"}
        />
      </Box>
      <DataTable
        label="Initial copy by table"
        columns={columns}
        rows={instantiation.tables}
        rowKey={name}
        initialSort={{ key: "table", descending: false }}
        maxHeight={360}
      />
    </Stack>
  );
}

function Progress({ table }: { table: TableProgress }) {
  const share = copiedShare(table);
  const text = asText(percent(share));
  return (
    <Group gap={8} wrap="nowrap">
      <Meter
        role="progressbar"
        label={`Copy of ${name(table)}`}
        share={share}
        text={text}
        tone={share === 1 ? "good" : "busy"}
      />
      <Text size="xs" miw={40} ta="right" className="numeric">
        {text}
      </Text>
    </Group>
  );
}
