// The page of a stream as it is now: the components, what limits the path, and its threads.
import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Stream } from "@/api/types";
import { analysis, finding, liveAnalysis, statistic } from "./advisor";
import { alert } from "./alerts";
import { component, components, destination, sample, session, stream } from "./data";
import { expectNoAxeViolations, type Routes, renderAt, stubApi, stubEvents } from "./render";

vi.mock("uplot", () => ({
  default: class {
    setData() {}
    setSize() {}
    destroy() {}
  },
}));

const AT = new Date().toISOString();
const samples = (values = {}) => ({
  body: { stream_id: "stream01", samples: [sample(AT, values)], live: true },
});

const routes: Routes = {
  "GET /api/v1/session": { body: session },
  "GET /api/v1/alerts": { body: { items: [], next_cursor: null } },
  "GET /api/v1/alerts/counts": { body: { firing: 0, critical: 0, unacknowledged: 0, pending: 0 } },
  "GET /api/v1/streams/stream01": { body: stream({ sampled_at: AT }) },
  "GET /api/v1/streams/stream01/samples": samples(),
  "GET /api/v1/advisor/analysis": { body: liveAnalysis() },
};

const limited = analysis({
  bottleneck: { sub_component_type: "APPLY SERVER", top_event: "LOCK", top_thread: 1 },
  readerFlowControl: 80,
  statistics: [
    statistic("stream01:apply", "APPLY", "MESSAGE APPLY RATE", 40, { sub_component_type: "APPLY SERVER" }),
    statistic("stream01:apply", "APPLY", "MESSAGE APPLY RATE", 40, {
      sub_component_type: "APPLY SERVER",
      thread: 1,
    }),
  ],
});

beforeEach(stubEvents);

