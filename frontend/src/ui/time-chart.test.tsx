import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { latencyMs } from "@/lib/format";
import { expectNoAxeViolations, renderUi } from "@/test/render";
import { clockTicks, TimeChart, valueTicks } from "./time-chart";

// A canvas is not drawn in jsdom; what is tested is what stands around it, and which lines are to be drawn.
type Drawn = {
  series: Record<string, unknown>[];
  axes: { values: (plot: unknown, ticks: number[]) => string[] }[];
  scales: { y: { range: (plot: unknown, low: number, high: number) => [number, number] } };
  hooks: { draw: ((plot: unknown) => void)[] };
};
const drawn = vi.hoisted(() => ({}) as Drawn);
vi.mock("uplot", () => ({
  default: class {
    constructor({ series, axes, scales, hooks }: Drawn) {
      Object.assign(drawn, { series, axes, scales, hooks });
    }
    setData() {}
    setSize() {}
    destroy() {}
  },
}));

describe("TimeChart", () => {
  it("tells its newest values to a screen reader and shows all as a table", async () => {
    renderUi(
      <TimeChart
        title="Latency"
        times={[0, 1000]}
        series={[
          { label: "p50", colour: 1, values: [null, 3] },
          { label: "p99", colour: 3, values: [null, null] },
        ]}
        format={latencyMs}
      />,
    );
    const picture = screen.getByRole("img", { name: /Latency/ });
    expect(picture.getAttribute("aria-label")?.replaceAll("\u00a0", " ")).toBe(
      "Latency, now: p50 3 ms, p99 –",
    );
    await userEvent.click(screen.getByRole("button", { name: "Latency: show as table" }));
    const rows = within(screen.getByRole("table", { name: "Latency" })).getAllByRole("row");
    expect(rows).toHaveLength(3);
    expect(rows[1]).toHaveTextContent("3 ms");
    expect(rows[2]).toHaveTextContent("––");
    await expectNoAxeViolations();
  });
});

describe("its lines", () => {
  it("each have the stroke of their series, and dashes where they have them", () => {
    for (const number of [1, 3, 5])
      document.documentElement.style.setProperty(`--series-${number}`, `rgb(${number}, 0, 0)`);
    renderUi(
      <TimeChart
        title="Lag"
        times={[0, 1000]}
        series={[
          { label: "p50", colour: 1, values: [1, 3] },
          { label: "two\n\nlines", colour: 3, values: [1, 2], isDashed: true },
          { label: "p99", colour: 5, values: [1, 2] },
        ]}
        format={latencyMs}
      />,
    );
    expect(drawn.series.slice(1).map(({ label, stroke, dash }) => [label, stroke, dash])).toEqual([
      ["p50", "rgb(1, 0, 0)", undefined],
      ["two\n\nlines", "rgb(3, 0, 0)", [6, 3]],
      ["p99", "rgb(5, 0, 0)", undefined],
    ]);
  });
});

describe("the axis of values", () => {
  const ticks = [0, 0.2, 0.4, 0.6, 0.8, 1];
  const labels = (...values: (number | null)[]) => {
    renderUi(
      <TimeChart
        title="Rate"
        times={[0, 1000]}
        series={[{ label: "p50", colour: 1, values: [0, 0] }]}
        format={latencyMs}
      />,
    );
    const shown = drawn.axes[1]?.values({ data: [[0, 1], values] }, ticks);
    return shown?.map((label) => label.replaceAll("\u00a0", " "));
  };

  it("has a zero and nothing else where all is zero or unknown", () => {
    expect(valueTicks(ticks, true)).toEqual([0, null, null, null, null, null]);
    expect(labels(0, 0)).toEqual(["0 ms", "", "", "", "", ""]);
    expect(labels(null, 0)).toEqual(["0 ms", "", "", "", "", ""]);
  });

  it("has all of its ticks as soon as one value is not zero", () => {
    expect(valueTicks(ticks, false)).toEqual(ticks);
    expect(labels(0, 0.9)).toEqual(["0 ms", "200 µs", "400 µs", "600 µs", "800 µs", "1 ms"]);
  });

  it("begins at zero and has a height where there is nothing to show", () => {
    labels(0, 0);
    expect(drawn.scales.y.range(null, 0, 0)).toEqual([0, 1]);
    expect(drawn.scales.y.range(null, 3, 10)).toEqual([0, 11]);
  });
});

