import { expect, it } from "vitest";
import type { Transaction } from "@/api/types";
import { kinds, ofKind } from "./sums";

function transaction(values: Partial<Transaction>): Transaction {
  return {
    xid: 1,
    state: "OPEN",
    first_lsn: null,
    commit_lsn: null,
    age_seconds: 1,
    lcrs: 1,
    bytes: 1,
    spilled_bytes: 0,
    streamed: false,
    tables: [],
    applier: null,
    waits_for_xid: null,
    destination_id: null,
    engine_id: "engine01",
    retry: null,
    ...values,
  };
}

it("sorts transactions into kinds; one may be of several", () => {
  const all = [
    transaction({ streamed: true, spilled_bytes: 9 }),
    transaction({ state: "WAIT DEPENDENCY", commit_lsn: "0/1" }),
    transaction({ state: "EXECUTE TRANSACTION", commit_lsn: "0/2", streamed: true }),
  ];
  expect(kinds.map(({ kind }) => [kind, ofKind(all, kind).length])).toEqual([
    ["all", 3],
    ["open", 1],
    ["streaming", 1],
    ["spilled", 1],
    ["waiting", 1],
    ["executing", 1],
  ]);
});
