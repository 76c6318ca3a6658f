import { describe, expect, it } from "vitest";
import type { Sample } from "@/api/types";
import { destinationColour } from "@/lib/series-colours";
import { sample } from "@/test/data";
import { chartSeries } from "./series";

const at = (second: number) => new Date(Date.UTC(2026, 10, 21, 0, 0, second)).toISOString();

describe("chartSeries", () => {
  it("shows the window that ends with the newest sample, with gaps for what is unknown", () => {
    const samples = [sample(at(0)), sample(at(100)), sample(at(150), { lcrs_per_second: 7 })];
    const series = chartSeries(samples, 1);
    expect(series.times).toEqual([Date.parse(at(100)), Date.parse(at(150))]);
    expect(series.rates.find(({ label }) => label === "Applied")?.values).toEqual([null, 7]);
  });

  it("has a line for what each of several destinations applies, at its own rate", () => {
    const of = (destination_id: string, lcrs_per_second: number) => ({ destination_id, lcrs_per_second });
    const both = { destinations: [of("east", 5), of("west", 9)] } as Partial<Sample>;
    const destinations = ["east", "west"].map((id) => ({ id, name: `${id} side` }));
    const { rates } = chartSeries([sample(at(0), { ...both, lcrs_per_second: 9 })], 1, destinations);
    expect(rates.map(({ label, values, colour }) => [label, values[0], colour])).toEqual([
      ["Capture", null, 1],
      ["Applied at east side", 5, destinationColour(0)],
      ["Applied at west side", 9, destinationColour(1)],
    ]);
  });

  it("has a line of its own for a latency that is at least so long, where there is one", () => {
    const last = null;
    const arrived = { p50_ms: 2, p99_ms: 4, transactions: 9, last, at_least: false };
    const waits = { p50_ms: null, p99_ms: 240_000, transactions: 0, last, at_least: true };
    const samples = [sample(at(0), { latency: arrived }), sample(at(1), { latency: waits })];
    const lines = ({ latencies }: ReturnType<typeof chartSeries>) =>
      latencies.map(({ label, values }) => [label, values]);
    expect(lines(chartSeries(samples, 1))).toEqual([
      ["p50", [2, null]],
      ["p99", [4, null]],
      ["p99, at least", [null, 240_000]],
    ]);
    expect(lines(chartSeries(samples.slice(0, 1), 1))).toHaveLength(2);
  });

  it("is empty without samples", () => {
    expect(chartSeries([], 5).times).toEqual([]);
  });

  it("thins long histories and keeps the newest sample", () => {
    const samples = Array.from({ length: 3600 }, (_, second) => sample(at(second)));
    const { times } = chartSeries(samples, 60);
    expect(times.length).toBeLessThanOrEqual(900);
    expect(times.at(-1)).toBe(Date.parse(at(3599)));
  });
});
