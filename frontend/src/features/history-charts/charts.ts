// The statistics that the charts of the past are made of, and the way from an answer to lines.
import type { StatisticName, StreamHistory } from "@/api/types";
import { threadInWords } from "@/lib/advisor";
import { bytes, compactCount, latencyMs, type Maybe, percent, type Quantity, rate } from "@/lib/format";
import { P99_AT_LEAST } from "@/lib/latency-shown";
import { coloursOf, destinationColour } from "@/lib/series-colours";
import type { Series } from "@/ui/time-chart";

/** Lines of one chart: more of them cannot be told apart. */
const LINES_MAX = 8;
const DESTINATIONS_MAX = 8;

export interface Chart {
  title: string;
  binary: boolean;
  format: (value: Maybe) => Quantity;
  lines: Line[];
}

interface Line {
  label: string;
  statistics: string[];
  /** From the statistics' values at one point; null as soon as one of them is unknown. */
  value: (values: number[]) => number;
  /** Left out where it has no value at all. */
  isRare?: boolean;
  /** The colour of the destination that it is about. */
  own?: number;
  isDashed?: boolean;
}

const same = ([value = 0]: number[]) => value;
const ORDER = [
  "shipment",
  "builder",
  "capture",
  "queue",
  "backlog",
  "sender",
  "receiver",
  "apply-queue",
  "reader",
  "coordinator",
  "server",
];

function ownId(component: string): string {
  return component.slice(component.lastIndexOf(":") + 1);
}

/** The destination that it belongs to; null where all of them share it. */
function destinationOf(component: string): string | null {
  const end = component.lastIndexOf(":");
  return end < 0 ? null : component.slice(0, end);
}

/** One of a stream's destinations, as the charts name it. */
export interface Charted {
  id: string;
  name: string;
}

function place(component: string): number {
  const own = ownId(component).replace(/-\d+$/, "");
  const found = ORDER.indexOf(own);
  return found < 0 ? ORDER.length : found;
}

/** Components that have the statistic, in the direction of the flow. */
function having(names: StatisticName[], statistic: string): string[] {
  const ids = names.flatMap(({ name, component }) =>
    component !== null && name === `components.${component}.${statistic}` ? [component] : [],
  );
  return ids.sort((a, b) => place(a) - place(b) || a.localeCompare(b, "en", { numeric: true }));
}

function perComponent(names: StatisticName[], statistic: string, keep: (own: string) => boolean): Line[] {
  return having(names, statistic)
    .filter((component) => keep(ownId(component)))
    .slice(0, LINES_MAX)
    .map((component) => ({
      label: threadInWords(component),
      statistics: [`components.${component}.${statistic}`],
      value: same,
    }));
}

const lcrs = (value: Maybe) => rate(value, "LCR");
const ofHundred = (value: Maybe) => percent(value === null || value === undefined ? value : value / 100);

