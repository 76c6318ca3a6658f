// The slots page: whose each slot is, what becomes of it, and the end of an orphan.
import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import type { ServerSlot, SlotServer } from "@/api/types";
import { session } from "./data";
import { expectNoAxeViolations, type Routes, renderAt, stubApi, stubEvents } from "./render";

const AT = "2026-11-21T00:00:05Z";

function slot(values: Partial<ServerSlot>): ServerSlot {
  return {
    name: "thalweg_stream01",
    slot_type: "logical",
    plugin: "pgoutput",
    database: "shop",
    temporary: false,
    active: true,
    active_pid: 4711,
    wal_status: "reserved",
    invalidation_reason: null,
    retained_bytes: 1024,
    retained_age_seconds: 1,
    growth_bytes_per_second: null,
    safe_bytes: null,
    seconds_to_full: null,
    idle_seconds: null,
    seconds_to_idle_timeout: null,
    restart_lsn: "0/1",
    confirmed_lsn: "0/2",
    xmin_age: null,
    catalog_xmin_age: 12,
    read_at: AT,
    owner: "stream",
    stream: { id: "stream01", name: "orders to warehouse" },
    engine: null,
    why_no_forecast: "It does not grow.",
    drop_sql: null,
    ...values,
  };
}

const orphan = slot({
  name: "thalweg_gone0001",
  active: false,
  active_pid: null,
  owner: "orphan",
  stream: null,
  retained_bytes: 3 << 20,
  growth_bytes_per_second: 1024,
  safe_bytes: 7 << 20,
  seconds_to_full: 7168,
  why_no_forecast: null,
  drop_sql: "SELECT pg_drop_replication_slot('thalweg_gone0001')",
});

const unknown = slot({
  name: "thalweg_left0001",
  owner: "unknown_stream",
  stream: null,
  engine: { id: "engine01", name: "north" },
});

const lost = slot({
  name: "theirs",
  owner: "other",
  stream: null,
  active: false,
  active_pid: null,
  wal_status: "lost",
  invalidation_reason: "wal_removed",
  why_no_forecast: "It is lost: the server has removed WAL that it needs.",
});

function server(values: Partial<SlotServer>): SlotServer {
  return {
    address: "db1:5432",
    other_addresses: [],
    databases: [{ id: "source01", name: "orders", dbname: "shop", failure: null }],
    version: "17.2",
    asked_at: AT,
    read_at: AT,
    failure: null,
    current_lsn: "0/9",
    slots_max: 10,
    keep_bytes: null,
    slots: [slot({}), orphan, lost, unknown],
    ...values,
  };
}

const routes = (servers: SlotServer[]): Routes => ({
  "GET /api/v1/session": { body: session },
  "GET /api/v1/slots": { body: { servers } },
  "GET /api/v1/alerts/counts": { body: { open: 0, acknowledged: 0 } },
});

beforeEach(stubEvents);

it("names a server's other addresses", async () => {
  stubApi(routes([server({ other_addresses: ["10.0.0.1:5432", "db1.local:5432"] })]));
  renderAt("/slots");
  expect(await screen.findByText(/Also registered as 10\.0\.0\.1:5432, db1\.local:5432/)).toBeVisible();
});

it("shows each server's slots with owner, state and forecast", async () => {
  stubApi(
    routes([server({}), server({ address: "db2:5432", read_at: null, slots: [], failure: "no route" })]),
  );
  renderAt("/slots");
  const table = await screen.findByRole("table", { name: "Slots of db1:5432" });
  const row = (name: string) => within(table).getByText(name).closest("tr") as HTMLElement;
  expect(within(row("thalweg_stream01")).getByRole("link", { name: "orders to warehouse" })).toBeVisible();
  expect(row("thalweg_stream01")).toHaveTextContent("pid 4711");
  expect(row("thalweg_stream01")).toHaveTextContent("It does not grow.");
  expect(row("thalweg_stream01")).toHaveTextContent(/for 1.s/);
  expect(row("thalweg_gone0001")).toHaveTextContent("Orphan");
  expect(row("thalweg_gone0001")).toHaveTextContent(/Lost in 1 h 59.min at this rate/);
  expect(row("theirs")).toHaveTextContent("Lost: wal removed");
  expect(row("thalweg_left0001")).toHaveTextContent("Unknown stream of engine north");
  // The one that keeps most comes first, and only the orphan may be dropped.
  expect(within(table).getAllByRole("row")[1]).toBe(row("thalweg_gone0001"));
  expect(within(table).getAllByRole("button", { name: /^Drop/ })).toHaveLength(1);
  expect(screen.getByText(/4 of 10 slots · each keeps WAL without a limit/)).toBeVisible();
  expect(screen.getByText("no route")).toBeVisible();
  expect(screen.queryByRole("table", { name: "Slots of db2:5432" })).toBeNull();
  await expectNoAxeViolations();
});

