import { ActionIcon, Badge, Group, Select, Stack, Text, TextInput, Tooltip } from "@mantine/core";
import { IconRefresh, IconSearch } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { previewQuery, type TableResolution } from "@/api/streams";
import type { Stream, StreamDestination, StreamTable } from "@/api/types";
import {
  asText,
  counted,
  duration,
  formatAgo,
  formatCount,
  formatTime,
  latency,
  parseMicros,
  parseTime,
  rate,
} from "@/lib/format";
import { secondsBehind } from "@/lib/lag";
import { rowIdentity } from "@/lib/row-identity";
import { troubleInWords } from "@/lib/states";
import { type Column, DataTable } from "@/ui/data-table";
import { Quantity } from "@/ui/quantity";
import { StateBadge, ToneBadge } from "@/ui/tone";
import { ConfirmResolution } from "./table-resolution";

interface TableRow extends StreamTable {
  /** How the source identifies a row of it; undefined until the source has been asked. */
  identity: string | undefined;
  /** Microseconds that its last change took; null: no change, or the figures of its destination are not known. */
  lastLatency: number | null;
  /** How far the destination is behind, whichever table's changes wait; null: it keeps up, or no change was here. */
  behindSeconds: number | null;
}

const BOUND =
  "The destination's age: that of the oldest WAL it has not applied, which counts the WAL of all databases of the source. Perhaps none of it is this table's.";

/** The last change's latency was good where the table's changes wait since: the age of what waits comes first. */
function LatencyOf({ lastLatency, behindSeconds }: TableRow) {
  if (behindSeconds === null || (lastLatency !== null && lastLatency >= behindSeconds * 1e6))
    return <Quantity quantity={latency(lastLatency)} />;
  const { value, unit } = duration(behindSeconds);
  return (
    <Stack gap={0} align="flex-end" title={BOUND}>
      <Quantity quantity={{ value: `≥ ${value}`, unit }} />
      {lastLatency !== null && (
        <Text size="xs" c="dimmed" style={{ whiteSpace: "nowrap" }}>
          last {asText(latency(lastLatency))}
        </Text>
      )}
    </Stack>
  );
}

const name = (table: { schema: string; table: string }) => `${table.schema}.${table.table}`;

/** With its name at the destinations, where it has another one there. */
function shownName(table: StreamTable): string {
  const there = name(table.destination_name);
  return there === name(table) ? there : `${name(table)} → ${there}`;
}

/** Microseconds from the commit at the source to the one at the destination; the clocks may differ. */
function latencyOf({ last_change }: StreamTable): number | null {
  const from = parseMicros(last_change?.at_source);
  const to = parseMicros(last_change?.at_destination);
  return from === null || to === null ? null : Math.max(0, to - from);
}

/** As the destination's head: without samples, what its engine last reported of the tables is not of now either. */
function hasFigures({ status, lcrs_per_second }: StreamDestination): boolean {
  return status !== "UNKNOWN" && lcrs_per_second !== null;
}

function countColumn(
  key: "inserts" | "updates" | "deletes" | "truncates",
  definition: string,
): Column<TableRow> {
  return {
    key,
    header: key.charAt(0).toUpperCase() + key.slice(1),
    definition,
    align: "right",
    sortBy: (table) => table[key],
    cell: (table) => formatCount(table[key]),
  };
}

/** Of a table with a trouble that first: what was copied once is not what the source has now. */
function State({ trouble, state }: StreamTable) {
  if (!trouble) return <StateBadge state={state} compact />;
  return (
    <Group gap={6} wrap="nowrap">
      <ToneBadge state={troubleInWords(trouble.kind)} compact />
      {state === "STOPPED" && <StateBadge state={state} compact />}
    </Group>
  );
}

// Figures of changes come first: a window of 1280 px cuts off the rest where a table's name is long.
const columns: Column<TableRow>[] = [
  {
    key: "table",
    header: "Table",
    cell: (table) =>
      table.filtered ? (
        <Group gap={6} wrap="nowrap">
          {shownName(table)}
          <Badge
            size="xs"
            variant="light"
            flex="none"
            title="Rules decide which rows and changes are replicated."
          >
            rules
          </Badge>
        </Group>
      ) : (
        shownName(table)
      ),
    sortBy: name,
  },
  {
    key: "state",
    header: "State",
    cell: State,
    sortBy: (table) => table.trouble?.kind ?? table.state,
  },
  {
    key: "rate",
    header: "Rate",
    definition: "Changes per second at the destination, including TRUNCATEs, over the last half minute.",
    align: "right",
    sortBy: (table) => table.changes_per_second,
    cell: (table) => <Quantity quantity={rate(table.changes_per_second, "LCR")} />,
  },
  {
    key: "latency",
    header: "Latency",
    definition:
      "From the commit of the table's last change at the source to its commit at the destination. While the destination is behind, at least (≥) the age of its oldest WAL, which counts all databases of the source: perhaps none of it is this table's.",
    align: "right",
    sortBy: ({ lastLatency }) => lastLatency,
    cell: LatencyOf,
  },
  {
    key: "last_change",
    header: "Last change",
    definition: "When the last of the counted changes reached the destination.",
    align: "right",
    sortBy: (table) => parseTime(table.last_change?.at_destination),
    cell: ({ last_change }) =>
      last_change ? (
        <span title={formatTime(last_change.at_destination)}>{formatAgo(last_change.at_destination)}</span>
      ) : (
        "none yet"
      ),
  },
  countColumn("inserts", "Rows inserted at the destination by this stream, without the initial copy."),
  countColumn("updates", "Rows updated at the destination by this stream."),
  countColumn("deletes", "Rows deleted at the destination by this stream."),
  countColumn("truncates", "How often the table was truncated by this stream."),
  {
    key: "identity",
    header: "Identity",
    definition:
      "How a row is found at the destination: the primary key's columns, else the replica identity's; all columns with REPLICA IDENTITY FULL. Inserts only: not at all, since updates and deletes are given up and rows differ from the source's.",
    sortBy: (table) => table.identity,
    cell: (table) => table.identity ?? "unknown",
  },
];

