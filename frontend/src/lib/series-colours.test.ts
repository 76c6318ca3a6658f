import { describe, expect, it } from "vitest";
import { coloursOf, destinationColour } from "./series-colours";

const coloursOfLabels = (labels: string[]) => coloursOf(labels.map((label) => ({ label })));

describe("the colours of a chart's lines", () => {
  it("are those of the thing, whatever stands beside it", () => {
    expect(coloursOfLabels(["Capture", "Apply reader", "Applied"])).toEqual([1, 2, 3]);
    expect(coloursOfLabels(["Capture", "Sender", "Receiver", "Apply reader", "Applied"])).toEqual([
      1, 5, 6, 2, 3,
    ]);
    expect(coloursOfLabels(["p50", "p99"])).toEqual([1, 3]);
  });

  it("differ within a chart", () => {
    const labels = ["Capture", "Apply reader", "Coordinator", "Applier 1", "Applier 2", "Applier 3"];
    expect(new Set(coloursOfLabels(labels)).size).toBe(labels.length);
    const mined = ["WAL shipment", "Builder", ...labels];
    expect(new Set(coloursOfLabels(mined)).size).toBe(mined.length);
    const [near] = coloursOfLabels(["near"]);
    expect(coloursOf([{ label: "near" }, { label: "far", own: near }])[0]).not.toBe(near);
    const many = Array.from({ length: 12 }, (_, place) => `figure ${place}`);
    expect(new Set(coloursOfLabels(many)).size).toBe(12);
  });

  it("follow from what is drawn, not from its place or from what stands beside it", () => {
    for (const label of ["Applier 2", "Applier 4", "WAL shipment", "Builder", "near"]) {
      const [alone] = coloursOfLabels([label]);
      expect(coloursOfLabels([label, "Capture", "Coordinator"])[0]).toBe(alone);
      expect(coloursOfLabels(["Capture", "Applier 1", label])[2]).toBe(alone);
    }
  });

  it("of destinations differ from each other and from the components that are charted beside them", () => {
    const destinations = Array.from({ length: 8 }, (_, place) => destinationColour(place));
    const beside = coloursOfLabels(["Capture", "Sender", "Receiver", "Apply reader"]);
    expect(new Set([...destinations, ...beside]).size).toBe(12);
    expect(destinations[0]).toBe(coloursOfLabels(["Applied"])[0]);
  });
});
