import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { DryRun, ErrorCause, ErrorExecution, ParkedContents } from "@/api/types";
import { ConfirmDecision } from "@/features/error-queue/confirm-decision";
import { ErrorQueue } from "@/features/error-queue/error-queue";
import { ExecutionProgress } from "@/features/error-queue/execution-progress";
import { CHANGES, contents, error, listed, QUEUE, renderQueue } from "./parked-data";
import { renderUi, stubApi } from "./render";

it("discards only with a reason, and hands it over", async () => {
  const confirmed: (string | null)[] = [];
  renderUi(
    <ConfirmDecision
      error={error}
      discards
      streamId="stream01"
      destinationId="dest01"
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

it("asks before the audit log keeps only a part of what is discarded", async () => {
  const asked: (string | null)[] = [];
  stubApi({
    [QUEUE]: listed([error]),
    [`DELETE ${QUEUE.slice(4)}/4`]: (request) => {
      asked.push(new URL(request.url).searchParams.get("partly"));
      if (asked.length > 1) return { status: 204 };
      const refused = { code: "not_kept_whole", title: "The audit log cannot keep all of it", cure: "Ask." };
      return { status: 409, body: { type: "about:blank", status: 409, detail: "Of 12,000.", ...refused } };
    },
  });
  renderQueue();
  await userEvent.click(await screen.findByRole("button", { name: "Discard transaction 700" }));
  const dialog = await screen.findByRole("dialog", { name: "Discard transaction 700" });
  await userEvent.type(within(dialog).getByLabelText(/Reason/), "already there");
  await userEvent.click(within(dialog).getByRole("button", { name: "Discard" }));
  const refusal = await screen.findByRole("alert", { name: "The audit log cannot keep all of it" });
  await userEvent.click(within(refusal).getByRole("button", { name: /keep a part in the audit log/ }));
  await waitFor(() => expect(asked).toEqual([null, "true"]));
  await waitFor(() => expect(screen.queryByRole("alert")).toBeNull());
});

it("executes after a question", async () => {
  const confirmed: (string | null)[] = [];
  renderUi(
    <ConfirmDecision
      error={error}
      discards={false}
      streamId="stream01"
      destinationId="dest01"
      path="/errors"
      onClose={() => {}}
      onConfirm={(reason) => confirmed.push(reason)}
    />,
  );
  const dialog = await screen.findByRole("dialog", { name: "Execute transaction 700" });
  await userEvent.click(within(dialog).getByRole("button", { name: "Execute" }));
  expect(confirmed).toEqual([null]);
});

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
  expect(dialog).toHaveTextContent("150 changes. 1 to 2 are shown.");
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
    cause: null,
    role: "clerk",
    state: "RUNNING",
    executed: 886,
    total: 14_000,
    failed_again: 0,
    failures: [],
    left_out: 0,
    left_out_ids: [],
    started_at: error.parked_at,
    finished_at: null,
    message: null,
  };
  renderUi(<ExecutionProgress execution={execution} />);
  expect(screen.getByRole("status")).toHaveTextContent(/886 of 14.000 transactions/);
  renderUi(<ExecutionProgress execution={{ ...execution, state: "FAILED", message: "duplicate key" }} />);
  expect(screen.getByRole("alert")).toHaveTextContent("duplicate key");
});

const duplicates: ErrorCause = {
  cause: "5f3a",
  kind: "duplicate_key",
  title: "The destination has a row with this key already",
  cure: "Open one and compare the rows.",
  code: "apply_conflict",
  sqlstate: "23505",
  table: '"public"."orders"',
  object: "orders_pkey",
  transactions: 2,
  oldest: error.parked_at,
};
const waiting: ErrorCause = {
  ...duplicates,
  cause: "91d0",
  kind: "waits",
  title: "They wait behind other parked transactions",
  code: "parked_behind",
  sqlstate: null,
  table: null,
  object: null,
  transactions: 7,
};

