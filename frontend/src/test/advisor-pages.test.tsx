// The advisor's pages as a user opens them, with the network answered by the test.
import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { advisorRun, analysis, finding, missingIndex, slowTrigger } from "./advisor";
import { database, session, stream } from "./data";
import { expectNoAxeViolations, type Routes, renderAt, stubApi, stubEvents } from "./render";

vi.mock("uplot", () => ({
  default: class {
    setData() {}
    setSize() {}
    destroy() {}
  },
}));

const run = advisorRun();
const cure = {
  id: 3,
  created_at: run.at,
  applied_by: "admin",
  run_id: 7,
  finding,
  stream_id: "stream01",
  path_id: "stream01",
  parameters_before: { parallelism: 4 },
  parameters_after: { parallelism: 8 },
  destination_id: null,
  by_hand: false,
  sql: null,
  undo_sql: null,
  operation_id: null,
  state: "helped",
  before_run_id: 8,
  after_run_id: 9,
  measure_at: null,
  outcome: "The rate rose from 40 to 82 messages a second.",
  undone_at: null,
};
const routes: Routes = {
  "GET /api/v1/session": { body: session },
  "GET /api/v1/overview": { body: { streams: [stream()], engines_online: 1, engines_total: 1, live: true } },
  "GET /api/v1/advisor/runs": {
    body: { items: [run, advisorRun({ id: 6, name: "before" })], next_cursor: null },
  },
  "GET /api/v1/advisor/runs/7": { body: run },
  "GET /api/v1/advisor/cures": { body: { items: [], next_cursor: null } },
};

beforeEach(stubEvents);

describe("the advisor's runs", () => {
  it("say the bottleneck in words, and two of them are compared", async () => {
    stubApi({
      ...routes,
      "GET /api/v1/advisor/comparison": {
        body: { before: run, after: run, statistics: [], bottlenecks: [] },
      },
    });
    const { history } = renderAt("/advisor");
    const table = await screen.findByRole("table", { name: "Advisor runs" });
    expect(within(table).getByRole("row", { name: /Run 7/ })).toHaveTextContent(
      "Appliers, on locks at the destination",
    );
    await expectNoAxeViolations();
    const compare = screen.getByRole("button", { name: "Compare the selected runs" });
    expect(compare).toBeDisabled();
    await userEvent.click(screen.getByRole("checkbox", { name: "Compare Run 7" }));
    await userEvent.click(screen.getByRole("checkbox", { name: "Compare before" }));
    await userEvent.click(compare);
    expect(await screen.findByRole("heading", { level: 1, name: "Compare runs" })).toBeVisible();
    expect(history.location.href).toBe("/advisor/compare?before=6&after=7");
  });

  it("are taken by one button, which leads to the new run", async () => {
    const requests = stubApi({ ...routes, "POST /api/v1/advisor/runs": { status: 201, body: run } });
    const { history } = renderAt("/advisor");
    await userEvent.click(await screen.findByRole("button", { name: "Take a snapshot" }));
    await waitFor(() => expect(history.location.pathname).toBe("/advisor/runs/7"));
    const post = requests.find(({ method }) => method === "POST");
    expect(await post?.json()).toMatchObject({ window_seconds: 30, facts: true });
  });
});

/** Run 7 has this finding alone. Its cure, once it is applied, is `made`; `applied` is what is listed from then on. */
function stubCure(found: typeof finding, made: object, more: Routes = {}) {
  const applied: object[] = [];
  const requests = stubApi({
    ...routes,
    ...more,
    "GET /api/v1/advisor/runs/7": { body: advisorRun({ findings_ranked: [found] }) },
    "GET /api/v1/advisor/cures": () => ({ body: { items: applied, next_cursor: null } }),
    "POST /api/v1/advisor/cures": () => {
      applied.unshift(made);
      return { status: 201, body: made };
    },
  });
  return { requests, applied };
}

