import { Group } from "@mantine/core";
import type { Overview, StreamSummary } from "@/api/types";
import { bytes, doneOf, rate } from "@/lib/format";
import { type Latency, latencyValue } from "@/lib/latency-shown";
import type { Tone } from "@/lib/states";
import { knownSum, sumQuantity } from "@/lib/sums";
import { LatencyMetric } from "@/ui/latency-metric";
import { Metric } from "@/ui/quantity";
import { ToneIcon } from "@/ui/tone";
import classes from "./totals.module.css";

const unknown: Latency = { p50_ms: null, p99_ms: null, last: null, at_least: false };

function worst(streams: StreamSummary[]): Latency {
  const value = (latency: Latency) => latencyValue(latency, "p99_ms") ?? -1;
  return streams.reduce((found, { latency }) => (value(latency) > value(found) ? latency : found), unknown);
}

/** One line of figures over all streams. */
export function OverviewTotals({ overview }: { overview: Overview }) {
  const { streams } = overview;
  const unhealthy = streams.filter((stream) => stream.health.level !== "ok").length;
  const { engines_online: online, engines_total: total } = overview;
  const enginesTone: Tone = online === null ? "quiet" : online === total ? "good" : "bad";
  return (
    <>
      <Tile>
        <Metric
          metric="streamsHealthy"
          size="lg"
          quantity={{ value: `${streams.length - unhealthy} of ${streams.length}`, unit: "streams" }}
        />
        <ToneIcon tone={unhealthy === 0 ? "good" : "warning"} />
      </Tile>
      <Tile>
        <Metric
          metric="streamRate"
          label="Total rate"
          size="lg"
          quantity={sumQuantity(knownSum(streams.map((stream) => stream.lcrs_per_second)), (sum) =>
            rate(sum, "LCR"),
          )}
        />
      </Tile>
      <Tile>
        <LatencyMetric latency={worst(streams)} of="p99_ms" label="Worst latency p99" size="lg" />
      </Tile>
      <Tile>
        <Metric
          metric="lagBytes"
          label="Total lag"
          size="lg"
          quantity={sumQuantity(knownSum(streams.map((stream) => stream.lag.bytes)), bytes)}
        />
      </Tile>
      <Tile>
        <Metric
          metric="enginesOnline"
          size="lg"
          quantity={{
            value: doneOf(online, total),
            unit: "engines",
          }}
        />
        <ToneIcon tone={enginesTone} />
      </Tile>
    </>
  );
}

function Tile({ children }: { children: React.ReactNode }) {
  return (
    <Group className={classes.tile} justify="space-between" align="flex-start" wrap="nowrap">
      {children}
    </Group>
  );
}
