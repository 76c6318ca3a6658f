import { describe, expect, it } from "vitest";
import { coloursOf } from "./series-colours";

describe("the colours of a chart's lines", () => {
  it("are those of the thing, whatever stands beside it", () => {
    expect(coloursOf(["Capture", "Apply reader", "Applied"])).toEqual([1, 2, 3]);
    expect(coloursOf(["Capture", "Sender", "Receiver", "Apply reader", "Applied"])).toEqual([1, 5, 6, 2, 3]);
    expect(coloursOf(["p50", "p99"])).toEqual([1, 3]);
  });

  it("differ within a chart", () => {
    const labels = ["Capture", "Apply reader", "Coordinator", "Applier 1", "Applier 2", "Applier 3"];
    expect(new Set(coloursOf(labels)).size).toBe(labels.length);
    expect(coloursOf(["near", "far"])).toEqual([1, 2]);
  });
});
