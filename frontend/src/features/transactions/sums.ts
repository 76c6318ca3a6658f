import type { Transaction } from "@/api/types";

export type Kind = "all" | "open" | "streaming" | "spilled" | "waiting" | "executing";

const tests: Record<Kind, (transaction: Transaction) => boolean> = {
  all: () => true,
  open: ({ commit_lsn }) => commit_lsn === null,
  streaming: ({ streamed, commit_lsn }) => streamed && commit_lsn === null,
  spilled: ({ spilled_bytes }) => spilled_bytes > 0,
  waiting: ({ state }) => ["WAIT DEPENDENCY", "WAIT RETRY", "WAIT COMMIT", "READY"].includes(state),
  executing: ({ state }) => state === "EXECUTE TRANSACTION",
};

export const kinds: { kind: Kind; label: string }[] = [
  { kind: "all", label: "All" },
  { kind: "open", label: "Open" },
  { kind: "streaming", label: "Streaming" },
  { kind: "spilled", label: "Spilled" },
  { kind: "waiting", label: "Waiting" },
  { kind: "executing", label: "Executing" },
];

export function ofKind(transactions: Transaction[], kind: Kind): Transaction[] {
  return transactions.filter(tests[kind]);
}
