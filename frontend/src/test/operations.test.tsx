// Operations that have not finished say what they wait for: on their page and on their stream's.
import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { destination, operation, session, stream } from "./data";
import { expectNoAxeViolations, type Routes, renderAt, stubApi, stubEvents } from "./render";

vi.mock("uplot", () => ({ default: class {} }));

const AT = "2026-11-21T00:00:05Z";
const WAITS = "Engine engine-1, which has not answered since 2026-11-21 00:00:01 UTC.";

const done = operation({
  id: "op000002",
  kind: "stream.start",
  state: "succeeded",
  finished_at: AT,
});

const routes: Routes = {
  "GET /api/v1/session": { body: session },
  "GET /api/v1/streams/stream01": { body: stream() },
  "GET /api/v1/operations": { body: { items: [operation({ waiting_for: WAITS }), done], next_cursor: null } },
};

beforeEach(stubEvents);

it("the page says what each unfinished one waits for", async () => {
  stubApi(routes);
  renderAt("/operations");
  const table = await screen.findByRole("table", { name: "Operations" });
  const row = (name: string) => within(table).getByText(name).closest("tr");
  expect(row("Stop stream")).toHaveTextContent(`Waits for: ${WAITS}`);
  expect(row("Start stream")).not.toHaveTextContent("Waits for");
});

it("names stream and destination, and filters by both", async () => {
  const reports = destination({
    id: "reports",
    database: { id: "db3", name: "Reports", address: "r:5432/r" },
  });
  const two = stream({ destinations: [destination(), reports] });
  const target = { ...operation({}).target, destination_id: "reports", destination: "Reports" };
  const retry = operation({ kind: "destination.retry", target, started_at: new Date().toISOString() });
  const requests = stubApi({
    ...routes,
    "GET /api/v1/overview": { body: { streams: [two], engines_online: 1, engines_total: 1, live: true } },
    "GET /api/v1/operations": { body: { items: [retry], next_cursor: null } },
  });
  renderAt("/operations?stream=stream01&destination=reports&state=running");
  expect(await screen.findByText("orders to warehouse → Reports")).toBeVisible();
  expect(screen.getByText("so far")).toBeVisible();
  await waitFor(() =>
    expect(screen.getByLabelText("Destination", { selector: "input" })).toHaveValue("Reports"),
  );
  const asked = requests.map(({ url }) => url).filter((url) => url.includes("/operations?"));
  expect(asked[0]).toMatch(/target_id=stream01&destination_id=reports&state=running/);
  fireEvent.click(screen.getByLabelText("Stream", { selector: "input" }));
  fireEvent.click(await screen.findByText("All streams"));
  await waitFor(() => {
    const latest = requests.map(({ url }) => url).filter((url) => url.includes("/operations?"));
    expect(latest.at(-1)).toMatch(/operations\?state=running/);
  });
});

it("the stream's page has a banner for each unfinished one", async () => {
  const requests = stubApi(routes);
  renderAt("/streams/stream01?tab=transactions");
  const banner = await screen.findByRole("status", { name: "In progress" });
  expect(banner).toHaveTextContent("Stop stream");
  expect(banner).toHaveTextContent(`Waits for: ${WAITS}`);
  expect(screen.queryByText("Start stream")).toBeNull();
  expect(requests.some(({ url }) => url.includes("target_id=stream01"))).toBe(true);
  await expectNoAxeViolations();
});
