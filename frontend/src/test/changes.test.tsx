import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it } from "vitest";
import type { Change, Search, Searches } from "@/api/types";
import { database, session } from "./data";
import { expectNoAxeViolations, type Routes, renderAt, stubApi, stubEvents } from "./render";

const SOURCE = "/api/v1/sources/source01";
const ADDRESS = "/databases/source01/changes";
const search: Search = {
  id: "s7x3c9v1",
  stream_id: "stream01",
  state: "DONE",
  truncated: false,
  begun_at: "2026-11-30T10:00:00Z",
  ended_at: "2026-11-30T10:00:02Z",
  mined_bytes: 1024,
  total_bytes: 1024,
  from: "0/1",
  to: "0/2",
  found: 1,
  error: null,
};
const change: Change = {
  number: 1,
  xid: 774,
  commit_lsn: "0/1A2C1200",
  commit_time: "2026-11-30T09:14:20Z",
  lsn: "0/1A2C1100",
  origin: "warehouse",
  schema: "public",
  table: "orders",
  operation: "UPDATE",
  before_is: "whole",
  columns: [
    {
      name: "id",
      type: "bigint",
      key: true,
      before: { text: "5", cut: false, masked: false },
      after: { text: "5", cut: false, masked: false },
    },
    {
      name: "state",
      type: "text",
      key: false,
      before: { text: null, cut: false, masked: false },
      after: { text: "paid", cut: false, masked: false },
    },
  ],
  undo: `UPDATE "public"."orders" SET "state" = NULL WHERE "id" = '5'::bigint;`,
  undo_note: null,
};
const kept: Searches = {
  streams: [
    {
      stream_id: "stream01",
      stream_name: "orders to warehouse",
      kept_from: "0/1",
      kept_from_time: new Date().toISOString(),
      kept_until: "0/2",
      kept_bytes: 352321536,
    },
  ],
  unavailable: [],
  reason: null,
  searches: [],
};

function routes(more: Routes = {}): Routes {
  const page = (items: unknown[]) => ({ body: { items, next_cursor: null } });
  return {
    "GET /api/v1/session": { body: session },
    "GET /api/v1/alerts/counts": { body: { critical: 0, warning: 0, information: 0 } },
    "GET /api/v1/databases/source01": { body: database("source01", "orders") },
    "GET /api/v1/databases/source01/tables": page([{ schema: "public", table: "orders" }]),
    "GET /api/v1/databases/source01/columns": { body: { columns: [{ name: "id" }, { name: "state" }] } },
    [`GET ${SOURCE}/searches`]: { body: kept },
    [`POST ${SOURCE}/searches`]: { status: 202, body: { ...search, state: "RUNNING" } },
    [`GET ${SOURCE}/searches/s7x3c9v1`]: { body: { ...search, changes: [change], next_after: null } },
    ...more,
  };
}

beforeEach(stubEvents);

it("searches for a row, and shows who changed it from what to what", async () => {
  const requests = stubApi(routes());
  renderAt(`${ADDRESS}?table=public.orders`);
  expect(await screen.findByText(/orders to warehouse keeps 336 MiB of the log/)).toBeVisible();
  await userEvent.type(screen.getByRole("combobox", { name: "Column 1" }), "id");
  await userEvent.type(screen.getByRole("textbox", { name: "Value 1" }), "5");
  await userEvent.click(screen.getByRole("button", { name: "Search" }));
  const list = await screen.findByRole("table", { name: "Changes" });
  const [, row] = within(list).getAllByRole("row");
  for (const text of ["774", "UPDATE", "public.orders", "id = 5", "state: NULL → paid"])
    expect(row).toHaveTextContent(text);
  const begun = requests.find(({ method }) => method === "POST");
  const body = await begun?.json();
  expect(body).toMatchObject({ table: { schema: "public", table: "orders" }, key: { id: "5" }, limit: 1000 });
  expect(begun?.headers.get("Idempotency-Key")).toBeTruthy();
  expect(screen.getByText(/The log is kept from .* on: earlier changes are not found/)).toBeVisible();
  expect(screen.getByRole("link", { name: "Export as CSV" })).toHaveAttribute(
    "href",
    `${SOURCE}/searches/s7x3c9v1:export?format=csv`,
  );
  await expectNoAxeViolations();
});

it("opens a change with all columns and the SQL that undoes it", async () => {
  const requests = stubApi(routes());
  renderAt(`${ADDRESS}?search=s7x3c9v1`);
  await userEvent.click(await screen.findByRole("button", { name: "Open change 1" }));
  const dialog = await screen.findByRole("dialog", { name: "Change 1: UPDATE public.orders" });
  const [, id, state] = within(await within(dialog).findByRole("table")).getAllByRole("row");
  expect(id).not.toHaveTextContent("changed");
  expect(state).toHaveTextContent(/NULL.*changed: paid/);
  expect(within(dialog).getByText("from warehouse")).toBeVisible();
  expect(within(dialog).getByRole("region", { name: "Undo as SQL" })).toHaveTextContent('SET "state" = NULL');
  const asked = requests.map(({ url }) => new URL(url).search);
  expect(asked).toContain("?after=0&limit=1&whole=true");
});