/** Lines and bands that the chart's hooks draw on a canvas of 100 by 50 px, whose axis shows 100 s. */
function drawnOver() {
  const lines: unknown[] = [];
  const bands: unknown[] = [];
  const ctx = {
    strokeStyle: "",
    fillStyle: "",
    save() {},
    restore() {},
    setLineDash() {},
    beginPath() {},
    stroke() {},
    moveTo: (x: number) => lines.push([x, ctx.strokeStyle]),
    lineTo() {},
    fillRect: (left: number, top: number, width: number, height: number) =>
      bands.push([left, top, width, height, ctx.fillStyle]),
  };
  const plot = {
    ctx,
    bbox: { left: 0, top: 10, width: 100, height: 50 },
    valToPos: (seconds: number) => seconds,
  };
  for (const draw of drawn.hooks.draw) draw(plot);
  return { lines, bands };
}

describe("what lies over the lines", () => {
  const chart = (over: Partial<Parameters<typeof TimeChart>[0]>) => (
    <TimeChart
      title="Rate"
      times={[0, 100_000]}
      series={[{ label: "p50", colour: 1, values: [1, 2] }]}
      format={latencyMs}
      {...over}
    />
  );

  it("is a line at each event in its tone, and a band over one that lasts", () => {
    for (const tone of ["bad", "warning", "busy"])
      document.documentElement.style.setProperty(`--tone-${tone}`, tone);
    renderUi(
      chart({
        marks: [
          { at: 20_000, tone: "bad" },
          { at: 40_000, until: 60_000, tone: "warning" },
          { at: 90_000, until: Number.POSITIVE_INFINITY, tone: "busy" },
        ],
      }),
    );
    const { lines, bands } = drawnOver();
    expect(lines).toEqual([
      [20, "bad"],
      [40, "warning"],
      [90, "busy"],
    ]);
    expect(bands).toEqual([
      [40, 10, 20, 50, "warning"],
      [90, 10, 10, 50, "busy"],
    ]);
  });

  it("keeps to the axis: an event before it has no line, and its band begins with the axis", () => {
    renderUi(
      chart({
        marks: [
          { at: -30_000, until: 25_000, tone: "bad" },
          { at: 130_000, tone: "bad" },
        ],
      }),
    );
    expect(drawnOver()).toEqual({ lines: [], bands: [[0, 10, 25, 50, "bad"]] });
  });

  it("is the band of the range that was dragged over", () => {
    document.documentElement.style.setProperty("--accent", "accent");
    renderUi(chart({ selected: { from: 10_000, until: 30_000 } }));
    expect(drawnOver()).toEqual({ lines: [], bands: [[10, 10, 20, 50, "accent"]] });
  });
});

describe("an axis whose rest one spike hides", () => {
  const chart = (values: number[]) => (
    <TimeChart
      title="Rate"
      times={values.map((_, place) => place * 1000)}
      series={[{ label: "p50", colour: 1, values }]}
      format={latencyMs}
    />
  );
  const usual = Array.from({ length: 50 }, () => 10);
  const top = () => drawn.scales.y.range(null, 0, 1000)[1];

  it("is clipped and says so; a switch shows the whole of it, and clips it again", async () => {
    renderUi(chart([...usual, 1000]));
    expect(top()).toBe(16);
    const clipped = screen.getByRole("button", { name: "Rate: show the whole axis" });
    expect(clipped).toHaveTextContent("Clipped");
    await userEvent.click(clipped);
    expect(top()).toBe(1100);
    await userEvent.click(screen.getByRole("button", { name: "Rate: clip the axis" }));
    expect(top()).toBe(16);
  });

  it("is whole, without a switch, where there is no spike and in the table", async () => {
    const { unmount } = renderUi(chart(usual));
    expect(screen.queryByRole("button", { name: /axis/ })).toBeNull();
    unmount();
    renderUi(chart([...usual, 1000]));
    await userEvent.click(screen.getByRole("button", { name: "Rate: show as table" }));
    expect(screen.queryByRole("button", { name: /axis/ })).toBeNull();
  });
});

describe("clockTicks", () => {
  const at = (hours: number) => new Date(2026, 10, 21, hours).getTime() / 1000;

  it("show the day as soon as the time alone would not say when", () => {
    expect(clockTicks([at(0), at(1)])).toEqual(["00:00", "01:00"]);
    expect(clockTicks([at(0), at(0) + 20])).toEqual(["00:00:00", "00:00:20"]);
    expect(clockTicks([at(0), at(12), at(24)])).toEqual(["11-21 00:00", "11-21 12:00", "11-22 00:00"]);
    expect(clockTicks([at(0), at(24)])).toEqual(["11-21", "11-22"]);
  });
});
