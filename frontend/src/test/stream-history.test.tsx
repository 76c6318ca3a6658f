// A range that is dragged over in the charts of the past: its answer beside them, what is selected, and the zoom.
import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { analysis, finding, liveAnalysis } from "./advisor";
import { sample, session, stream } from "./data";
import { type Routes, renderAt, stubApi, stubEvents } from "./render";

type Band = { left: number; width: number };
type Hooks = Record<"draw" | "setSelect", ((plot: unknown) => void)[]>;

// jsdom draws nothing: this plot is 600 px wide, shows ten minutes, and notes what is painted over its lines.
const { plots, FakePlot } = vi.hoisted(() => {
  const plots = new Set<InstanceType<typeof FakePlot>>();
  class FakePlot {
    bands: Band[] = [];
    select = { left: 0, width: 0 };
    bbox = { left: 0, top: 0, width: 600, height: 100 };
    ctx = {
      fillRect: (left: number, _top: number, width: number) => this.bands.push({ left, width }),
      ...Object.fromEntries(
        ["save", "restore", "setLineDash", "beginPath", "moveTo", "lineTo", "stroke"].map((name) => [
          name,
          () => {},
        ]),
      ),
    };
    private readonly range: () => [number, number];

    constructor(
      readonly options: {
        hooks: Hooks;
        scales: { x: { range: (plot: unknown, low: number, high: number) => [number, number] } };
      },
      readonly data: unknown,
    ) {
      plots.add(this);
      this.range = () => options.scales.x.range(this, 0, 0);
    }
    posToVal = (pixels: number) => this.range()[0] + (pixels / 600) * (this.range()[1] - this.range()[0]);
    valToPos = (seconds: number) => (600 * (seconds - this.range()[0])) / (this.range()[1] - this.range()[0]);
    setSelect() {
      this.select = { left: 0, width: 0 };
    }
    /** uPlot draws its lines anew, and then what lies over them. */
    setData() {
      this.bands = [];
      for (const draw of this.options.hooks.draw) draw(this);
    }
    setSize() {}
    destroy() {
      plots.delete(this);
    }
    drag(left: number, width: number) {
      this.select = { left, width };
      for (const selected of this.options.hooks.setSelect) selected(this);
    }
  }
  return { plots, FakePlot };
});
vi.mock("uplot", () => ({ default: FakePlot }));

const BEGIN = Date.UTC(2026, 10, 21, 12);
const END = BEGIN + 600_000;
const STREAM = "/api/v1/streams/stream01";
const NAMES = ["lcrs_per_second", "latency.p50_ms", "lag.bytes"];

const routes: Routes = {
  "GET /api/v1/session": { body: session },
  "GET /api/v1/alerts": { body: { items: [], next_cursor: null } },
  "GET /api/v1/alerts/counts": { body: { firing: 0, critical: 0, unacknowledged: 0, pending: 0 } },
  [`GET ${STREAM}`]: { body: stream({}) },
  [`GET ${STREAM}/samples`]: {
    body: { stream_id: "stream01", samples: [sample(new Date(BEGIN).toISOString(), {})], live: true },
  },
  [`GET ${STREAM}/history/statistics`]: {
    body: { statistics: NAMES.map((name) => ({ name, component: null, unit: "" })) },
  },
  [`GET ${STREAM}/history/events`]: { body: { items: [], next_cursor: null } },
  "GET /api/v1/advisor/cures": { body: { items: [], next_cursor: null } },
  "GET /api/v1/advisor/analysis": {
    body: liveAnalysis(
      analysis({ bottleneck: { sub_component_type: "APPLY SERVER", top_event: "LOCK", top_thread: 1 } }),
      [finding],
    ),
  },
  [`GET ${STREAM}/history`]: (request) => {
    const query = new URL(request.url).searchParams;
    const [since, until] = [Date.parse(query.get("since") ?? ""), Date.parse(query.get("until") ?? "")];
    return {
      body: {
        stream_id: "stream01",
        since: new Date(since).toISOString(),
        until: new Date(until).toISOString(),
        resolution: "second",
        step_seconds: 1,
        times: [since / 1000, until / 1000],
        outages: [],
        series: query
          .getAll("statistic")
          .map((statistic) => ({ statistic, unit: "", values: [1, 2], highs: [1, 2] })),
      },
    };
  },
};

