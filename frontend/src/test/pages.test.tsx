// The console as a user opens it, with the network answered by the test.
import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { keys } from "@/api/keys";
import type { Database } from "@/api/types";
import { liveAnalysis } from "./advisor";
import { alert } from "./alerts";
import { database, engine, initialCopy, keylessTable, parallelism, sample, session, stream } from "./data";
import { EventSourceStub, expectNoAxeViolations, type Routes, renderAt, stubApi, stubEvents } from "./render";

vi.mock("uplot", () => ({
  default: class {
    setData() {}
    setSize() {}
    destroy() {}
  },
}));

const page = (items: unknown[]) => ({ body: { items, next_cursor: null } });
const problem = (status: number, code: string, title: string, cure: string) => ({
  status,
  body: {
    type: `urn:thalweg:problem:${code}`,
    title,
    status,
    detail: title,
    instance: "/",
    code,
    cure,
    sql: null,
    errors: [],
  },
});
const overview = (streams: unknown[]) => ({
  body: { streams, engines_online: 1, engines_total: 1, live: true },
});
const AT = new Date().toISOString();

const routes: Routes = {
  "GET /api/v1/session": { body: session },
  "GET /api/v1/overview": overview([stream({ sampled_at: AT })]),
  "GET /api/v1/streams/stream01": { body: stream({ sampled_at: AT }) },
  "GET /api/v1/overview/rates": {
    body: {
      streams: [{ stream_id: "stream01", times: [Date.parse(AT)], lcrs_per_second: [500] }],
      live: true,
    },
  },
  "GET /api/v1/streams/stream01/samples": {
    body: { stream_id: "stream01", samples: [sample(AT)], live: true },
  },
  "GET /api/v1/advisor/analysis": { body: liveAnalysis() },
  "GET /api/v1/streams/stream01/errors": { body: { errors: [] } },
  "GET /api/v1/stream-parameters": { body: { parameters: [parallelism, initialCopy] } },
  "GET /api/v1/databases": page([database("source01", "orders"), database("dest0001", "warehouse")]),
  "GET /api/v1/engines": page([engine]),
  "GET /api/v1/operations": page([]),
  "GET /api/v1/audit": page([]),
};

beforeEach(stubEvents);

describe("logging in", () => {
  it("shows a bad password's problem with its cure", async () => {
    stubApi({
      "GET /api/v1/session": problem(401, "authentication_required", "You are not logged in", "Log in."),
      "POST /api/v1/session": problem(
        401,
        "wrong_credentials",
        "The name or the password is wrong",
        "Try another.",
      ),
    });
    const { history } = renderAt("/databases");
    await waitFor(() => expect(history.location.pathname).toBe("/login"));
    await userEvent.type(await screen.findByLabelText("User name"), "admin");
    await userEvent.type(screen.getByLabelText("Password"), "wrong");
    await userEvent.click(screen.getByRole("button", { name: "Log in" }));
    const alert = await screen.findByRole("alert");
    expect(alert).toHaveTextContent("The name or the password is wrong");
    expect(alert).toHaveTextContent("Cure: Try another.");
    await expectNoAxeViolations();
  });

  it("leads to the page that was asked for", async () => {
    stubApi({
      ...routes,
      "GET /api/v1/session": problem(401, "authentication_required", "You are not logged in", "Log in."),
      "POST /api/v1/session": { status: 201, body: session },
    });
    renderAt("/engines");
    await userEvent.type(await screen.findByLabelText("User name"), "admin");
    await userEvent.type(screen.getByLabelText("Password"), "right");
    await userEvent.click(screen.getByRole("button", { name: "Log in" }));
    expect(await screen.findByRole("heading", { level: 1, name: "Engines" })).toBeVisible();
  });
});

