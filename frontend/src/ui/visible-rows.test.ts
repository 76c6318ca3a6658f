import { describe, expect, it } from "vitest";
import { ROW_PX, visibleRows } from "./visible-rows";

describe("the rows of a long table that are drawn", () => {
  it("are all of a short one", () => {
    expect(visibleRows(40, 0, 360)).toEqual({ first: 0, end: 40 });
  });

  it("are those in sight and a few on both sides", () => {
    expect(visibleRows(1000, 0, 10 * ROW_PX)).toEqual({ first: 0, end: 26 });
    expect(visibleRows(1000, 500 * ROW_PX, 10 * ROW_PX)).toEqual({ first: 492, end: 518 });
  });

  it("reach the last one at the end", () => {
    expect(visibleRows(1000, 990 * ROW_PX, 10 * ROW_PX)).toEqual({ first: 974, end: 1000 });
  });

  it("stay within the table when it has become shorter than it was scrolled", () => {
    expect(visibleRows(60, 900 * ROW_PX, 10 * ROW_PX)).toEqual({ first: 34, end: 60 });
  });
});