const ADDRESS = `/streams/stream01?tab=history&from=${BEGIN}&until=${END}`;
const marked = () =>
  [...plots].map(({ bands }) => bands.map(({ left, width }) => [Math.round(left), Math.round(width)]));

beforeEach(() => {
  stubEvents();
  plots.clear();
});

async function open() {
  const requests = stubApi(routes);
  const { history } = renderAt(ADDRESS);
  const charts = await screen.findAllByRole("img", { name: /, now: / });
  const asked = (path: string) =>
    requests.map(({ url }) => new URL(url)).filter(({ pathname }) => pathname.endsWith(path));
  return { history, charts, asked };
}

/** A third of the range from its middle: from 12:05:00 to 12:08:20. */
function drag() {
  act(() => [...plots][0]?.drag(300, 200));
}

describe("a range that is dragged over", () => {
  it("is answered beside the charts, of exactly that range, and stays selected in all of them", async () => {
    const { charts, asked, history } = await open();
    expect(charts.length).toBeGreaterThan(1);
    expect(screen.queryByText(/^What happened: /)).toBeNull();
    expect(marked().flat()).toEqual([]);
    drag();

    const title = await screen.findByText(/^What happened: /);
    const beside = title.closest("[data-asked]");
    expect(beside).toContainElement(charts[0] as HTMLElement);
    const shown = within(beside as HTMLElement);
    expect(await shown.findByRole("list", { name: "Findings" })).toHaveTextContent(finding.title);
    // The stream's heading asks, too, without a range.
    const [query] = asked("/advisor/analysis").filter(({ searchParams }) => searchParams.has("begin_at"));
    expect(Date.parse(query?.searchParams.get("begin_at") ?? "")).toBe(BEGIN + 300_000);
    expect(Date.parse(query?.searchParams.get("end_at") ?? "")).toBe(BEGIN + 500_000);
    expect(history.location.search).toMatch(`begin=${BEGIN + 300_000}&end=${BEGIN + 500_000}`);
    await waitFor(() => expect(marked()).toEqual(charts.map(() => [[300, 200]])));
  });

  it("is no range when it is a click", async () => {
    await open();
    act(() => [...plots][0]?.drag(300, 3));
    expect(screen.queryByText(/^What happened: /)).toBeNull();
    expect(marked().flat()).toEqual([]);
  });

  it("fills the charts by zooming in, and the charts come back to now", async () => {
    const { asked, charts } = await open();
    drag();
    await userEvent.click(await screen.findByRole("button", { name: "Zoom in" }));
    const bounds = () => {
      const [query] = asked("/streams/stream01/history").slice(-1);
      return ["since", "until"].map((name) => Date.parse(query?.searchParams.get(name) ?? ""));
    };
    await waitFor(() => expect(bounds()).toEqual([BEGIN + 300_000, BEGIN + 500_000]));
    // The selection is the whole of what is shown now.
    await waitFor(() => expect(marked()).toEqual(charts.map(() => [[0, 600]])));
    await userEvent.click(screen.getByRole("button", { name: "Back to now" }));
    await waitFor(() => expect(bounds()[1]).toBeGreaterThan(END));
    expect((bounds()[1] ?? 0) - (bounds()[0] ?? 0)).toBe(900_000);
  });

  it("is forgotten when its answer is closed", async () => {
    const { history } = await open();
    drag();
    await userEvent.click(await screen.findByRole("button", { name: "Close what happened" }));
    expect(screen.queryByText(/^What happened: /)).toBeNull();
    expect(history.location.search).not.toMatch("begin");
    await waitFor(() => expect(marked().flat()).toEqual([]));
  });
});
