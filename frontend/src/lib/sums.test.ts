import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { bytes } from "./format";
import { estimatedRows, knownSum, sumQuantity } from "./sums";

interface Case {
  parts: (number | null)[];
  sum: number | null;
  at_least: boolean;
}

// The backend's sums read the same cases.
const cases: Case[] = JSON.parse(readFileSync("../backend/tests/known_sums.json", "utf8"));

describe("known sums", () => {
  it.each(cases)("$parts", ({ parts, sum, at_least }) => {
    expect(knownSum(parts)).toEqual({ value: sum, atLeast: at_least });
  });

  it("are shown as lower bounds while a part is unknown", () => {
    expect(sumQuantity(knownSum([1024, null]), bytes)).toEqual({ value: "≥ 1", unit: "KiB" });
    expect(sumQuantity(knownSum([1024, 0]), bytes)).toEqual({ value: "1", unit: "KiB" });
    expect(sumQuantity(knownSum([null]), bytes)).toEqual(bytes(null));
  });
});

describe("estimated rows", () => {
  it.each([
    [[], "no rows"],
    [[1], "about 1\u00a0row"],
    [[10, 20], "about 30\u00a0rows"],
    [[10, null], "at least 10\u00a0rows"],
    [[null], "an unknown number of rows"],
  ])("of tables with %o are %s", (estimates, words) => {
    expect(estimatedRows(estimates.map((rows_estimated) => ({ rows_estimated })))).toBe(words);
  });
});
