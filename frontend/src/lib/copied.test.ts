import { describe, expect, it } from "vitest";
import { type Copied, copiedInWords, copiedOf, copiedShare } from "./copied";

describe("copiedShare", () => {
  it.each<[Copied, number | null]>([
    [{ rows_copied: 50, rows_estimated: 100 }, 0.5],
    [{ rows_copied: 500, rows_estimated: 100 }, 0.99],
    [{ rows_copied: 5, rows_estimated: null }, null],
    [{ rows_copied: 5, rows_estimated: 0, state: "COPYING" }, null],
    [{ rows_copied: 0, rows_estimated: 0, state: "COPIED" }, 1],
    [{ rows_copied: 0, rows_estimated: 9, state: "WAITING" }, 0],
    [{ rows_copied: 8, rows_estimated: 9, state: "INDEXING" }, 1],
  ])("%o is %s", (copied, share) => {
    expect(copiedShare(copied)).toBe(share);
  });
});

describe("copiedInWords", () => {
  it.each([
    [{ rows_copied: 12_345, rows_estimated: 100_000 }, "12\u202f345 of about 100\u202f000 rows, 12\u00a0%"],
    [{ rows_copied: 500, rows_estimated: 100 }, "500 of about 500 rows, 99\u00a0%"],
    [{ rows_copied: 5, rows_estimated: null }, "5 rows"],
    [{ rows_copied: 1, rows_estimated: null }, "1 row"],
    [{ rows_copied: 0, rows_estimated: 1 }, "0 of about 1 row, 0\u00a0%"],
  ])("%o is %s", (copied, words) => {
    expect(copiedInWords(copied)).toBe(words);
  });
});

describe("copiedOf", () => {
  const known: Copied = { rows_copied: 40, rows_estimated: 100, state: "COPYING" };
  const neverAnalysed: Copied = { rows_copied: 10, rows_estimated: null, state: "COPYING" };

  it.each([
    [[known, known], "80 of about 200 rows, 40\u00a0%"],
    [[known, neverAnalysed], "50 of at least 100 rows"],
    [[neverAnalysed], "10 rows"],
  ])("%o is %s", (tables, words) => {
    expect(copiedInWords(copiedOf(tables))).toBe(words);
  });

  it("has no share while an estimate is missing", () => {
    expect(copiedShare(copiedOf([known, neverAnalysed]))).toBeNull();
  });
});
