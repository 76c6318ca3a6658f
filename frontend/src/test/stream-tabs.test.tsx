import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import type { Marker, MarkerHop, StreamTransactions, Transaction } from "@/api/types";
import { formatTime } from "@/lib/format";
import { liveAnalysis } from "./advisor";
import { destination, sample, session, stream } from "./data";
import { expectNoAxeViolations, type Routes, renderAt, stubApi, stubEvents } from "./render";

const AT = new Date().toISOString();

function transaction(xid: number, values: Partial<Transaction> = {}): Transaction {
  return {
    xid,
    state: "OPEN",
    first_lsn: "0/10",
    commit_lsn: null,
    age_seconds: 2,
    lcrs: 10,
    bytes: 2048,
    spilled_bytes: 0,
    streamed: false,
    tables: ["public.orders"],
    applier: null,
    waits_for_xid: null,
    destination_id: null,
    engine_id: "engine01",
    retry: null,
    ...values,
  };
}

function hop(stage: string, step_ms: number, latency_ms: number): MarkerHop {
  return { stage, component: "X", engine_id: "engine01", destination_id: null, at: AT, latency_ms, step_ms };
}

function marker(values: Partial<Marker>): Marker {
  return {
    id: null,
    kind: "HEARTBEAT",
    label: "",
    state: "ARRIVED",
    placed_at: AT,
    commit_lsn: "0/20",
    xid: 1,
    committed_at: AT,
    failure: null,
    latency_ms: 5,
    hops: [hop("CAPTURE", 1, 1), hop("COMMIT", 4, 5)],
    ...values,
  };
}

const problem = {
  type: "t",
  title: "The engine cannot be reached",
  status: 502,
  code: "engine_unreachable",
  message: "engine-1 does not answer.",
  cure: "Start it.",
  sql: null,
  errors: [],
};

const routes: Routes = {
  "GET /api/v1/session": { body: session },
  "GET /api/v1/streams/stream01": { body: stream({ sampled_at: AT }) },
  "GET /api/v1/streams/stream01/samples": {
    body: { stream_id: "stream01", samples: [sample(AT)], live: true },
  },
  "GET /api/v1/alerts": { body: { items: [], next_cursor: null } },
  "GET /api/v1/advisor/analysis": { body: liveAnalysis() },
  "GET /api/v1/alerts/counts": { body: { firing: 0, critical: 0, unacknowledged: 0, pending: 0 } },
};

beforeEach(stubEvents);

describe("the tab Transactions", () => {
  const all = [
    transaction(701, { age_seconds: 40, streamed: true, spilled_bytes: 1024 }),
    transaction(702, { state: "WAIT DEPENDENCY", commit_lsn: "0/30", waits_for_xid: 703, applier: 2 }),
    transaction(703, { state: "EXECUTE TRANSACTION", commit_lsn: "0/2F", applier: 1, lcrs: 1500 }),
  ];
  const answer = (transactions: Transaction[]): StreamTransactions => ({
    stream_id: "stream01",
    at: AT,
    open: 1,
    waiting: 1,
    executing: 1,
    queued_lcrs: 12,
    transactions,
  });
  const open = (transactions: Transaction[]) => {
    stubApi({ ...routes, "GET /api/v1/streams/stream01/transactions": { body: answer(transactions) } });
    renderAt("/streams/stream01?tab=transactions");
  };

  it("tells the error of what waits for its retry", async () => {
    const retry = {
      number: 2,
      times: 10,
      at: AT,
      code: "apply_conflict",
      sqlstate: "23505",
      table: '"public"."ranks"',
      message: "a unique key exists already",
      detail: "id = 7 exists already",
    };
    open([transaction(704, { state: "WAIT RETRY", commit_lsn: "0/31", retry })]);
    expect(
      await screen.findByText(`Retry 2 of 10 at ${formatTime(AT)}: id = 7 exists already`),
    ).toBeInTheDocument();
  });

  it("shows what is on its way, the oldest first, and what waits for what", async () => {
    open(all);
    const table = await screen.findByRole("table", { name: "Transactions" });
    const rows = within(table).getAllByRole("row").slice(1);
    expect(rows.map((row) => row.textContent?.slice(0, 3))).toEqual(["701", "702", "703"]);
    expect(rows[0]).toHaveTextContent("yes");
    expect(rows[1]).toHaveTextContent("for 703");
    expect(rows[2]).toHaveTextContent(/1\.50?.k/u);
    expect(screen.getByText(/1 open, 1 waiting, 1 executing/)).toBeVisible();
    await expectNoAxeViolations();
  });

  it("narrows to a kind, and says when nothing is on its way", async () => {
    open(all);
    await userEvent.click(await screen.findByRole("radio", { name: "Waiting (1)" }));
    const table = screen.getByRole("table", { name: "Transactions" });
    await waitFor(() => expect(within(table).getAllByRole("row")).toHaveLength(2));
    expect(within(table).getByText("702")).toBeVisible();
  });

  it("says when nothing is on its way", async () => {
    open([]);
    expect(await screen.findByText("No transactions in flight")).toBeVisible();
  });

  it("does not call committed what is parked, and leads to it", async () => {
    const names = [
      destination({ error_queue_transactions: 1 }),
      destination({ id: "d2", database: { id: "db2", name: "reports", address: "127.0.0.1:5434/demo" } }),
    ];
    stubApi({
      ...routes,
      "GET /api/v1/streams/stream01": { body: stream({ destinations: names, sampled_at: AT }) },
      "GET /api/v1/streams/stream01/transactions": { body: answer([]) },
    });
    renderAt("/streams/stream01?tab=transactions");
    const link = await screen.findByRole("link", { name: "1 transaction in the error queue of warehouse" });
    expect(link).toHaveAttribute("href", "/streams/stream01?tab=errors&destination=warehouse");
    expect(screen.getByText(/is committed at all destinations, except/)).toBeVisible();
    expect(screen.queryByRole("link", { name: /error queue of reports/ })).toBeNull();
  });

  it("names destinations by their databases", async () => {
    stubApi({
      ...routes,
      "GET /api/v1/streams/stream01": {
        body: stream({
          destinations: [
            destination(),
            destination({
              id: "d2",
              database: { id: "db2", name: "reports", address: "127.0.0.1:5434/demo" },
            }),
          ],
          sampled_at: AT,
        }),
      },
      "GET /api/v1/streams/stream01/transactions": {
        body: answer([transaction(701, { destination_id: "d2" })]),
      },
    });
    renderAt("/streams/stream01?tab=transactions");
    const table = await screen.findByRole("table", { name: "Transactions" });
    expect(within(table).getByText("reports")).toBeVisible();
    expect(within(table).queryByText("d2")).toBeNull();
  });

  it("shows why they cannot be read, with the cure", async () => {
    stubApi({ ...routes, "GET /api/v1/streams/stream01/transactions": { status: 502, body: problem } });
    renderAt("/streams/stream01?tab=transactions");
    expect(await screen.findByText("The engine cannot be reached")).toBeVisible();
    expect(screen.getByText(/Start it\./)).toBeVisible();
  });
});