describe("the overview", () => {
  it("leads to the wizard when there is no stream", async () => {
    stubApi({ ...routes, "GET /api/v1/overview": overview([]) });
    const { history } = renderAt("/");
    expect(await screen.findByRole("heading", { name: "No streams yet" })).toBeVisible();
    const [, link] = screen.getAllByRole("link", { name: "Create stream" });
    await userEvent.click(link as HTMLElement);
    expect(history.location.pathname).toBe("/streams/new");
  });

  it("shows health in words, and numbers as they arrive", async () => {
    stubApi(routes);
    renderAt("/");
    const table = await screen.findByRole("table", { name: "Streams" });
    const row = within(table).getByRole("row", { name: /orders to warehouse/ });
    expect(row).toHaveTextContent("Healthy");
    expect(within(row).getAllByText(/replicating/i)).toHaveLength(1);
    expect(row).not.toHaveTextContent("LCR/s");
    act(() => {
      EventSourceStub.latest?.onopen?.();
      EventSourceStub.latest?.emit("stream.sample", sample(AT, { lcrs_per_second: 1200 }));
    });
    await waitFor(() => expect(row).toHaveTextContent("LCR/s"));
    expect(screen.getByText("Live")).toBeVisible();
    await expectNoAxeViolations();
  });

  it("shows a stream's error with its cure, and where the rest is", async () => {
    const error = {
      code: "authentication_failed",
      class: "operator_action",
      side: "destination" as const,
      title: "The database refuses the login",
      message: "password authentication failed",
      detail: null,
      cure: "Correct the password.",
      sqlstate: "28P01",
      table: null,
      lsn: null,
      xid: null,
      at: AT,
    };
    const reason = `${error.title}: ${error.message}. And 1 more.`;
    const aborted = stream({
      status: "ABORTED",
      state: "ABORTED",
      health: { level: "error", reason },
      error,
    });
    stubApi({ ...routes, "GET /api/v1/overview": overview([aborted]) });
    renderAt("/");
    const row = await screen.findByRole("row", { name: /orders to warehouse/ });
    expect(row).toHaveTextContent("password authentication failed");
    expect(row).toHaveTextContent("Cure: Correct the password.");
    expect(
      within(row).getByRole("link", { name: "More on the page of orders to warehouse" }),
    ).toHaveAttribute("href", "/streams/stream01");
    await expectNoAxeViolations();
  });

  it("says that its numbers are stale when the connection is lost", async () => {
    stubApi(routes);
    renderAt("/");
    await screen.findByRole("table", { name: "Streams" });
    act(() => EventSourceStub.latest?.onerror?.());
    expect(await screen.findByText("Stale")).toBeVisible();
    expect(screen.getByRole("alert")).toHaveTextContent("These numbers are stale");
  });

  it("reads again what it read before it heard of events", async () => {
    let listed = [stream()];
    stubApi({ ...routes, "GET /api/v1/overview": () => overview(listed) });
    renderAt("/");
    await screen.findByRole("table", { name: "Streams" });
    listed = [stream({ name: "orders to archive" })];
    act(() => EventSourceStub.latest?.emit("hello", {}));
    expect(await screen.findByRole("link", { name: "orders to archive" })).toBeVisible();
  });

  it("calls nothing live, healthy or empty of which it has not heard", async () => {
    const body = {
      ...overview([stream({ sampled_at: null, status: "UNKNOWN" })]).body,
      engines_online: null,
    };
    stubApi({ ...routes, "GET /api/v1/overview": { body } });
    renderAt("/");
    expect(await screen.findByRole("alert")).toHaveTextContent("These numbers are stale");
    expect(screen.getByText("– of 1")).toBeVisible();
    expect(screen.getByText("Total lag").parentElement).toHaveTextContent("Total lag–");
    act(() => EventSourceStub.latest?.onopen?.());
    expect(await screen.findByText("Live")).toBeVisible();
    const clock = vi.spyOn(Date, "now").mockReturnValue(Date.now() + 16_000);
    try {
      expect(await screen.findByText("No samples")).toBeVisible();
    } finally {
      clock.mockRestore();
    }
  });

  it("shows a failed read with a way to try again", async () => {
    let broken = true;
    stubApi({
      ...routes,
      "GET /api/v1/overview": () =>
        broken
          ? problem(503, "store_unreachable", "The control store cannot be reached", "Start it.")
          : overview([stream()]),
    });
    renderAt("/");
    expect(await screen.findByRole("alert")).toHaveTextContent("The control store cannot be reached");
    broken = false;
    await userEvent.click(screen.getByRole("button", { name: "Try again" }));
    expect(await screen.findByRole("table", { name: "Streams" })).toBeVisible();
  });
});

