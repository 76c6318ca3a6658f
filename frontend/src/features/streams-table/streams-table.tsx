import { Box, Group, Stack, Text } from "@mantine/core";
import { IconArrowNarrowRight, IconBell } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { openAlertsQuery } from "@/api/alerts";
import { ratesQuery } from "@/api/streams";
import type { StreamSummary } from "@/api/types";
import { bytes, rate } from "@/lib/format";
import { isStanding, lagInBrief } from "@/lib/lag";
import { latencyValue } from "@/lib/latency-shown";
import { metrics } from "@/lib/metrics";
import { type HealthLevel, healthInWords, reasonBeside, streamInWords } from "@/lib/states";
import { oldestParked, parkedOf } from "@/lib/sums";
import { AnchorLink } from "@/ui/anchor-link";
import { type Column, DataTable, sortRows } from "@/ui/data-table";
import { LatencyCell, LatencyMetric } from "@/ui/latency-metric";
import { useNarrow } from "@/ui/narrow";
import { Metric, Quantity } from "@/ui/quantity";
import { Sparkline } from "@/ui/sparkline";
import { ToneBadge, ToneIcon } from "@/ui/tone";
import classes from "./streams-table.module.css";
import { whatToDo } from "./what-to-do";

/** The order of urgency, so that sorting by health brings trouble to the top. */
const urgency: Record<HealthLevel, number> = { error: 0, warning: 1, unknown: 2, stopped: 3, ok: 4 };

const columns: Column<StreamSummary>[] = [
  {
    key: "name",
    header: "Stream",
    sortBy: (stream) => stream.name,
    cell: (stream) => <NameCell stream={stream} />,
  },
  {
    key: "health",
    header: "Health",
    definition: "Whether the stream replicates and keeps up, and why not.",
    sortBy: (stream) => urgency[stream.health.level],
    cell: (stream) => <HealthCell stream={stream} />,
    // The room that the other columns leave: a reason is a sentence, or several.
    width: "100%",
  },
  {
    key: "phase",
    header: "Phase",
    definition: "The stream's present activity.",
    sortBy: ({ state }) => state,
    cell: (stream) => <ToneBadge state={streamInWords(stream)} compact />,
  },
  {
    key: "rate",
    header: metrics.streamRate.label,
    definition: metrics.streamRate.definition,
    align: "right",
    sortBy: (stream) => stream.lcrs_per_second,
    cell: (stream) => <RateCell stream={stream} />,
  },
  {
    key: "p50",
    header: "Latency p50",
    definition: metrics.latencyP50.definition,
    align: "right",
    sortBy: (stream) => latencyValue(stream.latency, "p50_ms"),
    cell: (stream) => <LatencyCell latency={stream.latency} of="p50_ms" />,
  },
  {
    key: "p99",
    header: "p99",
    definition: metrics.latencyP99.definition,
    align: "right",
    sortBy: (stream) => latencyValue(stream.latency, "p99_ms"),
    cell: (stream) => <LatencyCell latency={stream.latency} of="p99_ms" />,
  },
  {
    key: "lag",
    header: metrics.lagBytes.label,
    definition: `${metrics.lagBytes.definition} Below it: how old it is, and how soon it is worked off or full.`,
    align: "right",
    sortBy: (stream) => stream.lag.bytes,
    cell: (stream) => (
      <Stack gap={0} align="flex-end" miw={120}>
        <Quantity quantity={bytes(stream.lag.bytes)} />
        <Text size="xs" c="dimmed">
          {isStanding(stream) && stream.lag.bytes ? "WAL of all databases, " : ""}
          {lagInBrief(stream.lag)}
        </Text>
      </Stack>
    ),
  },
  {
    key: "errors",
    header: metrics.errors.label,
    definition: metrics.errors.definition,
    align: "right",
    sortBy: (stream) => stream.error_queue_transactions,
    cell: (stream) => <ErrorsCell stream={stream} />,
  },
];

export function StreamsTable({ streams }: { streams: StreamSummary[] }) {
  if (useNarrow()) return <StreamCards streams={streams} />;
  return (
    <DataTable
      label="Streams"
      columns={columns}
      rows={streams}
      rowKey={(stream) => stream.id}
      initialSort={{ key: "health", descending: false }}
    />
  );
}

