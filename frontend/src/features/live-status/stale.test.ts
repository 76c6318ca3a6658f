import { describe, expect, it } from "vitest";
import { isStale, STALE_AFTER_MS } from "./stale";

const at = "2026-11-21T00:00:00Z";
const now = Date.parse(at) + STALE_AFTER_MS + 1;

const running = { desired_status: "ENABLED", status: "ENABLED", observed_at: at, sampled_at: at };

describe("isStale", () => {
  it("is true when a running stream's numbers have stopped", () => {
    expect(isStale(running, now)).toBe(true);
    expect(isStale(running, now - 2)).toBe(false);
  });

  it("is true when the last sample has expired", () => {
    expect(isStale({ ...running, sampled_at: null }, now - 2)).toBe(true);
    expect(isStale({ ...running, status: "UNKNOWN", sampled_at: null }, now)).toBe(true);
  });

  it("is false for a stopped stream, and for one that has not started yet", () => {
    expect(isStale({ ...running, desired_status: "DISABLED" }, now)).toBe(false);
    expect(isStale({ ...running, status: "UNKNOWN", observed_at: null, sampled_at: null }, now)).toBe(false);
    expect(isStale({ ...running, status: "DISABLED", sampled_at: null }, now - 2)).toBe(false);
  });
});
