import { describe, expect, it } from "vitest";
import { initialCopy, parallelism } from "@/test/data";
import {
  anyFault,
  byComponent,
  byNeed,
  changedValues,
  defaults,
  parameterFault,
  rangeInWords,
} from "./parameter-values";

describe("parameters", () => {
  it.each([
    [4, null],
    [0, "At least 1."],
    [65, "At most 64."],
    [1.5, "Enter a whole number."],
    ["", "Enter a whole number."],
  ])("parallelism %s: %s", (value, fault) => {
    expect(parameterFault(parallelism, value)).toBe(fault);
  });

  it("sends only what differs", () => {
    const base = defaults([parallelism, initialCopy]);
    expect(changedValues(base, { parallelism: 8, initial_copy: true })).toEqual({ parallelism: 8 });
  });

  it("finds a fault anywhere", () => {
    expect(anyFault([parallelism, initialCopy], { parallelism: 0 })).toBe(true);
    expect(anyFault([parallelism, initialCopy], {})).toBe(false);
  });

  it("says range, unit and default", () => {
    expect(rangeInWords(parallelism)).toBe("1 to 64 appliers, default 4");
    expect(rangeInWords(initialCopy)).toBe("default on");
  });

  it("groups by component in order", () => {
    expect(byComponent([parallelism, initialCopy]).map(([component]) => component)).toEqual([
      "APPLY",
      "INSTANTIATION",
    ]);
  });
});

it("are basic when people ask about them, else advanced", () => {
  const rare = { ...parallelism, name: "metadata_cache_mb" };
  expect(byNeed([parallelism, rare, initialCopy])).toEqual({
    basic: [parallelism, initialCopy],
    advanced: [rare],
  });
});