describe("a run's page", () => {
  it("marks the bottleneck, opens a stage to its threads and shows the six tables", async () => {
    stubApi(routes);
    renderAt("/advisor/runs/7");
    const path = await screen.findByRole("list", { name: "Path" });
    const cards = within(path).getAllByRole("listitem");
    expect(cards.map((card) => card.getAttribute("aria-label"))).toEqual([
      "Capture",
      "Queue",
      "Apply reader",
      "Coordinator",
      "Appliers",
    ]);
    expect(cards.filter((card) => card.textContent?.includes("Bottleneck"))).toEqual([cards[4]]);
    expect(screen.getByRole("status", { name: "Verdict" })).toHaveTextContent("90 % LOCK");
    await userEvent.click(screen.getByRole("button", { name: "Apply reader in detail" }));
    const detail = screen.getByRole("region", { name: "Apply reader in detail" });
    expect(within(detail).getByRole("table", { name: "Statistics of Apply reader" })).toHaveTextContent(
      "DEQUEUE RATE",
    );
    expect(screen.getByRole("table", { name: "PATH_BOTTLENECK" })).toHaveTextContent("YES");
    await userEvent.click(screen.getByRole("tab", { name: /^COMPONENT_STAT/ }));
    await userEvent.type(screen.getByRole("textbox", { name: "Filter the table's rows" }), "queue fill");
    expect(within(screen.getByRole("table", { name: "COMPONENT_STAT" })).getAllByRole("row")).toHaveLength(2);
    await expectNoAxeViolations();
  });

  it("applies a finding's cure, and shows whether it helped with the way back", async () => {
    let applied: unknown[] = [];
    const requests = stubApi({
      ...routes,
      "GET /api/v1/advisor/cures": () => ({ body: { items: applied, next_cursor: null } }),
      "POST /api/v1/advisor/cures": () => {
        applied = [cure];
        return { status: 201, body: cure };
      },
      "POST /api/v1/advisor/cures/3:undo": () => {
        applied = [{ ...cure, state: "undone" }];
        return { body: applied[0] };
      },
    });
    renderAt("/advisor/runs/7");
    const item = await screen.findByRole("listitem", { name: finding.title });
    expect(item).toHaveTextContent("parallelism 4 → 8");
    expect(within(item).getByRole("table", { name: /^Evidence/ })).toHaveTextContent("Applier 1");
    await userEvent.click(within(item).getByRole("button", { name: "Apply" }));
    const dialog = await screen.findByRole("dialog", { name: "Apply the cure" });
    await userEvent.click(within(dialog).getByRole("button", { name: "Apply" }));
    expect(await within(item).findByRole("status", { name: "Outcome of the cure" })).toHaveTextContent(
      "It helped",
    );
    const post = requests.find(({ method }) => method === "POST");
    expect(await post?.json()).toMatchObject({ run_id: 7, finding_id: finding.id, cure_index: 0 });
    await userEvent.click(within(item).getByRole("button", { name: "Undo" }));
    const undo = await screen.findByRole("dialog", { name: "Undo the cure" });
    expect(undo).toHaveTextContent("parallelism 8 → 4 for the whole stream");
    expect(undo).toHaveTextContent("/api/v1/advisor/cures/3:undo");
    await expectNoAxeViolations();
    await userEvent.click(within(undo).getByRole("button", { name: "Undo" }));
    expect(await within(item).findByRole("button", { name: "Apply" })).toBeVisible();
  });

  it("creates an index after showing the exact SQL, with its progress, what came of it and the way back", async () => {
    const sql = missingIndex.cures[0]?.sql ?? "";
    const undo_sql = 'DROP INDEX CONCURRENTLY IF EXISTS "public"."item_thalweg_key";';
    const parameters = { parameters_before: {}, parameters_after: {} };
    const index = { ...cure, finding: missingIndex, ...parameters, sql, undo_sql };
    const outcome = "Creating the index: building index, 40 %.";
    const { requests, applied } = stubCure(missingIndex, { ...index, state: "applying", outcome });
    renderAt("/advisor/runs/7");
    const item = await screen.findByRole("listitem", { name: missingIndex.title });
    await userEvent.click(within(item).getByRole("button", { name: "Apply" }));
    const dialog = await screen.findByRole("dialog", { name: "Apply the cure" });
    expect(within(dialog).getByRole("region", { name: /^SQL that runs at warehouse/ })).toHaveTextContent(
      sql,
    );
    await expectNoAxeViolations();
    await userEvent.click(within(dialog).getByRole("button", { name: "Apply" }));
    expect(await within(item).findByText(outcome)).toBeVisible();
    expect(within(item).queryByRole("button", { name: "Undo" })).toBeNull();
    expect(requests.some(({ method }) => method === "POST")).toBe(true);
    applied[0] = { ...index, state: "helped" };
    expect(await within(item).findByRole("button", { name: "Undo" })).toBeVisible();
    expect(within(item).getByRole("status", { name: "Outcome of the cure" })).toHaveTextContent("It helped");
    await userEvent.click(within(item).getByRole("button", { name: "Undo" }));
    const undo = await screen.findByRole("dialog", { name: "Undo the cure" });
    expect(within(undo).getByRole("region", { name: /^SQL that runs at warehouse/ })).toHaveTextContent(
      undo_sql,
    );
    await userEvent.click(within(undo).getByRole("button", { name: "Cancel" }));
    expect(requests.filter(({ url }) => url.endsWith(":undo"))).toEqual([]);
  });

  it("says where and as whom to run other SQL, and whether it has helped", async () => {
    const byHand = { ...cure, finding: slowTrigger, parameters_after: {}, by_hand: true };
    const outcome = "40 LCR/s before, 40 LCR/s after.";
    const { requests } = stubCure(
      slowTrigger,
      { ...byHand, state: "no_difference", outcome },
      {
        "GET /api/v1/databases": {
          body: { items: [database("database2", "warehouse")], next_cursor: null },
        },
      },
    );
    renderAt("/advisor/runs/7");
    const item = await screen.findByRole("listitem", { name: slowTrigger.title });
    await waitFor(() =>
      expect(item).toHaveTextContent(
        /Run it at warehouse \(.+:\d+, database .+\) as the table's owner or a superuser/,
      ),
    );
    await userEvent.click(within(item).getByRole("button", { name: "Check whether it helped" }));
    expect(await within(item).findByText(outcome)).toBeVisible();
    const post = requests.find(({ method }) => method === "POST");
    expect(await post?.json()).toMatchObject({ run_id: 7, finding_id: slowTrigger.id, by_hand: true });
    expect(within(item).queryByRole("button", { name: "Undo" })).toBeNull();
    expect(within(item).getByRole("button", { name: "Check again" })).toBeVisible();
    await expectNoAxeViolations();
  });

  it("offers a cure again where the trouble has come back after it", async () => {
    stubApi({
      ...routes,
      "GET /api/v1/advisor/cures": {
        body: { items: [{ ...cure, created_at: "2026-01-01T00:00:00Z" }], next_cursor: null },
      },
    });
    renderAt("/advisor/runs/7");
    const item = await screen.findByRole("listitem", { name: finding.title });
    expect(within(item).getByRole("button", { name: "Apply" })).toBeVisible();
    expect(within(item).queryByRole("button", { name: "Undo" })).toBeNull();
  });

  it("lets an index that Thalweg may not create be created by hand, and checks it", async () => {
    const requests = stubApi({
      ...routes,
      "GET /api/v1/advisor/runs/7": { body: advisorRun({ findings_ranked: [missingIndex] }) },
      "POST /api/v1/advisor/cures": {
        status: 409,
        body: { type: "", title: "Not allowed", status: 409, code: "insufficient_privilege", detail: "No." },
      },
    });
    renderAt("/advisor/runs/7");
    const item = await screen.findByRole("listitem", { name: missingIndex.title });
    await userEvent.click(within(item).getByRole("button", { name: "Apply" }));
    const dialog = await screen.findByRole("dialog", { name: "Apply the cure" });
    expect(within(dialog).queryByRole("button", { name: "Check whether it helped" })).toBeNull();
    await userEvent.click(within(dialog).getByRole("button", { name: "Apply" }));
    await userEvent.click(await within(dialog).findByRole("button", { name: "Check whether it helped" }));
    const posts = requests.filter(({ method }) => method === "POST");
    expect(posts).toHaveLength(2);
    expect(await posts[1]?.json()).toMatchObject({ finding_id: missingIndex.id, by_hand: true });
  });

  it("says so when nothing limits the path", async () => {
    const quiet = advisorRun({ analysis: analysis(), findings_ranked: [], findings: 0, worst: null });
    stubApi({ ...routes, "GET /api/v1/advisor/runs/7": { body: quiet } });
    renderAt("/advisor/runs/7");
    expect(await screen.findByText("The advisor found nothing to cure.")).toBeVisible();
    expect(screen.getByRole("status", { name: "Verdict" })).toHaveTextContent("No bottleneck");
  });
});
