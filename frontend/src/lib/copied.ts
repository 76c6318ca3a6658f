interface Copied {
  rows_copied: number;
  rows_estimated: number | null;
  state?: string;
}

/** 0..1, null while it cannot be told. Statistics may be too low: it stays below 1 until the table is done. */
export function copiedShare({ rows_copied, rows_estimated, state }: Copied): number | null {
  if (state === "INDEXING" || state === "COPIED" || state === "REPLICATING") return 1;
  if (state === "WAITING" || state === "PENDING") return 0;
  if (rows_estimated === null || rows_estimated <= 0) return null;
  return Math.min(0.99, rows_copied / rows_estimated);
}
