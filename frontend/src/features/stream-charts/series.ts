import type { Sample } from "@/api/types";
import type { Maybe } from "@/lib/format";
import type { Series } from "@/ui/time-chart";

export interface ChartSeries {
  times: number[];
  rates: Series[];
  latencies: Series[];
  backlog: Series[];
}

/** More points than pixels only cost time: a chart is about this wide. */
const POINTS_MAX = 900;

function thin(samples: Sample[]): Sample[] {
  const step = Math.ceil(samples.length / POINTS_MAX);
  return step <= 1 ? samples : samples.filter((_, index) => (samples.length - 1 - index) % step === 0);
}

function componentRate(sample: Sample, id: string): Maybe {
  return sample.components.find((component) => component.id === id)?.lcrs_per_second;
}

/** Of every destination's apply reader; unknown as soon as one is. */
function readersRate(sample: Sample): Maybe {
  const rates = sample.components
    .filter(({ sub_component }) => sub_component === "APPLY READER")
    .map(({ lcrs_per_second }) => lcrs_per_second);
  if (rates.length === 0) return null;
  return rates.reduce<number | null>((sum, one) => (sum === null || one === null ? null : sum + one), 0);
}

/** The window's samples as columns. A value that was unknown stays a gap. */
export function chartSeries(samples: Sample[], minutes: number): ChartSeries {
  const last = samples.at(-1);
  const end = last ? Date.parse(last.at) : 0;
  const shown = thin(samples.filter((sample) => Date.parse(sample.at) >= end - minutes * 60_000));
  const column = (pick: (sample: Sample) => Maybe) => shown.map(pick);
  return {
    times: shown.map((sample) => Date.parse(sample.at)),
    rates: [
      { label: "Capture", colour: 1, values: column((sample) => componentRate(sample, "capture")) },
      { label: "Apply reader", colour: 2, values: column(readersRate) },
      { label: "Applied", colour: 3, values: column((sample) => sample.lcrs_per_second) },
    ],
    latencies: [
      { label: "p50", colour: 1, values: column((sample) => sample.latency.p50_ms) },
      { label: "p99", colour: 3, values: column((sample) => sample.latency.p99_ms) },
    ],
    backlog: [{ label: "Not yet applied", colour: 4, values: column((sample) => sample.backlog.bytes) }],
  };
}
