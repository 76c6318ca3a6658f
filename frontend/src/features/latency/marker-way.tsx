import { Group, Stack, Text, Tooltip } from "@mantine/core";
import type { Marker, StreamDestination } from "@/api/types";
import { asText, latencyMs } from "@/lib/format";
import { Quantity } from "@/ui/quantity";
import classes from "./latency.module.css";
import { hopInWords, type Lane, lanesOf, slowestOf } from "./way";

/** How long a marker took to each place of the path, one bar for each destination. */
export function MarkerWay({ marker, destinations }: { marker: Marker; destinations: StreamDestination[] }) {
  if (marker.hops.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {marker.failure ?? "It has not been captured yet."}
      </Text>
    );
  return (
    <Stack gap="md">
      {lanesOf(marker.hops).map((lane) => (
        <LaneView key={lane.destination ?? "way"} lane={lane} name={nameOf(lane.destination, destinations)} />
      ))}
    </Stack>
  );
}

function nameOf(id: string | null, destinations: StreamDestination[]): string | null {
  return destinations.find((destination) => destination.id === id)?.database.name ?? id;
}

function LaneView({ lane, name }: { lane: Lane; name: string | null }) {
  const slowest = slowestOf(lane.hops);
  const stages = lane.hops
    .map((hop) => `${hopInWords(hop.stage)} ${asText(latencyMs(hop.step_ms))}`)
    .join(", ");
  return (
    <Stack gap={8}>
      {name && (
        <Text size="sm" fw={600}>
          {name}
        </Text>
      )}
      <div className={classes.way} role="img" aria-label={`The way: ${stages}`}>
        {lane.hops.map((hop, index) => (
          <Tooltip key={hop.stage} label={`${hopInWords(hop.stage)} after ${asText(latencyMs(hop.step_ms))}`}>
            <span
              className={classes.hop}
              style={{
                flexGrow: Math.max(hop.step_ms * 1000, 10),
                background: `var(--series-${1 + (index % 8)})`,
              }}
            />
          </Tooltip>
        ))}
      </div>
      <ol className={classes.hops} aria-label="Stages of the path">
        {lane.hops.map((hop, index) => (
          <li key={hop.stage}>
            <Group gap={6} wrap="nowrap">
              <span className={classes.swatch} style={{ background: `var(--series-${1 + (index % 8)})` }} />
              <Text size="xs" c="dimmed">
                {hopInWords(hop.stage)}
              </Text>
            </Group>
            <Group gap={8} wrap="nowrap">
              <Quantity quantity={latencyMs(hop.step_ms)} />
              <Text size="xs" c="dimmed" className="numeric">
                {asText(latencyMs(hop.latency_ms))} in total
              </Text>
            </Group>
          </li>
        ))}
      </ol>
      {slowest && (
        <Text size="sm">
          Most of the time, {asText(latencyMs(slowest.step_ms))}, passed before it was{" "}
          <strong>{hopInWords(slowest.stage).toLowerCase()}</strong>.
        </Text>
      )}
    </Stack>
  );
}
