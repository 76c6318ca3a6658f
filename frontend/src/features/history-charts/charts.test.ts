import { describe, expect, it } from "vitest";
import type { StreamHistory } from "@/api/types";
import { destinationColour } from "@/lib/series-colours";
import { requestsOf } from "@/lib/statistics";
import { chartsOf, seriesOf, statisticsOf } from "./charts";
import { faultOf, fromField, toField } from "./ranges";

const name = (full: string) => ({
  name: full,
  component: full.startsWith("components.") ? (full.split(".")[1] ?? null) : null,
  unit: "",
});
const names = [
  ...["server-10", "server-2", "reader", "coordinator", "capture"].flatMap((id) =>
    ["lcrs_per_second", "time_percent.idle", "time_percent.flow_control"].map((statistic) =>
      name(`components.${id}.${statistic}`),
    ),
  ),
  name("components.queue.gauges.depth"),
  name("lcrs_per_second"),
];

function history(series: Record<string, (number | null)[]>): StreamHistory {
  return {
    stream_id: "stream01",
    since: "2026-11-21T00:00:00Z",
    until: "2026-11-21T00:00:02Z",
    resolution: "second",
    step_seconds: 1,
    times: [0, 1],
    outages: [],
    series: Object.entries(series).map(([statistic, values]) => ({
      statistic,
      unit: "",
      values,
      highs: values,
    })),
  };
}

describe("charts of the past", () => {
  const charts = chartsOf(names);
  const chart = (title: string) => charts.find((candidate) => candidate.title === title);

  it("have a line for each component in the direction of the flow, and none that nobody could fill", () => {
    expect(chart("Rate by component")?.lines.map(({ label }) => label)).toEqual([
      "Capture",
      "Apply reader",
      "Applied",
    ]);
    expect(chart("Occupied, by thread")?.lines.map(({ label }) => label)).toEqual([
      "Capture",
      "Apply reader",
      "Coordinator",
      "Applier 2",
      "Applier 10",
    ]);
    expect(chart("Spill on disk")).toBeUndefined();
    expect(statisticsOf(charts)).toHaveLength(new Set(statisticsOf(charts)).size);
  });

  it("show as occupied what is neither idle nor held back, and a gap where one of both is unknown", () => {
    const occupied = chart("Occupied, by thread");
    if (!occupied) throw new Error("no such chart");
    const [capture] = seriesOf(
      occupied,
      history({
        "components.capture.time_percent.idle": [70, 60],
        "components.capture.time_percent.flow_control": [10, null],
      }),
    );
    expect(capture?.values).toEqual([20, null]);
  });
});

it("a dead destination's latency is at least as long as changes have waited for it", () => {
  const latency = chartsOf(names).find(({ title }) => title === "Latency, source to destination");
  if (!latency) throw new Error("no such chart");
  const shown = (bounds: (number | null)[]) =>
    seriesOf(latency, history({ "latency.p99_ms": [4, null], latency_at_least_ms: bounds })).map(
      ({ label, values }) => [label, values],
    );
  expect(shown([null, 240_000])).toEqual([
    ["p50", [null, null]],
    ["p99", [4, null]],
    ["p99, at least", [null, 240_000]],
  ]);
  expect(shown([null, null])).toHaveLength(2);
});