describe("a stream now", () => {
  it("marks on its components what limits the path, with the verdict and the findings", async () => {
    stubApi({
      ...routes,
      "GET /api/v1/advisor/analysis": { body: liveAnalysis(limited, [finding]) },
    });
    renderAt("/streams/stream01");
    const strip = await screen.findByRole("list", { name: "Components of warehouse" });
    const card = await within(strip).findByText("Bottleneck");
    expect(card.closest("li")).toHaveAccessibleName("Appliers");
    expect(within(strip).getByRole("listitem", { name: "Apply reader" })).toHaveTextContent("Held back by");
    expect(screen.getByRole("status", { name: "Verdict" })).toHaveTextContent(finding.title);
    expect(screen.getByRole("list", { name: "Findings" })).toHaveTextContent(finding.title);
    expect(screen.queryByRole("tab", { name: "Path" })).toBeNull();
    await expectNoAxeViolations();
  });

  it("judges its title over the window that is chosen for its path", async () => {
    const quick = { ...finding, title: "The last seconds" };
    stubApi({
      ...routes,
      "GET /api/v1/advisor/analysis": ({ url }) => {
        const long = new URL(url).searchParams.get("window_seconds") === "600";
        return { body: liveAnalysis(limited, [long ? finding : quick]) };
      },
    });
    const { history } = renderAt("/streams/stream01");
    const title = () => screen.getByRole("status", { name: "Health of the stream" });
    await screen.findByRole("list", { name: "Findings" });
    expect(title()).toHaveTextContent(quick.title);
    await userEvent.click(screen.getByRole("radio", { name: "10 min" }));
    await waitFor(() => expect(title()).toHaveTextContent(finding.title));
    expect(screen.getByRole("status", { name: "Verdict" })).toHaveTextContent(finding.title);
    expect(history.location.search).toContain("judged=600");
  });

  it("opens a component to its threads, and closes it again", async () => {
    stubApi({ ...routes, "GET /api/v1/advisor/analysis": { body: liveAnalysis(limited) } });
    renderAt("/streams/stream01");
    const button = await screen.findByRole("button", { name: "Appliers in detail" });
    await userEvent.click(button);
    expect(button).toHaveAttribute("aria-expanded", "true");
    expect(screen.getByRole("table", { name: "Threads of Appliers" })).toHaveTextContent("Applier 1");
    await expectNoAxeViolations();
    await userEvent.click(button);
    expect(screen.queryByRole("table", { name: "Threads of Appliers" })).toBeNull();
  });

  it("tells once, with its cure, why one of several destinations has stopped", async () => {
    const error = {
      code: "destination_table_differs",
      class: "operator_action",
      side: "destination" as const,
      title: "The destination's table does not fit the source's",
      message: "public.orders has no column price.",
      detail: null,
      cure: "Copy the table again.",
      sqlstate: null,
      table: '"public"."orders"',
      lsn: null,
      xid: null,
      at: AT,
    };
    const near = { id: "d1", name: "near", address: "" };
    const stopped = destination({
      database: near,
      status: "ABORTED",
      state: "ABORTED",
      error,
      tables: stream().tables,
    });
    const far = destination({ id: "far", database: { id: "d2", name: "far", address: "" } });
    const reason = `near has stopped; far goes on. ${error.title}: ${error.message}`;
    const body = stream({
      mode: "fan-out",
      health: { level: "error", reason },
      destinations: [stopped, far],
      sampled_at: AT,
    });
    const whole = analysis({
      bottleneck: { verdict: "ABORTED", explanation: `It has stopped with an error: ${error.message}` },
    });
    const aborted = { ...finding, code: "aborted" as const, title: "The stream has stopped with an error" };
    stubApi({
      ...routes,
      "GET /api/v1/streams/stream01": { body },
      "GET /api/v1/advisor/analysis": { body: liveAnalysis(whole, [aborted]) },
      "GET /api/v1/alerts": {
        body: {
          items: [alert("1", { rule: "component_aborted", message: error.message })],
          next_cursor: null,
        },
      },
    });
    renderAt("/streams/stream01");
    // By its name: on a slow machine, another alert says that nothing has been heard for long.
    const reported = await screen.findByRole("alert", { name: `near: ${error.title}` });
    expect(within(reported).getByRole("button", { name: "Copy public.orders again" })).toBeEnabled();
    await screen.findByRole("list", { name: "Components of near" });
    expect(screen.getAllByText(/has no column price/)).toHaveLength(1);
    expect(screen.getAllByText(/Copy the table again\./)).toHaveLength(1);
    expect(screen.queryByText(/has stopped with an error/)).toBeNull();
    expect(screen.getByRole("status", { name: "Health of the stream" })).toHaveTextContent(
      /^near has stopped; far goes on\.$/,
    );
    expect(screen.getByRole("link", { name: "the fix" })).toBeVisible();
  });

  it("gives each of several destinations the verdict of its own path", async () => {
    const fanOut = stream({
      mode: "fan-out",
      destinations: [
        destination({ id: "near", database: { id: "d1", name: "near", address: "" } }),
        destination({ id: "far", database: { id: "d2", name: "far", address: "" } }),
      ],
    });
    const [path] = limited.paths;
    const [bottleneck] = limited.path_bottlenecks;
    if (!path || !bottleneck) throw new Error("the analysis has a path");
    const quiet = { ...bottleneck, bottleneck_identified: false, component_type: null };
    const both = {
      ...limited,
      paths: [
        { ...path, path_id: "stream01:near", destination_id: "near" },
        { ...path, path_id: "stream01:far", destination_id: "far" },
      ],
      path_bottlenecks: [
        {
          ...quiet,
          path_id: "stream01:near",
          verdict: "NO BOTTLENECK" as const,
          explanation: "All is well.",
        },
        { ...bottleneck, path_id: "stream01:far" },
      ],
    };
    const ofBoth = ["near", "far"].flatMap((id) =>
      components
        .slice(2)
        .map((part) => component("", { ...part, id: part.id.replace("warehouse", id), destination_id: id })),
    );
    const live = liveAnalysis(both);
    const [line] = live.paths;
    if (!line) throw new Error("the analysis has a line for the path");
    const ends = ["near", "far"].map((id) => ({ path_id: `stream01:${id}`, path_name: `orders → ${id}` }));
    const answer = {
      ...live,
      paths: ends.map((end) => ({ ...line, ...end, top_finding: null, top_finding_code: null })),
      findings_ranked: ends.map(({ path_id }) => ({ ...finding, id: path_id, path_id })),
    };
    stubApi({
      ...routes,
      "GET /api/v1/streams/stream01": { body: fanOut },
      "GET /api/v1/streams/stream01/samples": samples({ components: [...components.slice(0, 2), ...ofBoth] }),
      "GET /api/v1/advisor/analysis": { body: answer },
    });
    renderAt("/streams/stream01");
    const at = (name: string) => screen.findByRole("region", { name: `Destination ${name}` });
    expect(await within(await at("near")).findByRole("status")).toHaveTextContent("All is well.");
    expect(within(await at("near")).queryByText("Bottleneck")).toBeNull();
    expect(within(await at("far")).getByRole("status")).toHaveTextContent("locks at the destination");
    const found = within(screen.getByRole("list", { name: "Findings" })).getAllByRole("listitem");
    expect(found.map((item) => /orders → (near|far)/.exec(item.textContent ?? "")?.[0])).toEqual([
      "orders → near",
      "orders → far",
    ]);
  });

  it("does not say of components that they work while nobody hears of them", async () => {
    stubApi({
      ...routes,
      "GET /api/v1/streams/stream01": { body: stream({ status: "UNKNOWN", state: "UNKNOWN" }) },
    });
    renderAt("/streams/stream01");
    const capture = await screen.findByRole("listitem", { name: "Capture" });
    expect(capture).toHaveTextContent("Unknown");
    expect(capture).not.toHaveTextContent("Capturing changes");
    expect(screen.getByText(/the engine does not answer now/)).toBeVisible();
  });

  it.each([
    [
      { desired_status: "DISABLED", status: "DISABLED", state: "STOPPED" },
      /The stream is stopped\. Start it/,
    ],
    [{ status: "DISABLED", phase: "STOPPED", state: "PAUSED" }, /warehouse is paused\. Resume it/],
    [
      {
        status: "UNKNOWN",
        state: "UNKNOWN",
        health: { level: "unknown", reason: "The collector may not run." },
      },
      /The collector may not run\. Samples resume/,
    ],
  ] as [Partial<Stream>, RegExp][])("says why there are no samples: %j", async (values, words) => {
    stubApi({
      ...routes,
      "GET /api/v1/streams/stream01": { body: stream(values) },
      "GET /api/v1/streams/stream01/samples": { body: { stream_id: "stream01", samples: [], live: true } },
    });
    renderAt("/streams/stream01");
    expect(await screen.findByText(words)).toBeVisible();
  });
});