it("groups the queue by cause; one of them is listed and executed by itself", async () => {
  const listedCauses: (string | null)[] = [];
  const executed: (string | null)[] = [];
  stubApi({
    [QUEUE]: (request) => {
      listedCauses.push(new URL(request.url).searchParams.get("cause"));
      return listed([error], { total: 9, causes: [waiting, duplicates] });
    },
    [`${QUEUE.replace("GET", "POST")}:execute`]: (request) => {
      executed.push(new URL(request.url).searchParams.get("cause"));
      return { status: 202, body: { accepted: true, state: "RUNNING" } };
    },
  });
  renderQueue();
  const causes = await screen.findByRole("table", { name: "Causes" });
  const [, behind, keys] = within(causes).getAllByRole("row");
  expect(screen.getByText(/^oldest .* ago$/)).toBeVisible();
  expect(keys).toHaveTextContent("orders_pkey");
  expect(keys).toHaveTextContent("compare the rows");
  expect(within(behind as HTMLElement).queryByRole("button", { name: /Execute/ })).toBeNull();
  await userEvent.click(within(keys as HTMLElement).getByRole("button", { name: /List only/ }));
  await waitFor(() => expect(listedCauses).toContain("5f3a"));
  await userEvent.click(screen.getByRole("button", { name: "Show all" }));
  await userEvent.click(await screen.findByRole("button", { name: `Execute: ${duplicates.title}` }));
  const dialog = await screen.findByRole("dialog", { name: "Execute these" });
  expect(executed).toEqual([]);
  await userEvent.click(within(dialog).getByRole("button", { name: "Execute these" }));
  await waitFor(() => expect(executed).toEqual(["5f3a"]));
});

it("has beside a cause what carries out its cure", async () => {
  stubApi({ [QUEUE]: () => listed([error], { total: 9, causes: [waiting, duplicates] }) });
  renderUi(
    <ErrorQueue
      streamId="stream01"
      destinationId="dest01"
      mayAct
      cureOf={({ kind, table }) =>
        kind === "duplicate_key" && <button type="button">{`Copy ${table}`}</button>
      }
      cause={undefined}
      onCause={() => {}}
    />,
  );
  const causes = await screen.findByRole("table", { name: "Causes" });
  const [, behind, keys] = within(causes).getAllByRole("row");
  expect(within(keys as HTMLElement).getByRole("button", { name: 'Copy "public"."orders"' })).toBeVisible();
  expect(within(behind as HTMLElement).queryByRole("button", { name: /^Copy/ })).toBeNull();
});

it("tries a transaction before it is executed", async () => {
  const outcomes: DryRun[] = [
    {
      succeeds: false,
      code: "apply_conflict",
      sqlstate: "23505",
      table: '"public"."orders"',
      message: "duplicate key (id) = (500)",
      title: duplicates.title,
      cure: duplicates.cure,
      changes: 2,
      edited: 0,
      left_out: 0,
      settled: 0,
      failed_change: 2,
    },
    {
      succeeds: true,
      code: null,
      sqlstate: null,
      table: null,
      message: null,
      title: null,
      cure: null,
      changes: 2,
      edited: 0,
      left_out: 1,
      settled: 1,
      failed_change: null,
    },
    {
      succeeds: true,
      code: null,
      sqlstate: null,
      table: null,
      message: null,
      title: null,
      cure: null,
      changes: 2,
      edited: 0,
      left_out: 2,
      settled: 0,
      failed_change: null,
    },
  ];
  const asked: unknown[] = [];
  stubApi({
    [QUEUE]: listed([error]),
    [`${QUEUE.replace("GET", "POST")}/4/dry-run`]: async (request) => {
      const text = await request.text();
      asked.push(text === "" ? null : JSON.parse(text));
      return { body: outcomes.shift() };
    },
    [`${QUEUE.replace("GET", "POST")}/4/execute`]: async (request) => {
      asked.push(await request.json());
      return { status: 202, body: { accepted: true, state: "DONE" } };
    },
  });
  renderQueue();
  await userEvent.click(await screen.findByRole("button", { name: "Execute transaction 700" }));
  const dialog = await screen.findByRole("dialog", { name: "Execute transaction 700" });
  await userEvent.click(within(dialog).getByRole("button", { name: "Dry run" }));
  expect(await within(dialog).findByRole("alert")).toHaveTextContent("duplicate key (id) = (500)");
  expect(within(dialog).getByRole("alert")).toHaveTextContent("At change 2");
  await userEvent.type(within(dialog).getByRole("textbox", { name: "Role" }), "clerk");
  await userEvent.click(within(dialog).getByRole("button", { name: "Dry run" }));
  expect(await within(dialog).findByRole("status")).toHaveTextContent(
    "accepts its other changes now. Changes: 1 left out, 1 refused and settled by error handlers.",
  );
  expect(asked).toEqual([null, { role: "clerk" }]);
  await userEvent.click(within(dialog).getByRole("button", { name: "Dry run" }));
  await waitFor(() =>
    expect(within(dialog).getByRole("status")).toHaveTextContent("leave the queue without being applied"),
  );
  await userEvent.click(within(dialog).getByRole("button", { name: "Execute" }));
  await waitFor(() => expect(asked[3]).toEqual({ role: "clerk" }));
});