describe("health that was read long ago", () => {
  const never = () => new Promise<never>(() => {});
  const longAgo = () => ({ updatedAt: Date.now() - 240_000 });

  it("has its age in the overview", async () => {
    stubApi({ ...routes, "GET /api/v1/overview": never });
    const { client } = renderAt("/");
    act(() => {
      client.setQueryData(keys.overview, overview([stream({ sampled_at: AT })]).body, longAgo());
    });
    expect(await screen.findByText(/^All streams, and how they were doing \d+ min ago\.$/)).toBeVisible();
    act(() => {
      client.setQueryData(keys.overview, overview([stream({ sampled_at: AT })]).body);
    });
    expect(await screen.findByText("All streams, and how they are doing now.")).toBeVisible();
  });

  it("has its age beside the stream's name", async () => {
    stubApi({ ...routes, "GET /api/v1/streams/stream01": never });
    const { client } = renderAt("/streams/stream01");
    act(() => {
      client.setQueryData(keys.stream("stream01"), stream({ sampled_at: AT }), longAgo());
    });
    expect(await screen.findByText(/^as of \d+ min ago$/)).toBeVisible();
  });
});

describe("a stream's page", () => {
  it("shows the strip without axe violations", async () => {
    stubApi(routes);
    renderAt("/streams/stream01");
    expect(await screen.findByRole("heading", { level: 1, name: "orders to warehouse" })).toBeVisible();
    expect(await screen.findByRole("list", { name: "Components" })).toBeVisible();
    expect(screen.getByRole("button", { name: "Start" })).toBeDisabled();
    expect(screen.getByRole("button", { name: "Stop" })).toBeEnabled();
    await expectNoAxeViolations();
  });

  it("shows why it stopped, and the cure", async () => {
    const error = {
      code: "replica_identity_missing",
      side: "source" as const,
      class: "operator_action",
      detail: null,
      title: "A table has no replica identity",
      message: "public.notes has neither a primary key nor a replica identity.",
      cure: "Add a primary key.",
      sqlstate: "",
      table: "public.notes",
      lsn: "0/0",
      xid: 0,
      at: AT,
    };
    const aborted = stream({ status: "ABORTED", phase: "STOPPED", error, actions: ["retry", "delete"] });
    stubApi({ ...routes, "GET /api/v1/streams/stream01": { body: aborted } });
    renderAt("/streams/stream01");
    const alert = await screen.findByRole("alert");
    expect(alert).toHaveTextContent("A table has no replica identity");
    expect(alert).toHaveTextContent("Cure: Add a primary key.");
    expect(alert).toHaveTextContent("table public.notes");
    expect(alert).not.toHaveTextContent("0/0");
    expect(screen.getByRole("button", { name: "Retry" })).toBeEnabled();
  });

  it("is deleted only after its name is typed, and says so by REST", async () => {
    const requests = stubApi({
      ...routes,
      "DELETE /api/v1/streams/stream01": {
        status: 202,
        body: { operation_id: "op000001", stream_id: "stream01", state: "pending" },
      },
    });
    const { history } = renderAt("/streams/stream01");
    await userEvent.click(await screen.findByRole("button", { name: "Delete" }));
    const dialog = await screen.findByRole("dialog", { name: "Delete stream" });
    const confirm = within(dialog).getByRole("button", { name: "Delete" });
    expect(confirm).toBeDisabled();
    await userEvent.click(within(dialog).getByRole("checkbox", { name: "Force" }));
    expect(dialog).toHaveTextContent("/api/v1/streams/stream01?force=true");
    await userEvent.type(
      within(dialog).getByLabelText("Type orders to warehouse to confirm"),
      "orders to warehouse",
    );
    await userEvent.click(confirm);
    await waitFor(() => expect(history.location.pathname).toBe("/"));
    const sent = requests.find((request) => request.method === "DELETE");
    expect(new URL(sent?.url ?? "").search).toBe("?force=true");
  });

  it("says in the delete dialog what force does when the engine does not answer", async () => {
    const lost = stream({ capture_engine: { id: "engine01", name: "engine-1", state: "UNREACHABLE" } });
    stubApi({ ...routes, "GET /api/v1/streams/stream01": { body: lost } });
    renderAt("/streams/stream01");
    await userEvent.click(await screen.findByRole("button", { name: "Delete" }));
    const dialog = await screen.findByRole("dialog", { name: "Delete stream" });
    expect(within(dialog).getByRole("alert")).toHaveTextContent("Engine engine-1 does not answer");
    expect(within(dialog).getByRole("checkbox", { name: "Force" })).not.toBeChecked();
    await expectNoAxeViolations();
  });

  it("changes the table rules after showing what comes in and goes out", async () => {
    let sent: { ifMatch: string | null; body: unknown } | null = null;
    const table = (name: string) => ({
      schema: "public",
      table: name,
      kind: "table",
      bytes: 8192,
      rows_estimated: 10,
      key_columns: ["id"],
      warnings: [],
      replica_identity: "default",
      replicable: true,
      unsupported: [],
    });
    stubApi({
      ...routes,
      "POST /api/v1/streams:preview-tables": {
        body: { tables: [table("late")], replicable: 1, bytes: 8192, rows_estimated: 10, unmatched: [] },
      },
      "PATCH /api/v1/streams/stream01": async (request) => {
        sent = { ifMatch: request.headers.get("If-Match"), body: await request.json() };
        return { body: stream({ etag: '"8"' }) };
      },
    });
    renderAt("/streams/stream01?tab=tables");
    await userEvent.click(await screen.findByRole("button", { name: "Edit rules" }));
    const dialog = await screen.findByRole("dialog", { name: "Edit table rules" });
    const field = within(dialog).getByRole("textbox", { name: "Include pattern 1, table" });
    await userEvent.clear(field);
    await userEvent.type(field, "late");
    expect(await within(dialog).findByText("Added, and copied: public.late")).toBeVisible();
    expect(within(dialog).getByText(/^Removed; their rows/)).toHaveTextContent("public.orders");
    const save = within(dialog).getByRole("button", { name: "Save rules" });
    await waitFor(() => expect(save).toBeEnabled());
    await expectNoAxeViolations();
    await userEvent.click(save);
    const rules = { include: [{ schema: "public", table: "late" }], exclude: [] };
    await waitFor(() => expect(sent).toEqual({ ifMatch: '"7"', body: { rules } }));
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  });

  it("saves changed parameters with If-Match, and only those", async () => {
    let sent: { ifMatch: string | null; body: unknown } | null = null;
    stubApi({
      ...routes,
      "PATCH /api/v1/streams/stream01": async (request) => {
        sent = { ifMatch: request.headers.get("If-Match"), body: await request.json() };
        return { body: stream({ effective_parameters: { parallelism: 8 }, etag: '"8"' }) };
      },
    });
    renderAt("/streams/stream01?tab=parameters");
    const field = await screen.findByRole("textbox", { name: "parallelism" });
    await userEvent.clear(field);
    expect(screen.getByRole("button", { name: "Save parameters" })).toBeDisabled();
    await userEvent.type(field, "8");
    await userEvent.click(screen.getByRole("button", { name: "Save parameters" }));
    await waitFor(() => expect(sent).toEqual({ ifMatch: '"7"', body: { parameters: { parallelism: 8 } } }));
  });
});

