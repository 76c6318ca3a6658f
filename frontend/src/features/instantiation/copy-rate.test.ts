import { expect, it } from "vitest";
import { type CopyPoint, ratesOf } from "./copy-rate";

const points = (...rows: number[]): CopyPoint[] =>
  rows.map((count, second) => ({ at: second * 1000, rows: count }));

it("knows the rate from the second point on, over the last ten seconds", () => {
  expect(ratesOf(points(0, 100, 300))).toEqual([null, 100, 150]);
  const jumps = points(...Array.from({ length: 30 }, (_, second) => 1000 * Math.floor(second / 5)));
  expect(ratesOf(jumps).at(-1)).toBe(200);
});

it("knows it between points that lie further apart, and never below zero", () => {
  expect(
    ratesOf([
      { at: 0, rows: 0 },
      { at: 60_000, rows: 6000 },
      { at: 120_000, rows: 18_000 },
    ]),
  ).toEqual([null, 100, 200]);
  expect(ratesOf(points(500, 200))).toEqual([null, null]);
});