/** Inserts to truncates begin at 0 with every start of apply. */
function countsSince(destination: StreamDestination | undefined): string {
  const since = destination?.counted_since;
  if (!since) return "Changes are counted from the next start of apply.";
  return `Changes are counted since apply started, ${formatAgo(since)} (${formatTime(since)}).`;
}

interface StreamTablesProps {
  stream: Stream;
  /** The destination whose tables are shown; the first by default. */
  destinationId: string | undefined;
  onDestination: (id: string | undefined) => void;
  filter: string;
  onFilter: (filter: string) => void;
  mayAct: boolean;
}

export function StreamTables({
  stream,
  destinationId,
  onDestination,
  filter,
  onFilter,
  mayAct,
}: StreamTablesProps) {
  const [asked, setAsked] = useState<TableResolution | null>(null);
  const source = useQuery(previewQuery({ source_id: stream.source.id, rules: stream.rules }));
  const { destinations } = stream;
  const shown = destinations.find(({ id }) => id === destinationId) ?? destinations[0];
  const shownId = shown?.id;
  const may = mayAct && stream.desired_status !== "DROPPED";
  const withCopy = useMemo(
    (): Column<TableRow>[] => [
      ...columns,
      {
        key: "copy",
        header: "Copy",
        align: "right",
        cell: ({ schema, table }) => (
          <Tooltip label="Copy again">
            <ActionIcon
              variant="subtle"
              disabled={!may || shownId === undefined}
              aria-label={`Copy ${schema}.${table} again`}
              onClick={() =>
                shownId && setAsked({ resolution: "copy", destinationId: shownId, schema, table })
              }
            >
              <IconRefresh size={16} aria-hidden />
            </ActionIcon>
          </Tooltip>
        ),
      },
    ],
    [may, shownId],
  );
  const identities = new Map(source.data?.tables.map((table) => [name(table), rowIdentity(table) ?? "none"]));
  const wanted = filter.trim().toLowerCase();
  const tables = shown?.tables ?? [];
  const behindSeconds = shown ? secondsBehind(shown) : null;
  const isKnown = shown !== undefined && hasFigures(shown);
  const rows = tables
    .filter((table) => shownName(table).toLowerCase().includes(wanted))
    .map((table) => ({
      ...table,
      changes_per_second: isKnown ? table.changes_per_second : null,
      lastLatency: isKnown ? latencyOf(table) : null,
      behindSeconds: table.last_change ? behindSeconds : null,
      identity: table.inserts_only ? "inserts only" : identities.get(name(table)),
    }));
  return (
    <Stack gap={4}>
      <Group px={14} pt={6} justify="space-between">
        <Group gap="xs">
          <TextInput
            aria-label="Filter tables"
            placeholder="Filter tables"
            leftSection={<IconSearch size={14} aria-hidden />}
            value={filter}
            onChange={(event) => onFilter(event.currentTarget.value)}
            w={280}
          />
          {destinations.length > 1 && (
            <Select
              aria-label="Destination"
              data={destinations.map(({ id, database }) => ({ value: id, label: database.name }))}
              value={shownId ?? null}
              onChange={(id) => onDestination(id ?? undefined)}
              allowDeselect={false}
            />
          )}
          {shown && shown.state !== "REPLICATING" && <StateBadge state={shown.state} compact />}
        </Group>
        <Text size="xs" c="dimmed">
          {rows.length} of {counted(tables.length, "table")}. {countsSince(shown)}
        </Text>
      </Group>
      <DataTable
        label="Tables"
        columns={withCopy}
        rows={rows}
        rowKey={name}
        initialSort={{ key: "table", descending: false }}
        empty={
          tables.length === 0 ? "The engine has not reported its tables yet." : "No table matches the filter."
        }
        maxHeight={640}
      />
      <ConfirmResolution stream={stream} asked={asked} onClose={() => setAsked(null)} />
    </Stack>
  );
}