it("tells which transactions failed again", () => {
  const execution: ErrorExecution = {
    error_id: null,
    cause: "5f3a",
    role: null,
    state: "FAILED",
    executed: 3,
    total: 5,
    failed_again: 1,
    failures: [{ error_id: 6, code: "apply_conflict", sqlstate: "23505", message: "duplicate key" }],
    left_out: 0,
    left_out_ids: [],
    started_at: error.parked_at,
    finished_at: error.parked_at,
    message: "duplicate key. 3 transactions were executed; 2 stay in the error queue",
  };
  renderUi(<ExecutionProgress execution={execution} />);
  expect(screen.getByRole("alert")).toHaveTextContent("3 of 5 transactions; 1 failed again");
  expect(screen.getByRole("listitem")).toHaveTextContent("Transaction 6 of the queue: duplicate key");
});

it("tells that a transaction was executed though one behind it failed", () => {
  const execution: ErrorExecution = {
    error_id: 1,
    cause: null,
    role: null,
    state: "FAILED",
    executed: 1,
    total: 2,
    failed_again: 1,
    failures: [{ error_id: 2, code: "apply_conflict", sqlstate: "23505", message: "duplicate key" }],
    left_out: 0,
    left_out_ids: [],
    started_at: error.parked_at,
    finished_at: error.parked_at,
    message: "duplicate key",
  };
  renderUi(<ExecutionProgress execution={execution} />);
  expect(screen.getByRole("alert")).toHaveTextContent(
    "Transaction 1 of the queue was executed; 1 behind it failed",
  );
});

it("leaves a change out with a reason, and takes that back", async () => {
  let edit: ParkedContents["changes"][number]["edit"] = null;
  const etags: (string | null)[] = [];
  stubApi({
    [QUEUE]: () => listed([{ ...error, left_out: edit ? 1 : 0 }]),
    [`${QUEUE}/4`]: () => ({
      body: {
        ...contents,
        error: { ...error, etag: edit ? '"e2"' : '"e1"' },
        changes: contents.changes.map((change, at) => (at === 1 ? { ...change, edit } : change)),
      },
    }),
    [`PUT ${CHANGES}/2`]: async (request) => {
      etags.push(request.headers.get("If-Match"));
      edit = { values: {}, ...(await request.json()) };
      return { status: 204 };
    },
    [`DELETE ${CHANGES}/2`]: (request) => {
      etags.push(request.headers.get("If-Match"));
      edit = null;
      return { status: 204 };
    },
  });
  renderQueue();
  await userEvent.click(await screen.findByRole("button", { name: "Open transaction 700" }));
  expect(screen.queryByRole("button", { name: "Edit change 2" })).toBeNull();
  await userEvent.click(await screen.findByRole("button", { name: "Leave out change 2" }));
  const dialog = await screen.findByRole("dialog", { name: "Leave out change 2: DELETE public.orders" });
  const leaveOut = within(dialog).getByRole("button", { name: "Leave out" });
  expect(leaveOut).toBeDisabled();
  expect(within(dialog).getByText(/-X PUT/)).toHaveTextContent(`-H 'If-Match: "e1"'`);
  await userEvent.type(within(dialog).getByLabelText(/Reason/), " still needed ");
  await userEvent.click(leaveOut);
  expect(
    await screen.findByText(/Left out when the transaction is executed. Reason: still needed/),
  ).toBeVisible();
  expect(edit).toEqual({ values: {}, left_out: true, reason: "still needed" });
  expect(await screen.findByText(/Changes: 1 left out/)).toBeInTheDocument();
  await userEvent.click(screen.getByRole("button", { name: "Take back the edit of change 2" }));
  expect(await screen.findByRole("button", { name: "Leave out change 2" })).toBeVisible();
  expect(edit).toBeNull();
  expect(etags).toEqual(['"e1"', '"e2"']);
});