it("says why a change cannot be undone", async () => {
  const kind: Change = { ...change, before_is: "identity", undo: null, undo_note: "The stream masks email." };
  stubApi(
    routes({
      [`GET ${SOURCE}/searches/s7x3c9v1`]: { body: { ...search, changes: [kind], next_after: null } },
    }),
  );
  renderAt(`${ADDRESS}?search=s7x3c9v1`);
  await userEvent.click(await screen.findByRole("button", { name: "Open change 1" }));
  expect(await screen.findByText(/There is no SQL that undoes it. The stream masks email./)).toBeVisible();
  expect(screen.getByText(/REPLICA IDENTITY to FULL/)).toBeVisible();
});

it("shows SQL that undoes everything, to be copied", async () => {
  const script = "BEGIN;\nDELETE FROM t;\nCOMMIT;\n";
  stubApi(routes());
  const answered = globalThis.fetch;
  globalThis.fetch = async (request) =>
    new URL((request as Request).url).pathname.endsWith(":undo")
      ? new Response(script, { headers: { "Content-Type": "application/sql" } })
      : answered(request);
  renderAt(`${ADDRESS}?search=s7x3c9v1`);
  await userEvent.click(await screen.findByRole("button", { name: "Undo as SQL" }));
  const dialog = await screen.findByRole("dialog", { name: "Undo as SQL" });
  expect(await within(dialog).findByRole("region", { name: "SQL" })).toHaveTextContent("DELETE FROM t;");
  expect(within(dialog).getByRole("button", { name: "Copy SQL" })).toBeVisible();
});

it("shows how far a search is, and cancels it", async () => {
  const running = { ...search, state: "RUNNING", mined_bytes: 256, found: 3 };
  const requests = stubApi(
    routes({
      [`GET ${SOURCE}/searches/s7x3c9v1`]: { body: { ...running, changes: [], next_after: null } },
      [`DELETE ${SOURCE}/searches/s7x3c9v1`]: { status: 204 },
    }),
  );
  const { history } = renderAt(`${ADDRESS}?search=s7x3c9v1`);
  expect(await screen.findByRole("progressbar", { name: "Read of the log" })).toHaveAttribute(
    "aria-valuenow",
    "25",
  );
  expect(screen.getByText(/3 changes found/)).toBeVisible();
  expect(screen.queryByRole("table", { name: "Changes" })).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Cancel search" }));
  await waitFor(() => expect(history.location.search).toBe(""));
  expect(requests.some(({ method }) => method === "DELETE")).toBe(true);
});

it("says what to do where no stream mines the source, or its engine does not answer", async () => {
  stubApi(
    routes({
      [`GET ${SOURCE}/searches`]: {
        body: {
          ...kept,
          streams: [],
          reason: "No engine that mines this database's WAL can search now.",
          unavailable: [
            {
              stream_id: "stream01",
              stream_name: "orders to warehouse",
              code: "engine_unreachable",
              message: "It does not answer.",
              cure: "Check that thalwegd runs.",
            },
          ],
        },
      },
    }),
  );
  renderAt(ADDRESS);
  expect(await screen.findByText(/No engine that mines/)).toBeVisible();
  expect(screen.getByText(/Check that thalwegd runs/)).toBeVisible();
  expect(screen.queryByRole("button", { name: "Search" })).toBeNull();
});

it("says why a search has failed, or was refused, and that nothing was found", async () => {
  const error = { code: "search_overtaken", message: "WAL is no longer kept.", cure: "Search again." };
  stubApi(
    routes({
      [`GET ${SOURCE}/searches/s7x3c9v1`]: {
        body: { ...search, state: "FAILED", found: 0, error, changes: [], next_after: null },
      },
      [`GET ${SOURCE}/searches/s0000001`]: {
        body: { ...search, id: "s0000001", found: 0, changes: [], next_after: null },
      },
      [`POST ${SOURCE}/searches`]: {
        status: 503,
        body: {
          type: "urn:thalweg:problem:search_busy",
          title: "Too many searches are running",
          status: 503,
          detail: "Another one runs.",
          instance: "/",
          code: "search_busy",
          cure: "Wait.",
          sql: null,
          errors: [],
          checks: [],
        },
      },
    }),
  );
  renderAt(`${ADDRESS}?search=s7x3c9v1`);
  expect(await screen.findByText(/WAL is no longer kept/)).toBeVisible();
  expect(screen.queryByText("No change was found")).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Search" }));
  expect(await screen.findByText(/Another one runs/)).toBeVisible();
});

it("lets a search without changes say where it looked", async () => {
  stubApi(
    routes({
      [`GET ${SOURCE}/searches/s7x3c9v1`]: {
        body: { ...search, found: 0, changes: [], next_after: null },
      },
    }),
  );
  renderAt(`${ADDRESS}?search=s7x3c9v1`);
  expect(await screen.findByText("No change was found")).toBeVisible();
});

it("shows viewers nothing of rows", async () => {
  stubApi(
    routes({ "GET /api/v1/session": { body: { ...session, user: { ...session.user, role: "viewer" } } } }),
  );
  renderAt(ADDRESS);
  expect(await screen.findByText("Only operators may search")).toBeVisible();
});
