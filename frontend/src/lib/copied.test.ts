import { describe, expect, it } from "vitest";
import { copiedShare } from "./share";

describe("copiedShare", () => {
  it.each([
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