it("names the database whose connection fails where the server answers others", async () => {
  const broken = { id: "spelled1", name: "by another name", dbname: "shop", failure: "SSL was refused" };
  stubApi(routes([server({ databases: [...server({}).databases, broken] })]));
  renderAt("/slots");
  expect(await screen.findByText("SSL was refused")).toBeVisible();
  expect(screen.getByText("by another name did not answer the last time")).toBeVisible();
  expect(screen.queryByText("The server did not answer the last time")).toBeNull();
});

it("says when a slot that nobody reads is given up, and why one was", async () => {
  const idle = slot({ active: false, active_pid: null, idle_seconds: 600, seconds_to_idle_timeout: 3000 });
  const why = "It is lost. The source has given up the slot: nobody read from it.";
  const taken = { ...lost, invalidation_reason: "idle_timeout", why_no_forecast: why };
  stubApi(routes([server({ slots: [idle, taken] })]));
  renderAt("/slots");
  const table = await screen.findByRole("table", { name: "Slots of db1:5432" });
  const row = (name: string) => within(table).getByText(name).closest("tr") as HTMLElement;
  expect(row("thalweg_stream01")).toHaveTextContent(
    /Lost in 50.min unless it is read from \(idle_replication_slot_timeout\)\. It does not grow\./,
  );
  expect(row("theirs")).toHaveTextContent("Lost: idle timeout");
  expect(row("theirs")).toHaveTextContent(why);
});

it("drops an orphan after its name was typed", async () => {
  const requests = stubApi({
    ...routes([server({})]),
    "DELETE /api/v1/databases/source01/slots/thalweg_gone0001": { status: 204 },
  });
  renderAt("/slots");
  await userEvent.click(await screen.findByRole("button", { name: "Drop thalweg_gone0001" }));
  const dialog = await screen.findByRole("dialog", { name: "Drop slot" });
  expect(dialog).toHaveTextContent("3 MiB of WAL");
  const drop = within(dialog).getByRole("button", { name: "Drop" });
  expect(drop).toBeDisabled();
  await userEvent.type(within(dialog).getByLabelText(/to confirm/), orphan.name);
  await userEvent.click(drop);
  expect(requests.filter(({ method }) => method === "DELETE")).toHaveLength(1);
});

it("an orphan that somebody reads from cannot be dropped", async () => {
  stubApi(routes([server({ slots: [{ ...orphan, active: true, active_pid: 5 }] })]));
  renderAt("/slots");
  expect(await screen.findByRole("button", { name: "Drop thalweg_gone0001" })).toBeDisabled();
});

it("says why it is empty", async () => {
  stubApi(routes([]));
  renderAt("/slots");
  expect(await screen.findByText("No servers yet")).toBeVisible();
});

it("shows a card for each slot on a phone, with its forecast and what may be done", async () => {
  const wide = window.matchMedia;
  vi.stubGlobal("matchMedia", (query: string) => ({ ...wide(query), matches: query.includes("max-width") }));
  stubApi(routes([server({})]));
  renderAt("/slots");
  const card = await screen.findByRole("listitem", { name: "thalweg_gone0001" });
  expect(card).toHaveTextContent(/3\sMiB.*Room\s7\sMiB.*xmin age\s12/);
  expect(within(card).getByRole("button", { name: "Drop thalweg_gone0001" })).toBeVisible();
  expect(screen.queryByRole("table")).toBeNull();
});