/** A card for each stream, those in trouble first: what a phone has room for. */
function StreamCards({ streams }: { streams: StreamSummary[] }) {
  const sorted = sortRows(streams, columns, { key: "health", descending: false });
  return (
    <ul className={classes.cards} aria-label="Streams">
      {sorted.map((stream) => (
        <li key={stream.id} className={classes.card} aria-label={stream.name}>
          <Group justify="space-between" wrap="nowrap" align="flex-start" gap="xs">
            <NameCell stream={stream} />
            <Box maw="60%" style={{ flex: "none" }}>
              <ToneBadge state={streamInWords(stream)} compact wrap />
            </Box>
          </Group>
          <HealthCell stream={stream} />
          <div className={classes.figures}>
            <Metric metric="streamRate" label="Rate" quantity={rate(stream.lcrs_per_second, "LCR")} />
            <LatencyMetric latency={stream.latency} of="p99_ms" />
            <Metric metric="lagBytes" quantity={bytes(stream.lag.bytes)} />
            <Metric metric="errors" quantity={parkedOf(stream)} note={oldestParked(stream.destinations)} />
          </div>
        </li>
      ))}
    </ul>
  );
}

function NameCell({ stream }: { stream: StreamSummary }) {
  return (
    <Box py={2} miw={130}>
      <AnchorLink
        to="/streams/$streamId"
        params={{ streamId: stream.id }}
        fw={600}
        size="sm"
        className={classes.name}
      >
        {stream.name}
      </AnchorLink>
      <Group gap={4} wrap="nowrap">
        <Text size="xs" c="dimmed" truncate>
          {stream.source.name}
        </Text>
        <IconArrowNarrowRight size={13} aria-label="to" color="var(--text-muted)" style={{ flex: "none" }} />
        <Text size="xs" c="dimmed" truncate>
          {stream.destinations.map(({ database }) => database.name).join(", ")}
        </Text>
      </Group>
    </Box>
  );
}

/** How many alerts fire about the stream; their titles on hover. */
function AlertMark({ streamId }: { streamId: string }) {
  const firing = (useQuery(openAlertsQuery).data ?? []).filter(
    (alert) => alert.stream_id === streamId && alert.state === "firing",
  );
  if (firing.length === 0) return null;
  const critical = firing.some((alert) => alert.severity === "critical");
  return (
    <AnchorLink
      to="/alerts"
      size="xs"
      title={firing.map((alert) => alert.title).join("\n")}
      style={{ color: `var(--tone-${critical ? "bad" : "warning"})`, whiteSpace: "nowrap" }}
    >
      <IconBell size={12} aria-hidden /> {firing.length} {firing.length === 1 ? "alert" : "alerts"}
    </AnchorLink>
  );
}

function HealthCell({ stream }: { stream: StreamSummary }) {
  const words = healthInWords(stream.health.level, stream.status, stream.state);
  const reason = reasonBeside(stream.health.reason, stream.state);
  const { cures, more } = whatToDo(stream);
  return (
    <Group gap={7} wrap="nowrap" align="flex-start">
      <Box pt={2}>
        <ToneIcon tone={words.tone} />
      </Box>
      <Box miw={{ base: 0, sm: 160 }}>
        <Text size="sm" fw={550} style={{ color: `var(--tone-${words.tone})` }}>
          {words.label} <AlertMark streamId={stream.id} />
        </Text>
        {reason && (
          <Text size="xs" c="dimmed" lineClamp={6} title={reason} style={{ overflowWrap: "anywhere" }}>
            {reason}
          </Text>
        )}
        {cures.map((cure) => (
          <Text key={cure} size="xs" style={{ overflowWrap: "anywhere" }}>
            <strong>Cure: </strong>
            {cure}
          </Text>
        ))}
        {more && (
          <AnchorLink
            to="/streams/$streamId"
            params={{ streamId: stream.id }}
            size="xs"
            underline="always"
            style={{ overflowWrap: "anywhere" }}
          >
            More on the page of {stream.name}
          </AnchorLink>
        )}
      </Box>
    </Group>
  );
}

function RateCell({ stream }: { stream: StreamSummary }) {
  const rates = useQuery({ ...ratesQuery, select: (all) => all[stream.id] }).data ?? [];
  const values = rates.map((point) => point.rate);
  return (
    <Stack gap={2} align="flex-end" miw={84}>
      <Quantity quantity={rate(stream.lcrs_per_second, "LCR")} />
      <Sparkline values={values} label={`Rate of ${stream.name} over the last samples`} width={64} />
    </Stack>
  );
}

function ErrorsCell({ stream }: { stream: StreamSummary }) {
  const count = stream.error_queue_transactions;
  return (
    <Stack gap={0} align="flex-end">
      <Group gap={5} justify="flex-end" wrap="nowrap">
        {count !== null && count > 0 && <ToneIcon tone="bad" size={14} />}
        <Quantity quantity={parkedOf(stream)} />
      </Group>
      <Text size="xs" c="dimmed">
        {oldestParked(stream.destinations)}
      </Text>
    </Stack>
  );
}
