// How far a copy is, said in the same words and figures wherever it is told of.
import type { components } from "@/api/generated/schema";
import { asText, counted, formatCount, percent } from "./format";
import { knownSum } from "./sums";

export interface Copied {
  rows_copied: number;
  rows_estimated: number | null;
  state?: components["schemas"]["TableState"];
  /** The estimate is a lower bound. */
  atLeast?: boolean;
}

/** The sum over several tables: without the estimate of one, a lower bound and no share. */
export function copiedOf(tables: readonly Copied[]): Copied {
  const estimate = knownSum(tables.map(({ rows_estimated }) => rows_estimated));
  return {
    rows_copied: tables.reduce((sum, { rows_copied }) => sum + rows_copied, 0),
    rows_estimated: estimate.value,
    atLeast: estimate.atLeast,
  };
}

/** 0..1, null while it cannot be told. Statistics may be too low: it stays below 1 until the table is done. */
export function copiedShare({ rows_copied, rows_estimated, state, atLeast }: Copied): number | null {
  if (state === "INDEXING" || state === "COPIED" || state === "REPLICATING") return 1;
  if (state === "WAITING") return 0;
  if (atLeast || rows_estimated === null || rows_estimated <= 0) return null;
  return Math.min(0.99, rows_copied / rows_estimated);
}

/** "12 345 of about 100 000 rows, 12 %": exact, so that no two places round differently. Never more than all. */
export function copiedInWords(copied: Copied): string {
  const { rows_copied, rows_estimated, atLeast } = copied;
  const share = copiedShare(copied);
  if (rows_estimated === null || (share === null && !atLeast)) return counted(rows_copied, "row");
  const total = Math.max(rows_copied, rows_estimated);
  if (share === null) return `${formatCount(rows_copied)} of at least ${counted(total, "row")}`;
  return `${formatCount(rows_copied)} of about ${counted(total, "row")}, ${asText(percent(share))}`;
}
