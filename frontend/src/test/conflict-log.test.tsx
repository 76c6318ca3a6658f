import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { ConflictCount, LoggedChange, OpenedConflict, ParkedValue } from "@/api/types";
import { ConflictLog } from "@/features/error-queue/conflict-log";
import { renderUi, stubApi } from "./render";

const entry: LoggedChange = {
  id: 812,
  logged_at: "2026-11-21T00:00:05Z",
  commit_lsn: "0/1",
  committed_at: "2026-11-21T00:00:04Z",
  xid: 700,
  change: 2,
  schema: "public",
  table: "orders",
  operation: "INSERT",
  kind: "insert_exists",
  sqlstate: "23505",
  action: "discard",
  message: "duplicate key",
};
const count: ConflictCount = {
  schema: "public",
  table: "orders",
  kind: "insert_exists",
  sqlstate: null,
  action: "discard",
  changes: 1700,
  newest: "2026-11-21T00:00:05Z",
};
const value = (text: string | null, state: ParkedValue["state"] = "text"): ParkedValue => ({
  state,
  text,
  bytes: text?.length ?? 0,
  cut: false,
});
const opened: OpenedConflict = {
  ...entry,
  rows_found: 1,
  columns: [
    {
      name: "id",
      identity: true,
      wanted: value("500"),
      before: value(null, "absent"),
      now: value("500"),
      wanted_differs: false,
      before_differs: null,
    },
    {
      name: "amount",
      identity: false,
      wanted: value("9.90"),
      before: value(null, "absent"),
      now: value(null, "null"),
      wanted_differs: true,
      before_differs: null,
    },
  ],
};
const LOG = "GET /api/v1/streams/stream01/destinations/dest01/conflicts";

it("counts conflicts, and opens one with the cells marked that differ", async () => {
  stubApi({
    [LOG]: { body: { conflicts: [entry], next_cursor: null } },
    [`${LOG}:count`]: {
      body: { counts: [count, { ...count, kind: "error", sqlstate: "23514", action: "skip" }] },
    },
    [`${LOG}/812`]: { body: opened },
  });
  renderUi(<ConflictLog streamId="stream01" destinationId="dest01" mayAct />);
  const counts = await screen.findByRole("table", { name: "Conflicts by table and kind" });
  const [, first, second] = within(counts).getAllByRole("row");
  expect(first).toHaveTextContent(/1.700/);
  expect(first).toHaveTextContent("left out");
  expect(second).toHaveTextContent("none: SQLSTATE 23514");
  expect(second).toHaveTextContent("skipped");
  expect(screen.getByRole("link", { name: "Export as CSV" })).toHaveAttribute(
    "href",
    "/api/v1/streams/stream01/destinations/dest01/conflicts:export?format=csv",
  );
  await userEvent.click(await screen.findByRole("button", { name: "Open conflict 812" }));
  const dialog = await screen.findByRole("dialog", { name: "Conflict 812: INSERT public.orders" });
  const rows = await within(dialog).findByRole("table", { name: "INSERT public.orders" });
  const [, id, amount] = within(rows).getAllByRole("row");
  expect(id).not.toHaveTextContent("differs");
  expect(amount).toHaveTextContent("differs: 9.90");
  expect(amount).toHaveTextContent("NULL");
});

it("lists one kind only", async () => {
  const asked: (string | null)[] = [];
  stubApi({
    [LOG]: (request) => {
      asked.push(new URL(request.url).searchParams.get("kind"));
      return { body: { conflicts: [entry], next_cursor: null } };
    },
    [`${LOG}:count`]: { body: { counts: [count] } },
  });
  renderUi(<ConflictLog streamId="stream01" destinationId="dest01" mayAct />);
  await userEvent.click(await screen.findByRole("combobox", { name: "Conflict" }));
  await userEvent.click(await screen.findByRole("option", { name: "insert_exists" }));
  await screen.findByRole("button", { name: "Open conflict 812" });
  expect(asked).toContain("insert_exists");
});

it("shows a viewer the decisions, and no rows of tables", async () => {
  stubApi({
    [LOG]: { body: { conflicts: [{ ...entry, message: null }], next_cursor: null } },
    [`${LOG}:count`]: { body: { counts: [count] } },
  });
  renderUi(<ConflictLog streamId="stream01" destinationId="dest01" mayAct={false} />);
  expect(await screen.findByRole("button", { name: "Open conflict 812" })).toBeDisabled();
  expect(screen.getByText(/operators see it/)).toBeVisible();
  expect(screen.queryByRole("link", { name: "Export as CSV" })).toBeNull();
});

it("says what would be here while it is empty", async () => {
  stubApi({
    [LOG]: { body: { conflicts: [], next_cursor: null } },
    [`${LOG}:count`]: { body: { counts: [] } },
  });
  renderUi(<ConflictLog streamId="stream01" destinationId="dest01" mayAct />);
  expect(await screen.findByText("The conflict log is empty")).toBeVisible();
});