describe("databases", () => {
  it("says of one that was never tested that it was not, and tests it", async () => {
    const fresh = { ...database("source01", "orders"), version: null, tested_at: null };
    const threeMinutesAgo = new Date(Date.now() - 180_000).toISOString();
    const kept = { ...database("source01", "orders"), version: "15.20", tested_at: threeMinutesAgo };
    let tested = false;
    stubApi({
      ...routes,
      "GET /api/v1/databases": () => page([tested ? kept : fresh]),
      "POST /api/v1/databases/source01/test": () => {
        tested = true;
        return { body: { reachable: true, version: "15.20", code: null } };
      },
    });
    renderAt("/databases");
    const row = await screen.findByRole("row", { name: /orders/ });
    expect(row).toHaveTextContent("not tested yet");
    await userEvent.click(within(row).getByRole("button", { name: "Test orders" }));
    await waitFor(() => expect(screen.getByRole("row", { name: /orders/ })).toHaveTextContent("15.20"));
    const afterwards = screen.getByRole("row", { name: /orders/ });
    expect(afterwards).not.toHaveTextContent("not tested yet");
    expect(afterwards).toHaveTextContent(/Connected.*3.min ago/);
  });
});

describe("a database that an engine cannot reach", () => {
  it("is not called connected after a test from before", async () => {
    const kept = { ...database("source01", "orders"), version: "15.20", tested_at: new Date().toISOString() };
    const other = { ...kept, id: "dest0001", name: "warehouse" };
    const message = "warehouse, a destination of orders, cannot be reached.";
    const evidence = { side: "destination", database: "warehouse", error: "refused" };
    stubApi({
      ...routes,
      "GET /api/v1/databases": page([kept, other]),
      "GET /api/v1/alerts": page([alert("a", { rule: "database_unreachable", message, evidence })]),
    });
    renderAt("/databases");
    await waitFor(() =>
      expect(screen.getByRole("row", { name: /warehouse/ })).toHaveTextContent("Unreachable now"),
    );
    expect(screen.getByRole("row", { name: /orders/ })).toHaveTextContent("Connected");
  });
});