/** Of a stream with several destinations: those of its path to `shown`, and what differs between all of them. */
export function chartsOf(all: StatisticName[], destinations: Charted[] = [], shown?: string): Chart[] {
  const names =
    destinations.length > 1
      ? all.filter(({ component }) => component === null || [null, shown].includes(destinationOf(component)))
      : all;
  const destination = destinations.length > 1 ? destinations.find(({ id }) => id === shown) : undefined;
  const colour = destination && destinationColour(destinations.indexOf(destination));
  // Of several destinations the stream's own figures are none of theirs: its rate is the source's, its latency and
  // lag are the worst one's.
  const own = (statistic: string) => [
    destination ? `destinations.${destination.id}.${statistic}` : statistic,
  ];
  // The coordinator counts transactions; appliers together are what is applied.
  const onTheWay = (own: string) => ["capture", "sender", "receiver", "reader"].includes(own);
  const occupied = having(names, "time_percent.idle")
    .slice(0, LINES_MAX)
    .map((component) => ({
      label: threadInWords(component),
      statistics: ["idle", "flow_control"].map((part) => `components.${component}.time_percent.${part}`),
      value: ([idle = 0, flowControl = 0]: number[]) => Math.max(0, 100 - idle - flowControl),
    }));
  const charts: Chart[] = [
    {
      title: "Rate by component",
      binary: false,
      format: lcrs,
      lines: [
        ...perComponent(names, "lcrs_per_second", onTheWay).slice(0, LINES_MAX - 1),
        {
          label: destination ? `Applied at ${destination.name}` : "Applied",
          statistics: own("lcrs_per_second"),
          value: same,
          own: colour,
        },
      ],
    },
    {
      title: `Latency, source to ${destination?.name ?? "destination"}`,
      binary: false,
      format: latencyMs,
      lines: [
        { label: "p50", statistics: own("latency.p50_ms"), value: same },
        { label: "p99", statistics: own("latency.p99_ms"), value: same },
        { label: P99_AT_LEAST, statistics: own("latency_at_least_ms"), value: same, isRare: true },
      ],
    },
    {
      title: "Occupied, by thread",
      binary: false,
      format: ofHundred,
      lines: occupied,
    },
    {
      title: destination ? `Replication lag of ${destination.name}` : "Replication lag",
      binary: true,
      format: bytes,
      lines: [{ label: "Not yet applied", statistics: own("lag.bytes"), value: same, own: colour }],
    },
    {
      title: "Queue depth",
      binary: false,
      format: (value) => compactCount(value, "LCR"),
      lines: perComponent(names, "gauges.depth", () => true),
    },
    {
      title: "Spill on disk",
      binary: true,
      format: bytes,
      lines: perComponent(names, "gauges.spill_bytes", () => true),
    },
  ];
  return [...charts, ...comparing(all, destinations)].filter(({ lines }) => lines.length > 0);
}

function comparing(names: StatisticName[], destinations: Charted[]): Chart[] {
  if (destinations.length < 2) return [];
  const known = new Set(names.map(({ name }) => name));
  const lines = (statistic: string, isRare = false): Line[] =>
    destinations
      .map(({ id, name }, place) => ({
        label: isRare ? `${name}, at least` : name,
        statistics: [`destinations.${id}.${statistic}`],
        value: same,
        isRare,
        own: destinationColour(place),
        isDashed: isRare,
      }))
      .filter(({ statistics: [name] }) => name !== undefined && known.has(name))
      .slice(0, DESTINATIONS_MAX);
  return [
    { title: "Applied, by destination", binary: false, format: lcrs, lines: lines("lcrs_per_second") },
    {
      title: "Latency p99, by destination",
      binary: false,
      format: latencyMs,
      lines: [...lines("latency.p99_ms"), ...lines("latency_at_least_ms", true)],
    },
    { title: "Replication lag, by destination", binary: true, format: bytes, lines: lines("lag.bytes") },
  ];
}

export function statisticsOf(charts: Chart[]): string[] {
  return [...new Set(charts.flatMap(({ lines }) => lines.flatMap(({ statistics }) => statistics)))];
}

/** The chart's lines from an answer. A point that is not wholly known is a gap. */
export function seriesOf(chart: Chart, history: StreamHistory): Series[] {
  const columns = new Map(history.series.map(({ statistic, values }) => [statistic, values]));
  const lines = chart.lines
    .map(({ label, statistics, value, isRare, own, isDashed }) => ({
      label,
      isRare,
      own,
      isDashed,
      values: history.times.map((_, point) => {
        const parts = statistics.map((name) => columns.get(name)?.[point]);
        return parts.every((part) => part !== null && part !== undefined) ? value(parts as number[]) : null;
      }),
    }))
    .filter(({ isRare, values }) => !isRare || values.some((known) => known !== null));
  const colours = coloursOf(lines);
  return lines.map(({ label, values, isDashed }, index) => ({
    label,
    colour: colours[index] ?? 1,
    values,
    isDashed,
  }));
}
