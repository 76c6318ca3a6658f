import type { Sample } from "@/api/types";
import type { Maybe } from "@/lib/format";
import { P99_AT_LEAST } from "@/lib/latency-shown";
import { coloursOf, destinationColour } from "@/lib/series-colours";
import type { Series } from "@/ui/time-chart";

export interface ChartSeries {
  times: number[];
  rates: Series[];
  latencies: Series[];
  lag: Series[];
}

/** One of several destinations: each applies the source's changes at its own rate. */
export interface Charted {
  id: string;
  name: string;
}

type Line = Omit<Series, "colour"> & { own?: number };

/** Lines beside the capture's: more of them cannot be told apart. */
const DESTINATIONS_MAX = 7;
/** More points than pixels only cost time: a chart is about this wide. */
const POINTS_MAX = 900;

function thin(samples: Sample[]): Sample[] {
  const step = Math.ceil(samples.length / POINTS_MAX);
  return step <= 1 ? samples : samples.filter((_, index) => (samples.length - 1 - index) % step === 0);
}

function componentRate(sample: Sample, id: string): Maybe {
  return sample.components.find((component) => component.id === id)?.lcrs_per_second;
}

function readersRate(sample: Sample): Maybe {
  return sample.components.find(({ sub_component }) => sub_component === "APPLY READER")?.lcrs_per_second;
}

function destinationOf(sample: Sample, id: string) {
  return sample.destinations.find(({ destination_id }) => destination_id === id);
}

function coloured(lines: Line[]): Series[] {
  const colours = coloursOf(lines);
  return lines.map(({ own: _, ...line }, place) => ({ ...line, colour: colours[place] ?? 1 }));
}

/** The window's samples as columns. A value that was unknown stays a gap. */
export function chartSeries(samples: Sample[], minutes: number, destinations: Charted[] = []): ChartSeries {
  const last = samples.at(-1);
  const end = last ? Date.parse(last.at) : 0;
  const shown = thin(samples.filter((sample) => Date.parse(sample.at) >= end - minutes * 60_000));
  const column = (pick: (sample: Sample) => Maybe) => shown.map(pick);
  const several = destinations.length > 1;
  const applied: Line[] = several
    ? destinations.slice(0, DESTINATIONS_MAX).map(({ id, name }, place) => ({
        label: `Applied at ${name}`,
        own: destinationColour(place),
        values: column((sample) => destinationOf(sample, id)?.lcrs_per_second),
      }))
    : [
        { label: "Apply reader", values: column(readersRate) },
        { label: "Applied", values: column((sample) => sample.lcrs_per_second) },
      ];
  const bounds = column(({ latency }) => (latency.at_least ? latency.p99_ms : null));
  return {
    times: shown.map((sample) => Date.parse(sample.at)),
    rates: coloured([
      { label: "Capture", values: column((sample) => componentRate(sample, "capture")) },
      ...applied,
    ]),
    latencies: coloured([
      { label: "p50", values: column((sample) => sample.latency.p50_ms) },
      { label: "p99", values: column(({ latency }) => (latency.at_least ? null : latency.p99_ms)) },
      // Latencies of changes that only wait are no part of the line of those that have arrived.
      ...(bounds.some((bound) => bound !== null) ? [{ label: P99_AT_LEAST, values: bounds }] : []),
    ]),
    lag: [{ label: "Not yet applied", colour: 4, values: column((sample) => sample.lag.bytes) }],
  };
}
