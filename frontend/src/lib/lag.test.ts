import { expect, test } from "vitest";
import { growth, lagInBrief, secondsBehind } from "./lag";

test("growth has a sign, and nothing where it is not known", () => {
  expect(growth(2048)).toEqual({ value: "+2", unit: "KiB/s" });
  expect(growth(-1024)).toEqual({ value: "−1", unit: "KiB/s" });
  expect(growth(0)).toEqual({ value: "0", unit: "B/s" });
  expect(growth(null)).toEqual({ value: "–", unit: "" });
});

test("in brief says for how long it waits and when it is worked off or full", () => {
  expect(lagInBrief({ bytes: 0, age_seconds: 0, seconds: 0, seconds_to_full: null })).toBe("");
  expect(lagInBrief({ bytes: 10, seconds: null, age_seconds: 300, seconds_to_full: 7200 })).toBe(
    "for 5 min, full in 2 h",
  );
});

test("behind is what waits, and what a destination that does not run has not applied", () => {
  const latency = { p99_ms: 3, at_least: false };
  const well = { status: "ENABLED" as const, lag: { bytes: 10, age_seconds: 5 }, latency };
  expect(secondsBehind(well)).toBeNull();
  expect(secondsBehind({ ...well, status: "DISABLED" })).toBe(5);
  expect(secondsBehind({ ...well, status: "ABORTED", lag: { bytes: 0, age_seconds: 5 } })).toBeNull();
  expect(secondsBehind({ ...well, lag: { bytes: 10, age_seconds: 300 } })).toBe(300);
  expect(secondsBehind({ ...well, latency: { p99_ms: 20_000, at_least: true } })).toBe(20);
});
