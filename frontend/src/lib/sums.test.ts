import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { bytes } from "./format";
import { estimatedRows, exactSum, knownSum, oldestParked, parkedOf, sumQuantity } from "./sums";

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
    expect(exactSum(knownSum(parts))).toBe(at_least ? null : sum);
  });

  it("are shown as lower bounds while a part is unknown", () => {
    expect(sumQuantity(knownSum([1024, null]), bytes)).toEqual({ value: "≥ 1", unit: "KiB" });
    expect(sumQuantity(knownSum([1024, 0]), bytes)).toEqual({ value: "1", unit: "KiB" });
    expect(sumQuantity(knownSum([null]), bytes)).toEqual(bytes(null));
  });
});

it("counts what is parked at least, while a destination tells nothing", () => {
  const of = (...counts: (number | null)[]) =>
    parkedOf({ destinations: counts.map((error_queue_transactions) => ({ error_queue_transactions })) });
  expect(of(3, null)).toEqual({ value: "≥ 3", unit: "txn" });
  expect(of(3, 4)).toEqual({ value: "7", unit: "txn" });
  expect(of(null)).toEqual({ value: "–", unit: "" });
});

it("tells how long ago the oldest of several queues was parked", () => {
  const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
  const of = (...times: (string | null)[]) =>
    oldestParked(times.map((error_queue_oldest_at) => ({ error_queue_oldest_at })));
  expect(of(ago(5), ago(180), null)).toBe("oldest 3 h ago");
  expect(of(null)).toBeNull();
  expect(of()).toBeNull();
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