describe("the tab Latency", () => {
  it("shows the newest heartbeat's way, and that of a marker as it goes", async () => {
    let markers = [marker({})];
    const requests = stubApi({
      ...routes,
      "GET /api/v1/streams/stream01/markers": () => ({ body: { stream_id: "stream01", markers } }),
      "POST /api/v1/streams/stream01/markers": async (request) => {
        const placed = marker({
          id: "m1",
          kind: "TRACKED",
          label: (await request.json()).label,
          state: "PLACED",
          latency_ms: null,
          hops: [hop("CAPTURE", 2, 2)],
        });
        markers = [placed, ...markers];
        return { status: 201, body: placed };
      },
    });
    const { client } = renderAt("/streams/stream01?tab=latency");
    expect(await screen.findByRole("heading", { name: /^Heartbeat/ })).toBeVisible();
    const way = screen.getByRole("list", { name: "Stages of the path" });
    expect(within(way).getAllByRole("listitem")).toHaveLength(2);
    expect(screen.getByText(/Most of the time, 4/)).toHaveTextContent("passed before it was committed");
    await expectNoAxeViolations();

    await userEvent.type(screen.getByLabelText("Label of the marker"), "before the release");
    await userEvent.click(screen.getByRole("button", { name: "Place a marker" }));
    expect(await screen.findByRole("heading", { name: /^Marker before the release/ })).toBeVisible();
    expect(
      within(screen.getByRole("list", { name: "Stages of the path" })).getAllByRole("listitem"),
    ).toHaveLength(1);
    expect(requests.some(({ method }) => method === "POST")).toBe(true);

    const [placed, ...others] = markers;
    markers = [
      { ...(placed as Marker), latency_ms: 9, hops: [hop("CAPTURE", 2, 2), hop("COMMIT", 7, 9)] },
      ...others,
    ];
    await act(() => client.invalidateQueries());
    await waitFor(() =>
      expect(
        within(screen.getByRole("list", { name: "Stages of the path" })).getAllByRole("listitem"),
      ).toHaveLength(2),
    );
    const table = screen.getByRole("table", { name: "Markers" });
    await userEvent.click(within(table).getByRole("button", { name: "Heartbeat" }));
    expect(screen.getByRole("heading", { name: /^Heartbeat/ })).toBeVisible();
  });

  it("names destinations by their databases", async () => {
    const arrived = marker({
      hops: [hop("CAPTURE", 1, 1), { ...hop("COMMIT", 4, 5), destination_id: "d2" }],
    });
    const reports = { id: "db2", name: "reports", address: "127.0.0.1:5434/demo" };
    stubApi({
      ...routes,
      "GET /api/v1/streams/stream01": {
        body: stream({ destinations: [destination({ id: "d2", database: reports })], sampled_at: AT }),
      },
      "GET /api/v1/streams/stream01/markers": { body: { stream_id: "stream01", markers: [arrived] } },
    });
    renderAt("/streams/stream01?tab=latency");
    const panel = (await screen.findByRole("list", { name: "Stages of the path" })).parentElement;
    expect(panel).toHaveTextContent(/^reports/);
  });

  it("says that there are none yet, and lets who only reads place none", async () => {
    stubApi({
      ...routes,
      "GET /api/v1/session": { body: { ...session, user: { ...session.user, role: "viewer" } } },
      "GET /api/v1/streams/stream01/markers": { body: { stream_id: "stream01", markers: [] } },
    });
    renderAt("/streams/stream01?tab=latency");
    expect(await screen.findByText("No markers yet")).toBeVisible();
    expect(screen.getByRole("button", { name: "Place a marker" })).toBeDisabled();
  });
});
