import { describe, expect, it } from "vitest";
import { latencyShown, latencyValue, p99OfSpan } from "./latency-shown";

const NOW = Date.parse("2026-11-23T00:00:30Z");
const last = { p50_ms: 1.5, p99_ms: 4, at: "2026-11-23T00:00:18Z" };
const idle = { p50_ms: null, p99_ms: null, transactions: 0, last };

describe("p99OfSpan", () => {
  it.each([
    [null, null, { value: null, atLeast: false }],
    [2, null, { value: 2, atLeast: false }],
    [2, undefined, { value: 2, atLeast: false }],
    [2, 240, { value: 240, atLeast: true }],
    [300, 240, { value: 300, atLeast: false }],
    [null, 240, { value: 240, atLeast: true }],
  ])("of %s and at least %s", (p99, atLeast, shown) => {
    expect(p99OfSpan(p99, atLeast)).toEqual(shown);
  });
});

describe("latencyShown", () => {
  it("is the interval's where anything came in it", () => {
    const busy = { p50_ms: 2, p99_ms: 3, transactions: 7, last };
    expect(latencyShown(busy, "p50_ms", NOW)).toEqual({ quantity: { value: "2", unit: "ms" }, ago: null });
    expect(latencyValue(busy, "p99_ms")).toBe(3);
  });

  it("is the last heartbeat's with its age where nothing came", () => {
    expect(latencyShown(idle, "p99_ms", NOW)).toEqual({
      quantity: { value: "4", unit: "ms" },
      ago: "12 s ago",
    });
    expect(latencyValue(idle, "p50_ms")).toBe(1.5);
  });

  it("is at least the age of what waits where nothing comes", () => {
    const dead = { p50_ms: null, p99_ms: 240_000, transactions: 0, last: null, at_least: true };
    expect(latencyShown(dead, "p99_ms", NOW)).toEqual({ quantity: { value: "≥ 4", unit: "min" }, ago: null });
    expect(latencyShown(dead, "p50_ms", NOW).quantity.value).toBe("–");
  });

  it("is unknown where nothing ever came", () => {
    const never = { p50_ms: null, p99_ms: null, transactions: 0, last: null };
    expect(latencyShown(never, "p50_ms", NOW).ago).toBeNull();
    expect(latencyValue(never, "p50_ms")).toBeNull();
  });
});
