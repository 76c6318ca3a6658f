import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type {
  ErrorExecution,
  ParkedContents,
  ParkedTransaction,
  ParkedTransactions,
  ParkedValue,
} from "@/api/types";
import { ConfirmDecision } from "@/features/error-queue/confirm-decision";
import { ErrorQueue } from "@/features/error-queue/error-queue";
import { ExecutionProgress } from "@/features/error-queue/execution-progress";
import { renderUi, stubApi } from "./render";

const error: ParkedTransaction = {
  id: 4,
  commit_lsn: "0/1",
  xid: 700,
  lcrs: 2,
  tables: ["public.orders"],
  code: "apply_conflict",
  message: "duplicate key",
  sqlstate: "23505",
  parked_at: "2026-11-21T00:00:05Z",
};

it("discards only with a reason, and hands it over", async () => {
  const confirmed: (string | null)[] = [];
  renderUi(
    <ConfirmDecision
      error={error}
      discards
      path="/errors"
      onClose={() => {}}
      onConfirm={(reason) => confirmed.push(reason)}
    />,
  );
  const dialog = await screen.findByRole("dialog", { name: "Discard transaction 700" });
  const discard = within(dialog).getByRole("button", { name: "Discard" });
  expect(discard).toBeDisabled();
  await userEvent.type(within(dialog).getByLabelText(/Reason/), " already there ");
  await userEvent.click(discard);
  expect(confirmed).toEqual(["already there"]);
});

it("executes after a question", async () => {
  const confirmed: (string | null)[] = [];
  renderUi(
    <ConfirmDecision
      error={error}
      discards={false}
      path="/errors"
      onClose={() => {}}
      onConfirm={(reason) => confirmed.push(reason)}
    />,
  );
  const dialog = await screen.findByRole("dialog", { name: "Execute transaction 700" });
  await userEvent.click(within(dialog).getByRole("button", { name: "Execute" }));
  expect(confirmed).toEqual([null]);
});

const value = (text: string | null, more: Partial<ParkedValue> = {}): ParkedValue => ({
  state: text === null ? "absent" : "text",
  text,
  bytes: text?.length ?? 0,
  cut: false,
  ...more,
});
const contents: ParkedContents = {
  error,
  changes_total: 150,
  changes: [
    {
      operation: "UPDATE",
      schema: "public",
      table: "orders",
      columns: [
        {
          name: "id",
          identity: true,
          wanted: value("500"),
          before: value(null),
          now: value("500"),
          wanted_differs: false,
          before_differs: null,
        },
        {
          name: "note",
          identity: false,
          wanted: value("wanted", { cut: true, bytes: 4096 }),
          before: value(null, { state: "unchanged" }),
          now: value(null, { state: "null" }),
          wanted_differs: true,
          before_differs: null,
        },
      ],
      found_by: ["id"],
      rows_found: 1,
      problem: null,
    },
    {
      operation: "DELETE",
      schema: "public",
      table: "orders",
      columns: [],
      found_by: ["id"],
      rows_found: 0,
      problem: null,
    },
  ],
};
const QUEUE = "GET /api/v1/streams/stream01/destinations/dest01/errors";
const listed = (errors: ParkedTransaction[], more: Partial<ParkedTransactions> = {}) => ({
  body: { errors, total: errors.length, roots: 1, next_cursor: null, execution: null, ...more },
});

function renderQueue(mayAct = true) {
  renderUi(<ErrorQueue streamId="stream01" destinationId="dest01" mayAct={mayAct} />);
}

it("opens a row to what the change wanted and what the destination has", async () => {
  stubApi({ [QUEUE]: listed([error]), [`${QUEUE}/4`]: { body: contents } });
  renderQueue();
  await userEvent.click(await screen.findByRole("button", { name: "Open transaction 700" }));
  const dialog = await screen.findByRole("dialog", { name: "Transaction 700" });
  const table = await within(dialog).findByRole("table", { name: "Change 1: UPDATE public.orders" });
  const [, id, note] = within(table).getAllByRole("row");
  expect(id).toHaveTextContent("500");
  expect(id).not.toHaveTextContent("differs");
  expect(within(id as HTMLElement).getByRole("img", { name: "finds the row" })).toBeVisible();
  expect(note).toHaveTextContent("differs: wanted");
  expect(note).toHaveTextContent("cut at 1 KiB of 4 KiB");
  expect(note).toHaveTextContent("unchanged, not sent");
  expect(note).toHaveTextContent("NULL");
  expect(dialog).toHaveTextContent("The destination has no such row");
  expect(dialog).toHaveTextContent("150 changes. The first 2 are shown.");
});

it("shows a viewer the queue, and no rows of tables", async () => {
  stubApi({ [QUEUE]: listed([error]) });
  renderQueue(false);
  expect(await screen.findByRole("button", { name: "Open transaction 700" })).toBeDisabled();
});

it("shows a viewer why one is parked without what its message quotes", async () => {
  stubApi({ [QUEUE]: listed([{ ...error, message: null }]) });
  renderQueue(false);
  expect(await screen.findByText(/operators see it/)).toBeVisible();
  expect(screen.getByText(/apply_conflict · SQLSTATE 23505/)).toBeVisible();
  expect(screen.getByRole("button", { name: "Execute all" })).toBeDisabled();
});

it("executes the whole queue after a question", async () => {
  let executed = 0;
  stubApi({
    [QUEUE]: listed([error], { total: 14_047 }),
    [`${QUEUE.replace("GET", "POST")}:execute`]: () => {
      executed += 1;
      return { status: 202, body: { accepted: true, state: "RUNNING" } };
    },
  });
  renderQueue();
  await userEvent.click(await screen.findByRole("button", { name: "Execute all" }));
  const dialog = await screen.findByRole("dialog", { name: "Execute all" });
  expect(dialog).toHaveTextContent(/All 14.047 transactions are applied now/);
  expect(executed).toBe(0);
  await userEvent.click(within(dialog).getByRole("button", { name: "Execute all" }));
  await waitFor(() => expect(executed).toBe(1));
});

it("folds those that wait, and reads the rest part by part", async () => {
  const asked: string[] = [];
  stubApi({
    [QUEUE]: (request) => {
      const query = new URL(request.url).searchParams;
      asked.push(`${query.get("roots_only")} ${query.get("cursor") ?? "first"}`);
      if (query.get("cursor")) return listed([{ ...error, id: 6, xid: 702 }], { total: 14_047 });
      return listed([error], { total: 14_047, next_cursor: "next" });
    },
  });
  renderQueue();
  expect(
    await screen.findByText(/14.047 transactions are parked: 1 at the head, 14.046 waiting/),
  ).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Show more" }));
  expect(await screen.findByRole("button", { name: "Open transaction 702" })).toBeVisible();
  await userEvent.click(screen.getByRole("switch", { name: "Show waiting transactions" }));
  await waitFor(() => expect(asked).toContain("false first"));
  expect(asked.slice(0, 2)).toEqual(["true first", "true next"]);
});

it("tells how far an execution is, and why it stopped", () => {
  const execution: ErrorExecution = {
    error_id: 4,
    state: "RUNNING",
    executed: 886,
    total: 14_000,
    started_at: error.parked_at,
    finished_at: null,
    message: null,
  };
  renderUi(<ExecutionProgress execution={execution} />);
  expect(screen.getByRole("status")).toHaveTextContent(/886 of 14.000 transactions/);
  renderUi(<ExecutionProgress execution={{ ...execution, state: "FAILED", message: "duplicate key" }} />);
  expect(screen.getByRole("alert")).toHaveTextContent("duplicate key");
});