describe("what streams use", () => {
  it.each([
    ["/databases", "Delete orders", "Delete database", /^orders to warehouse \(source\)$/],
    ["/engines", "Delete engine-1", "Delete engine", /^orders to warehouse$/],
  ])("is not offered for deletion (%s)", async (path, button, title, use) => {
    stubApi({
      ...routes,
      "GET /api/v1/databases": page([{ ...database("source01", "orders"), source_of: ["stream01"] }]),
      "GET /api/v1/engines": page([{ ...engine, streams: ["stream01"] }]),
    });
    renderAt(path);
    await userEvent.click(await screen.findByRole("button", { name: button }));
    const dialog = await screen.findByRole("dialog", { name: title });
    expect(dialog).toHaveTextContent("cannot be deleted: 1 stream uses it");
    await waitFor(() => expect(within(dialog).getByRole("listitem")).toHaveTextContent(use));
    expect(within(dialog).getByRole("link", { name: "orders to warehouse" })).toHaveAttribute(
      "href",
      "/streams/stream01",
    );
    expect(within(dialog).queryByRole("button", { name: "Delete" })).toBeNull();
    expect(within(dialog).queryByRole("textbox")).toBeNull();
    await expectNoAxeViolations();
  });

  it("is deleted once no stream uses it", async () => {
    stubApi(routes);
    renderAt("/databases");
    await userEvent.click(await screen.findByRole("button", { name: "Delete orders" }));
    const dialog = await screen.findByRole("dialog", { name: "Delete database" });
    expect(within(dialog).getByLabelText("Type orders to confirm")).toBeVisible();
  });
});