it("gives a change other values, and shows why they are refused", async () => {
  const sent: unknown[] = [];
  stubApi({
    [QUEUE]: listed([error]),
    [`${QUEUE}/4`]: () => ({
      body: {
        ...contents,
        changes: contents.changes.map((change, at) =>
          at === 0 && sent.length > 1
            ? {
                ...change,
                edit: { left_out: false, values: { id: "501", note: null }, reason: "another key" },
              }
            : change,
        ),
      },
    }),
    [`PUT ${CHANGES}/1`]: async (request) => {
      sent.push(await request.json());
      if (sent.length > 1) return { status: 204 };
      return {
        status: 422,
        body: {
          type: "urn:thalweg:problem:invalid_request",
          title: "The request is not valid",
          status: 422,
          detail: "public.orders has no such column.",
          code: "invalid_request",
          errors: [{ pointer: "/values/id", code: "unknown_column", message: "no such column" }],
        },
      };
    },
  });
  renderQueue();
  await userEvent.click(await screen.findByRole("button", { name: "Open transaction 700" }));
  await userEvent.click(await screen.findByRole("button", { name: "Edit change 1" }));
  const dialog = await screen.findByRole("dialog", { name: "Edit change 1: UPDATE public.orders" });
  await userEvent.type(within(dialog).getByLabelText(/Reason/), "another key");
  expect(within(dialog).getByRole("button", { name: "Save" })).toBeDisabled();
  await userEvent.click(within(dialog).getByRole("checkbox", { name: "Edit id" }));
  const value = within(dialog).getByRole("textbox", { name: "New value of id" });
  expect(value).toHaveValue("500");
  await userEvent.clear(value);
  await userEvent.type(value, "501");
  await userEvent.click(within(dialog).getByRole("checkbox", { name: "Edit note" }));
  expect(within(dialog).getByRole("textbox", { name: "New value of note" })).toHaveValue("");
  expect(within(dialog).getByText("The value that came is too long to be filled in.")).toBeInTheDocument();
  await userEvent.type(within(dialog).getByRole("textbox", { name: "New value of note" }), "x");
  await userEvent.click(within(dialog).getByRole("checkbox", { name: "note is NULL" }));
  await userEvent.click(within(dialog).getByRole("checkbox", { name: "note is NULL" }));
  expect(within(dialog).getByRole("textbox", { name: "New value of note" })).toHaveValue("x");
  await userEvent.click(within(dialog).getByRole("checkbox", { name: "note is NULL" }));
  await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
  expect(await within(dialog).findByRole("alert")).toHaveTextContent("/values/id");
  await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
  const table = await screen.findByRole("table", { name: "Change 1: UPDATE public.orders" });
  await waitFor(() => expect(table).toHaveTextContent("edited: 501"));
  expect(table).toHaveTextContent("edited: NULL");
  expect(sent[1]).toEqual({
    left_out: false,
    values: { id: "501", note: null },
    reason: "another key",
  });
});

it("says of an execution that nothing of a transaction was applied", () => {
  const execution: ErrorExecution = {
    error_id: 4,
    cause: null,
    role: null,
    state: "DONE",
    executed: 1,
    total: 1,
    failed_again: 0,
    failures: [],
    left_out: 1,
    left_out_ids: [4],
    started_at: error.parked_at,
    finished_at: error.parked_at,
    message: null,
  };
  renderUi(<ExecutionProgress execution={execution} />);
  expect(screen.getByRole("status")).toHaveTextContent(/Transaction 4 left the queue .* without anything/);
});

it("says of an empty queue what parks a transaction: a policy, or disable_on_error", async () => {
  stubApi({ [QUEUE]: listed([], { total: 0, roots: 0 }) });
  renderQueue();
  expect(await screen.findByText(/is parked here whole/)).toHaveTextContent(
    /if a policy in error_policies says so or, where none matches, disable_on_error is off/,
  );
});
