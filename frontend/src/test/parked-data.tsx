import { useState } from "react";
import type { ParkedContents, ParkedTransaction, ParkedTransactions, ParkedValue } from "@/api/types";
import { ErrorQueue } from "@/features/error-queue/error-queue";
import { renderUi } from "./render";

export const error: ParkedTransaction = {
  id: 4,
  commit_lsn: "0/1",
  xid: 700,
  lcrs: 2,
  tables: ["public.orders"],
  code: "apply_conflict",
  message: "duplicate key",
  sqlstate: "23505",
  parked_at: "2026-11-21T00:00:05Z",
  edited: 0,
  left_out: 0,
  constraint: null,
  failed_change: null,
  etag: '"e1"',
};

const value = (text: string | null, more: Partial<ParkedValue> = {}): ParkedValue => ({
  state: text === null ? "absent" : "text",
  text,
  bytes: text?.length ?? 0,
  cut: false,
  ...more,
});
export const contents: ParkedContents = {
  error,
  changes_total: 150,
  changes: [
    {
      number: 1,
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
      edit: null,
    },
    {
      number: 2,
      operation: "DELETE",
      schema: "public",
      table: "orders",
      columns: [],
      found_by: ["id"],
      rows_found: 0,
      problem: null,
      edit: null,
    },
  ],
  next_after: 2,
};
export const QUEUE = "GET /api/v1/streams/stream01/destinations/dest01/errors";
export const listed = (errors: ParkedTransaction[], more: Partial<ParkedTransactions> = {}) => ({
  body: { errors, total: errors.length, roots: 1, causes: null, next_cursor: null, execution: null, ...more },
});

/** Keeps the cause, as the page does in its address. */
function WithCause({ mayAct }: { mayAct: boolean }) {
  const [cause, setCause] = useState<string>();
  return (
    <ErrorQueue streamId="stream01" destinationId="dest01" mayAct={mayAct} cause={cause} onCause={setCause} />
  );
}

export function renderQueue(mayAct = true) {
  renderUi(<WithCause mayAct={mayAct} />);
}

export const CHANGES = `${QUEUE.replace("GET ", "")}/4/changes`;