describe("the page of a database", () => {
  const open = (values: Partial<Database>) => {
    const requests = stubApi({
      ...routes,
      "GET /api/v1/databases/dest0001": { body: { ...database("dest0001", "warehouse"), ...values } },
      "GET /api/v1/databases/dest0001/preflight": { body: { checks: [] } },
      "GET /api/v1/databases/dest0001/tables": {
        body: {
          items: [
            { ...keylessTable, table: "log_2026", kind: "partition", unsupported: ["It is a partition."] },
            keylessTable,
          ],
        },
      },
    });
    renderAt("/databases/dest0001");
    return () =>
      requests.map(({ url }) => new URL(url)).filter(({ pathname }) => /preflight$/.test(pathname));
  };

  it("checks first what the database is used as", async () => {
    const checks = open({ destination_of: ["stream01"] });
    expect(await screen.findByRole("radio", { name: "As a destination" })).toBeChecked();
    await userEvent.click(screen.getByRole("radio", { name: "As a source" }));
    await waitFor(() => expect(screen.getByRole("radio", { name: "As a source" })).toBeChecked());
    await waitFor(() =>
      expect(checks().map(({ search }) => search)).toEqual(["?role=destination", "?role=source"]),
    );
  });

  it("does not mark a partition as a problem", async () => {
    open({ source_of: ["stream01"] });
    const partition = await screen.findByRole("row", { name: /log_2026/ });
    const tone = (row: HTMLElement) => within(row).getByText(/^It /).parentElement?.querySelector("svg");
    expect(tone(partition)).toHaveAttribute("stroke", "var(--tone-quiet)");
    expect(tone(screen.getByRole("row", { name: /public\.log / }))).toHaveAttribute(
      "stroke",
      "var(--tone-bad)",
    );
    expect(screen.getByRole("radio", { name: "As a source" })).toBeChecked();
  });
});

describe("pages that do not exist", () => {
  it.each(["/nowhere", "/streams"])("%s", async (path) => {
    stubApi(routes);
    renderAt(path);
    expect(await screen.findByRole("heading", { name: "There is no such page" })).toBeVisible();
    expect(screen.getByRole("navigation", { name: "Main" })).toBeVisible();
  });

  it("a stream whose id can be none", async () => {
    const invalid = problem(422, "invalid_request", "The request is not valid", "Correct it.");
    stubApi({ ...routes, "GET /api/v1/streams/nosuch": invalid });
    renderAt("/streams/nosuch");
    expect(await screen.findByRole("heading", { name: "This stream does not exist" })).toBeVisible();
    expect(screen.queryByText("The request is not valid")).toBeNull();
  });
});

describe("the audit log", () => {
  it("offers the changes of a discarded transaction as a file", async () => {
    const entry = {
      id: "81",
      at: AT,
      actor_id: null,
      actor_name: "anna",
      via: "session",
      action: "stream_errors_delete",
      sentence: "Parked transaction 7 discarded",
      target_type: "stream",
      target_id: "stream01",
      target_name: "orders",
      before: { id: 7, changes_total: 250 },
      after: { reason: "entered twice", changes_kept: 250 },
      request_id: "r1",
      address: null,
    };
    const edited = { ...entry, id: "82", action: "stream_errors_edit", sentence: "Change 2 edited" };
    const refused = { ...entry, id: "83", after: { ...entry.after, refused: "not_kept_whole" } };
    stubApi({ ...routes, "GET /api/v1/audit": page([refused, edited, entry]) });
    renderAt("/audit");
    const link = await screen.findByRole("link", { name: "Download the discarded changes" });
    expect(link).toHaveAttribute("href", "/api/v1/audit/81:changes");
  });
});

describe("other pages have no axe violations", () => {
  it.each([
    ["/databases", "Databases"],
    ["/engines", "Engines"],
    ["/operations", "Operations"],
    ["/audit", "Audit"],
    ["/settings", "Settings"],
    ["/streams/new", "Create stream"],
    ["/nowhere", "There is no such page"],
  ])("%s", async (path, heading) => {
    stubApi(routes);
    renderAt(path);
    expect(await screen.findByRole("heading", { name: heading })).toBeVisible();
    await waitFor(() => expect(screen.queryByText(/^Loading/)).toBeNull());
    await expectNoAxeViolations();
  });
});