describe("charts of a fan-out", () => {
  const perDestination = ["lcrs_per_second", "latency.p99_ms", "lag.bytes"];
  const ids = ["east", "west"];
  const fanOut = [
    ...["capture", ...ids.flatMap((id) => ["reader", "server-1"].map((own) => `${id}:${own}`))].flatMap(
      (component) => [
        name(`components.${component}.lcrs_per_second`),
        name(`components.${component}.time_percent.idle`),
      ],
    ),
    ...ids.flatMap((id) => perDestination.map((statistic) => name(`destinations.${id}.${statistic}`))),
  ];
  const destinations = ids.map((id) => ({ id, name: `${id} side` }));
  const charts = chartsOf(fanOut, destinations, "west");
  const lines = (title: string) => charts.find((candidate) => candidate.title === title)?.lines ?? [];

  it("have what is shared and one destination, and all of them beside each other", () => {
    expect(lines("Rate by component").map(({ statistics }) => statistics[0])).toEqual([
      "components.capture.lcrs_per_second",
      "components.west:reader.lcrs_per_second",
      "destinations.west.lcrs_per_second",
    ]);
    expect(lines("Rate by component").at(-1)?.label).toBe("Applied at west side");
    expect(lines("Latency, source to west side").flatMap(({ statistics }) => statistics)).toEqual([
      "destinations.west.latency.p50_ms",
      "destinations.west.latency.p99_ms",
      "destinations.west.latency_at_least_ms",
    ]);
    expect(lines("Replication lag of west side")[0]?.statistics).toEqual(["destinations.west.lag.bytes"]);
    expect(lines("Occupied, by thread").map(({ label }) => label)).toEqual([
      "Capture",
      "Apply reader",
      "Applier 1",
    ]);
    for (const title of ["Applied", "Latency p99", "Replication lag"])
      expect(lines(`${title}, by destination`).map(({ label }) => label)).toEqual(["east side", "west side"]);
  });

  it("show each destination in its one colour, whichever path is charted", () => {
    const of = (shown: string) => {
      const made = chartsOf(fanOut, destinations, shown);
      return (title: string) => {
        const chart = made.find((candidate) => candidate.title === title);
        if (!chart) throw new Error(`no chart ${title}`);
        return seriesOf(chart, history({})).map(({ label, colour }) => [label, colour]);
      };
    };
    const [first, second] = [destinationColour(0), destinationColour(1)];
    for (const [shown, name, colour] of [
      ["east", "east side", first],
      ["west", "west side", second],
    ] as const) {
      expect(of(shown)("Rate by component").at(-1)).toEqual([`Applied at ${name}`, colour]);
      expect(of(shown)(`Replication lag of ${name}`)).toEqual([["Not yet applied", colour]]);
      for (const title of ["Applied", "Latency p99", "Replication lag"])
        expect(of(shown)(`${title}, by destination`)).toEqual([
          ["east side", first],
          ["west side", second],
        ]);
    }
  });

  it("draw a destination's lower bounds in its colour, but dashed", () => {
    const bounded = [...fanOut, ...ids.map((id) => name(`destinations.${id}.latency_at_least_ms`))];
    const latency = chartsOf(bounded, destinations).find(
      ({ title }) => title === "Latency p99, by destination",
    );
    if (!latency) throw new Error("no such chart");
    const bounds = [...latency.lines]
      .filter(({ isRare }) => isRare)
      .map(({ own, isDashed }) => [own, isDashed]);
    expect(bounds).toEqual([
      [destinationColour(0), true],
      [destinationColour(1), true],
    ]);
  });

  it("ask for no more statistics at once than one request may name", () => {
    const many = Array.from({ length: 16 }, (_, number) => ({ id: `d${number}`, name: `d${number}` }));
    const components = [
      "capture",
      "queue",
      ...many.flatMap(({ id }) => [...Array(12).keys()].map((n) => `${id}:server-${n}`)),
    ];
    const wide = [
      ...components.flatMap((component) =>
        ["time_percent.idle", "gauges.depth", "gauges.spill_bytes"].map((statistic) =>
          name(`components.${component}.${statistic}`),
        ),
      ),
      ...many.flatMap(({ id }) => perDestination.map((statistic) => name(`destinations.${id}.${statistic}`))),
    ];
    const asked = requestsOf(statisticsOf(chartsOf(wide, many, "d3")));
    expect(asked.length).toBeGreaterThan(1);
    for (const statistics of asked) expect(statistics.length).toBeLessThanOrEqual(40);
  });
});

describe("ranges", () => {
  it("survive the way through a form field, to the second", () => {
    const time = Date.UTC(2026, 10, 21, 14, 3, 7);
    expect(fromField(toField(time))).toBe(time);
    expect(fromField("")).toBeNull();
  });

  it("must have a length and a past", () => {
    expect(faultOf(1000, 5000, 9000)).toBeNull();
    expect(faultOf(5000, 5000, 9000)).toMatch(/at least a second/);
    expect(faultOf(10_000, 20_000, 9000)).toMatch(/future/);
    expect(faultOf(null, 5000)).toMatch(/both/);
  });
});
