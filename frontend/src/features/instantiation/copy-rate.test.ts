import { expect, it } from "vitest";
import { type CopyPoint, ratesOf, withPoint } from "./copy-rate";

const points = (...rows: number[]): CopyPoint[] =>
  rows.map((count, second) => ({ at: second * 1000, rows: count }));

it("knows the rate from the second point on, over the last ten seconds", () => {
  expect(ratesOf(points(0, 100, 300))).toEqual([null, 100, 150]);
  const jumps = points(...Array.from({ length: 30 }, (_, second) => 1000 * Math.floor(second / 5)));
  expect(ratesOf(jumps).at(-1)).toBe(200);
});

it("takes each report once, and begins anew when a copy does", () => {
  const known = points(0, 100);
  expect(withPoint(known, { at: 1000, rows: 100 })).toBe(known);
  expect(withPoint(known, { at: 2000, rows: 150 })).toHaveLength(3);
  expect(withPoint(known, { at: 2000, rows: 5 })).toEqual([{ at: 2000, rows: 5 }]);
});
