import { describe, expect, it } from "vitest";
import { changedFields } from "./changed-fields";

describe("changedFields", () => {
  it("lists what differs", () => {
    expect(changedFields({ a: 1, b: "x", c: [1] }, { a: 2, b: "x", c: [1] })).toEqual([
      { field: "a", before: "1", after: "2" },
    ]);
  });

  it("writes times as the rest of the page does", () => {
    const [change] = changedFields(null, { until: "2026-11-23T15:17:01.313547+00:00" });
    expect(change?.after).toMatch(/^2026-11-2\d \d{2}:17:01$/);
  });

  it("lists everything of what was created or deleted", () => {
    expect(changedFields(null, { a: "x" })).toEqual([{ field: "a", before: null, after: "x" }]);
    expect(changedFields({ a: "x" }, null)).toEqual([{ field: "a", before: "x", after: null }]);
  });
});
